"""The person of `tests/interop/person.py` as a client of ours reaches it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from interlock.auth.oauth.steps import ShowCode
from tests.interop.person import walk


class Walker:
    """A person whose browser is `tests/interop/person.py`."""

    async def listen(self, preferred: Sequence[str]) -> str:
        """Nobody has to listen."""
        return "http://127.0.0.1:39999/callback"

    async def visit(self, url: str, redirect_uri: str) -> str:
        """Log in, and agree."""
        return (await asyncio.to_thread(walk, url)).partition("?")[2]

    async def show_code(self, step: ShowCode) -> None:
        """Enter the code on another device, which is the same one."""
        raise AssertionError(step)

    async def aclose(self) -> None:
        """Nothing is open."""
