"""Discovery: the server's metadata, then the authorization server's (RFC 9728, RFC 8414)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from ... import types as t
from ...http11.fetch import Request
from .addresses import canonical, identifies, metadata_places, origin, resource_places, usable
from .challenges import Challenge
from .documents import ProtectedResource, ServerMetadata, read_document
from .errors import Unauthorized
from .steps import Got, Note, Procedure, SendRequest

REVISION = "2026-07-28"  # the revision of these rules; sent for servers that check it (`AU2-04`)
_HEADERS = (("Accept", "application/json"), ("MCP-Protocol-Version", REVISION))
_STEP = "discovery"


class Site(Struct, frozen=True, kw_only=True):
    """What is known about the authorization of a server.

    Attributes:
        resource: The identifier of the server.
        metadata: The metadata of the chosen authorization server.
        document: The URL of that metadata.
        protected: The metadata of the server.
        legacy: Whether the server has no metadata, so that the rules of 2025-03-26 apply: its
            origin is its authorization server.
        assumed: Whether the authorization server has no metadata either, so that its endpoints have
            the paths that 2025-03-26 defines.
    """

    resource: str
    metadata: ServerMetadata
    document: str  # the URL of the metadata
    protected: ProtectedResource | None = None
    legacy: bool = False
    assumed: bool = False


def find_site(
    server: str,
    challenge: Challenge | None,
    *,
    issuer: str | None = None,
    known: Sequence[str] = (),
    no_pkce_word: bool = False,
) -> Procedure[Site]:
    """Find the authorization server of the MCP server at a URL, and its metadata.

    Args:
        server: The URL of the MCP server.
        challenge: The challenge of a 401 response.
        issuer: The only authorization server that the client can use.
        known: The authorization servers that are preferred if the server trusts several (`AU3-08`).
        no_pkce_word: Accepts an authorization server that does not declare PKCE.

    Raises:
        Unauthorized: There is no usable authorization server.
    """
    protected, document = yield from find_resource(server, challenge)
    if protected is None:
        return (yield from _legacy_site(server, issuer, no_pkce_word))
    chosen = _choose(protected, document, issuer, known)
    yield Note(_STEP, f"the authorization server is {chosen}", document)
    metadata, place = yield from find_metadata(chosen)
    if not no_pkce_word:
        check_pkce(metadata, place)
    return Site(resource=protected.resource, metadata=metadata, document=place, protected=protected)


def find_resource(
    server: str, challenge: Challenge | None
) -> Procedure[tuple[ProtectedResource | None, str]]:
    """The server's own metadata, and its URL.

    None if the server has none, as before 2025-06-18 (`AU3-04` to `AU3-07`).
    """
    named = challenge.parameters.get("resource_metadata") if challenge is not None else None
    if named:
        usable(
            named,
            what="resource_metadata",
            step=_STEP,
            document=f"WWW-Authenticate of {server}",
            culprit="server",
        )
        got = yield from _get(named)
        if isinstance(got, Got) and got.status == 200:
            return (yield from _checked(got, server, named)), named
        yield Note(
            _STEP, f"the challenge names a document that is not available ({_how(got)})", named
        )
    silent = named is not None
    why = ""
    for place in resource_places(server):
        if place == named:
            continue
        got = yield from _get(place)
        if isinstance(got, Got) and got.status == 200 and _is_object(got.body):
            return (yield from _checked(got, server, place)), place
        yield Note(_STEP, f"no metadata here ({_how(got)})", place)
        silent = silent or isinstance(got, str) or got.status >= 500
        why = _how(got)
    if silent:
        raise Unauthorized(
            _STEP,
            f"the server's protected resource metadata is not available ({why})",
            document=named or resource_places(server)[0],
            expected="its metadata (RFC 9728)",
            advice="The operator of the server must publish it.",
        )
    return None, ""


def _checked(got: Got, server: str, place: str) -> Procedure[ProtectedResource]:
    protected = read_document(
        got.body, ProtectedResource, step=_STEP, document=place, culprit="server"
    )
    if not identifies(protected.resource, server):
        raise Unauthorized(
            _STEP,
            f"the document is about {protected.resource!r}",
            document=place,
            expected=(f"a `resource` that is {canonical(server)}"),
            advice=(
                "A token for another server must not be sent here. Either the address is "
                "wrong, or the operator of the server must correct the document."
            ),
        )
    if not protected.authorization_servers:
        raise Unauthorized(
            _STEP,
            "the document names no authorization server",
            document=place,
            expected="at least one in `authorization_servers`",
        )
    yield Note(
        _STEP,
        f"the server's metadata: {protected.resource}, authorization servers "
        f"{', '.join(protected.authorization_servers)}",
        place,
    )
    return protected


def _choose(
    protected: ProtectedResource, document: str, issuer: str | None, known: Sequence[str]
) -> str:
    servers = protected.authorization_servers
    if issuer is not None and issuer not in servers:
        raise Unauthorized(
            _STEP,
            f"the server now trusts {', '.join(servers)}",
            document=document,
            expected=(f"{issuer}, where this client is registered"),
            advice=(
                "Register the client with the new authorization server, and give its credentials "
                "and issuer here."
            ),
            culprit="client",
        )
    chosen = issuer or next((server for server in servers if server in known), servers[0])
    return usable(
        chosen, what="the authorization server", step=_STEP, document=document, culprit="server"
    )


def find_metadata(issuer: str) -> Procedure[tuple[ServerMetadata, str]]:
    """The metadata of an authorization server, and its URL (`AU3-11` to `AU3-13`).

    Raises Unauthorized.
    """
    tried: list[str] = []
    for place in metadata_places(issuer):
        got = yield from _get(place)
        if isinstance(got, str) or got.status != 200 or not _is_object(got.body):
            tried.append(f"{place} ({_how(got)})")
            yield Note(_STEP, f"no metadata here ({_how(got)})", place)
            continue
        metadata = read_document(got.body, ServerMetadata, step=_STEP, document=place)
        if metadata.issuer != issuer:
            raise Unauthorized(
                _STEP,
                f"the document belongs to {metadata.issuer!r}",
                document=place,
                expected=(f"exactly {issuer!r} as `issuer`"),
                advice=(
                    "One of them may impersonate the other, so the document is not used. "
                    "The operator must make the two values equal."
                ),
                culprit="authorization server",
            )
        yield Note(_STEP, "the authorization server's metadata", place)
        return metadata, place
    raise Unauthorized(
        _STEP,
        (
            f"the authorization server {issuer} does not publish its endpoints; tried "
            f"{', '.join(tried)}"
        ),
        expected="its metadata (RFC 8414 or OpenID Connect Discovery)",
        culprit="authorization server",
    )


def check_pkce(metadata: ServerMetadata, document: str) -> None:
    """Raise Unauthorized if an authorization server does not declare PKCE with S256 (`AU3-14`,
    `AUF-02`).
    """
    methods = metadata.code_challenge_methods_supported
    if metadata.authorization_endpoint is not None and (methods is None or "S256" not in methods):
        raise Unauthorized(
            _STEP,
            "the authorization server does not declare PKCE",
            document=document,
            expected="S256 in `code_challenge_methods_supported`",
            advice=(
                "Its operator must declare it there. If you know that it supports PKCE, "
                "pass assume_pkce=True."
            ),
            culprit="authorization server",
        )


def _legacy_site(server: str, issuer: str | None, no_pkce_word: bool) -> Procedure[Site]:
    """The rules of 2025-03-26: the origin of the server is its own authorization server (`AU2-01`
    to `AU2-05`).
    """
    base = origin(server)
    usable(base, what="the server's address", step=_STEP, document=server, culprit="server")
    if issuer is not None and issuer.rstrip("/") != base:
        raise Unauthorized(
            _STEP,
            f"the server {server} names no authorization server",
            expected=(f"{issuer}, where this client is registered"),
            advice="The operator of the server must publish its metadata (RFC 9728).",
        )
    place = f"{base}/.well-known/oauth-authorization-server"
    got = yield from _get(place)
    if isinstance(got, Got) and got.status == 200 and _is_object(got.body):
        metadata = read_document(got.body, ServerMetadata, step=_STEP, document=place)
        if metadata.issuer.rstrip("/") != base:
            raise Unauthorized(
                _STEP,
                f"the document belongs to {metadata.issuer!r}",
                document=place,
                expected=(f"exactly {base!r} as `issuer`"),
                culprit="authorization server",
            )
        if not no_pkce_word:
            check_pkce(metadata, place)
        yield Note(_STEP, "the server is its own authorization server (2025-03-26)", place)
        return Site(resource=canonical(server), metadata=metadata, document=place, legacy=True)
    yield Note(
        _STEP,
        f"no metadata here ({_how(got)}); the default endpoints of 2025-03-26 are used",
        place,
    )
    assumed = ServerMetadata(
        issuer=base,
        authorization_endpoint=f"{base}/authorize",
        token_endpoint=f"{base}/token",
        registration_endpoint=f"{base}/register",
    )
    return Site(
        resource=canonical(server), metadata=assumed, document=place, legacy=True, assumed=True
    )


def _get(place: str) -> Procedure[Got | str]:
    """Fetch a possible address of a document. The result is the response, or text that says why
    there is none.
    """
    try:
        got: Got = yield SendRequest(Request("GET", place, _HEADERS), _STEP)
    except t.Unreachable as bad:
        if (
            bad.status is not None and 300 <= bad.status < 400
        ):  # it responded, but with a redirect, such as to a login page
            return Got(bad.status, {}, b"")
        return str(bad).rstrip(".")
    return got


def _how(got: Got | str) -> str:
    if isinstance(got, str):
        return got
    return f"status {got.status}" if got.status != 200 else "a body that is not JSON"


def _is_object(body: bytes) -> bool:
    """Whether a body is a JSON object: many sites respond to every request with 200 and a page."""
    try:
        return isinstance(msgspec.json.decode(body), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
