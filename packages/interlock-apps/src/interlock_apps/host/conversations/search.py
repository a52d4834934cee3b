"""Full-text search over what the person and the models said."""

from __future__ import annotations

import re

from msgspec import Struct

from interlock import TextContent
from interlock.types import SamplingMessage

from ...fleet import threat_scan
from ...fleet.events import AnyEvent, LogEntry, ModelSaid, PersonSaid
from ...fleet.log import Log
from ...fleet.log.query import LogQuery, wanted
from ...fleet.log.records import kind_of_type
from ...fleet.text_index import words_of
from ..loop.context_window import blocks

SAID = (kind_of_type(PersonSaid), kind_of_type(ModelSaid))
MOST_FOUND = 50
MOST_READ = 2_000
"""The entries that are read for one search; the words of some are not in what was said."""
_PAGE = 100
_BEFORE = 60  # characters of an excerpt before the first found word
_EXCERPT = 200  # characters
_WORD = re.compile(r"[^\W_]+")


class FoundMessage(Struct, frozen=True, kw_only=True, rename="camel"):
    """A message that contains the words of a search.

    Attributes:
        session: Its conversation.
        title: The title of the conversation.
        message: The number of the message.
        at: Its time, in seconds of the wall clock.
        by: Who said it.
        excerpt: A part of its text around the first found word.
        marks: Where the found words are in the excerpt, each from its start to its end.
    """

    session: str
    title: str
    message: int
    at: float
    by: str
    excerpt: str
    marks: tuple[tuple[int, int], ...]


async def find_messages(journal: Log, words: str, limit: int = MOST_FOUND) -> list[FoundMessage]:
    """The messages that contain every word, or a word that begins with it, newest first.

    Raises:
        LogError: The log cannot be read.
    """
    query = wanted(words)
    if not query.words:
        return []
    await journal.flush()
    titles = {row.id: row.title for row in await journal.sessions()}
    found: list[FoundMessage] = []
    before: int | None = None
    for _ in range(MOST_READ // _PAGE):
        page = await journal.search(words, kinds=SAID, before=before, limit=_PAGE)
        for noted in page:
            if noted.event.session not in titles:
                continue
            message = _found(noted, query, titles[noted.event.session])
            if message is not None:
                found.append(message)
            if len(found) == limit:
                return found
        if len(page) < _PAGE:
            break
        before = page[-1].seq
    return found


def said_text(event: AnyEvent) -> str:
    """What the person or a model said, without attachments and calls; "" for other events."""
    if isinstance(event, ModelSaid):
        return _texts(SamplingMessage(role="assistant", content=event.result.content))
    if not isinstance(event, PersonSaid) or not event.messages:
        return ""
    if event.prompt:
        return "\n\n".join(text for message in event.messages if (text := _texts(message)))
    own = [b.text for b in blocks(event.messages[-1]) if isinstance(b, TextContent)]
    return own[-1] if own else ""


def _texts(message: SamplingMessage) -> str:
    return "\n\n".join(b.text for b in blocks(message) if isinstance(b, TextContent))


def _found(noted: LogEntry, query: LogQuery, title: str) -> FoundMessage | None:
    text = said_text(noted.event)
    if not query.has_words(text):
        return None
    excerpt, marks = excerpt_of(text, query.words)
    return FoundMessage(
        session=noted.event.session,
        title=title,
        message=noted.seq,
        at=noted.at,
        by="person" if isinstance(noted.event, PersonSaid) else "model",
        excerpt=excerpt,
        marks=marks,
    )


def excerpt_of(text: str, words: tuple[str, ...]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """A part of a text around the first of these normalized words, and where they are in it."""
    line = " ".join(threat_scan.visible(text).split())
    marks = [
        match.span()
        for match in _WORD.finditer(line)
        if any(part.startswith(word) for part in words_of(match.group()) for word in words)
    ]
    start = max(0, marks[0][0] - _BEFORE) if marks else 0
    if start:
        start = line.find(" ", start, marks[0][0]) + 1 or start
    end = min(len(line), start + _EXCERPT)
    lead = "… " if start else ""
    shift = len(lead) - start
    shown = tuple((a + shift, b + shift) for a, b in marks if b <= end)
    return f"{lead}{line[start:end]}{' …' if end < len(line) else ''}", shown
