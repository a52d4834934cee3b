"""Progress over stdio reaches the TypeScript SDK.

That SDK drops progress that it reads together with the response of its call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop import catalogue
from tests.interop.driver import command_of, led

pytestmark = [pytest.mark.interop, pytest.mark.asyncio]

SERVERS = {
    "directly": [sys.executable, catalogue.__file__],
    "reloading": [sys.executable, "-m", "interlock", "run", "--reload", catalogue.__file__],
}


@pytest.mark.parametrize("busy", [0, 5], ids=["quiet", "busy"])
@pytest.mark.parametrize(
    "maker, mode",
    [("typescript-1", "legacy"), ("typescript-2", "legacy"), ("typescript-2", "auto")],
)
@pytest.mark.parametrize("server", SERVERS)
async def test_no_progress_is_lost(
    server: str, maker: str, mode: str, busy: int, installed: Callable[[str], Path]
) -> None:
    """In 200 calls that report progress until their end, with an idle or a busy client
    (`PRG-02`)."""
    async with led(
        command_of("client", maker, installed), mode=mode, command=SERVERS[server]
    ) as client:
        step = await client.do(
            "call_often",
            name="count",
            arguments={"to": 3},
            times=200,
            at_once=4 if busy else 1,
            busy=busy,
        )
    assert step.result == [3] * 200
