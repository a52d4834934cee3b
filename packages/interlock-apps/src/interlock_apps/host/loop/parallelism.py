"""Parallelism: which calls of one step may run at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class PlannedCall(Struct, frozen=True):
    """A call as far as its order matters: at which server, and whether its tool says that it only
    reads.
    """

    server: str
    reads: bool


def parallel_groups(calls: Sequence[PlannedCall]) -> list[list[list[int]]]:
    """Lanes that run side by side, one for each server; each is a row of waves, and the calls (by
    index) of a wave run at once.

    Calls that only read share a wave with their neighbours; one that changes something waits for
    those before it, and those after it wait for it: a model that asks for both at once means them
    in this order. That a server lies about its tools costs only itself.
    """
    found: dict[str, list[list[int]]] = {}
    for index, call in enumerate(calls):
        waves = found.setdefault(call.server, [])
        if waves and call.reads and all(calls[other].reads for other in waves[-1]):
            waves[-1].append(index)
        else:
            waves.append([index])
    return list(found.values())
