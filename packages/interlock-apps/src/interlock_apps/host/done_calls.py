"""The calls of a conversation by what is known about undoing them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..fleet.policy import hints
from .call_request import CallRequest
from .file_copies import CopiedFile

MOST_CALLS = 2_000
"""The calls of one conversation that are listed."""

Effect = Literal["read-only", "idempotent", "not destructive", "destructive", "unknown"]


class DoneCall(Struct, frozen=True, kw_only=True, rename="camel"):
    """A call that ran.

    Attributes:
        call: Its id.
        server: Its server.
        tool: The name of the tool.
        effect: What is known about its effect. The annotations of a server that is not trusted
            count only if they say that the tool is dangerous.
        by: What allowed it: "rule", "person", "plan" or "bounds".
        files: The files that it changed and whose state before is known.
    """

    call: str
    server: str
    tool: str
    effect: Effect
    by: str = ""
    files: tuple[CopiedFile, ...] = ()


def effect_of(request: CallRequest, trusted: bool) -> Effect:
    """Return what is known about the effect of a call."""
    says = request.item.tool.annotations
    if says is None or (not trusted and says.destructive_hint is not True):
        return "unknown"
    known = hints(says)
    if trusted and known["read_only"]:
        return "read-only"
    if known["destructive"]:
        return "destructive"
    return "idempotent" if known["idempotent"] else "not destructive"


class DoneCalls:
    """The calls that ran in each conversation, newest last."""

    def __init__(self) -> None:
        self._of: dict[str, list[DoneCall]] = {}

    def add(self, request: CallRequest, trusted: bool, by: str) -> None:
        """Record that a call runs."""
        if not request.session:
            return
        calls = self._of.setdefault(request.session, [])
        calls.append(
            DoneCall(
                call=request.call,
                server=request.item.server,
                tool=request.item.tool.name,
                effect=effect_of(request, trusted),
                by=by,
            )
        )
        del calls[:-MOST_CALLS]

    def of(self, session: str) -> tuple[DoneCall, ...]:
        """Return the calls of a conversation."""
        return tuple(self._of.get(session, ()))

    def end(self, session: str) -> None:
        """Forget a conversation that has ended."""
        self._of.pop(session, None)
