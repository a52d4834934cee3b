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
from .servers import LEVELS, AdminServer, AdminSocketServer, admin_server

_CLEAR = "\x1b[H\x1b[J"
_MOST_ROWS = 15  # of each table
_ACTIONS = {
    "e": "ID to end",
    "d": "PID to end after its calls (empty: the whole server)",
    "l": f"Log level ({', '.join(LEVELS)})",
}  # by key: what the user is asked


class MetricsSample(Struct):
    """What the processes of a server have counted at one moment.

    Attributes:
        time: When it was read, in seconds of the monotonic clock.
        ended: How many requests have ended.
        buckets: The counts of durations by method and name.
        errors: How many requests have failed, by method and name.
        workers: The processes.
        calls: The running calls.
        sessions: The sessions that end last.
        upstreams: The mounted servers of each process.
    """

    time: float
    ended: int
    buckets: dict[tuple[str, str], list[int]]
    errors: Counter[tuple[str, str]]
    workers: list[dict[str, Any]]
    calls: list[dict[str, Any]]
    sessions: list[dict[str, Any]]
    upstreams: list[dict[str, Any]]


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
    found = MetricsSample(0.0, 0, {}, Counter(), [], [], [], [])
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
@click.argument("target")
@click.option(
    "--interval",
    type=click.FloatRange(0.1),
    default=1.0,
    show_default=True,
    help="Seconds between two readings.",
)
@click.option("--once", is_flag=True, help="Show one interval, and end.")
@click.option("--json", "machine", is_flag=True, help="Print one interval as JSON, and end.")
def top(target: str, interval: float, once: bool, machine: bool) -> None:
    """Watch a running server: calls per second, durations and errors of each tool, and what runs.

    TARGET is the folder of the admin sockets, which the server was given with --admin, one of these
    sockets, the PID of the server, or the URL of the path that it was given with --admin-path (the
    secret is in INTERLOCK_ADMIN_SECRET). Durations are upper bounds of their histogram bucket.

    On a terminal: q quits, e ends a call or a session by its ID, d ends a worker by its PID (or the
    server) after its calls, l changes the log level of all processes.

    \b
    interlock run shop.py --http :8000 --admin /run/shop
    interlock top /run/shop
    interlock top https://shop.example.com/admin
    """
    server = (
        admin_server(target) if "://" in target else AdminSocketServer(_folder_of(Path(target)))
    )
    before = _reading(server)
    if once or machine:
        time.sleep(interval)
        now = _reading(server)
        if machine:
            found = [msgspec.structs.asdict(line) for line in lines(before, now)]
            print_json(
                {
                    "tools": found,
                    "calls": now.calls,
                    "sessions": now.sessions,
                    "upstreams": now.upstreams,
                    "workers": now.workers,
                }
            )
        else:
            _draw(before, now)
        return
    with _keys() as terminal:
        while True:
            key = terminal.key(interval)
            if key == "q":
                return
            if key in _ACTIONS:
                with terminal.whole_lines():
                    _act(server, key)
            now = _reading(server)
            click.echo(_CLEAR, nl=False)
            _draw(before, now)
            say("q quits, e ends a call or session, d ends a worker, l log level", dim=True)
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


def _reading(server: AdminServer) -> MetricsSample:
    """Ask every process."""
    rows: dict[str, list[dict[str, Any]]] = {
        command: [] for command in ("metrics", "workers", "calls", "sessions", "upstreams")
    }
    for command, found in rows.items():
        for response in server.ask_all(AdminRequest(command, most=_MOST_ROWS)).values():
            # A busy process does not answer: the next reading may have it.
            found += [] if response is None else response.rows
    sessions = {row["id"]: row for row in rows["sessions"]}  # workers share their store
    return read(
        rows["metrics"],
        time=time.monotonic(),
        workers=rows["workers"],
        calls=rows["calls"],
        sessions=list(sessions.values()),
        upstreams=rows["upstreams"],
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
        ("CALL", "AGE", "METHOD", "CALLER", "PROGRESS"),
        [
            (
                call["id"],
                f"{call['seconds']:.1f} s",
                " ".join(str(part) for part in (call["method"], call["name"]) if part),
                call["principal"] or call["client"] or "-",
                _progress(call),
            )
            for call in longest
        ],
    )
    _table(
        ("SESSION", "AGE", "CLIENT", "REVISION"),
        [
            (
                session["id"],
                f"{session['seconds']:.0f} s",
                session["principal"] or session["client"] or "-",
                session["revision"],
            )
            for session in now.sessions[:_MOST_ROWS]
        ],
    )
    _table(
        ("UPSTREAM", "STATE", "PROBLEM"),
        [
            (each["id"], each["state"], each["problem"] or "-")
            for each in sorted(now.upstreams, key=lambda each: str(each["state"]))[:_MOST_ROWS]
        ],
    )
    _table(
        ("PID", "UP", "CALLS", "SUSPENDED", "TASKS", "STATE"),
        [
            (
                str(worker["pid"]),
                f"{worker['seconds']:.0f} s",
                str(worker["calls"]),
                str(worker["suspended"]),
                str(worker["tasks"]),
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


def _progress(call: Mapping[str, Any]) -> str:
    """The progress of a call: a part of the total, if the call has told both."""
    done = call.get("progress")
    total = call.get("total")
    if done is None:
        return "-"
    return f"{done:g}" if total is None else f"{done:g} of {total:g}"


def _span(seconds: float) -> str:
    """A duration in words."""
    if seconds == float("inf"):
        return f"> {BOUNDARIES[-1]:g} s"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:g} s"


def _act(server: AdminServer, key: str) -> None:
    """Ask for an ID, and end what it names; or for a log level, and set it."""
    id = click.prompt(_ACTIONS[key], default="", show_default=False)
    if key == "l" and id in LEVELS:
        server.ask_all(AdminRequest("log_level", id))
    if key == "l" or (key == "e" and not id):
        return
    asked = server.processes()
    request = AdminRequest("end", id)
    if key == "d":
        request = AdminRequest("drain" if id else "shutdown")
        if id:
            asked = [pid for pid in asked if str(pid) == id]
    for pid in asked:
        response = server.ask(pid, request)
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
