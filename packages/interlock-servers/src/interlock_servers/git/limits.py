"""Limits of the git server. Each can be set by an environment variable."""

from __future__ import annotations

from msgspec import Struct

PREFIX = "INTERLOCK_GIT_"


class GitLimits(Struct, frozen=True, kw_only=True):
    """Sizes are in bytes, times in seconds. `INTERLOCK_GIT_SECONDS` sets `seconds`, and so on."""

    seconds: float = 60.0  # that one run of git may take
    call: float = 180.0  # that a call may take, which may run git several times
    memory: int = 2 * 1024**3  # that one git may allocate, where the platform can bound that
    output: int = 16 * 1024 * 1024  # that one git may write
    file: int = 1024 * 1024  # of a file that is read as a resource
    blamed: int = 4 * 1024 * 1024  # of a file whose lines are asked about
    listed: int = 1_000  # files of one kind in one answer
