"""The report of a chaos test, in Markdown, and the promises that it checks."""

from __future__ import annotations

import signal
import statistics
from typing import Any

from .faults import Faults
from .ledger import ENDS, QUIET, SETTLED, Ledger, Marks
from .processes import ProcessHistory, Sampler, slope

MEGABYTE = 1_000_000
SETTLING = 0.3
"""The first part of a process's life, in which its memory may grow as it likes."""

WATCHED = 240.0
"""A process that lived less long is not judged, in seconds."""

MEMORY_SLOPE = 48 * MEGABYTE
"""The growth of the memory of one process in an hour, in bytes, and the same share of its size."""

DESCRIPTOR_SLOPE = 60.0
"""The growth of the descriptors of one process in an hour."""


def broken_promises(
    ledger: Ledger, marks: Marks, sampler: Sampler, faults: Faults, exit_code: int | None
) -> list[str]:
    """What the server promised and did not keep, one sentence each."""
    found = []
    if lost := ledger.total("lost"):
        found.append(f"{lost} requests were lost: neither an answer nor an error that says why")
    if twice := marks.started_twice():
        found.append(f"{len(twice)} actions started more than once: {', '.join(twice[:5])}")
    started = marks.names("acts")
    claimed = [name for name, end in ledger.confirmed.items() if end == "did" and not started[name]]
    if claimed:
        found.append(f"{len(claimed)} actions were reported and had not started: {claimed[:5]}")
    if unsettled := sum(many for (_, end), many in ledger.actions.items() if end not in SETTLED):
        found.append(f"{unsettled} actions were never settled")
    if ledger.wrong:
        found.append(f"{len(ledger.wrong)} answers were wrong: {ledger.wrong[:3]}")
    if faults.server.crashes and faults.server.workers > 1:
        found.append(f"the supervisor ended by itself {faults.server.crashes} times")
    if exit_code not in (0, -signal.SIGTERM):  # uvicorn ends by the signal itself
        found.append(f"at SIGTERM the server ended with {exit_code}, not 0")
    for pid, history in sampler.histories.items():
        if history.lived >= WATCHED:
            memory, descriptors = slopes(history)
            if memory > max(MEMORY_SLOPE, statistics.median(history.memory)):
                found.append(f"{history.role} {pid} grew by {memory / MEGABYTE:.0f} MB an hour")
            if descriptors > DESCRIPTOR_SLOPE:
                found.append(f"{history.role} {pid} opened {descriptors:.0f} descriptors an hour")
    return found


def slopes(history: ProcessHistory) -> tuple[float, float]:
    """The growth of a process's memory in bytes, and of its descriptors, both in an hour."""
    first = history.seconds[0] + SETTLING * history.lived
    at = next(n for n, second in enumerate(history.seconds) if second >= first)
    seconds = history.seconds[at:]
    return (
        slope(seconds, history.memory[at:]) * 3600,
        slope(seconds, history.descriptors[at:]) * 3600,
    )


def tables(ledger: Ledger, marks: Marks, sampler: Sampler, faults: Faults) -> str:
    """All tables."""
    parts = [
        "## Requests by fault",
        _requests(ledger, faults),
        "## Requests by kind",
        _kinds(ledger),
        "## Actions that run once",
        _actions(ledger, marks),
        "## What callers were told",
        _reasons(ledger),
        "## Processes",
        _processes(sampler),
    ]
    return "\n\n".join(parts)


def _requests(ledger: Ledger, faults: Faults) -> str:
    rows = []
    for fault in [QUIET, *sorted(faults.injected)]:
        counts = [ledger.total(end, fault=fault) for end in ("sent", *ENDS)]
        times = faults.injected.get(fault, "")
        rows.append([fault, times, *counts, f"{ledger.longest[fault]:.1f}"])
    totals = [ledger.total(end) for end in ("sent", *ENDS)]
    rows.append(["all", sum(faults.injected.values()), *totals, ""])
    return markdown(["fault", "times", "sent", *ENDS, "longest, s"], rows)


def _kinds(ledger: Ledger) -> str:
    kinds = sorted({kind for _, kind, _ in ledger.requests})
    rows = [[kind, *(ledger.total(end, kind=kind) for end in ("sent", *ENDS))] for kind in kinds]
    return markdown(["kind", "sent", *ENDS], rows)


def _actions(ledger: Ledger, marks: Marks) -> str:
    kinds = sorted({kind for kind, _ in ledger.actions})
    ends = (*SETTLED, "unsettled")
    twice = marks.started_twice()
    rows = [
        [
            kind,
            *(ledger.actions[kind, end] for end in ends),
            sum(name.rpartition("-")[0].rpartition("-")[0] == kind for name in twice),
        ]
        for kind in sorted({*kinds, "session-question"})
    ]
    waiting = marks.names("waits")
    stopped = marks.names("stopped")
    table = markdown(["kind", *ends, "started twice"], rows)
    return f"{table}\n\nCancelled calls that had begun: {len(waiting)}; stopped: {len(stopped)}."


def _reasons(ledger: Ledger) -> str:
    rows = [[end, many, reason] for (end, reason), many in ledger.reasons.most_common(40)]
    return markdown(["end", "times", "what the caller was told"], rows)


def _processes(sampler: Sampler) -> str:
    rows = []
    for pid, history in sorted(sampler.histories.items()):
        memory, descriptors = slopes(history) if history.lived >= WATCHED else (None, None)
        rows.append(
            [
                f"{history.role} {pid}",
                f"{history.lived:.0f}",
                *_course(history.memory, MEGABYTE),
                "" if memory is None else f"{memory / MEGABYTE:+.1f}",
                *_course(history.descriptors, 1),
                "" if descriptors is None else f"{descriptors:+.0f}",
            ]
        )
    head = ["process", "lived, s", "MB first", "median", "last", "an hour"]
    return markdown([*head, "descriptors first", "median", "last", "an hour"], rows)


def _course(values: list[int], unit: int) -> list[str]:
    return [f"{value / unit:.0f}" for value in (values[0], statistics.median(values), values[-1])]


def markdown(head: list[str], rows: list[list[Any]]) -> str:
    """A table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)
