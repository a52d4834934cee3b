"""The time and the network of the tests of authorization, both in memory: a clock that stands,
answers, and a table of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from msgspec import Struct, field

from interlock import types as t
from interlock.http11.fetch import Request

NOW = 1_800_000_000.0


class Clock:
    """A wall clock that stands until it is moved."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        """Seconds of the wall clock."""
        return self.now


class Answer(Struct):
    """A response that is there at once: `told` as JSON, or bytes as they are."""

    told: Any = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})

    @property
    def body(self) -> bytes:
        """The bytes of it."""
        return self.told if isinstance(self.told, bytes) else json.dumps(self.told).encode()

    async def read(self, limit: int) -> bytes:
        """The body. Raises ProtocolError where it is too long."""
        if len(self.body) > limit:
            raise t.ProtocolError(f"the body has more than {limit} bytes")
        return self.body

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body."""
        yield self.body

    async def aclose(self) -> None:
        """Nothing is open."""


Told = Answer | Exception | Callable[[Request], Answer]


class Web:
    """A `Fetch` that answers from a table, by URL."""

    def __init__(self, pages: Mapping[str, Told], *, others: Told | None = None) -> None:
        self.pages = dict(pages)
        self.others = Answer(status=404) if others is None else others
        self.asked: list[Request] = []
        self.gate: asyncio.Event | None = None
        self.began: asyncio.Event | None = None

    def hold(self) -> tuple[asyncio.Event, asyncio.Event]:
        """Hold answers back: an event that is set once somebody asks, and the one that lets them
        go.
        """
        self.began = asyncio.Event()
        self.gate = asyncio.Event()
        return self.began, self.gate

    async def __call__(self, request: Request) -> Answer:
        """The answer of the table; `others` for what is not in it."""
        self.asked.append(request)
        if self.gate is not None and self.began is not None:
            self.began.set()
            await self.gate.wait()
        page = self.pages.get(request.url, self.others)
        if isinstance(page, Exception):
            raise page
        return page if isinstance(page, Answer) else page(request)

    async def aclose(self) -> None:
        """Nothing is open."""

    def count(self, url: str) -> int:
        """How often an address was asked."""
        return sum(request.url == url for request in self.asked)
