"""`python -m benchmarks.greedy`: latencies of an honest client alone, and beside a greedy one with
300 connections.

The two clients have different addresses of this machine, so that the server counts them separately,
and processes of their own, so that the generator of the load does not slow down the honest client.
A quotient of at most 2 for p99 is the goal. Both call a tool that waits, and then a tool that does
not: there, the greedy client takes the processor of a server with one worker.

The greedy client also takes a processor for itself. So a third part measures the honest client
while the greedy one loads another server: what this adds is the machine's, and not the server's.

The last columns are the processor time of the server from the moment when the honest client sends a
request until its response is written: the work for other requests that comes before it, and its
own. It does not depend on what else the machine does. The client reads the processor clock of the
server and sends it as the ID of its request. For the tool that waits, it contains the work of that
time.

`--ready` measures only the case in which the server has not run for a while: 300 requests of the
greedy client have arrived, and that of the honest one comes last.
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
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from interlock import Server, listening_socket, serve_http
from interlock.transport.http.server.connection import Connection

from .messages import META, dump

GREEDY = 300  # connections
CALLS = 500  # of the honest client, in each part
READY_CALLS = 40  # of the honest client, with each number of requests ready
WAIT = 0.02  # seconds that the tool waits
HONEST_ADDRESS, GREEDY_ADDRESS = "127.0.0.2", "127.0.0.3"


def main() -> None:
    """Serve with `--serve`; otherwise measure, and print the figures in milliseconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", type=int, metavar="DESCRIPTOR", help="used by the program")
    parser.add_argument("--flood", nargs=2, metavar=("PORT", "TOOL"), help="used by the program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ready", action="store_true", help="only with 300 requests ready")
    parser.add_argument("--uvloop", action="store_true", help="with --ready: use uvloop")
    options = parser.parse_args()
    if options.ready:
        with asyncio.Runner(loop_factory=_uvloop() if options.uvloop else None) as runner:
            runner.run(_ready())
        return
    if options.serve is not None:
        asyncio.run(_serve(options.serve))
        return
    if options.flood is not None:
        asyncio.run(_flood(int(options.flood[0]), options.flood[1]))
        return
    parts = ("alone", "elsewhere", "beside")
    titles = [f"{quantile} {part}" for part in parts for quantile in ("p50", "p99")]
    titles += ["p99 / alone", "/ elsewhere"]
    titles += [f"CPU {quantile} {part}" for part in parts[::2] for quantile in ("p50", "p99")]
    titles += ["CPU p99 / alone"]
    print(" | ".join(f"{each:>15}" for each in ("tool", *titles)))
    for tool in ("wait", "add"):
        rounds = [asyncio.run(_measure(tool)) for _ in range(options.rounds)]
        figures = [
            1000 * statistics.median(each[part].latency[quantile] for each in rounds)
            for part in range(len(parts))
            for quantile in (50, 99)
        ]
        figures += [
            statistics.median(each[2].latency[99] / each[part].latency[99] for each in rounds)
            for part in (0, 1)
        ]
        figures += [
            1000 * statistics.median(each[part].cpu[quantile] for each in rounds)
            for part in (0, 2)
            for quantile in (50, 99)
        ]
        figures.append(statistics.median(each[2].cpu[99] / each[0].cpu[99] for each in rounds))
        print(" | ".join([f"{tool:>15}", *(f"{each:15.2f}" for each in figures)]))


@dataclass(frozen=True)
class Part:
    """One part of the measurement: quantiles in seconds, by percent.

    Attributes:
        latency: The time between a request and its response.
        cpu: The processor time of the server in between.
    """

    latency: dict[int, float]
    cpu: dict[int, float]


async def _serve(descriptor: int) -> None:
    server = Server("greedy")

    @server.tool
    async def wait() -> str:
        await asyncio.sleep(WAIT)
        return "done"

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def figures() -> list[float]:
        found = costs[:]
        costs.clear()
        return found

    costs: list[float] = []
    _note_costs(costs)
    await serve_http(server.http_app(), listening_socket(f"fd:{descriptor}", 0), grace=0)


def _note_costs(costs: list[float]) -> None:
    """Record the processor time of this process from each request with a time as its ID until its
    response.
    """
    sent: dict[Connection, float] = {}
    data_received = Connection.data_received
    send_bytes = Connection.send_bytes

    def receive(self: Connection, data: bytes) -> None:
        if marked := re.search(rb'"id":"([0-9.]+)"', data):
            sent[self] = float(marked[1])
        data_received(self, data)

    def send(self: Connection, data: bytes) -> None:
        send_bytes(self, data)
        began = sent.pop(self, None)
        if began is not None:
            costs.append(time.process_time() - began)

    Connection.data_received = receive  # type: ignore[method-assign]  # measures
    Connection.send_bytes = send  # type: ignore[method-assign]  # measures


async def _measure(tool: str) -> list[Part]:
    """Measure the honest client: alone, while the greedy client loads another server, and beside
    it.
    """
    found = []
    async with _server() as (port, pid), _server() as (other, _):
        honest = await _connect(port, HONEST_ADDRESS)
        await _part(honest, tool, pid)  # warms the server
        found.append(await _part(honest, tool, pid))
        for loaded in (other, port):
            async with _child("--flood", str(loaded), tool) as flood:
                assert flood.stdout is not None
                await flood.stdout.readline()  # every connection has got an answer
                found.append(await _part(honest, tool, pid))
        honest[1].close()
    return found


async def _part(
    honest: tuple[asyncio.StreamReader, asyncio.StreamWriter], tool: str, pid: int
) -> Part:
    """Measure calls of the honest client at the server with a process ID."""
    latencies = await _latencies(*honest, tool, pid)
    _, body = await _ask(*honest, _request("figures"))
    return Part(
        _quantiles(latencies), _quantiles(json.loads(body)["result"]["structuredContent"]["result"])
    )


@asynccontextmanager
async def _server() -> AsyncIterator[tuple[int, int]]:
    """Run a server in a process of its own, and yield its port and process ID."""
    with listening_socket("127.0.0.1", 0) as listener:
        descriptor = listener.fileno()
        async with _child("--serve", str(descriptor), descriptor=descriptor) as child:
            yield listener.getsockname()[1], child.pid


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


def _uvloop() -> Callable[[], asyncio.AbstractEventLoop]:
    import uvloop  # late: only for this option

    return uvloop.new_event_loop


async def _ready() -> None:
    """Print the processor time until the honest client has its answer, and the number of
    connections from which the server has received by then, with requests of the greedy one ready.
    """
    received = 0
    data_received = Connection.data_received

    def receive(self: Connection, data: bytes) -> None:
        nonlocal received
        received += 1
        data_received(self, data)

    Connection.data_received = receive  # type: ignore[method-assign]  # counts
    server = Server("greedy")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    async with server.serve_http(port=0) as http:
        port = urlsplit(http.url).port
        assert port is not None
        honest = await _connect(port, HONEST_ADDRESS)
        greedy = [await _connect(port, GREEDY_ADDRESS) for _ in range(GREEDY)]
        request = _request("add")
        for each in (honest, *greedy):
            await _ask(*each, request)
        for ready in (0, 1, GREEDY):
            costs = []
            counts = []
            for _ in range(READY_CALLS):
                for _, writer in greedy[:ready]:
                    writer.write(request)
                received = 0
                began = time.process_time()
                await _ask(*honest, request)
                costs.append(time.process_time() - began)
                counts.append(received)
                for reader, _ in greedy[:ready]:
                    await _answer(reader)
            cost = 1000 * statistics.median(costs)
            print(
                f"{ready} requests ready: {cost:.2f} ms, {statistics.median(counts):.0f} received"
            )
        for _, writer in (honest, *greedy):
            writer.close()


async def _flood(port: int, tool: str) -> None:
    """Be the greedy client: as soon as an answer is there, send the next request."""
    connections = [await _connect(port, GREEDY_ADDRESS) for _ in range(GREEDY)]
    body = _request(tool)
    await asyncio.gather(*(_ask(*each, body) for each in connections))
    print("ready", flush=True)
    await asyncio.gather(*(_ask_for_ever(*each, body) for each in connections))


async def _connect(port: int, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return reader, writer


def _request(tool: str, id: int | str = 1) -> bytes:
    arguments = {"a": 1, "b": 2} if tool == "add" else {}
    params = {"name": tool, "arguments": arguments, "_meta": META}
    body = dump({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
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
    return await _answer(reader)


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Read a response; return its status and its body."""
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
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tool: str, pid: int
) -> list[float]:
    """Return the seconds of each call. Raises ValueError if a call fails."""
    clock = (~pid << 3) | 2  # Linux: the processor clock of a process
    latencies: list[float] = []
    for _ in range(CALLS):
        request = _request(tool, f"{0:014.9f}")
        before, after = request.split(b"0000.000000000")
        began = time.perf_counter()
        request = b"%b%014.9f%b" % (before, time.clock_gettime(clock), after)
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
