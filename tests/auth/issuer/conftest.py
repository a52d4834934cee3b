"""A real browser for the pages, and issuers that it can reach."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from tests.auth.issuer.served import serving

Serve = Callable[[Any], Awaitable[str]]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@asynccontextmanager
async def browsing() -> AsyncIterator[Any]:
    """A headless Chromium, as Playwright drives it: the one that `CHROMIUM` names, or that is on the path."""
    path = os.environ.get("CHROMIUM") or next((found for name in _NAMES if (found := shutil.which(name))), None)
    if path is None:
        words = "the pages are tested in a real browser: install Chromium (`apt install chromium`), or say in CHROMIUM where it is"
        if os.environ.get("CI"):
            pytest.fail(words)
        pytest.skip(words)  # somebody's desk need not have one; CI has
    from playwright.async_api import async_playwright  # late: only these tests need it

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        try:
            yield browser
        finally:
            await browser.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Any]:
    """A headless Chromium, one for a module, whose tests must run in the loop of the module."""
    async with browsing() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def serve() -> AsyncIterator[Callable[[Callable[[str], Any]], Awaitable[str]]]:
    """Serves an app on loopback, until the test has ended: `await serve(lambda url: app)` gives its address."""
    async with AsyncExitStack() as stack:

        async def start(make: Callable[[str], Any]) -> str:
            return await stack.enter_async_context(serving(make))

        yield start
