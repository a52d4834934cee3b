"""`python -m benchmarks.gateway`: a call through the gateway, over HTTP on both sides, beside
FastMCP's proxy and the same server called directly.

The server behind is one of Interlock for all, in a process of its own. CPU is that of the measured
process alone: the server, or the gateway in front of it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from .child import Child
from .load import Sample
from .messages import MEGABYTE, Request, call, says
from .roster import HANDSHAKE, PEERS_BY_NAME, STATELESS, Peer
from .tables import grid
from .web import WebLoad

PORT = 18_931
SERVERS = 50
TOOLS = 40
_PROXY = Peer(
    "fastmcp",
    "FastMCP proxy",
    "gateway_fastmcp.py",
    "fastmcp",
    env=PEERS_BY_NAME["fastmcp"].env,
)
Running = AbstractContextManager[tuple[Child, int]]
_MANY = """
from interlock import Server

server = Server("many")
for number in range({tools}):

    def run(number: int = number) -> str:
        return str(number)

    server.add_tool(run, name=f"tool_{{number}}", description=f"Move crate {{number}}. " * 4)

if __name__ == "__main__":
    server.run(log="off")
"""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--peers", nargs="*", default=["direct", "interlock", "fastmcp"])
    parser.add_argument("--no-list", action="store_true", help="leave out the list of 50 servers")
    options = parser.parse_args()
    samples: dict[tuple[str, str], list[Sample]] = defaultdict(list)
    with ExitStack() as stack:
        children = {name: stack.enter_context(run) for name, run in started(options.peers)}
        for _ in range(options.rounds):
            for name, (child, port) in children.items():
                for revision in (STATELESS, HANDSHAKE):
                    for what, request in requests(name):
                        found = measured(child, port, revision, request, options.seconds)
                        samples[f"{what} {revision}", name].append(found)
                        print(f"{name} {what} {revision} {found['cpu']:.1f} us", file=sys.stderr)
        memory = {name: child.resident() / 1e6 for name, (child, _) in children.items()}
    lines = sorted({line for line, _ in samples})
    for figure, title in (("cpu", "CPU of a call, us"), ("p50", "p50 of a call, us")):
        rows = [
            [line, *(median_of(samples[line, name], figure) for name in options.peers)]
            for line in lines
        ]
        print(grid([title, *options.peers], rows))
        print()
    print(grid(["RSS, MB", *options.peers], [["", *(f"{memory[n]:.0f}" for n in options.peers)]]))
    if not options.no_list:
        print(many_servers())


def median_of(samples: list[Sample], figure: str) -> str:
    """Return the median of a figure over the rounds."""
    return f"{statistics.median(sample[figure] for sample in samples):.1f}"


def requests(name: str) -> Iterator[tuple[str, Request]]:
    """Yield the calls of a peer, under its name for the tool."""
    prefix = {"direct": "", "interlock": "k__", "fastmcp": "k_"}[name]
    yield "call", call(f"{prefix}aadd", {"a": 1, "b": 2}, says(3))
    yield (
        "1 MB result",
        call(
            f"{prefix}text",
            {"size": MEGABYTE},
            lambda result: len(result["content"][0]["text"]) == MEGABYTE,
        ),
    )


@contextmanager
def running(command: list[str], env: dict[str, str], port: int) -> Iterator[tuple[Child, int]]:
    """Run a program until the block ends; it listens on a port."""
    with Child(command, env) as child:
        WebLoad(child, port, STATELESS).wait()
        yield child, port


def started(names: list[str]) -> Iterator[tuple[str, Running]]:
    """Yield each program, which runs once its block is entered; the server behind comes first."""
    ours = PEERS_BY_NAME["interlock"]
    behind = ours.command("web", STATELESS, "plain", str(PORT), "usual")
    url = f"http://127.0.0.1:{PORT}/mcp"
    yield "direct", running(behind, ours.environ(), PORT)
    for number, name in enumerate(names, 1):
        port = PORT + number
        if name == "interlock":
            folder = Path(tempfile.mkdtemp(prefix="interlock-bench-"))
            (folder / "gateway.toml").write_text(f'[servers.k]\nurl = "{url}"\n')
            yield name, running(gateway_command(folder, port), ours.environ(), port)
        elif name == "fastmcp":
            yield name, running(_PROXY.command(url, str(port)), _PROXY.environ(), port)


def gateway_command(folder: Path, port: int) -> list[str]:
    """Return the command of a gateway with the settings in a folder."""
    file = str(folder / "gateway.toml")
    return [sys.executable, "-m", "interlock", "gateway", file, "--http", str(port)]


def measured(child: Child, port: int, revision: str, request: Request, seconds: float) -> Sample:
    """Return the cost of one call."""
    load = WebLoad(child, port, revision)
    load.open(1)
    try:
        load.press(request, seconds / 4)  # warm
        return load.press(request, seconds)
    finally:
        load.close()


def many_servers() -> str:
    """Return the figures of a gateway with 50 servers of 40 tools: start, first and later lists."""
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as name:
        folder = Path(name)
        (folder / "many.py").write_text(_MANY.format(tools=TOOLS))
        entry = f'command = ["{sys.executable}", "{folder / "many.py"}"]'
        servers = "".join(f"[servers.s{number}]\n{entry}\n" for number in range(SERVERS))
        (folder / "gateway.toml").write_text(f'{servers}[views.default]\nsearch = "never"\n')
        began = time.perf_counter()
        ours = PEERS_BY_NAME["interlock"]
        with running(gateway_command(folder, PORT + 9), ours.environ(), PORT + 9) as (child, port):
            ready = time.perf_counter() - began
            resident = child.resident() / 1e6
            load = WebLoad(child, port, STATELESS)
            load.open(1)
            began = time.perf_counter()
            load.lists(0.01, SERVERS * TOOLS)
            first = time.perf_counter() - began
            found = load.lists(1.0, SERVERS * TOOLS)
            alone = child.processor(alone=True)
            load.close()
        rows = [
            ["start to ready, s", f"{ready:.2f}"],
            ["RSS when ready, MB", f"{resident:.0f}"],
            ["first list, which starts them, s", f"{first:.1f}"],
            ["later list, p50, ms", f"{found['p50'] / 1000:.2f}"],
            ["CPU of the gateway until then, s", f"{alone / 1e9:.2f}"],
        ]
        return grid([f"{SERVERS} servers x {TOOLS} tools", ""], rows)


if __name__ == "__main__":
    main()
