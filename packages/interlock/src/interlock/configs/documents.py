"""Parses a configuration text into plain data: JSON with or without comments, TOML or YAML."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

from .extra import require
from .jsonc import MOST_LEVELS, JsonReader, NotJson, Pairs
from .text_edits import Uneditable

MOST_BYTES: Final = 1 << 20
"""The largest size of a configuration."""

Syntax = Literal["json", "toml", "yaml"]

_MOST_EVENTS = 50_000  # of a YAML text, which is slow to read
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class Unreadable(Exception):
    """A text cannot be read. The message says where and why, and does not quote the text."""


class Members(dict[str, Any]):
    """An object that records which of its keys occurred twice."""

    twice: frozenset[str] = frozenset()


def read_document(text: str, syntax: Syntax | None, hint: str = "") -> Any:
    """Return the data in a text.

    Args:
        text: The text.
        syntax: Its syntax; None to detect it from the file name or the text.
        hint: The name of the file, if there is one.

    Raises:
        Unreadable: The text is too large or malformed, or it is YAML and ruamel.yaml is missing.
    """
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise Unreadable(f"it is larger than {MOST_BYTES >> 20} MiB, the limit for configurations")
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise Unreadable("it is empty")
    read = {"json": _json, "toml": _toml, "yaml": _yaml}[syntax or find_syntax(text, hint)]
    try:
        document = read(text)
    except RecursionError:
        raise Unreadable(f"it has more than {MOST_LEVELS} levels") from None
    _check_levels(document)
    return document


def find_syntax(text: str, hint: str = "") -> Syntax:
    """Return the syntax of a text, detected from the name of its file or from its beginning."""
    match hint.rpartition(".")[2].lower():
        case "json" | "jsonc" | "code-workspace":
            return "json"
        case "toml":
            return "toml"
        case "yaml" | "yml":
            return "yaml"
    start = text.lstrip("\ufeff \t\r\n")
    if start.startswith(("{", "//", "/*")):
        return "json"
    if re.search(r"^\s*\[+\s*[\w\"']", text, re.MULTILINE) or not re.search(
        r"^[^#\n]*?:(?:\s|$)", text, re.MULTILINE
    ):
        return "toml"
    return "yaml"


def _check_levels(document: Any) -> None:
    level = [document]
    for _ in range(MOST_LEVELS):
        level = [inner for one in level for inner in _within(one)]
        if not level:
            return
    raise Unreadable(f"it has more than {MOST_LEVELS} levels")


def _within(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


# -- JSON -------------------------------------------------------------------------------------


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_members, parse_constant=_refuse_constant)
    except ValueError:
        pass  # it may have comments; if it is malformed, the other reader says where
    try:
        root = JsonReader(text, comments=True).read()
    except NotJson as bad:
        where, _, why = str(bad).partition(": ")
        raise Unreadable(f"{where}: this is not JSON ({why})") from None
    if root is None:
        raise Unreadable("it is empty")
    return root.plain(_members)


def _members(pairs: Pairs) -> Members:
    members = Members(pairs)
    if len(members) < len(pairs):
        counted = Counter(key for key, _ in pairs)
        members.twice = frozenset(key for key, times in counted.items() if times > 1)
    return members


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# -- TOML -------------------------------------------------------------------------------------


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as bad:
        place = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", str(bad))
        if place is None:
            raise Unreadable("this is not TOML") from None
        where = f"line {place[1]}, column {place[2]}" if place[1] else "at the end"
        why = str(bad)[: place.start()].strip().partition(":")[0]
        raise Unreadable(f"{where}: this is not TOML ({why[:80]})") from None
    except ValueError:
        raise Unreadable("a number or date in it cannot be read") from None


# -- YAML -------------------------------------------------------------------------------------


def _yaml(text: str) -> Any:
    try:
        require("ruamel.yaml", "YAML")
    except Uneditable as missing:
        raise Unreadable(str(missing)) from None
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    if _SURROGATE.search(text):
        raise Unreadable("it escapes half of a character (\\ud800); write the character itself")
    try:
        # The events are checked before the data is built, because aliases could make it very large.
        _check_events(YAML(typ="safe", pure=True).parse(text))
        node = YAML(typ="safe", pure=True).compose(text)
        if node is None:
            raise Unreadable("it is empty")
        twice = sorted(_repeated_keys(node), key=lambda key: key.start_mark.index)
        if twice:
            raise Unreadable(f"{_position(twice[0].start_mark)}: this key appears twice")
        return YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        where = f"{_position(mark)}: " if mark is not None else ""
        raise Unreadable(f"{where}this is not YAML") from None
    except (YAMLError, ValueError, TypeError, ArithmeticError, LookupError, AssertionError):
        raise Unreadable("this is not YAML, or a value in it cannot be read") from None


def _check_events(events: Iterable[Any]) -> None:
    from ruamel.yaml.events import (
        AliasEvent,
        CollectionEndEvent,
        CollectionStartEvent,
    )

    depth = 0
    for number, event in enumerate(events):
        if number > _MOST_EVENTS:
            raise Unreadable(f"it has more than {_MOST_EVENTS} parts")
        if isinstance(event, AliasEvent):
            raise Unreadable(
                f"{_position(event.start_mark)}: it repeats a part by an alias (*), which is not "
                "supported; write the part out"
            )
        if isinstance(event, CollectionStartEvent):
            depth += 1
        elif isinstance(event, CollectionEndEvent):
            depth -= 1
        if depth > MOST_LEVELS:
            raise Unreadable(
                f"{_position(event.start_mark)}: it has more than {MOST_LEVELS} levels"
            )


def _repeated_keys(node: Any) -> Iterator[Any]:
    """Yield the keys that occur in their mapping a second time."""
    if node.id == "sequence":
        for item in node.value:
            yield from _repeated_keys(item)
    elif node.id == "mapping":
        seen = set[str]()
        for key, value in node.value:
            if key.id == "scalar":
                if key.value in seen:
                    yield key
                seen.add(key.value)
            yield from _repeated_keys(value)


def _position(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"
