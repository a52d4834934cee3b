"""Authorization server metadata (RFC 8414, 3; OpenID Connect Discovery 1.0, 4)."""

from __future__ import annotations

from typing import Any

import msgspec

from interlock.auth.oauth import ServerMetadata
from interlock.auth.tokens import ASYMMETRIC

from .clients.registry import METHODS
from .grants.trusted_issuers import TrustedIssuers
from .settings import BEARER, CODE, CREDENTIALS, DEVICE, EXCHANGE, OFFLINE, REFRESH, Settings

_OAUTH = "/.well-known/oauth-authorization-server"
_OPENID = "/.well-known/openid-configuration"


def places(settings: Settings) -> frozenset[str]:
    """The paths of the document: behind the host, as both standards have it today, and behind the
    whole address, as one of them had.
    """
    return frozenset(
        {f"{_OAUTH}{settings.path}", f"{_OPENID}{settings.path}", f"{settings.path}{_OPENID}"}
    )


def document(settings: Settings, trust: TrustedIssuers) -> dict[str, Any]:
    """The document (AU3-09, AU3-10, AU3-15, AUF-13, CCR-05, DPP-07)."""
    confidential = [method for method in METHODS if method != "none"]
    metadata = ServerMetadata(
        issuer=settings.url,
        authorization_endpoint=settings.endpoint("authorize"),
        token_endpoint=settings.endpoint("token"),
        registration_endpoint=settings.endpoint("register") if settings.registration else None,
        revocation_endpoint=settings.endpoint("revoke"),
        introspection_endpoint=settings.endpoint("introspect"),
        device_authorization_endpoint=settings.endpoint("device_authorization"),
        jwks_uri=settings.endpoint("jwks"),
        scopes_supported=[*settings.scopes, *([] if OFFLINE in settings.scopes else [OFFLINE])],
        response_types_supported=["code"],
        response_modes_supported=["query"],
        grant_types_supported=[
            CODE,
            REFRESH,
            CREDENTIALS,
            DEVICE,
            EXCHANGE,
            *([BEARER] if trust else []),
        ],
        subject_types_supported=["public"],
        id_token_signing_alg_values_supported=[
            settings.algorithm
        ],  # OpenID Connect wants it said, though none are given here
        code_challenge_methods_supported=["S256"],
        token_endpoint_auth_methods_supported=list(METHODS),
        token_endpoint_auth_signing_alg_values_supported=list(ASYMMETRIC),
        revocation_endpoint_auth_methods_supported=list(METHODS),
        introspection_endpoint_auth_methods_supported=confidential,
        authorization_response_iss_parameter_supported=True,
        client_id_metadata_document_supported=settings.cimd,
        dpop_signing_alg_values_supported=None if settings.dpop == "off" else list(ASYMMETRIC),
        authorization_grant_profiles_supported=trust.profiles or None,
    )
    fields: dict[str, Any] = msgspec.to_builtins(metadata)
    return fields
