"""The OAuth proxy: an issuer whose users log in at a provider that registers no clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from interlock import Fetch, Principal
from interlock.store import Vault

from ..app import Issuer
from ..grants.trusted_issuers import TrustedIssuer
from ..interfaces import Client
from ..providers import Provider
from ..settings import IssuerOptions
from .upstream import Admit, Upstream


class OAuthProxyOptions(IssuerOptions, total=False):
    """The options of an `OAuthProxy`: those of an `Issuer`."""

    vault: Vault | str
    """Where records are kept: a Vault, or the URL of one."""
    clients: Sequence[Client]
    """Clients that are known beforehand."""
    fetch: Fetch
    """Gets documents and keys of clients: `interlock.SafeFetch` if nothing is given."""
    trusted: Sequence[TrustedIssuer]
    """Issuers whose assertions are accepted."""


class OAuthProxy(Issuer):
    """An `Issuer` with `Upstream` users.

    It has its own clients, consent page and tokens (AUF-15, SEC-06, SEC-07, AU2-10).

    Args:
        url: Its address: https, or http on loopback for development.
        provider: Where users log in. Register `redirect_uri` there.
        client_id: The client id at the provider.
        client_secret: The client secret at the provider, if there is one.
        upstream_scopes: The scopes to request there; the provider's own if nothing is given.
        upstream_fetch: Sends the requests to the provider.
        admit: Decides who may log in. See `Upstream`.
        keys: Seal the provider's tokens. See `Upstream`.
        brand: The heading of each page; the issuer's host if nothing is given.
        **options: See `OAuthProxyOptions` and `IssuerOptions`.
    """

    def __init__(
        self,
        url: str,
        provider: Provider,
        client_id: str,
        client_secret: str | None = None,
        *,
        upstream_scopes: Sequence[str] | None = None,
        upstream_fetch: Fetch | None = None,
        admit: Admit | None = None,
        keys: Sequence[bytes] = (),
        brand: str = "",
        **options: Unpack[OAuthProxyOptions],
    ) -> None:
        self._upstream = Upstream(
            provider,
            client_id,
            client_secret,
            scopes=upstream_scopes,
            admit=admit,
            keys=keys,
            brand=brand,
            fetch=upstream_fetch,
        )
        super().__init__(url, self._upstream, **options)
        self._upstream.bind(self)

    @property
    def redirect_uri(self) -> str:
        """The redirect URI that has to be registered at the provider."""
        return self._upstream.redirect_uri(self)

    async def upstream_token(self, principal: Principal) -> str:
        """Return an access token of the provider, for our own calls to its API.

        Never give it to anybody (AUT-18).

        Raises:
            Unauthorized: The session at the provider has ended, or the principal has none.
            Unreachable: The provider cannot be asked.
        """
        return await self._upstream.upstream_token(principal)

    async def aclose(self) -> None:
        """Close what it has opened itself."""
        await self._upstream.aclose()
        await super().aclose()
