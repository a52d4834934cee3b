"""The OAuth proxy as one call: an issuer whose people log in at a provider that registers no clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...exchange import Principal
from ...fetch import Fetch
from ..issuer.app import Issuer
from ..providers import Provider
from .upstream import Admit, Upstream


class OAuthProxy(Issuer):
    """An `Issuer` with `Upstream` people, which has its own clients, consent page and tokens (AUF-15, SEC-06, SEC-07, AU2-10).

    `url` is its address, and `redirect_uri` what has to be registered at the provider, where it is `client_id` with `client_secret`.
    `upstream_scopes` are asked for there, else the provider's own; `upstream_fetch` sends the requests to it. See `Upstream` for `admit`,
    `keys` and `brand`, and `Issuer` for all other options.
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
        **options: Any,
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
        """An access token of the provider for who calls: for our own calls to its API, never to be given to anybody (AUT-18).

        Raises Unauthorized where the session at the provider has ended, or the principal has none; Unreachable where it cannot be asked.
        """
        return await self._upstream.upstream_token(principal)

    async def aclose(self) -> None:
        """Let go of what it has opened itself."""
        await self._upstream.aclose()
        await super().aclose()
