"""The filter language of the timeline: `method:tools/call tool:search slower:200ms error` (pure).

A filter is a list of terms. A row is shown if all of them match it. A term is a word, `name:value`,
or a text in quotes; `-` before it excludes what it matches. A value may have several alternatives
with commas, and `*` for any characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from interlock.tape import TapeRow

MOST_TERMS = 30


class FilterError(ValueError):
    """A filter cannot be read; the message says which term, and what is possible."""


class FilterRow(Struct, frozen=True):
    """A row of a tape, with what a filter asks about it.

    Attributes:
        row: The row.
        connection: The inspector's name of its connection.
        duration: The seconds between the request and its response; None if there is none.
        failed: Whether it, or the response to it, is an error.
        text: Reads the line.
    """

    row: TapeRow
    connection: str
    duration: float | None
    failed: bool
    text: Callable[[], bytes]


Matches = Callable[[FilterRow], bool]

_TERM = re.compile(r'(?P<not>-)?(?:(?P<key>[a-z]+):)?(?:"(?P<quoted>[^"]*)"|(?P<plain>[^\s"]+))')
_SPACE = re.compile(r"\s*")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "": 0.001}

_WORDS: dict[str, Matches] = {
    "error": lambda one: one.failed,
    "request": lambda one: one.row.kind == "request",
    "response": lambda one: one.row.kind in ("response", "error"),
    "notification": lambda one: one.row.kind == "notification",
    "question": lambda one: one.row.kind == "request" and one.row.sender == "server",
    "message": lambda one: bool(one.row.sender),
    "stderr": lambda one: one.row.kind == "stderr",
    "http": lambda one: one.row.kind == "http",
    "invalid": lambda one: one.row.kind == "bytes",
    "unanswered": lambda one: one.row.kind == "request" and one.row.partner < 0,
}
"""The words that are terms by themselves."""

_KEYS = ("method", "tool", "name", "connection", "from", "kind", "id", "slower", "faster", "text")


def parse_filter(text: str) -> Matches:
    """Return a function that says whether a row is shown.

    Raises FilterError for a term that is unknown or incomplete.
    """
    terms: list[Matches] = []
    place = 0
    text = text.strip()
    while place < len(text):
        found = _TERM.match(text, place)
        if found is None or (found.end() < len(text) and not text[found.end()].isspace()):
            raise FilterError(f"Cannot read {_rest(text, place)!r}: a quote is open or misplaced.")
        term = _term(found["key"], found["quoted"], found["plain"])
        terms.append(_negated(term) if found["not"] else term)
        gap = _SPACE.match(text, found.end())
        place = gap.end() if gap is not None else found.end()
    if len(terms) > MOST_TERMS:
        raise FilterError(f"A filter has at most {MOST_TERMS} terms; this one has {len(terms)}.")
    return lambda one: all(term(one) for term in terms)


def _term(key: str | None, quoted: str | None, plain: str | None) -> Matches:
    if key is None:
        if quoted is not None:
            return _contains(quoted)
        assert plain is not None
        found = _WORDS.get(plain)
        if found is None:
            raise FilterError(_unknown(plain))
        return found
    value = quoted if quoted is not None else plain or ""
    if key in ("slower", "faster"):
        return _compared(key, value)
    if key == "text":
        return _contains(value)
    alternatives = [one for one in value.split(",") if one]
    if not alternatives:
        raise FilterError(f"{key}: needs a value, such as {key}:{_EXAMPLES.get(key, 'x')}.")
    if key == "from":
        if wrong := [one for one in alternatives if one not in ("client", "server")]:
            raise FilterError(f"from:{wrong[0]} is unknown; it is from:client or from:server.")
        return lambda one: one.row.sender in alternatives
    read = _READ.get(key)
    if read is None:
        raise FilterError(
            f"There is no filter {key}:. There are {', '.join(f'{k}:' for k in _KEYS)}."
        )
    return _named(read, alternatives, only="tools/call" if key == "tool" else "")


_READ: dict[str, Callable[[FilterRow], str]] = {
    "method": lambda one: one.row.method,
    "tool": lambda one: one.row.name,
    "name": lambda one: one.row.name,
    "connection": lambda one: one.connection,
    "kind": lambda one: one.row.kind,
    "id": lambda one: "" if one.row.id is None else str(one.row.id),
}
_EXAMPLES = {
    "method": "tools/call",
    "tool": "search",
    "name": "search",
    "connection": "server.py",
    "kind": "request",
    "from": "server",
    "id": "3",
}


def _named(read: Callable[[FilterRow], str], patterns: Sequence[str], only: str) -> Matches:
    """Match a value of a row with patterns; with `only`, just the rows of one method."""

    def matches(one: FilterRow) -> bool:
        if only and one.row.method != only:
            return False
        value = read(one)
        return any(fnmatchcase(value, pattern) for pattern in patterns)

    return matches


def _contains(text: str) -> Matches:
    if not text:
        raise FilterError('A text to search for is empty; write text:"words".')
    wanted = text.lower().encode()
    return lambda one: wanted in one.text().lower()


def _compared(key: str, value: str) -> Matches:
    found = _DURATION.fullmatch(value)
    if found is None:
        raise FilterError(f"{key}:{value} is not a duration, such as {key}:200ms or {key}:1.5s.")
    seconds = float(found[1]) * _SECONDS[found[2]]
    if key == "slower":
        return lambda one: one.duration is not None and one.duration >= seconds
    return lambda one: one.duration is not None and one.duration < seconds


def _negated(term: Matches) -> Matches:
    return lambda one: not term(one)


def _unknown(word: str) -> str:
    return (
        f"{word!r} is not a word of the filter. The words are {', '.join(_WORDS)}. To search for "
        f'a text, write it in quotes: "{word}".'
    )


def _rest(text: str, place: int) -> str:
    rest = text[place:]
    return rest if len(rest) <= 40 else f"{rest[:40]}…"
