"""The sandbox of servers that a program starts without asking anybody, such as a gateway."""

from __future__ import annotations

from msgspec.structs import replace

from interlock.configs import Entry, confinement_of
from interlock.sandbox import Sandbox


def unattended_sandbox(entry: Entry, *, is_personal: bool = False) -> Sandbox | None:
    """Return the sandbox of a server that is started without a question.

    Where no sandbox works, a server that should have one gets one whose start is refused with
    words, unless its entry says `"sandbox": false`. A host asks its person instead
    (`start_question`).

    Args:
        entry: The server.
        is_personal: Whether each principal has a process of its own. These share no home folder.

    Returns:
        The sandbox; None if the server runs with the rights of the user.
    """
    confinement = confinement_of(entry)
    if confinement.problem:
        return Sandbox()
    if is_personal and confinement.sandbox is not None:
        return replace(confinement.sandbox, home=None)
    return confinement.sandbox
