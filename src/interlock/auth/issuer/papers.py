"""Documents at addresses that others chose: fetched through the guarded fetcher, kept as long as their headers say, within bounds."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

from ... import types as t
from ...fetch import Fetch, Request

_SECONDS = 10.0  # for one document
_KEPT = 1000
_AT_ONCE = 16
_SHORTEST, _USUAL, _LONGEST = 30.0, 300.0, 86_400.0  # how long a document is believed
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?([0-9]{1,10})", re.IGNORECASE)


class NoPaper(Exception):
    """A document could not be had; the words say why, for a developer."""


class _Paper(Struct, frozen=True):
    body: bytes
    fetched: float
    until: float


class Papers:
    """Fetches each document once for however many wait, and keeps the last it knows of as many as there is room for."""

    def __init__(self, fetch: Callable[[], Fetch], clock: Callable[[], float]) -> None:
        self._fetch, self._clock = fetch, clock
        self._kept: OrderedDict[str, _Paper] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[_Paper]] = {}

    async def get(self, url: str, limit: int, *, newer_than: float | None = None) -> bytes:
        """The document at an address, of at most `limit` bytes; one that was fetched before `newer_than` is fetched again.

        Raises NoPaper, also where too many others are being fetched.
        """
        kept = self._kept.get(url)
        if kept is not None and self._clock() < kept.until and (newer_than is None or kept.fetched >= newer_than):
            self._kept.move_to_end(url)
            return kept.body
        task = self._under_way.get(url)
        if task is None:
            if len(self._under_way) >= _AT_ONCE:
                raise NoPaper("too many documents are being fetched")
            task = self._under_way[url] = asyncio.create_task(self._read(url, limit))
            task.add_done_callback(lambda done: self._done(url, done))
        return (await asyncio.shield(task)).body  # who is cancelled does not take it from the others

    def fetched(self, url: str) -> float:
        """When the document that is kept was fetched; long ago where none is."""
        kept = self._kept.get(url)
        return float("-inf") if kept is None else kept.fetched

    def last(self, url: str) -> bytes | None:
        """What is kept, also if it should be fetched again, for a day; None where nothing is."""
        kept = self._kept.get(url)
        return None if kept is None or self._clock() > kept.until + _LONGEST else kept.body

    async def aclose(self) -> None:
        """Fetch nothing more."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _done(self, url: str, task: asyncio.Task[_Paper]) -> None:
        del self._under_way[url]
        if not task.cancelled() and task.exception() is None:
            self._kept[url] = task.result()
            self._kept.move_to_end(url)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)

    async def _read(self, url: str, limit: int) -> _Paper:
        try:
            async with asyncio.timeout(_SECONDS):
                response = await self._fetch()(Request("GET", url, (("accept", "application/json"),)))
                try:
                    if response.status != 200:
                        raise NoPaper(f"it was answered with the status {response.status}")
                    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
                    if kind != "application/json" and not kind.endswith("+json"):
                        raise NoPaper("it is not JSON by its content type")
                    body = await response.read(limit)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise NoPaper(f"it did not come within {_SECONDS:g} seconds") from None
        except t.ProtocolError:
            raise NoPaper(f"it has more than {limit} bytes, or cannot be read") from None
        except (t.Unreachable, ValueError):
            raise NoPaper("it could not be fetched") from None  # no word of why: it would tell a stranger about our network
        now = self._clock()
        return _Paper(body, now, now + _believed(response.headers.get("cache-control", "")))


def _believed(control: str) -> float:
    """For how many seconds a document holds, by its Cache-Control (RFC 9111, 5.2)."""
    words = control.lower()
    if "no-store" in words or "no-cache" in words:
        return _SHORTEST  # as well: a stranger could have us fetch it for each request else
    age = _MAX_AGE.search(words)
    return _USUAL if age is None else min(max(float(age[1]), _SHORTEST), _LONGEST)
