"""Refuses starts that nobody can be asked about: of servers that no sandbox can confine."""

from __future__ import annotations

from interlock.configs import Entry, confinement_of


def start_refusal(entry: Entry) -> str:
    """Return why a program that has nobody to ask, such as a gateway, must not start a server;
    empty if it may. A host asks its person instead (`start_question`).

    Args:
        entry: The server.
    """
    problem = confinement_of(entry).problem
    if not problem:
        return ""
    return (
        f"The server {entry.id} is not started: it has to run in a sandbox, and none works here "
        f'({problem}). If you trust it with your rights, set "sandbox": false in its entry.'
    )
