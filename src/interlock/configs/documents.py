"""Texts of configurations as plain values: JSON with or without comments, TOML and YAML, each with bounds."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

MOST_BYTES: Final = 1 << 20
"""No configuration is larger."""

Syntax = Literal["json", "toml", "yaml"]

_MOST_LEVELS = 100
_MOST_PARTS = 100_000  # of a YAML text, which are slow to read
# A string, a comment, a comma before the end of a list: whatever comes first. An unclosed comment reaches to the end.
_TOKEN = re.compile(
    r"""
    (?P<string>"(?:[^"\\\n]|\\.)*+"?)
  | (?P<comment>//[^\r\n]* | /\*.*?(?:\*/|\Z))
  | (?P<comma>,)
  | (?P<close>[\]}])
  | (?P<other>[^\s"/,\]}]+ | ["/])
    """,
    re.DOTALL | re.VERBOSE,
)


class Unreadable(Exception):
    """A text cannot be read; the message says where and why, and holds nothing of it."""


class Members(dict[str, Any]):
    """A mapping that knows which of its keys were written twice."""

    twice: frozenset[str] = frozenset()


def read_document(text: str, syntax: Syntax | None, hint: str = "") -> Any:
    """What a text says.

    Args:
        text: The text.
        syntax: Its syntax; None: found out from the end of the file's name, or from the text.
        hint: The name of the file, if there is one.

    Raises:
        Unreadable: It is too large, or broken, or YAML and PyYAML is not there.
    """
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise Unreadable(f"it is larger than {MOST_BYTES >> 20} MiB, which no configuration is")
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise Unreadable("it is empty")
    read = {"json": _json, "toml": _toml, "yaml": _yaml}[syntax or find_syntax(text, hint)]
    try:
        document = read(text)
    except RecursionError:
        raise Unreadable(f"it has more than {_MOST_LEVELS} levels") from None
    _check_levels(document)
    return document


def find_syntax(text: str, hint: str = "") -> Syntax:
    """Which syntax a text is written in, as far as can be seen from the file's name or its beginning."""
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
    for _ in range(_MOST_LEVELS):
        level = [inner for one in level for inner in _within(one)]
        if not level:
            return
    raise Unreadable(f"it has more than {_MOST_LEVELS} levels")


def _within(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


# -- JSON -------------------------------------------------------------------------------------------------


def _json(text: str) -> Any:
    try:
        return json.loads(
            _without_comments(text), object_pairs_hook=_members, parse_constant=_no_constant
        )
    except json.JSONDecodeError as bad:
        raise Unreadable(
            f"line {bad.lineno}, column {bad.colno}: this is no JSON ({bad.msg})"
        ) from None
    except ValueError:
        raise Unreadable("a number in it cannot be read") from None


def _without_comments(text: str) -> str:
    """The text with blanks where comments and last commas stand, so that every other sign keeps its place."""
    pieces: list[str] = []
    at, comma = 0, -1  # where in `pieces` a comma waits for what follows it
    for token in _TOKEN.finditer(text):
        pieces.append(text[at : token.start()])
        at = token.end()
        if token.lastgroup == "comment":
            pieces.append(re.sub(r"[^\r\n]", " ", token[0]))
            continue
        if token.lastgroup == "close" and comma >= 0:
            pieces[comma] = " "
        comma = len(pieces) if token.lastgroup == "comma" else -1
        pieces.append(token[0])
    return "".join([*pieces, text[at:]])


def _members(pairs: list[tuple[str, Any]]) -> Members:
    members = Members(pairs)
    if len(members) < len(pairs):
        members.twice = frozenset(
            key for key, times in Counter(key for key, _ in pairs).items() if times > 1
        )
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


# -- TOML -------------------------------------------------------------------------------------------------


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as bad:
        place = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", str(bad))
        if place is None:
            raise Unreadable("this is no TOML") from None
        where = f"line {place[1]}, column {place[2]}" if place[1] else "at the end"
        why = str(bad)[: place.start()].strip().partition(":")[0]
        raise Unreadable(f"{where}: this is no TOML ({why[:80]})") from None
    except ValueError:
        raise Unreadable("a number or date in it cannot be read") from None


# -- YAML -------------------------------------------------------------------------------------------------


def _yaml(text: str) -> Any:
    try:
        import yaml  # optional extra `host`
    except ImportError:
        raise Unreadable(
            "it is YAML, and to read that PyYAML is needed: install interlock[host]"
        ) from None
    loader_class: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(
            yaml, yaml.parse(text, Loader=loader_class)
        )  # before anything is built: it cannot grow
        loader = loader_class(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise Unreadable("it is empty")
            twice = sorted(_twice(yaml, node), key=lambda key: key.start_mark.index)
            if twice:
                raise Unreadable(
                    f"{_line(twice[0].start_mark)}: this key stands there a second time"
                )
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        raise Unreadable(
            f"{_line(mark)}: this is no YAML" if mark is not None else "this is no YAML"
        ) from None
    except (yaml.YAMLError, ValueError, TypeError, ArithmeticError):
        raise Unreadable("this is no YAML, or a value in it cannot be read") from None


def _check_events(yaml: Any, events: Iterable[Any]) -> None:
    depth = 0
    for number, event in enumerate(events):
        if number > _MOST_PARTS:
            raise Unreadable(f"it has more than {_MOST_PARTS} parts, which no configuration has")
        if isinstance(event, yaml.AliasEvent):
            raise Unreadable(
                f"{_line(event.start_mark)}: it repeats a part by an alias (*), which is not read; write the part out"
            )
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(
            event, yaml.CollectionEndEvent
        )
        if depth > _MOST_LEVELS:
            raise Unreadable(f"{_line(event.start_mark)}: it has more than {_MOST_LEVELS} levels")


def _twice(yaml: Any, node: Any) -> Iterator[Any]:
    """The keys that stand a second time in their mapping."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _twice(yaml, item)
    elif isinstance(node, yaml.MappingNode):
        seen = set[str]()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    yield key
                seen.add(key.value)
            yield from _twice(yaml, value)


def _line(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"
