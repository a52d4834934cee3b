"""Parses `key=value` words into the arguments of a tool, by its schema."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

_WORD = re.compile(r"(?P<key>[^=]+?)(?P<sign>:=|=)(?P<text>.*)", re.DOTALL)


def tool_arguments(
    words: Sequence[str], whole: str | None, schema: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call: those of the JSON object `whole` (or @FILE), replaced and extended
    by the words. Raises click.UsageError.

    `key=text` is a string if the schema has a string there; otherwise it is JSON if it is valid
    JSON, else a string. `key=@FILE` reads the text from a file (- is stdin). `key:=json` is always
    JSON. A key whose schema is an array may occur more than once.
    """
    arguments = _object(whole) if whole is not None else {}
    for key, values in _collected(words).items():
        kinds = _kinds(_property(schema, key), schema)
        read = [_value(sign, text, kinds, key) for sign, text in values]
        if kinds == {"array"} and not (len(read) == 1 and isinstance(read[0], list)):
            items = _resolved(_property(schema, key), schema).get("items")
            inner = _kinds(items if isinstance(items, Mapping) else {}, schema)
            arguments[key] = [_value(sign, text, inner, key) for sign, text in values]
        elif len(read) > 1:
            raise click.UsageError(f"{key} is given {len(read)} times; give it once.")
        else:
            arguments[key] = read[0]
    return arguments


def string_arguments(words: Sequence[str]) -> dict[str, str]:
    """The arguments of a prompt, which are strings: `key=text` or `key=@FILE`. Raises
    click.UsageError.
    """
    arguments: dict[str, str] = {}
    for key, values in _collected(words).items():
        if len(values) > 1:
            raise click.UsageError(f"{key} is given {len(values)} times.")
        arguments[key] = _text(values[0][1])
    return arguments


def _collected(words: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    collected: dict[str, list[tuple[str, str]]] = {}
    for word in words:
        found = _WORD.fullmatch(word)
        if found is None:
            raise click.UsageError(
                f"{word!r} is not an argument: write key=value, key=@FILE or key:=JSON."
            )
        collected.setdefault(found["key"], []).append((found["sign"], found["text"]))
    return collected


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(_text(text))
    except ValueError as bad:
        raise click.UsageError(f"The arguments are not JSON: {bad}") from None
    if not isinstance(value, dict):
        raise click.UsageError("The arguments must be a JSON object.")
    return value


def _value(sign: str, text: str, kinds: set[str], key: str) -> Any:
    text = _text(text)
    if sign == ":=":
        try:
            return json.loads(text)
        except ValueError as bad:
            raise click.UsageError(f"{key}:= is not JSON: {bad}") from None
    if kinds == {"string"}:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(text: str) -> str:
    """A text, or the content of the file named after @."""
    if not text.startswith("@"):
        return text
    try:
        return sys.stdin.read() if text == "@-" else Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as bad:
        raise click.UsageError(f"{text[1:]} cannot be read as text: {bad}") from None


# -- the schema of a property
# -----------------------------------------------------------------------


def _property(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    properties = _resolved(schema, schema).get("properties")
    found = properties.get(key) if isinstance(properties, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _resolved(
    node: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0
) -> Mapping[str, Any]:
    """A schema with its own `$ref` resolved, if the target is in the document."""
    reference = node.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/") or depth > 16:
        return node
    target: Any = root
    for part in reference[2:].split("/"):
        target = (
            target.get(part.replace("~1", "/").replace("~0", "~"))
            if isinstance(target, Mapping)
            else None
        )
    return _resolved(target, root, depth + 1) if isinstance(target, Mapping) else node


def _kinds(node: Mapping[str, Any], root: Mapping[str, Any], depth: int = 0) -> set[str]:
    """The JSON types that a schema allows, without null; empty if it does not say."""
    node = _resolved(node, root)
    if isinstance(kind := node.get("type"), str | list):
        return {
            k
            for k in ([kind] if isinstance(kind, str) else kind)
            if isinstance(k, str) and k != "null"
        }
    if isinstance(node.get("enum"), list):
        values = node["enum"]
    elif "const" in node:
        values = [node["const"]]
    else:
        values = []
    kinds = {
        "string" if isinstance(value, str) else "other" for value in values if value is not None
    }
    for union in ("anyOf", "oneOf", "allOf"):
        options = node.get(union)
        for option in options if isinstance(options, list) and depth < 16 else ():
            if isinstance(option, Mapping):
                kinds |= _kinds(option, root, depth + 1)
    return kinds
