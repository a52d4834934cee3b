"""Clients: configured, dynamically registered, or described by a metadata document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec.structs import replace

from interlock.auth.oauth import ClientMetadata, checked_url
from interlock.auth.tokens import KeySet
from interlock.store import Vault

from ..http.error_responses import OAuthError
from ..http.rate_limit import RequestLimiter
from ..interfaces import Client
from ..repository import Repository, digest
from ..settings import CODE, DEVICE, REFRESH, Settings
from . import redirect_uris
from .metadata_documents import DocumentUnavailable, MetadataDocuments

METHODS = ("none", "client_secret_basic", "client_secret_post", "private_key_jwt")
_LONGEST_ID = 1024
_LONGEST_DOCUMENT = 16 * 1024
_MOST_REDIRECTS = 20
_GRANTS = (CODE, REFRESH, DEVICE)  # those that a person decides about: nobody lets itself in


class Clients:
    """Finds clients by their id."""

    def __init__(
        self,
        settings: Settings,
        vault: Vault,
        papers: MetadataDocuments,
        configured: Iterable[Client],
    ) -> None:
        self._settings = settings
        self._documents = papers
        self._configured = {client.id: _digested(client) for client in configured}
        for client in self._configured.values():
            for uri in client.redirect_uris:
                if wrong := redirect_uris.problem(uri, (*settings.schemes, *_private_scheme(uri))):
                    raise ValueError(
                        f"the redirect URI {uri!r} of the client {client.id!r} is invalid: {wrong}"
                    )
        self.repository = Repository(
            vault, "client", Client, settings.clock, settings.registrations
        )
        self._limiter = RequestLimiter("document", settings.clock)

    async def find(self, id: str | None, address: str = "") -> Client:
        """The client of an id.

        Raises Refusal, `invalid_client`, for one that is not known or whose document does not do.

        `address` is that of who asks: strangers make us fetch so many documents a minute, and no
        more.
        """
        if not id or len(id) > _LONGEST_ID:
            raise OAuthError("invalid_client", "the client_id is missing, or too long")
        client = self._configured.get(id)
        if client is None and self._settings.registration:
            client = await self.repository.get(id)
        if client is None and self._settings.cimd and id.startswith("https:"):
            client = await self._from_document(id, address)
        if client is None:
            raise OAuthError(
                "invalid_client",
                "this client is unknown: it was never registered, or its registration has expired",
            )
        return client

    async def keep(self, client: Client) -> None:
        """Let a registration that is in use go on (that of a secret ends when
        it was said to end)."""
        if not client.is_dynamic or client.until is None:
            return
        until = client.until
        seconds = self._settings.registration_seconds
        if client.is_public and until - self._settings.now() < seconds / 2:
            until = self._settings.now() + seconds
        kept = replace(client, until=until, used=True)
        if kept != client:
            await self.repository.swap(client.id, client, kept, until)

    async def _from_document(self, url: str, address: str) -> Client:
        """A client from the document that its id names (AUR-07, AUR-08)."""
        if wrong := document_problem(url):
            raise OAuthError(
                "invalid_client",
                f"the client_id is not the address of a metadata document: {wrong}",
            )
        if not self._documents.has(url) and await self._limiter.is_over(address):
            raise OAuthError(
                "invalid_client",
                "too many client metadata documents were requested from this address; "
                "try again in a minute",
            )
        try:
            body = await self._documents.get(url, _LONGEST_DOCUMENT)
        except DocumentUnavailable as bad:
            raise OAuthError(
                "invalid_client", f"the client metadata document cannot be read: {bad}"
            ) from None
        try:
            fields: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
            metadata = msgspec.convert(fields, ClientMetadata)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise OAuthError(
                "invalid_client", "the client metadata document is not client metadata in JSON"
            ) from None
        if metadata.client_id != url:
            raise OAuthError(
                "invalid_client", "the client_id in the document is not the address of the document"
            )
        if not metadata.client_name or not metadata.redirect_uris:
            raise OAuthError(
                "invalid_client", "the client metadata document lacks client_name or redirect_uris"
            )
        if "client_secret" in fields:
            raise OAuthError(
                "invalid_client",
                "the client metadata document contains a secret, which everybody can read",
            )
        method = metadata.token_endpoint_auth_method or "none"
        if method not in ("none", "private_key_jwt"):
            raise OAuthError(
                "invalid_client",
                "a client with a metadata document cannot use a secret: it authenticates "
                "with private_key_jwt or none",
            )
        return described(metadata, self._settings, id=url, method=method, source="document")


def described(
    metadata: ClientMetadata, settings: Settings, *, id: str, method: str, source: str
) -> Client:
    """A client as it describes itself.

    Raises Refusal, with the codes of registration (RFC 7591, 3.2.2).
    """
    if len(metadata.redirect_uris) > _MOST_REDIRECTS:
        raise OAuthError(
            "invalid_redirect_uri", f"there are more than {_MOST_REDIRECTS} redirect URIs"
        )
    for uri in metadata.redirect_uris:
        if wrong := redirect_uris.problem(uri, settings.schemes):
            raise OAuthError(
                "invalid_redirect_uri", f"{uri[:200]} is not a valid redirect URI: {wrong}"
            )
    grants = tuple(grant for grant in metadata.grant_types or (CODE, REFRESH) if grant in _GRANTS)
    if not grants:
        raise OAuthError(
            "invalid_client_metadata",
            "clients that register themselves cannot use any of these grant_types; "
            f"supported are: {', '.join(_GRANTS)}",
        )
    if CODE in grants and not metadata.redirect_uris:
        raise OAuthError("invalid_redirect_uri", "there must be at least one redirect URI")
    if (
        metadata.response_types is not None
        and CODE in grants
        and "code" not in metadata.response_types
    ):
        raise OAuthError("invalid_client_metadata", "the only supported response_type is code")
    if method == "private_key_jwt":
        _check_keys(metadata)
    return Client(
        id=id,
        name=shown(metadata.client_name),
        uri=_link(metadata.client_uri),
        logo=_link(metadata.logo_uri),
        redirect_uris=tuple(metadata.redirect_uris),
        grants=grants,
        method=method,
        jwks=metadata.jwks if method == "private_key_jwt" else None,
        jwks_uri=metadata.jwks_uri if method == "private_key_jwt" else None,
        scopes=None,
        dpop=metadata.dpop_bound_access_tokens is True,
        source="document" if source == "document" else "registered",
    )


def _check_keys(metadata: ClientMetadata) -> None:
    """Raise Refusal unless there are keys by which the client can be known."""
    if (metadata.jwks is None) == (metadata.jwks_uri is None):
        raise OAuthError("invalid_client_metadata", "private_key_jwt needs either jwks or jwks_uri")
    if metadata.jwks_uri is not None and document_problem(metadata.jwks_uri):
        raise OAuthError("invalid_client_metadata", "the jwks_uri must be an https address")
    try:
        if metadata.jwks is not None and not len(KeySet.read(metadata.jwks)):
            raise ValueError
    except ValueError:
        raise OAuthError("invalid_client_metadata", "jwks has no usable public key") from None


def document_problem(url: str) -> str:
    """What is wrong with an address as that of a document.

    Nothing where it is fine (draft-ietf-oauth-client-id-metadata-document, 3).
    """
    if wrong := redirect_uris.problem(url):
        return wrong
    parts = urlsplit(url)
    if parts.scheme != "https":
        return "it must be https"
    if parts.path in ("", "/"):
        return "it must have a path"
    if {".", ".."} & {unquote(segment) for segment in parts.path.split("/")}:
        return "its path must not have dot segments"
    return ""


def shown(name: str | None) -> str | None:
    """A name as far as it can be shown: no characters that cannot be seen or that turn the line
    around, and not too many.
    """
    if name is None:
        return None
    return "".join(c for c in name if c.isprintable())[:100].strip() or None


def _link(url: str | None) -> str | None:
    """An address that can stand on a page.

    None for any other, which is no reason to refuse a client.
    """
    return (
        None if url is None or redirect_uris.problem(url) or not url.startswith("https:") else url
    )


def _digested(client: Client) -> Client:
    """A configured client as it is kept in memory."""
    if client.method not in METHODS:
        raise ValueError(
            f"the client {client.id!r} authenticates by {client.method!r}, which is not "
            f"supported; supported are: {', '.join(METHODS)}"
        )
    if client.method.startswith("client_secret") and not client.secret:
        raise ValueError(f"the client {client.id!r} has no secret")
    if client.method == "private_key_jwt" and client.jwks is None and client.jwks_uri is None:
        raise ValueError(f"the client {client.id!r} has neither jwks nor jwks_uri")
    if client.jwks_uri is not None:
        checked_url(client.jwks_uri, what=f"the jwks_uri of the client {client.id!r}")
    return client if client.secret is None else replace(client, secret=digest(client.secret))


def _private_scheme(uri: str) -> tuple[str, ...]:
    """The scheme of a URI that the configuration names itself, if it is a private one: one with a
    dot, which is a domain turned around (RFC 8252, 7.1).
    """
    scheme = uri.partition(":")[0]
    return (scheme,) if "." in scheme else ()
