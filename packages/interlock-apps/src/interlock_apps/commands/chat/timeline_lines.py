"""The timeline of a turn as lines for the terminal, with a bar for each entry."""

from __future__ import annotations

from collections.abc import Iterator

from ...host.timeline import TimelineEntry, TimelineTurn
from .output import in_line

WIDTH = 24  # characters of the axis
_SIGNS = {"model": "█", "sample": "█", "call": "█", "question": "▒", "said": "│", "read": "│"}


def timeline_lines(turn: TimelineTurn, now: float) -> Iterator[tuple[str, str]]:
    """The lines of a turn, each with its style.

    Args:
        turn: The turn.
        now: Seconds of the wall clock, for what still goes on.
    """
    end = now if turn.ended is None else turn.ended
    parts = [f"{end - turn.began:.1f} s", f"models {turn.model:.1f} s", f"calls {turn.calls:.1f} s"]
    if turn.waited:
        parts.append(f"waited for you {turn.waited:.1f} s")
    if turn.input or turn.output:
        parts.append(f"{turn.input:,} tokens in, {turn.output:,} out")
    yield in_line(turn.label, 100), "bold"
    yield "  " + ", ".join(parts), "dim"
    for entry in turn.entries:
        yield _line(entry, turn.began, max(end - turn.began, 1e-3), now), _style(entry)


def _line(entry: TimelineEntry, began: float, length: float, now: float) -> str:
    """The bar of an entry, how long it took, and what it was."""
    end = now if entry.ended is None else entry.ended
    first = min(WIDTH - 1, int((entry.began - began) / length * WIDTH))
    last = max(first + 1, min(WIDTH, round((end - began) / length * WIDTH)))
    sign = _SIGNS[entry.kind]
    bar = (" " * first + sign * (last - first)).ljust(WIDTH)
    tokens = f"  {entry.input:,} in, {entry.output:,} out" if entry.input or entry.output else ""
    state = "" if entry.state == "done" else f"  {entry.state}"
    what = f"{entry.kind} {in_line(entry.label, 60)}"
    if entry.server:
        what += f" · {in_line(entry.server, 40)}"
    return f"  {bar}  {end - entry.began:6.1f} s  {what}{tokens}{state}"


def _style(entry: TimelineEntry) -> str:
    if entry.state in ("failed", "denied"):
        return "red"
    return "yellow" if entry.kind == "question" else ""
