"""The JWKS of an issuer: fetched once for all waiting callers, cached, and kept during an
outage.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import types as t
from ...http11.fetch import Fetch, Request
from ...logs import limited
from ..keys import KeySet, UnknownKey
from ..oauth.addresses import checked_url, usable
from ..oauth.discovery import find_metadata
from ..oauth.documents import cache_seconds
from ..sender import HttpClients, named, perform
from .interface import Unverifiable

_log = limited("interlock.auth")


class RemoteKeys:
    """The keys of an issuer, fetched from its JWKS document and cached.

    They are fetched again when the document expires (Cache-Control), while the old keys stay in
    use, and when a token names an unknown key. Callers provide all times.

    Args:
        issuer: The exact identifier of the issuer.
        jwks_uri: The URL of the document; by default that of the issuer's metadata.
        fetch: Sends the requests.
        pause: The shortest time between two fetches because of unknown keys, in seconds.
        least: The shortest time that a document is cached, in seconds.
        fresh: The longest time that a document is cached, in seconds, and the time without a
            Cache-Control header.
        most: How long old keys are used while the issuer is not reachable, in seconds.
        patience: The longest time of a fetch, in seconds.
        limit: The largest document, in bytes.
        room: Returns whether a further fetch is permitted, for callers that have the keys of many
            issuers.
    """

    def __init__(
        self,
        issuer: str,
        *,
        jwks_uri: str | None = None,
        fetch: Fetch | None = None,
        pause: float = 30.0,
        least: float = 60.0,
        fresh: float = 3600.0,
        most: float = 86_400.0,
        patience: float = 10.0,
        limit: int = 256 * 1024,
        room: Callable[[], bool] = lambda: True,
    ) -> None:
        if jwks_uri is not None:
            checked_url(jwks_uri, what="a jwks_uri")
        self.issuer = issuer
        self.jwks_uri = jwks_uri
        self.pause = pause
        self.least = least
        self.fresh = fresh
        self.most = most
        self.patience = patience
        self.limit = limit
        self._roads = HttpClients(issuer, named(jwks_uri), fetch)
        self._room = room
        self._keys: KeySet | None = None
        self._since = self._until = self._tried = float(
            "-inf"
        )  # when they were fetched, until when they are fresh, when the last fetch started
        self._loading: asyncio.Task[None] | None = None

    async def claims(
        self,
        token: str,
        now: float,
        *,
        algorithms: Sequence[str],
        types: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Verify a token with one of the keys, and return its claims.

        Args:
            token: The token.
            now: The time, in seconds of the wall clock.
            algorithms: The accepted algorithms.
            types: The accepted types, as in `KeySet.verify`.

        Raises:
            BadSignature: The token is invalid.
            Unverifiable: The keys cannot be fetched now.
        """
        keys = await self.current(now)
        try:
            return keys.verify(token, algorithms=algorithms, typ=types)[1]
        except UnknownKey:
            newer = await self.newer(keys, now)
            if newer is keys:
                raise
            return newer.verify(token, algorithms=algorithms, typ=types)[1]

    @property
    def is_asking(self) -> bool:
        """Whether a fetch is running."""
        return self._flying() is not None

    async def current(self, now: float) -> KeySet:
        """The keys for use at `now`. Raises Unverifiable if there are none."""
        if self._keys is not None and now < self._until:
            return self._keys
        if self._may_ask(now):
            self._load(now)
        if (
            self._keys is None or now >= self._since + self.most
        ):  # otherwise the old keys are used until the new ones arrive
            await self._wait()
        if self._keys is None or now >= self._since + self.most:
            raise Unverifiable(
                "The keys of this token's issuer are not available now.", seconds=self.pause
            )  # the reason is in the log
        return self._keys

    async def newer(self, than: KeySet, now: float) -> KeySet:
        """Fetch the keys again, for a token that names an unknown key.

        Return the same keys if the last fetch was too recent.
        """
        if self._keys is than and self._may_ask(now):
            self._load(now)
        await self._wait()
        return self._keys or than

    def _may_ask(self, now: float) -> bool:
        # true too if the clock was set back
        is_time = not self._tried <= now < self._tried + self.pause
        return is_time and not self.is_asking and self._room()

    def _flying(self) -> asyncio.Task[None] | None:
        """The running fetch. A fetch of a closed event loop does not count."""
        task = self._loading
        return (
            task
            if task is not None
            and not task.done()
            and task.get_loop() is asyncio.get_running_loop()
            else None
        )

    def _load(self, now: float) -> None:
        self._tried = now
        self._loading = asyncio.get_running_loop().create_task(self._fetch(now))

    async def _wait(self) -> None:
        if (task := self._flying()) is not None:
            await asyncio.shield(task)  # one caller may be cancelled while the others still wait

    async def _fetch(self, now: float) -> None:
        """Fetch the keys. Errors are logged, not raised."""
        try:
            async with asyncio.timeout(self.patience):
                body, headers = await self._document(await self._place())
            keys = KeySet.read(body)
            if not len(keys):
                raise ValueError("the document has no usable key")
        except TimeoutError:
            trouble = f"no answer within {self.patience:g} seconds"
        except (t.InterlockError, ValueError, OSError) as bad:
            trouble = str(bad)
        else:
            age = cache_seconds(
                headers.get("cache-control", ""),
                least=self.least,
                usual=self.fresh,
                most=self.fresh,
            )
            self._keys = keys
            self._since = now
            self._until = now + age
            return
        _log.warning("The keys of %s are not available: %s", self.issuer, trouble)

    async def _place(self) -> str:
        if self.jwks_uri is not None:
            return self.jwks_uri
        metadata, document = await perform(find_metadata(self.issuer), self._roads)
        return usable(metadata.jwks_uri, what="jwks_uri", step="keys", document=document)

    async def _document(self, place: str) -> tuple[bytes, Mapping[str, str]]:
        answer = await self._roads.of(place)(
            Request(
                "GET",
                place,
                (("Accept", "application/jwk-set+json, application/json"),),
                again=True,
            )
        )
        try:
            if answer.status != 200:
                raise ValueError(f"{place} answers with status {answer.status}")
            return await answer.read(self.limit), answer.headers
        finally:
            await answer.aclose()

    async def aclose(self) -> None:
        """Cancel a running fetch, and close the connections."""
        if (task := self._flying()) is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._roads.aclose()
