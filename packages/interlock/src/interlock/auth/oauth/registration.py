"""Client registration: known before, by a metadata document, or dynamic (RFC 7591)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...http11.fetch import Request
from .addresses import is_loopback, usable
from .discovery import Site
from .documents import ClientMetadata, Registered, read_document, read_error
from .errors import Unauthorized
from .grants import secret_method
from .members import Member
from .posts import post
from .steps import Got, LoadRegistration, Note, Procedure, SaveRegistration

_STEP = "registration"


class ClientIdentity(Struct, frozen=True, kw_only=True):
    """How a client identifies itself.

    Attributes:
        given: A client that was registered beforehand. If its issuer is empty, it is bound to the
            first authorization server that is discovered.
        document: The https URL of the client ID metadata document.
        name: The name that the person sees.
        uri: The address that the person sees.
        dpop: Whether the client binds its tokens to a key.
    """

    given: Member | None = None
    document: str | None = None
    name: str = "Interlock"
    uri: str | None = None
    dpop: bool = False


def member_of(
    site: Site, identity: ClientIdentity, redirect_uri: str, *, scopes: Sequence[str], now: float
) -> Procedure[Member]:
    """The client as the authorization server of a site knows it, in the order that the
    specification defines (`AUR-04`).

    Raises Unauthorized if the client cannot be registered.
    """
    issuer = site.metadata.issuer
    if identity.given is not None:
        yield Note(_STEP, f"registered before, as {identity.given.client_id}")
        return (yield from _given(identity.given, issuer))
    if identity.document is not None and site.metadata.client_id_metadata_document_supported:
        yield Note(_STEP, "by the client's metadata document", identity.document)
        return Member(issuer=issuer, client_id=check_document(identity.document), source="document")
    kept: Member | None = yield LoadRegistration(issuer)
    if kept is not None and _serves(kept, redirect_uri, scopes, now):
        yield Note(_STEP, f"registered here before, as {kept.client_id}")
        return kept
    if site.metadata.registration_endpoint is None:
        raise Unauthorized(
            _STEP,
            f"the authorization server {issuer} does not register clients dynamically",
            document=site.document,
            expected="`registration_endpoint`"
            + ("" if identity.document is None else " or `client_id_metadata_document_supported`"),
            advice=(
                "Register this client there manually, and give its client_id (and "
                "client_secret, if it has one)."
            ),
            culprit="client",
        )
    member = yield from register(site, identity, redirect_uri, scopes=scopes)
    yield SaveRegistration(issuer, member)
    return member


def _given(given: Member, issuer: str) -> Procedure[Member]:
    """A client that was registered beforehand, bound to its issuer: the given one, or the first one
    that was discovered (`AUR-17`, `AUR-19`).
    """
    bound = given.issuer
    if not bound:
        kept: Member | None = yield LoadRegistration(f"given {given.client_id}")
        bound = kept.issuer if kept is not None else issuer
        if kept is None:
            yield SaveRegistration(
                f"given {given.client_id}", replace(given, issuer=issuer, client_secret=None)
            )
    if bound != issuer:
        raise Unauthorized(
            _STEP,
            f"the client {given.client_id} is registered at {bound}, but the server now trusts "
            f"{issuer}",
            expected=bound,
            advice=(
                "Register the client at the new authorization server and give its new "
                "credentials, with issuer=."
            ),
            culprit="client",
        )
    return replace(given, issuer=issuer)


def check_document(url: str) -> str:
    """Return the URL of a client ID metadata document.

    Raises ValueError unless it is https with a path (`AUR-05`).
    """
    try:
        usable(
            url, what="the client's metadata document", step=_STEP, document=url, culprit="client"
        )
        good = url.startswith("https://") and bool(url[8:].partition("/")[2])
    except Unauthorized:
        good = False
    if not good:
        raise ValueError(
            f"{url!r} cannot be a client's document: that is an https address with a path"
        )
    return url


def _serves(member: Member, redirect_uri: str, scopes: Sequence[str], now: float) -> bool:
    """Whether an earlier registration is still valid, and covers these scopes and this redirect
    URI.
    """
    lasts = member.until is None or member.until > now + 30
    return (
        lasts
        and (not redirect_uri or redirect_uri in member.redirect_uris)
        and (member.scopes is None or {*scopes} <= {*member.scopes})
    )


def register(
    site: Site, identity: ClientIdentity, redirect_uri: str, *, scopes: Sequence[str] = ()
) -> Procedure[Member]:
    """Register a new client (`AUR-01`, `AUR-13` to `AUR-16`).

    Raises Unauthorized with the server's error.
    """
    endpoint = usable(
        site.metadata.registration_endpoint,
        what="registration_endpoint",
        step=_STEP,
        document=site.document,
    )
    is_native = is_loopback(redirect_uri) or not redirect_uri.startswith("https://")
    types = ("native", "web") if is_native else ("web", "native")
    wanted = _wanted(site, identity, redirect_uri, scopes, types[0])
    got = yield from _post(endpoint, wanted)
    if wanted.scope is not None and _faults(got) & {"invalid_client_metadata"}:
        yield Note(
            _STEP,
            "refused, perhaps because of its scopes",
            endpoint,
        )
        wanted = replace(wanted, scope=None)
        got = yield from _post(endpoint, wanted)
    if _faults(got) & {"invalid_client_metadata", "invalid_redirect_uri"}:
        yield Note(_STEP, f"refused as a {types[0]} client", endpoint)
        wanted = replace(wanted, application_type=types[1])
        got = yield from _post(endpoint, wanted)
    said = read_error(got.body)
    if got.status in (200, 201):
        return _member(got, wanted, site, endpoint, redirect_uri)
    if said is not None and said.error_description:
        words = f"{said.error}: {said.error_description}"
    elif said:
        words = said.error
    else:
        words = ""
    if site.assumed and (said is None or got.status in (404, 405)):
        raise Unauthorized(
            _STEP,
            "the server requires authorization, publishes no metadata, and does not "
            f"register clients as older servers do (status {got.status})",
            document=endpoint,
            expected="the server's metadata (RFC 9728)",
            advice=(
                "It may require an API key or a token in a header. Otherwise its "
                "operator must publish its metadata."
            ),
        )
    raise Unauthorized(
        _STEP,
        f"the client was not registered (status {got.status}{f', {words}' if words else ''})",
        document=endpoint,
        expected=f"a registration with the redirect URI {redirect_uri}"
        if redirect_uri
        else "a registration",
        advice=(
            "If the authorization server does not accept such redirect URIs, register a "
            "client there manually and give its client_id."
        ),
        culprit="authorization server",
        code=said.error if said is not None else "",
    )


def _faults(got: Got) -> set[str]:
    """The error code of a refused registration; empty for any other response."""
    said = None if got.status in (200, 201) else read_error(got.body)
    return set() if said is None else {said.error}


def _wanted(
    site: Site,
    identity: ClientIdentity,
    redirect_uri: str,
    scopes: Sequence[str],
    application_type: str,
) -> ClientMetadata:
    """The metadata for a registration.

    It has all scopes that the client may request later, so that a step-up needs no new
    registration.
    """
    code = bool(redirect_uri)
    listed = site.protected.scopes_supported if site.protected is not None else None
    whole = dict.fromkeys([*scopes, *(listed or ())]) if scopes else {}
    return ClientMetadata(
        client_name=identity.name,
        client_uri=identity.uri,
        redirect_uris=[redirect_uri] if code else [],
        grant_types=[
            "authorization_code" if code else "urn:ietf:params:oauth:grant-type:device_code",
            "refresh_token",
        ],  # `AUS-11`
        response_types=["code"] if code else [],
        token_endpoint_auth_method=_method(site.metadata.token_endpoint_auth_methods_supported),
        application_type=application_type,
        scope=" ".join(whole) or None,
        dpop_bound_access_tokens=True if identity.dpop else None,
    )


def _method(supported: Sequence[str] | None) -> str:
    """The authentication method: without a secret if possible, because a program on a user's
    machine cannot keep one (`AUR-12`).
    """
    choices = ("none", "client_secret_basic", "client_secret_post")
    return next((choice for choice in choices if supported is None or choice in supported), "none")


def _post(endpoint: str, wanted: ClientMetadata) -> Procedure[Got]:
    headers = (("Content-Type", "application/json"), ("Accept", "application/json"))
    return (yield from post(Request("POST", endpoint, headers, msgspec.json.encode(wanted)), _STEP))


def _member(
    got: Got, wanted: ClientMetadata, site: Site, endpoint: str, redirect_uri: str
) -> Member:
    registered = read_document(got.body, Registered, step=_STEP, document=endpoint)
    supported = site.metadata.token_endpoint_auth_methods_supported
    return Member(
        issuer=site.metadata.issuer,
        client_id=registered.client_id,
        client_secret=registered.client_secret,
        method=registered.token_endpoint_auth_method
        or ("none" if registered.client_secret is None else secret_method(supported)),
        redirect_uris=(redirect_uri,) if redirect_uri else (),
        until=registered.client_secret_expires_at or None,
        scopes=_scopes(wanted.scope, registered.scope),
        source="dynamic",
    )


def _scopes(wanted: str | None, registered: str | None) -> tuple[str, ...] | None:
    """The scopes that a registration covers. Requested scopes that were not granted count too,
    because requesting them again would not help.
    """
    if wanted is None and registered is None:
        return None
    return tuple(dict.fromkeys(f"{registered or ''} {wanted or ''}".split()))
