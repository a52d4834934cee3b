"""The mechanisms that confine a program, and which of them works on this machine."""

from __future__ import annotations

import functools
import sys

from msgspec import Struct

from .errors import SandboxUnavailable
from .policy import SandboxPolicy


class MechanismState(Struct, frozen=True, kw_only=True):
    """Whether a mechanism works on this machine.

    Attributes:
        name: "bubblewrap" or "landlock".
        problem: Why it does not work; empty if it does.
        holds: What it enforces, as one phrase.
    """

    name: str
    problem: str
    holds: str


_HOLDS = {
    "bubblewrap": "files, processes, network, Unix sockets and variables, by namespaces",
    "landlock": "files, signals, network, Unix sockets and variables; no holes in open folders",
}


def mechanism_states() -> tuple[MechanismState, ...]:
    """Return the mechanisms in their order, each tried once in this process."""
    return tuple(
        MechanismState(name=name, problem=_problem(name), holds=holds)
        for name, holds in _HOLDS.items()
    )


def unavailable_reason() -> str:
    """Return why no mechanism works here; empty if one does."""
    states = mechanism_states()
    if any(not state.problem for state in states):
        return ""
    return "; ".join(f"{state.name}: {state.problem}" for state in states)


def choose(sandbox: SandboxPolicy, inexpressible: dict[str, str]) -> str:
    """Return the first mechanism that works and can enforce a policy.

    Args:
        sandbox: The policy.
        inexpressible: For each mechanism what it cannot enforce of the policy; empty for nothing.

    Raises:
        SandboxUnavailable: There is none.
    """
    reasons: list[str] = []
    for name in _HOLDS:
        if sandbox.mechanism not in (None, name):
            continue
        reason = _problem(name) or inexpressible.get(name, "")
        if not reason:
            return name
        reasons.append(f"{name}: {reason}")
    raise SandboxUnavailable(
        f"The server was not started, because no sandbox can confine it as asked. "
        f'{"; ".join(reasons)}. To start it with your rights, set "sandbox": false in its entry.'
    )


@functools.cache
def _problem(name: str) -> str:
    """Why a mechanism does not work here; tried once in a process."""
    if sys.platform != "linux":
        return "it exists on Linux only"
    if name == "bubblewrap":
        from .bubblewrap import problem  # late: it starts a process, or loads the C library

        return problem()
    from .landlock import problem as landlock_problem  # late: as above

    return landlock_problem()
