"""Rules as text: as a sentence for people, and as TOML for a policy file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .policy import CALLER_CONDITIONS, HINTS, Rule

_DOES = {"allow": "Allow", "ask": "Ask about", "deny": "Deny"}
_KINDS = {
    "read_only": ("read-only", "not read-only"),
    "destructive": ("destructive", "not destructive"),
    "idempotent": ("safe to repeat", "not safe to repeat"),
    "open_world": ("open-world", "not open-world"),
}
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_GLOB = re.compile(r"\[([*?\[])\]")
_LONGEST = 120  # characters of a value in a sentence


# -- sentences -------------------------------------------------------------------------------------


def in_words(rule: Rule) -> str:
    """Return a rule as a sentence, such as "Allow read_file of files if path is under /docs."."""
    kinds = [
        words[0] if getattr(rule, hint) else words[1]
        for hint, words in _KINDS.items()
        if getattr(rule, hint) is not None
    ]
    listed = " and ".join(kinds)
    if rule.tool == "*":
        tool = f"every {listed} tool" if kinds else "every tool"
    else:
        tool = f"{name_in_words(rule.tool)}{f' (if {listed})' if kinds else ''}"
    server = "every server" if rule.server == "*" else name_in_words(rule.server)
    conditions = [
        f"{_path_in_words(path)} {pattern_in_words(pattern)}"
        for path, pattern in rule.arguments.items()
    ]
    callers = [
        f"the {name} is {name_in_words(getattr(rule, name))}"
        for name in CALLER_CONDITIONS
        if getattr(rule, name) != "*"
    ]
    clauses = [*callers, *conditions]
    where = f" if {' and '.join(clauses)}" if clauses else ""
    until = " until the tool changes" if rule.digest else ""
    return f"{_DOES[rule.decision]} {tool} of {server}{where}{until}."


def name_in_words(glob: str) -> str:
    """A glob without the brackets that make a sign ordinary."""
    return _GLOB.sub(r"\1", glob)


def pattern_in_words(pattern: Any) -> str:
    """The pattern of an argument in words, as the rest of a sentence about the argument."""
    if isinstance(pattern, str):
        return f"matches {_short(pattern)}" if re.search(r"[*?\[]", pattern) else _is(pattern)
    if not isinstance(pattern, Mapping):
        return _is(pattern)
    parts = []
    for key, value in pattern.items():
        if key == "is":
            parts.append(_is(value))
        elif key == "in":
            parts.append(f"is one of {', '.join(map(_short, value))}")
        elif key == "matches":
            parts.append(f"matches the expression {_short(value)}")
        elif key == "finds":
            parts.append(f"contains the expression {_short(value)}")
        elif key == "under":
            folders = [value] if isinstance(value, str) else value
            parts.append(f"is under {' or '.join(map(str, folders))}")
        elif key == "least":
            parts.append(f"is at least {value}")
        elif key == "most":
            parts.append(f"is at most {value}")
        else:
            parts.append("is given" if value else "is not given")
    return " and ".join(parts)


def _is(value: Any) -> str:
    return f"is {_short(value)}"


def _short(value: Any) -> str:
    text = f'"{value}"' if isinstance(value, str) else _toml(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _path_in_words(path: str) -> str:
    if path == "*":
        return "every argument"
    return re.sub(r"\\(.)", r"\1", path)


# -- TOML ------------------------------------------------------------------------------------------


def rule_toml(rule: Rule, table: str = "rules") -> str:
    """Return a rule as a table of a policy file. The conversation and the digest are left out.

    Args:
        rule: The rule.
        table: "rules", or "review" for a rule about results.

    Raises:
        ValueError: A text of the rule cannot be written as UTF-8.
    """
    lines = [f"[[{table}]]", f"decision = {_toml(rule.decision)}"]
    lines += [
        f"{name} = {_toml(getattr(rule, name))}"
        for name in ("server", "tool", *CALLER_CONDITIONS)
        if getattr(rule, name) != "*"
    ]
    lines += [
        f"{hint} = {_toml(getattr(rule, hint))}"
        for hint in HINTS
        if getattr(rule, hint) is not None
    ]
    if rule.arguments:
        lines.append(f"arguments = {_toml(rule.arguments)}")
    if rule.reason:
        lines.append(f"reason = {_toml(rule.reason)}")
    text = "\n".join(lines) + "\n"
    text.encode()  # raises UnicodeEncodeError, a ValueError, for half a surrogate pair
    return text


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(key)} = {_toml(each)}" for key, each in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_toml, value))}]"
    if value is None:
        raise ValueError("TOML has no null")
    return repr(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key)


def _quoted(text: str) -> str:
    """A text as a TOML string. What cannot be seen is written as its code."""
    signs = []
    for sign in text:
        if sign in '"\\':
            signs.append(f"\\{sign}")
        elif sign == "\n":
            signs.append("\\n")
        elif sign == "\t":
            signs.append("\\t")
        elif sign.isprintable() or 0xD800 <= ord(sign) <= 0xDFFF:
            signs.append(sign)
        else:
            signs.append(f"\\u{ord(sign):04x}" if ord(sign) < 0x10000 else f"\\U{ord(sign):08x}")
    return f'"{"".join(signs)}"'
