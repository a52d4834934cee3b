"""Connects our client to the scripted user of `tests/interop/person.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from interlock.auth.oauth.steps import ShowCode
from tests.interop.person import walk


class Walker:
    """A user agent whose browser is `tests/interop/person.py`."""

    async def listen(self, preferred: Sequence[str]) -> str:
        """Do nothing: no listener is needed."""
        return "http://127.0.0.1:39999/callback"

    async def visit(self, url: str, redirect_uri: str) -> str:
        """Log in, and consent."""
        return (await asyncio.to_thread(walk, url)).partition("?")[2]

    async def show_code(self, step: ShowCode) -> None:
        """Enter the code on this device, in place of another one."""
        raise AssertionError(step)

    async def aclose(self) -> None:
        """Nothing is open."""
