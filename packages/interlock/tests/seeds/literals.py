"""Reads the messages that a text prints: JSON with comments,
and object literals as TypeScript has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'')
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_WORDS = {"true": True, "false": False, "null": None}


class NoLiteral(ValueError):
    """What stands there is no literal: a type, a call, a text cut short."""


class Literal(NamedTuple):
    """An object that a text prints, and the line that it begins on."""

    value: dict[str, Any]
    line: int


def literals(text: str) -> Iterator[Literal]:
    """The outermost objects of a text that are literals all through, in order;
    what merely looks like one is passed over."""
    at = text.find("{")
    while at >= 0:
        try:
            value, end = _value(text, at)
        except NoLiteral:
            end = at + 1
        else:
            yield Literal(value, text.count("\n", 0, at) + 1)
        at = text.find("{", end)


def read(text: str) -> Any:
    """The value of one literal that is the whole text. Raises NoLiteral."""
    value, end = _value(text, _skip(text, 0))
    if _skip(text, end) != len(text):
        raise NoLiteral(text[end : end + 20])
    return value


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int) -> tuple[Any, int]:
    opening = text[at : at + 1]
    if opening == "{":
        return _object(text, at + 1)
    if opening == "[":
        return _array(text, at + 1)
    if opening in ("'", '"'):
        return _strings(text, at)
    if found := _NUMBER.match(text, at):
        whole = found.group()
        return (int(whole) if whole.lstrip("-").isdigit() else float(whole)), found.end()
    if (found := _NAME.match(text, at)) and found.group() in _WORDS:
        return _WORDS[found.group()], found.end()
    raise NoLiteral(text[at : at + 20])


def _object(text: str, at: int) -> tuple[dict[str, Any], int]:
    made: dict[str, Any] = {}
    at = _skip(text, at)
    while text[at : at + 1] != "}":
        if found := _STRING.match(text, at):
            name = _unquoted(found.group())
        elif found := _NAME.match(text, at):
            name = found.group()
        else:
            raise NoLiteral(text[at : at + 20])
        at = _skip(text, found.end())
        if text[at : at + 1] != ":":
            raise NoLiteral(text[at : at + 20])
        made[name], at = _value(text, _skip(text, at + 1))
        at = _separated(text, at, "}")
    return made, at + 1


def _array(text: str, at: int) -> tuple[list[Any], int]:
    made: list[Any] = []
    at = _skip(text, at)
    while text[at : at + 1] != "]":
        item, at = _value(text, at)
        made.append(item)
        at = _separated(text, at, "]")
    return made, at + 1


def _separated(text: str, at: int, closing: str) -> int:
    """Past the comma, which may also stand before the end."""
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != closing:
        raise NoLiteral(text[at : at + 20])
    return at


def _strings(text: str, at: int) -> tuple[str, int]:
    """A string, or several with a plus between them."""
    made = ""
    while found := _STRING.match(text, at):
        made += _unquoted(found.group())
        at = found.end()
        plus = _skip(text, at)
        if text[plus : plus + 1] != "+":
            return made, at
        at = _skip(text, plus + 1)
    raise NoLiteral(text[at : at + 20])


def _unquoted(quoted: str) -> str:
    def meant(found: re.Match[str]) -> str:
        sign = found.group(1)
        return chr(int(sign[1:], 16)) if len(sign) > 1 else _ESCAPES.get(sign, sign)

    return _ESCAPE.sub(meant, quoted[1:-1])
