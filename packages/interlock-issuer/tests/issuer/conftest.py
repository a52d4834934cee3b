"""Issuers that a browser can reach."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest_asyncio

from tests.auth.served import serving

Serve = Callable[[Any], Awaitable[str]]


@pytest_asyncio.fixture(loop_scope="session")
async def serve() -> AsyncIterator[Callable[[Callable[[str], Any]], Awaitable[str]]]:
    """Serves an app on loopback, until the test has ended: `await serve(lambda url: app)` gives its
    address.
    """
    async with AsyncExitStack() as stack:

        async def start(make: Callable[[str], Any]) -> str:
            return await stack.enter_async_context(serving(make))

        yield start
