"""Limits of the git server. Each can be set by an environment variable."""

from __future__ import annotations

from msgspec import Struct

PREFIX = "INTERLOCK_GIT_"


class GitLimits(Struct, frozen=True, kw_only=True):
    """Sizes are in bytes, times in seconds. `INTERLOCK_GIT_SECONDS` sets `seconds`, and so on."""

    seconds: float = 60.0  # for one run of git
    call: float = 180.0  # for a call, which may run git several times
    memory: int = 2 * 1024**3  # for one git process, if the platform can limit it
    output: int = 16 * 1024 * 1024  # of one git process
    file: int = 1024 * 1024  # of a file that is read as a resource
    blamed: int = 4 * 1024 * 1024  # of a file for blame
    listed: int = 1_000  # files of one kind in one result
