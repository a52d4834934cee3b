"""Examinations of a server by the rules of `interlock doctor`, with the cures of one click."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from interlock.configs import Entry, confinement_of
from interlock.doctor import CheckedPart, ExamineOptions, examine

from .jobs import SetupJob

OLDER_REVISION: Final = "2025-11-25"
"""The revision that a server gets whose start a newer one breaks: the last with a handshake."""
_CURES: Final[Mapping[str, str]] = {
    "probe-ends-server": "revision",
    "opening-fails": "revision",
    "no-answer": "revision",
    "login-needed": "login",
    "credentials-refused": "login",
    "variable-missing": "edit",
    "server-ends": "unconfine",
    "command-not-found": "edit",
    "folder-not-found": "edit",
}


async def examine_server(entry: Entry, job: SetupJob, *, auth: Any, seconds: float) -> None:
    """Examine a server. Each part that was checked is an event `part`; the last event is `report`.

    Args:
        entry: The server. A program is started, so the user has allowed its start.
        job: Receives the events.
        auth: Authorizes the requests to a URL; None for no authorization.
        seconds: The time limit of the first answer and of each request.
    """
    options = ExamineOptions(timeout=seconds, keep_alive_seconds=0, auth=auth)

    def add(part: CheckedPart) -> None:
        if part.diagnostics or part.facts:
            job.add("part", **_part(part, entry))

    report = await examine(entry, options, on_part=add)
    job.add("report", errors=len(report.errors), warnings=len(report.warnings))


def _part(part: CheckedPart, entry: Entry) -> dict[str, Any]:
    return {
        "part": part.part,
        "facts": part.facts,
        "findings": [
            {**msgspec.to_builtins(found), "cure": cure_of(found.rule, entry)}
            for found in part.diagnostics
        ],
    }


def cure_of(rule: str, entry: Entry) -> str:
    """Return the cure of a finding that one click makes; empty if there is none.

    Args:
        rule: The id of the rule.
        entry: The server.

    Returns:
        `revision` (use an older revision), `login`, `edit` (fill in what is missing in the form),
        or `unconfine` (start it without the sandbox).
    """
    cure = _CURES.get(rule, "")
    if cure == "revision" and entry.revision:
        return ""
    if cure == "unconfine" and confinement_of(entry).sandbox is None:
        return ""
    return cure
