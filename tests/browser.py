"""One headless Chromium for all browser tests of a worker process; each test has its own
contexts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest_asyncio


@asynccontextmanager
async def browsing(program: Path) -> AsyncIterator[Any]:
    """A headless Chromium, driven by Playwright; it does not write into the user's folders."""
    from playwright.async_api import async_playwright  # late: only these tests need it

    async with async_playwright() as playwright:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            env: dict[str, str | float | bool] = {
                **os.environ,
                "HOME": home,
                "XDG_CONFIG_HOME": home,
                "XDG_CACHE_HOME": home,
                "XDG_DATA_HOME": home,
            }
            browser = await playwright.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"], env=env
            )
            try:
                yield browser
            finally:
                await browser.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium(installed: Callable[[str], Path]) -> AsyncIterator[Any]:
    """The shared browser. Playwright binds it to one event loop: its tests run in the session's."""
    async with browsing(installed("chromium")) as browser:
        yield browser
