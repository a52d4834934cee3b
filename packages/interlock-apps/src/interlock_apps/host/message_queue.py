"""The queue of messages that the person writes while a turn runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from secrets import token_hex
from typing import Literal

from msgspec import structs

from interlock import ProtocolError, TextContent
from interlock.types import SamplingMessage

from ..fleet.events import Attached, MessageQueued, PersonSaid

When = Literal["step", "turn"]
MOST_QUEUED = 50  # messages; a person does not type more during one turn, a broken script does


class MessageQueue:
    """The messages that wait in one conversation, in their order.

    Args:
        session: The id of the conversation.
        waiting: The messages that wait already, when a conversation is resumed.
    """

    def __init__(self, session: str, waiting: Iterable[MessageQueued] = ()) -> None:
        self._session = session
        self._waiting = {each.id: each for each in waiting}

    def __iter__(self) -> Iterator[MessageQueued]:
        return iter(tuple(self._waiting.values()))

    def __len__(self) -> int:
        return len(self._waiting)

    def add(
        self, message: SamplingMessage, when: When, attached: tuple[Attached, ...]
    ) -> MessageQueued:
        """Add a message. Raises ProtocolError if too many wait."""
        if len(self._waiting) >= MOST_QUEUED:
            raise ProtocolError(f"At most {MOST_QUEUED} messages can wait. Remove one first.")
        queued = MessageQueued(
            session=self._session,
            id=f"m{token_hex(4)}",
            message=message,
            when=when,
            attached=attached,
        )
        self._waiting[queued.id] = queued
        return queued

    def change(self, id: str, text: str | None, when: When | None) -> MessageQueued:
        """Replace the text of a message, or when the model gets it. Raises ProtocolError if it no
        longer waits.
        """
        queued = self._found(id)
        if text is not None:
            queued = structs.replace(queued, message=with_text(queued.message, text))
        if when is not None:
            queued = structs.replace(queued, when=when)
        self._waiting[id] = queued
        return queued

    def remove(self, id: str) -> None:
        """Remove a message. Raises ProtocolError if it no longer waits."""
        self._found(id)
        del self._waiting[id]

    def take(self, when: When | None = None) -> list[PersonSaid]:
        """Remove the messages for this moment, or all; return them as the person's messages."""
        taken = [each for each in self if when is None or each.when == when]
        for each in taken:
            del self._waiting[each.id]
        return [
            PersonSaid(
                session=self._session,
                messages=(each.message,),
                attached=each.attached,
                queued=each.id,
            )
            for each in taken
        ]

    def _found(self, id: str) -> MessageQueued:
        if id not in self._waiting:
            raise ProtocolError("This message no longer waits: the model has it, or it is removed.")
        return self._waiting[id]


def with_text(message: SamplingMessage, text: str) -> SamplingMessage:
    """The message with another text. Its files and resources, which come before it, stay."""
    blocks = message.content if isinstance(message.content, list) else [message.content]
    typed = blocks and isinstance(blocks[-1], TextContent) and not blocks[-1].meta
    kept = blocks[:-1] if typed else blocks
    return structs.replace(message, content=[*kept, TextContent(text=text)])
