"""Parallelism: which calls of one step may run at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class PlannedCall(Struct, frozen=True):
    """A call for scheduling: its server, and whether its tool claims to be read-only."""

    server: str
    reads: bool


def parallel_groups(calls: Sequence[PlannedCall]) -> list[list[list[int]]]:
    """Group calls into one lane for each server; the lanes run in parallel.

    A lane is a sequence of waves; the calls (by index) of a wave run in parallel. Neighbouring
    read-only calls share a wave. A call that writes waits for the calls before it, and the calls
    after it wait for it, because the model expects this order. A server that lies about its tools
    harms only itself.
    """
    found: dict[str, list[list[int]]] = {}
    for index, call in enumerate(calls):
        waves = found.setdefault(call.server, [])
        if waves and call.reads and all(calls[other].reads for other in waves[-1]):
            waves[-1].append(index)
        else:
            waves.append([index])
    return list(found.values())


def earlier_calls(groups: Sequence[Sequence[Sequence[int]]]) -> dict[int, list[int]]:
    """Return the calls, by index, that must have ended before each call runs.

    Args:
        groups: The lanes of `parallel_groups`.
    """
    earlier: dict[int, list[int]] = {}
    for lane in groups:
        before: list[int] = []
        for wave in lane:
            earlier.update({index: list(before) for index in wave})
            before += wave
    return earlier
