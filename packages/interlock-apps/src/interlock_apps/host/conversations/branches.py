"""The branches of a conversation: which of its entries lead to where it is now.

The log only grows. A `BranchChosen` says after which entry the conversation goes on, so its entries
form a tree, and what the person edited or retried stays as another branch.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ...fleet.event_bus import EventBus
from ...fleet.events import (
    AnyEvent,
    BranchChosen,
    LogEntry,
    ModelAsked,
    ModelSaid,
    PersonSaid,
    ResultsGiven,
    TaskGiven,
    TurnEnded,
)
from ...fleet.log import Log

MOST_ENTRIES = 100_000
"""The entries of one conversation that are read."""

_STARTS = (PersonSaid, ModelAsked, TaskGiven)  # what begins a message
_MESSAGES = (PersonSaid, ModelSaid)  # what a person can refer to
_BEFORE_AN_ANSWER = (PersonSaid, ResultsGiven, TaskGiven, TurnEnded)


class Fork(Struct, frozen=True, kw_only=True, rename="camel"):
    """A place where a conversation goes on in several ways.

    Attributes:
        at: The number of the entry with which the chosen way begins; 0 if nothing follows yet.
        chosen: The index of the chosen way.
        ends: The number of the last entry of each way; a `BranchChosen` after it chooses that way.
    """

    at: int
    chosen: int
    ends: tuple[int, ...]


class Branch(Struct, frozen=True):
    """The entries from the beginning of a conversation to one end of it, and its forks."""

    entries: tuple[LogEntry, ...]
    forks: tuple[Fork, ...] = ()

    @property
    def events(self) -> tuple[AnyEvent, ...]:
        """The events of the entries."""
        return tuple(entry.event for entry in self.entries)

    @property
    def messages(self) -> tuple[LogEntry, ...]:
        """The entries of messages, of the person and of models."""
        return tuple(entry for entry in self.entries if isinstance(entry.event, _MESSAGES))

    def entry(self, number: int) -> LogEntry:
        """A message of the person or the model, by its number.

        Raises:
            ValueError: This branch has no such message.
        """
        return self.entries[self._place(number)]

    def before(self, number: int) -> int:
        """The entry after which a conversation goes on to replace a message; 0 for none.

        Raises:
            ValueError: This branch has no such message.
        """
        place = self._place(number)
        if isinstance(self.entries[place].event, PersonSaid):
            return self.entries[place - 1].seq if place else 0
        while place and not isinstance(self.entries[place - 1].event, _BEFORE_AN_ANSWER):
            place -= 1
        return self.entries[place - 1].seq if place else 0

    def after(self, number: int) -> int:
        """The entry after which a conversation goes on to keep a message, with the results of the
        calls in it.

        Raises:
            ValueError: This branch has no such message.
        """
        place = self._place(number)
        while place + 1 < len(self.entries) and not isinstance(
            self.entries[place + 1].event, _STARTS
        ):
            place += 1
        return self.entries[place].seq

    def until(self, number: int) -> Branch:
        """The beginning of this branch, up to an entry.

        Raises:
            ValueError: This branch has no such entry.
        """
        for place, entry in enumerate(self.entries):
            if entry.seq == number:
                return Branch(self.entries[: place + 1])
        if number:
            raise ValueError(f"This branch of the conversation has no entry {number}.")
        return Branch(())

    def _place(self, number: int) -> int:
        for place, entry in enumerate(self.entries):
            if entry.seq == number and isinstance(entry.event, _MESSAGES):
                return place
        raise ValueError(f"This branch of the conversation has no message {number}.")


class Branches:
    """Reads the branches of conversations from the log, and records which one was chosen.

    Args:
        journal: The log.
        events: Receives the choices.
    """

    def __init__(self, journal: Log, events: EventBus) -> None:
        self._journal = journal
        self._events = events

    async def of(self, session: str, at: int = 0) -> Branch:
        """The chosen branch of a conversation, or the newest one through an entry.

        Raises:
            LogError: The log cannot be read.
            ValueError: There is no such conversation, or no such entry.
        """
        await self._journal.flush()
        entries = await self._journal.read(session, limit=MOST_ENTRIES)
        if not session or not entries:
            raise ValueError(f"There is no conversation {session!r}.")
        return branch_of(entries, at)

    def choose(self, session: str, after: int) -> None:
        """Record that a conversation goes on after an entry."""
        self._events.publish(BranchChosen(session=session, after=after))


def branch_of(entries: Iterable[LogEntry], at: int = 0) -> Branch:
    """The branch of a conversation that was chosen last, or the newest one through an entry.

    Args:
        entries: All entries of the conversation, oldest first.
        at: The number of an entry that the branch must contain; 0 for the chosen branch.

    Raises:
        ValueError: There is no such entry.
    """
    tree = _Tree(entries)
    if at and at not in tree.parents:
        raise ValueError(f"The conversation has no entry {at}.")
    return tree.branch(tree.newest[at] if at else tree.head)


class _Tree:
    """The entries of a conversation as a tree, by their numbers; 0 is the root."""

    def __init__(self, entries: Iterable[LogEntry]) -> None:
        self.entries: dict[int, LogEntry] = {}
        self.parents: dict[int, int] = {}
        self.children: dict[int, list[int]] = {}
        self.head = 0
        for entry in entries:
            if isinstance(event := entry.event, BranchChosen):
                if not event.after or event.after in self.entries:
                    self.head = event.after
                continue
            self.entries[entry.seq] = entry
            self.parents[entry.seq] = self.head
            self.children.setdefault(self.head, []).append(entry.seq)
            self.head = entry.seq
        self.newest: dict[int, int] = {}  # the newest entry of each subtree
        self._speaks: set[int] = set()  # entries in whose subtree something is said
        for number in reversed(self.parents):
            self.newest.setdefault(number, number)
            if isinstance(self.entries[number].event, _STARTS):
                self._speaks.add(number)
            parent = self.parents[number]
            self.newest[parent] = max(self.newest.get(parent, parent), self.newest[number])
            if number in self._speaks:
                self._speaks.add(parent)

    def branch(self, end: int) -> Branch:
        """The branch that ends with an entry."""
        numbers: list[int] = []
        while end:
            numbers.append(end)
            end = self.parents[end]
        numbers.reverse()
        starts = [n for n in numbers if isinstance(self.entries[n].event, _STARTS)]
        forks: list[Fork] = []
        place = 0
        for parent, following in zip([0, *numbers], [*numbers, 0], strict=True):
            while place < len(starts) and starts[place] <= parent:
                place += 1
            at = starts[place] if place < len(starts) else 0
            if (fork := self._fork(parent, following, at)) is not None:
                forks.append(fork)
        return Branch(tuple(self.entries[n] for n in numbers), tuple(forks))

    def _fork(self, parent: int, following: int, at: int) -> Fork | None:
        ways = [
            child
            for child in self.children.get(parent, ())
            if child in self._speaks or child == following
        ]
        ends = [self.newest[way] for way in ways]
        if not following:
            ways.append(0)
            ends.append(parent)
        if len(ways) < 2:
            return None
        return Fork(at=at, chosen=ways.index(following), ends=tuple(ends))
