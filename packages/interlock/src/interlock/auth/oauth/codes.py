"""The authorization code grant with PKCE: the address to visit, and the checks of the answer."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from typing import ClassVar
from urllib.parse import parse_qsl, urlencode

from ...redaction.records import SecretRecord
from .documents import ServerMetadata
from .errors import Culprit, Denied, Unauthorized

_STEP = "log-in"


class AuthorizationRequest(SecretRecord, frozen=True, kw_only=True):
    """The parameters of an authorization request, kept to check its response (`AUF-07`)."""

    shows: ClassVar[tuple[str, ...]] = ("issuer", "redirect_uri")

    issuer: str
    says_issuer: bool  # whether the authorization server declares that its responses contain `iss`
    state: str
    verifier: str
    redirect_uri: str


def challenge_of(verifier: str) -> str:
    """The code challenge of a verifier (RFC 7636, 4.2, S256)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def address(
    endpoint: str,
    request: AuthorizationRequest,
    *,
    client_id: str,
    resource: str,
    scopes: Sequence[str],
    thumbprint: str | None = None,
    prompt: str | None = None,
) -> str:
    """The URL of the authorization request (`AUF-01` to `AUF-03`)."""
    asked = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": request.redirect_uri,
        "state": request.state,
        "code_challenge": challenge_of(request.verifier),
        "code_challenge_method": "S256",
        "resource": resource,
    }
    if scopes:
        asked["scope"] = " ".join(scopes)
    if prompt is not None:
        asked["prompt"] = prompt
    if thumbprint is not None:
        asked["dpop_jkt"] = thumbprint  # RFC 9449, 10
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}"


def authorization_request(
    metadata: ServerMetadata, *, state: str, verifier: str, redirect_uri: str
) -> AuthorizationRequest:
    """The parameters of an authorization request, kept to check its response."""
    return AuthorizationRequest(
        issuer=metadata.issuer,
        says_issuer=metadata.authorization_response_iss_parameter_supported is True,
        state=state,
        verifier=verifier,
        redirect_uri=redirect_uri,
    )


def code_from(query: str, request: AuthorizationRequest) -> str:
    """Return the code of an authorization response, after checking that it belongs to this request
    and comes from the right authorization server.

    An error never quotes a response from elsewhere (`AUT-13`, `AUF-08` to `AUF-11`).

    Raises:
        Denied: The user refused.
        Unauthorized: The response is an error, or invalid.
    """
    parameters: dict[str, str] = {}
    try:
        pairs = parse_qsl(
            query.partition("#")[0].removeprefix("?"), keep_blank_values=True, max_num_fields=100
        )
    except ValueError:
        raise _strange(
            "the answer has more than a hundred parameters", "a code and a state", request
        ) from None
    for name, value in pairs:
        if name in parameters and name in ("state", "iss", "code", "error"):
            raise _strange(f"the answer has {name} twice", "each parameter once", request)
        parameters.setdefault(name, value)
    if not hmac.compare_digest(parameters.get("state", "").encode(), request.state.encode()):
        raise _strange(
            "the answer does not belong to this request (`state` differs)",
            "the state that was sent",
            request,
            "client",
        )
    said = parameters.get("iss")
    if said is None and request.says_issuer:
        raise _strange(
            "the answer does not name its authorization server",
            f"iss={request.issuer}",
            request,
            advice=_WHOLE,
        )
    if said is not None and said != request.issuer:
        raise _strange(
            "the answer comes from another authorization server", f"iss={request.issuer}", request
        )
    if "error" in parameters:
        code = parameters["error"]
        words = parameters.get("error_description", "")
        kind = Denied if code == "access_denied" else Unauthorized
        shown = "".join(
            c if c.isprintable() else "?" for c in (f"{code}: {words}" if words else code)[:300]
        )
        culprit: Culprit = "person" if kind is Denied else "authorization server"
        raise kind(
            _STEP,
            f"the authorization server refused ({shown})",
            document=request.issuer,
            culprit=culprit,
            code=code,
        )
    if not parameters.get("code"):
        raise _strange("the answer has no code", "code=...", request)
    return parameters["code"]


_INTERFERING = (
    "The code was not sent to anyone. Log in again; if this happens again, somebody may "
    "be interfering."
)
_WHOLE = (
    "If you pasted a code, paste the whole address that the browser shows at the end. "
    f"{_INTERFERING}"
)


def _strange(
    what: str,
    expected: str,
    request: AuthorizationRequest,
    culprit: Culprit = "authorization server",
    advice: str = _INTERFERING,
) -> Unauthorized:
    return Unauthorized(
        _STEP,
        what,
        document=request.redirect_uri,
        expected=expected,
        advice=advice,
        culprit=culprit,
    )
