"""Liveness checks of workers: a pure decision which worker is replaced, and why."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

STOPPED_SECONDS = 4.0
"""The time after which a process without a heartbeat is replaced."""
ASLEEP_SECONDS = 2.0
"""The time between two checks beyond which the supervisor itself was asleep."""


class WorkerLimits(Struct, frozen=True, kw_only=True):
    """Limits of each worker process of a server over HTTP with several workers.

    Attributes:
        blocked_seconds: The time after which a worker is killed and replaced if its event loop is
            blocked, in seconds; None never replaces it. Development mode never does either.
        requests: The number of requests after which a worker is replaced by a new one; None for
            any number.
        memory: The resident memory beyond which a worker is replaced by a new one, in bytes; None
            for any size.
        jitter: A random share, between 0 and this, by which each worker exceeds `requests` and
            `memory`, so that the workers are not replaced all at once.
    """

    blocked_seconds: float | None = 30.0
    requests: int | None = None
    memory: int | None = None
    jitter: float = 0.1

    def __post_init__(self) -> None:
        for name in ("blocked_seconds", "requests", "memory"):
            limit = getattr(self, name)
            if limit is not None and limit <= 0:
                raise ValueError(f"{name} must be above 0, or None, not {limit}")
        if self.jitter < 0:
            raise ValueError(f"jitter must be 0 or more, not {self.jitter}")


class Heartbeats(Struct, frozen=True):
    """The last heartbeats of a worker that serves, and its use of resources.

    Attributes:
        process: When its thread last ran, in seconds of the monotonic clock.
        loop: When its event loop last ran.
        requests: The number of requests that it has received.
        memory: Its resident memory in bytes; 0 if unknown.
        excess: The random share by which it may exceed the limits of requests and memory.
        wants_replacement: Whether it asks for a successor.
    """

    process: float
    loop: float
    requests: int = 0
    memory: int = 0
    excess: float = 0.0
    wants_replacement: bool = False


class Replacement(Struct, frozen=True):
    """The replacement of a worker.

    Attributes:
        reason: What the log says about the worker.
        at_once: Whether the worker is killed, because it cannot end in good order.
    """

    reason: str
    at_once: bool


class LivenessMonitor:
    """Decides which workers are replaced. It has no clock: the caller passes the times in.

    After the supervisor itself was asleep, all workers get one fresh period, because they may have
    been asleep too.
    """

    def __init__(self, limits: WorkerLimits) -> None:
        self._limits = limits
        self._checked: float | None = None  # when the last check was
        self._fresh = 0.0  # heartbeats count as no older than this time

    def check(self, now: float, workers: Mapping[int, Heartbeats]) -> dict[int, Replacement]:
        """Return the workers to replace, by their key in `workers`."""
        if self._checked is not None and now - self._checked > ASLEEP_SECONDS:
            self._fresh = now
        self._checked = now
        found = {}
        for key, beats in workers.items():
            replacement = self._judge(now, beats)
            if replacement is not None:
                found[key] = replacement
        return found

    def _judge(self, now: float, beats: Heartbeats) -> Replacement | None:
        limits = self._limits
        silent = now - max(beats.process, self._fresh)
        if silent >= STOPPED_SECONDS:
            return Replacement(f"has not run for {silent:.0f} s", at_once=True)
        blocked = now - max(beats.loop, self._fresh)
        if limits.blocked_seconds is not None and blocked >= limits.blocked_seconds:
            words = f"has an event loop that has been blocked for {blocked:.0f} s"
            return Replacement(words, at_once=True)
        if beats.wants_replacement:
            return Replacement("is drained by an operator", at_once=False)
        share = 1.0 + beats.excess
        if limits.requests is not None and beats.requests >= limits.requests * share:
            return Replacement(f"has received {beats.requests} requests", at_once=False)
        if limits.memory is not None and beats.memory >= limits.memory * share:
            return Replacement(f"uses {beats.memory / 2**20:.0f} MiB of memory", at_once=False)
        return None
