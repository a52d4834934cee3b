"""A real browser for the tests that need one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest_asyncio


@asynccontextmanager
async def browsing(program: Path) -> AsyncIterator[Any]:
    """A headless Chromium, as Playwright drives it."""
    from playwright.async_api import async_playwright  # late: only these tests need it

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        try:
            yield browser
        finally:
            await browser.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium(installed: Callable[[str], Path]) -> AsyncIterator[Any]:
    """A headless Chromium, one for a module, whose tests must run in the loop of the module."""
    async with browsing(installed("chromium")) as browser:
        yield browser
