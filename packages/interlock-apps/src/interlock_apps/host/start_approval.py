"""Approval of starts: no server is started or contacted before its command is approved."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from msgspec.structs import replace

from interlock.configs import Config, Entry, approval_of, confinement_of
from interlock.configs import changes as changes_of

from ..fleet.pins import Pins
from ..fleet.start_questions import start_question
from .prompter import Prompter


class StartApproval:
    """Asks the person before a server is started or contacted (`SEC-17`).

    Args:
        pins: The earlier approvals.
        prompter: Asks the person.
        ask: Whether to ask at all; otherwise every start is allowed.
        in_process: The ids of servers in this process, which are always allowed.
        roots: Returns the folders that a server gets as roots, by its id.
    """

    def __init__(
        self,
        pins: Pins,
        prompter: Prompter,
        *,
        ask: bool,
        in_process: Set[str],
        roots: Callable[[str], Sequence[str]],
    ) -> None:
        self._roots = roots
        self._pins = pins
        self._prompter = prompter
        self._ask = ask
        self._in_process = in_process

    async def admit(self, entry: Entry) -> bool:
        """Return whether a server may be started or contacted."""
        if self.is_approved(entry):
            return True
        question = start_question(self._prompter.new_id(), entry, self._roots(entry.id))
        decision = await self._prompter.decide(question)
        if decision.allow:
            self.approve(entry)
        return decision.allow

    def approve(self, entry: Entry) -> None:
        """Record that the person allowed a server, exactly as the entry describes it."""
        self._pins.approve_command(entry.id, _approval_of(entry))

    def until_approved(self, entry: Entry, running: Entry | None) -> Entry:
        """Return a changed entry without the parts that are not yet approved.

        A restarted server is asked about at its start. A running server keeps its trust and roots
        until the person allows more.

        Args:
            entry: The new entry.
            running: The entry that the server was started with; None for a new server.
        """
        if running is None or self.is_approved(entry):
            return entry
        if changes_of(Config(entries=(running,)), Config(entries=(entry,))).reached_anew:
            return entry
        roots = tuple(root for root in entry.roots if root in running.roots)
        if entry.trusted <= running.trusted and roots == entry.roots:
            return entry
        return replace(entry, trusted=entry.trusted and running.trusted, roots=roots)

    def is_approved(self, entry: Entry) -> bool:
        """Return whether a server may be started or contacted without a question."""
        return (
            not self._ask
            or entry.id in self._in_process
            or self._pins.approved_command(entry.id, _approval_of(entry))
        )


def _approval_of(entry: Entry) -> str:
    """Return the scope of an approval. Where no sandbox works, an approval is one of a start
    without it.
    """
    return approval_of(entry, unconfined=bool(confinement_of(entry).problem))
