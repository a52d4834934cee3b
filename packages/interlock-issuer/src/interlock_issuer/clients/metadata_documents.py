"""Client metadata documents: fetched through `SafeFetch`, and cached."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from interlock import Fetch, Request
from interlock import types as t
from interlock.auth import SingleFlightGroup
from interlock.auth.oauth import cache_seconds
from interlock.caches import BoundedCache

_SECONDS = 10.0  # for one document
_KEPT = 1000
_AT_ONCE = 16
# how long a document is believed
_SHORTEST = 30.0
_USUAL = 300.0
_LONGEST = 86_400.0


class DocumentUnavailable(Exception):
    """A document could not be had; the words say why, for a developer."""


class _Document(Struct, frozen=True):
    body: bytes
    until: float


class MetadataDocuments:
    """Fetches each document once for however many wait, and keeps the last it knows of as many as
    there is room for.
    """

    def __init__(self, fetch: Fetch, clock: Callable[[], float]) -> None:
        self._fetch = fetch
        self._clock = clock
        self._kept: BoundedCache[str, _Document] = BoundedCache(_KEPT)
        self._under_way: SingleFlightGroup[str, bytes] = SingleFlightGroup()

    def has(self, url: str) -> bool:
        """Whether a document can be had without fetching it once more."""
        kept = self._kept.peek(url)
        return (kept is not None and self._clock() < kept.until) or url in self._under_way

    async def get(self, url: str, limit: int) -> bytes:
        """The document at an address, of at most `limit` bytes.

        Raises NoPaper, also where too many others are being fetched.
        """
        kept = self._kept.get(url)
        if kept is not None and self._clock() < kept.until:
            return kept.body
        if url not in self._under_way and len(self._under_way) >= _AT_ONCE:
            raise DocumentUnavailable("too many documents are being fetched")
        return await self._under_way.join(url, lambda: self._read(url, limit))

    async def aclose(self) -> None:
        """Fetch nothing more."""
        await self._under_way.aclose()

    async def _read(self, url: str, limit: int) -> bytes:
        try:
            async with asyncio.timeout(_SECONDS):
                response = await self._fetch(Request("GET", url, (("accept", "application/json"),)))
                try:
                    if response.status != 200:
                        raise DocumentUnavailable(f"the status was {response.status}")
                    kind = (
                        response.headers.get("content-type", "").partition(";")[0].strip().lower()
                    )
                    if kind != "application/json" and not kind.endswith("+json"):
                        raise DocumentUnavailable("its content type is not JSON")
                    body = await response.read(limit)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise DocumentUnavailable(f"it did not arrive within {_SECONDS:g} seconds") from None
        except t.ProtocolError:
            raise DocumentUnavailable(
                f"it has more than {limit} bytes, or cannot be read"
            ) from None
        except (t.Unreachable, ValueError):
            raise DocumentUnavailable(
                "it could not be fetched"
            ) from None  # without the reason, which would reveal the internal network
        age = cache_seconds(
            response.headers.get("cache-control", ""), least=_SHORTEST, usual=_USUAL, most=_LONGEST
        )
        self._kept.put(url, _Document(body, self._clock() + age))
        return body
