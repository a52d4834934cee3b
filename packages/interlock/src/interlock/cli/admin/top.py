"""`interlock top`: a live view of a running server: its tools, calls and workers."""

from __future__ import annotations

import os
import select
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import Struct

from ...observe.meters import BOUNDARIES, quantile
from ...server.run.admin import AdminRequest
from ..screen import print_json, say, shown
from .sockets import ask, processes

_CLEAR = "\x1b[H\x1b[J"
_MOST_ROWS = 15  # of each table


class MetricsSample(Struct):
    """What the processes of a server have counted at one moment.

    Attributes:
        time: When it was read, in seconds of the monotonic clock.
        ended: How many requests have ended.
        buckets: The counts of durations by method and name.
        errors: How many requests have failed, by method and name.
        workers: The processes.
        calls: The running calls.
    """

    time: float
    ended: int
    buckets: dict[tuple[str, str], list[int]]
    errors: Counter[tuple[str, str]]
    workers: list[dict[str, Any]]
    calls: list[dict[str, Any]]


class ToolRow(Struct):
    """One method, or one tool or prompt.

    Attributes:
        what: The method and the name.
        per_second: Requests that ended, in each second.
        p50: The median of their duration, in seconds.
        p99: The 99th percentile.
        errors: How many have failed since the server started to keep histograms.
    """

    what: str
    per_second: float
    p50: float
    p99: float
    errors: int


def read(rows: Iterable[Mapping[str, Any]], **others: Any) -> MetricsSample:
    """Return the sum of the metrics of all processes.

    Args:
        rows: The rows that their admin sockets return for "metrics".
        others: The other attributes of the result.
    """
    found = MetricsSample(0.0, 0, {}, Counter(), [], [])
    for name, value in others.items():
        setattr(found, name, value)
    for row in rows:
        if "counts" not in row:
            found.ended += row["ended"]
            continue
        key = (str(row["method"]), str(row["name"]))
        sums = found.buckets.setdefault(key, [0] * (len(BOUNDARIES) + 1))
        found.buckets[key] = [a + b for a, b in zip(sums, row["counts"], strict=True)]
        if row["error"]:
            found.errors[key] += sum(row["counts"])
    return found


def lines(before: MetricsSample, now: MetricsSample) -> list[ToolRow]:
    """Return what happened between two readings, the busiest first. Something that was not called
    meanwhile is listed with the durations since the start.
    """
    seconds = max(now.time - before.time, 1e-9)
    found = []
    for key, counts in now.buckets.items():
        old = before.buckets.get(key, [0] * len(counts))
        # A worker that was replaced has taken its counts with it.
        recent = [max(new - past, 0) for new, past in zip(counts, old, strict=True)]
        shown_counts = recent if any(recent) else counts
        found.append(
            ToolRow(
                " ".join(part for part in key if part),
                sum(recent) / seconds,
                quantile(shown_counts, 0.5),
                quantile(shown_counts, 0.99),
                now.errors[key],
            )
        )
    return sorted(found, key=lambda line: (-line.per_second, line.what))


@click.command("top")
@click.argument("target", type=click.Path(path_type=Path))
@click.option(
    "--interval",
    type=click.FloatRange(0.1),
    default=1.0,
    show_default=True,
    help="Seconds between two readings.",
)
@click.option("--once", is_flag=True, help="Show one interval, and end.")
@click.option("--json", "machine", is_flag=True, help="Print one interval as JSON, and end.")
def top(target: Path, interval: float, once: bool, machine: bool) -> None:
    """Watch a running server: calls per second, durations and errors of each tool, and what runs.

    TARGET is the folder of the admin sockets, which the server was given with --admin, one of these
    sockets, or the PID of the server. Durations are upper bounds of their histogram bucket.

    On a terminal: q quits, e ends a call or a session by its ID, d ends a worker by its PID (or the
    server) after its calls.

    \b
    interlock run shop.py --http :8000 --admin /run/shop
    interlock top /run/shop
    """
    folder = _folder_of(target)
    before = _reading(folder)
    if once or machine:
        time.sleep(interval)
        now = _reading(folder)
        if machine:
            found = [msgspec.structs.asdict(line) for line in lines(before, now)]
            print_json({"tools": found, "calls": now.calls, "workers": now.workers})
        else:
            _draw(before, now)
        return
    with _keys() as terminal:
        while True:
            key = terminal.key(interval)
            if key == "q":
                return
            if key in ("e", "d"):
                with terminal.whole_lines():
                    _act(folder, key)
            now = _reading(folder)
            click.echo(_CLEAR, nl=False)
            _draw(before, now)
            say("q quits, e ends a call, d ends a worker", dim=True)
            before = now


def _folder_of(target: Path) -> Path:
    """Return the folder of admin sockets. Raises click.ClickException."""
    if target.is_dir():
        return target
    if target.suffix == ".sock":
        return target.parent
    if not str(target).isdecimal():
        raise click.ClickException(f"{target} is no folder of admin sockets.")
    try:
        words = Path(f"/proc/{target}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        own = Path(f"/proc/{target}/cwd").readlink()
    except OSError:
        raise click.ClickException(
            f"The process {target} cannot be found. Name the folder that it was given with --admin."
        ) from None
    for number, word in enumerate(words):
        if word == "--admin" and number + 1 < len(words):
            return own / words[number + 1]
        if word.startswith("--admin="):
            return own / word.removeprefix("--admin=")
    raise click.ClickException(f"The process {target} was started without --admin.")


def _reading(folder: Path) -> MetricsSample:
    """Ask every process."""
    rows: dict[str, list[dict[str, Any]]] = {"metrics": [], "workers": [], "calls": []}
    for path in processes(folder).values():
        for command, found in rows.items():
            try:
                response = ask(path, AdminRequest(command))
            except TimeoutError:  # it is busy: the next reading may have it
                break
            found += [] if response is None else response.rows
    return read(
        rows["metrics"], time=time.monotonic(), workers=rows["workers"], calls=rows["calls"]
    )


def _draw(before: MetricsSample, now: MetricsSample) -> None:
    per_second = max(now.ended - before.ended, 0) / max(now.time - before.time, 1e-9)
    count = len(now.workers)
    say(
        f"{count} {'process' if count == 1 else 'processes'}, {len(now.calls)} running,"
        f" {per_second:.1f} requests a second",
        bold=True,
    )
    found = lines(before, now)[:_MOST_ROWS]
    _table(
        ("METHOD", "A SECOND", "P50", "P99", "ERRORS"),
        [
            (
                line.what,
                f"{line.per_second:.1f}",
                _span(line.p50),
                _span(line.p99),
                str(line.errors),
            )
            for line in found
        ],
    )
    longest = sorted(now.calls, key=lambda call: -call["seconds"])[:_MOST_ROWS]
    _table(
        ("CALL", "AGE", "METHOD", "CALLER"),
        [
            (
                call["id"],
                f"{call['seconds']:.1f} s",
                " ".join(str(part) for part in (call["method"], call["name"]) if part),
                call["principal"] or call["client"] or "-",
            )
            for call in longest
        ],
    )
    _table(
        ("PID", "UP", "CALLS", "SUSPENDED", "STATE"),
        [
            (
                str(worker["pid"]),
                f"{worker['seconds']:.0f} s",
                str(worker["calls"]),
                str(worker["suspended"]),
                "draining" if worker["draining"] else "serving",
            )
            for worker in now.workers
        ],
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if not rows:
        return
    say()
    cells = [head, *([shown(cell)[:60] for cell in row] for row in rows)]
    widths = [max(len(row[n]) for row in cells) for n in range(len(head))]
    for number, row in enumerate(cells):
        text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say(text.rstrip(), dim=number == 0)


def _span(seconds: float) -> str:
    """A duration in words."""
    if seconds == float("inf"):
        return f"> {BOUNDARIES[-1]:g} s"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:g} s"


def _act(folder: Path, key: str) -> None:
    """Ask for an ID, and end what it names."""
    what = "ID to end" if key == "e" else "PID to end after its calls (empty: the whole server)"
    id = click.prompt(what, default="", show_default=False)
    if key == "e" and not id:
        return
    there = processes(folder)
    paths = list(there.values())
    request = AdminRequest("end", id)
    if key == "d":
        request = AdminRequest("drain" if id else "shutdown")
        if id:
            paths = [path for pid, path in there.items() if str(pid) == id]
    for path in paths:
        response = ask(path, request)
        if response is not None and response.done:
            return


class _Terminal:
    """The keys of a terminal, one at a time, without its line editor and echo.

    It stays in this mode between two keys: what is typed while the processes are asked is kept for
    the next call.

    Args:
        saved: The attributes of the terminal for whole lines.
    """

    def __init__(self, saved: list[Any]) -> None:
        self._saved = saved

    def key(self, seconds: float) -> str:
        """Return the key that is pressed within some seconds, or ""."""
        own = sys.stdin.fileno()
        ready = select.select([own], [], [], seconds)[0]
        # Not through sys.stdin, whose buffer would take the keys after this one out of sight.
        return os.read(own, 1).decode("ascii", "replace") if ready else ""

    @contextmanager
    def whole_lines(self) -> Iterator[None]:
        """The line editor of the terminal, for a prompt."""
        import termios  # late: not on Windows
        import tty  # late: as above

        own = sys.stdin.fileno()
        termios.tcsetattr(own, termios.TCSADRAIN, self._saved)
        try:
            yield
        finally:
            tty.setcbreak(own, termios.TCSADRAIN)


class _NoTerminal(_Terminal):
    """There are no keys without a terminal: only time passes."""

    def key(self, seconds: float) -> str:
        time.sleep(seconds)
        return ""


@contextmanager
def _keys() -> Iterator[_Terminal]:
    """The keys of the terminal, which is left as it was found."""
    if not sys.stdin.isatty():
        yield _NoTerminal([])
        return
    import termios  # late: not on Windows
    import tty  # late: as above

    own = sys.stdin.fileno()
    saved = termios.tcgetattr(own)
    # TCSADRAIN: the default of setcbreak discards what was typed before.
    tty.setcbreak(own, termios.TCSADRAIN)
    try:
        yield _Terminal(saved)
    finally:
        termios.tcsetattr(own, termios.TCSADRAIN, saved)
