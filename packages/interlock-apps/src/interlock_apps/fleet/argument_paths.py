"""Paths of files in the arguments of a call, as far as the host can recognize them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

MOST_VALUES = 10_000
"""The values of one call that are examined; the rest is not."""

_ABSOLUTE = re.compile(r"/[^/\s]|~[/\\]|[A-Za-z]:[\\/]|\\\\[^\\]|file:///", re.IGNORECASE)
_NAMED = re.compile(
    r"(?:^|[_\-.])(?:paths?|files?|file_?names?|folders?|director(?:y|ies)|dirs?|cwd)$",
    re.IGNORECASE,
)
_HUMP = re.compile(r"(?<=[a-z\d])(?=[A-Z])")


class PathArgument(Struct, frozen=True):
    """A path in the arguments of a call.

    Attributes:
        name: The name of the top-level argument.
        value: The path.
        absolute: Whether it is a whole path. Only the server knows what a relative one refers to.
    """

    name: str
    value: str
    absolute: bool


def is_absolute(text: str) -> bool:
    """Whether a text has the form of a whole path, or of a `file:` URI."""
    return _ABSOLUTE.match(text) is not None and "\n" not in text


def paths_in(arguments: Mapping[str, Any]) -> list[PathArgument]:
    """Return the paths in the arguments of a call.

    A text counts as a path if it has the form of a whole path, or if it is the value of an argument
    whose name says so, such as `path` or `output_file`.
    """
    found = []
    for count, (name, key, text) in enumerate(_texts(arguments)):
        if count >= MOST_VALUES:
            break
        whole = is_absolute(text)
        if whole or (text and _NAMED.search(_HUMP.sub("_", key))):
            found.append(PathArgument(name, text, whole))
    return found


def _texts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The texts in the arguments: the top-level name, the nearest name, and the text."""
    waiting = [(name, name, value) for name, value in arguments.items()]
    while waiting:
        name, key, value = waiting.pop()
        if isinstance(value, str):
            yield name, key, value
        elif isinstance(value, Mapping):
            waiting.extend((name, str(inner), each) for inner, each in value.items())
        elif isinstance(value, list):
            waiting.extend((name, key, each) for each in value)
