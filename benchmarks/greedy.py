"""`python -m benchmarks.greedy`: latencies of an honest client alone, and beside a greedy one with
300 connections.

The two clients have different addresses of this machine, so that the server counts them separately,
and processes of their own, so that the generator of the load does not slow down the honest client.
A quotient of at most 2 for p99 is the goal. Both call a tool that waits, and then a tool that does
not: there, the greedy client takes the processor of a server with one worker.

The greedy client also takes a processor for itself. So a third part measures the honest client
while the greedy one loads another server: what this adds is the machine's, and not the server's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import statistics
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from interlock import Server, listening_socket, serve_http

from .messages import META, dump

GREEDY = 300  # connections
CALLS = 500  # of the honest client, in each part
WAIT = 0.02  # seconds that the tool waits
HONEST_ADDRESS, GREEDY_ADDRESS = "127.0.0.2", "127.0.0.3"


def main() -> None:
    """Serve with `--serve`; otherwise measure, and print the figures in milliseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", type=int, metavar="DESCRIPTOR", help="used by the program")
    parser.add_argument("--flood", nargs=2, metavar=("PORT", "TOOL"), help="used by the program")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.serve is not None:
        asyncio.run(_serve(options.serve))
        return
    if options.flood is not None:
        asyncio.run(_flood(int(options.flood[0]), options.flood[1]))
        return
    parts = ("alone", "elsewhere", "beside")
    titles = [f"{quantile} {part}" for part in parts for quantile in ("p50", "p99")]
    print(" | ".join(f"{each:>13}" for each in ("tool", *titles, "p99 / alone", "/ elsewhere")))
    for tool in ("wait", "add"):
        rounds = [asyncio.run(_measure(tool)) for _ in range(options.rounds)]
        figures = [
            1000 * statistics.median(each[part][quantile] for each in rounds)
            for part in range(len(parts))
            for quantile in (50, 99)
        ]
        quotients = [
            statistics.median(each[2][99] / each[part][99] for each in rounds) for part in (0, 1)
        ]
        print(" | ".join([f"{tool:>13}", *(f"{each:13.2f}" for each in (*figures, *quotients))]))


async def _serve(descriptor: int) -> None:
    server = Server("greedy")

    @server.tool
    async def wait() -> str:
        await asyncio.sleep(WAIT)
        return "done"

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    await serve_http(server.http_app(), listening_socket(f"fd:{descriptor}", 0), grace=0)


async def _measure(tool: str) -> list[dict[int, float]]:
    """Return the quantiles of the honest client's latencies in seconds: alone, while the greedy
    client loads another server, and beside it.
    """
    body = _body(tool)
    found = []
    async with _server() as port, _server() as other:
        honest = await _connect(port, HONEST_ADDRESS)
        await _latencies(*honest, body)  # warms the server
        found.append(_quantiles(await _latencies(*honest, body)))
        for loaded in (other, port):
            async with _child("--flood", str(loaded), tool) as flood:
                assert flood.stdout is not None
                await flood.stdout.readline()  # every connection has got an answer
                found.append(_quantiles(await _latencies(*honest, body)))
        honest[1].close()
    return found


@asynccontextmanager
async def _server() -> AsyncIterator[int]:
    """Run a server in a process of its own, and yield its port."""
    with listening_socket("127.0.0.1", 0) as listener:
        descriptor = listener.fileno()
        async with _child("--serve", str(descriptor), descriptor=descriptor):
            yield listener.getsockname()[1]


@asynccontextmanager
async def _child(*options: str, descriptor: int | None = None) -> AsyncIterator[Process]:
    """Run a part of this program in a process of its own."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.greedy",
        *options,
        stdout=asyncio.subprocess.PIPE,
        pass_fds=[] if descriptor is None else [descriptor],
    )
    try:
        yield child
    finally:
        child.kill()
        await child.wait()


async def _flood(port: int, tool: str) -> None:
    """Be the greedy client: as soon as an answer is there, send the next request."""
    connections = [await _connect(port, GREEDY_ADDRESS) for _ in range(GREEDY)]
    body = _body(tool)
    await asyncio.gather(*(_ask(*each, body) for each in connections))
    print("ready", flush=True)
    await asyncio.gather(*(_ask_for_ever(*each, body) for each in connections))


async def _connect(port: int, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return reader, writer


def _body(tool: str) -> bytes:
    arguments = {"a": 1, "b": 2} if tool == "add" else {}
    params = {"name": tool, "arguments": arguments, "_meta": META}
    body = dump({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    version = META["io.modelcontextprotocol/protocolVersion"]
    head = (
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        "accept: application/json, text/event-stream\r\n"
        f"mcp-protocol-version: {version}\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> tuple[int, bytes]:
    """Send a request; return the status and the body of the response."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ")[1])
    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    if length is not None:
        return status, await reader.readexactly(int(length[1]))
    pieces: list[bytes] = []
    while size := int(await reader.readline(), 16):
        pieces.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return status, b"".join(pieces)


async def _ask_for_ever(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> None:
    """Send one request after the other, whatever the answers are."""
    while True:
        await _ask(reader, writer, request)


async def _latencies(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> list[float]:
    """Return the seconds of each call. Raises ValueError if a call fails."""
    latencies: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        status, body = await _ask(reader, writer, request)
        latencies.append(time.perf_counter() - began)
        if status != 200 or json.loads(body)["result"].get("isError"):
            raise ValueError(f"the honest client is refused: {status} {body!r}")
    return latencies


def _quantiles(latencies: list[float]) -> dict[int, float]:
    cuts = statistics.quantiles(latencies, n=100, method="inclusive")
    return {50: cuts[49], 99: cuts[98]}


if __name__ == "__main__":
    main()
