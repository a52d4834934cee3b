"""The documents of OAuth that MCP uses, as types, with clear errors for invalid ones."""

from __future__ import annotations

import math
import re
from typing import Any, ClassVar, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ...redaction.records import SecretRecord
from .errors import Culprit, Unauthorized

D = TypeVar("D", bound=Struct)
LONGEST_DOCUMENT = 1024 * 1024  # bytes
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?([0-9]{1,10})", re.IGNORECASE)
_UNKEPT = re.compile(r"\bno-(?:store|cache)\b", re.IGNORECASE)


def cache_seconds(control: str, *, least: float, usual: float, most: float) -> float:
    """Return how long a document may be cached, by its Cache-Control header (RFC 9111, 5.2), within
    bounds.

    The lower bound also holds for `no-store`. Otherwise an attacker could cause a fetch with every
    request.

    Args:
        control: The value of the header.
        least: The lower bound, in seconds.
        usual: The result without a `max-age`, in seconds.
        most: The upper bound, in seconds.
    """
    if _UNKEPT.search(control):
        return least
    age = _MAX_AGE.search(control)
    return usual if age is None else min(max(float(age[1]), least), most)


class ProtectedResource(Struct, kw_only=True, omit_defaults=True):
    """Protected resource metadata (RFC 9728, 2)."""

    resource: str
    authorization_servers: list[str] = []
    scopes_supported: list[str] | None = None
    bearer_methods_supported: list[str] | None = None
    resource_name: str | None = None
    resource_documentation: str | None = None
    jwks_uri: str | None = None
    resource_signing_alg_values_supported: list[str] | None = None
    dpop_signing_alg_values_supported: list[str] | None = None
    dpop_bound_access_tokens_required: bool | None = None
    authorization_details_types_supported: list[str] | None = None


class ServerMetadata(Struct, kw_only=True, omit_defaults=True):
    """Authorization server metadata (RFC 8414, 2; OpenID Connect Discovery 1.0, 3)."""

    issuer: str
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    introspection_endpoint: str | None = None
    device_authorization_endpoint: str | None = None
    userinfo_endpoint: str | None = None
    end_session_endpoint: str | None = None
    jwks_uri: str | None = None
    scopes_supported: list[str] | None = None
    response_types_supported: list[str] | None = None
    response_modes_supported: list[str] | None = None
    grant_types_supported: list[str] | None = None
    subject_types_supported: list[str] | None = None
    id_token_signing_alg_values_supported: list[str] | None = None
    code_challenge_methods_supported: list[str] | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None
    token_endpoint_auth_signing_alg_values_supported: list[str] | None = None
    revocation_endpoint_auth_methods_supported: list[str] | None = None
    introspection_endpoint_auth_methods_supported: list[str] | None = None
    authorization_response_iss_parameter_supported: bool | None = None
    client_id_metadata_document_supported: bool | None = None
    dpop_signing_alg_values_supported: list[str] | None = None
    authorization_grant_profiles_supported: list[str] | None = None
    service_documentation: str | None = None


class ClientMetadata(Struct, kw_only=True, omit_defaults=True):
    """Client metadata: of a registration (RFC 7591, 2), or of the document behind a client ID that
    is a URL.
    """

    client_id: str | UnsetType = UNSET  # only in a client ID metadata document
    redirect_uris: list[str] = []
    client_name: str | None = None
    client_uri: str | None = None
    logo_uri: str | None = None
    tos_uri: str | None = None
    policy_uri: str | None = None
    contacts: list[str] | None = None
    scope: str | None = None
    grant_types: list[str] | None = None
    response_types: list[str] | None = None
    token_endpoint_auth_method: str | None = None
    token_endpoint_auth_signing_alg: str | None = None
    application_type: str | None = None
    jwks_uri: str | None = None
    jwks: dict[str, Any] | None = None
    software_id: str | None = None
    software_version: str | None = None
    dpop_bound_access_tokens: bool | None = None


class Registered(SecretRecord, frozen=True, kw_only=True, omit_defaults=True):
    """The response to a client registration (RFC 7591, 3.2.1).

    `client_secret_expires_at` is 0 if the secret does not expire.
    """

    shows: ClassVar[tuple[str, ...]] = ("client_id",)

    client_id: str
    client_secret: str | None = None
    client_id_issued_at: float | None = None
    client_secret_expires_at: float | None = None
    registration_access_token: str | None = None
    registration_client_uri: str | None = None
    redirect_uris: list[str] | None = None
    grant_types: list[str] | None = None
    token_endpoint_auth_method: str | None = None
    scope: str | None = None


class TokenAnswer(SecretRecord, frozen=True, kw_only=True, omit_defaults=True):
    """The response of a token endpoint (RFC 6749, 5.1; RFC 8693, 2.2.1)."""

    shows: ClassVar[tuple[str, ...]] = ("token_type", "expires_in", "scope")

    access_token: str
    token_type: str = "Bearer"
    expires_in: float | str | None = None  # a number; some servers send a string
    refresh_token: str | None = None
    scope: str | None = None
    id_token: str | None = None
    issued_token_type: str | None = None

    @property
    def seconds(self) -> float | None:
        """The lifetime of the token in seconds; None if it is missing or not a positive number."""
        try:
            seconds = math.nan if self.expires_in is None else float(self.expires_in)
        except ValueError:
            return None
        return seconds if math.isfinite(seconds) and seconds > 0 else None


class DeviceAnswer(SecretRecord, frozen=True, kw_only=True, omit_defaults=True):
    """The response of a device authorization endpoint (RFC 8628, 3.2); times in seconds."""

    shows: ClassVar[tuple[str, ...]] = ("verification_uri",)

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str | None = None
    expires_in: float = 600
    interval: float = 5


class ErrorAnswer(Struct, kw_only=True, omit_defaults=True):
    """The error response of an endpoint (RFC 6749, 5.2)."""

    error: str
    error_description: str | None = None
    error_uri: str | None = None


def read_document(
    body: bytes,
    kind: type[D],
    *,
    step: str,
    document: str,
    culprit: Culprit = "authorization server",
) -> D:
    """Decode a document. Members that the type does not have are ignored.

    Raises Unauthorized; it names the invalid member.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as bad:
        raise Unauthorized(
            step,
            f"the document is invalid: {bad}",
            document=document,
            expected=f"a JSON object as {_SOURCES[kind]} defines it",
            culprit=culprit,
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise Unauthorized(
            step,
            f"that is not JSON ({bad})",
            document=document,
            expected=f"a JSON object as {_SOURCES[kind]} defines it",
            culprit=culprit,
        ) from None


def read_error(body: bytes) -> ErrorAnswer | None:
    """The OAuth error in a body; None for any other body."""
    try:
        return msgspec.json.decode(body, type=ErrorAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


_SOURCES: dict[type[Struct], str] = {
    ProtectedResource: "RFC 9728",
    ServerMetadata: "RFC 8414",
    ClientMetadata: "RFC 7591",
    Registered: "RFC 7591",
    TokenAnswer: "RFC 6749",
    DeviceAnswer: "RFC 8628",
    ErrorAnswer: "RFC 6749",
}
