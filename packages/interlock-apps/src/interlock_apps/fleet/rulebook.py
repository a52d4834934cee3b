"""Policies as files: TOML or JSON written by people, and JSON saved by the host."""

from __future__ import annotations

import difflib
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from .patterns import BadPattern
from .policy import CALLER_CONDITIONS, HINTS, Choice, Policy, Rule

MAX_BYTES = 1 << 20
MAX_RULES = 1_000

_CHOICES = ("allow", "ask", "deny")
_TOP = ("default", "trusted_read_only", "log_required", "rules", "review")
_TEXTS = ("server", "tool", "reason")
_WRITTEN = ("decision", *_TEXTS, "arguments", *HINTS)
_OF_GATEWAY = (*_WRITTEN, *CALLER_CONDITIONS)
_SAVED = (*_WRITTEN, "digest")
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*(rules|review)[ \t]*\]\]", re.MULTILINE)


class BadPolicy(ValueError):
    """A policy that cannot be used.

    The message names the file and the place, and says what to write instead.
    """


def read_policy(text: str, source: str = "the policy", *, gateway: bool = False) -> Policy:
    """Read a policy from text, TOML or JSON. Raises BadPolicy.

    `default` and `trusted_read_only` are "allow", "ask" or "deny". With `log_required: true` a tool
    is called only after the log was written. `rules` and `review` are lists of rules (see `Rule`),
    in TOML `[[rules]]`. A rule under `review` needs no decision. Keys may be spelled as in TOML
    (read_only) or as in JSON (readOnly).

    With `gateway`, rules may also name callers (`principal`, `scope`, `view`, `client`), and there
    is no `review`, because nobody is there to see results.
    """
    found = _parsed(text, source)
    known = _OF_GATEWAY if gateway else _WRITTEN
    top = _keys(found, tuple(key for key in _TOP if not gateway or key != "review"), source)
    for key in ("default", "trusted_read_only"):
        if top.get(key, "ask") not in _CHOICES:
            raise BadPolicy(
                f"{source}: {key} is {_shown(top[key])}: write one of {', '.join(_CHOICES)}"
            )
    required = top.get("log_required", False)
    if not isinstance(required, bool):
        raise BadPolicy(f"{source}: log_required is {_shown(required)}: write true or false")
    default: Choice = top.get("default", "ask")
    reads: Choice = top.get("trusted_read_only", "allow")
    lines = _lines(text, source)
    rules = _rules(top.get("rules", []), "rules", lines, known)
    return Policy(
        rules,
        default=default,
        trusted_read_only=reads,
        review=_rules(top.get("review", []), "review", lines, _WRITTEN),
        log_required=required,
    )


def read_rules(text: str, source: str = "the saved rules") -> list[Rule]:
    """Read the rules that `write_rules` wrote. Raises BadPolicy."""
    found = _parsed(text, source)
    top = _keys(found, ("rules",), source)
    return _rules(top.get("rules", []), "rules", _lines(text, source), _SAVED)


def write_rules(rules: Iterable[Rule]) -> str:
    """The remembered rules as JSON.

    Rules of conversations are left out: they end with them (`Policy.saved` has none).
    """
    return _json({"rules": [rule for rule in rules if not rule.session]})


def load_policy(path: Path, *, gateway: bool = False) -> Policy:
    """Read the policy of a file; see `read_policy`. Raises BadPolicy."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadPolicy(f"{path}: is larger than {MAX_BYTES >> 20} MB: give a file of rules")
        return read_policy(path.read_text(encoding="utf-8"), str(path), gateway=gateway)
    except OSError as bad:
        raise BadPolicy(
            f"{path}: cannot be read ({bad.strerror}): check that it exists and that you "
            "may read it"
        ) from None
    except UnicodeDecodeError:
        raise BadPolicy(f"{path}: not UTF-8 text. Save it as UTF-8") from None


# -- reading ---------------------------------------------------------------------------------------


class _Twice(ValueError):
    """A key occurs twice in one object: one of the two would be lost silently."""


def _parsed(text: str, source: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen = dict(pairs)
        if len(seen) < len(pairs):
            names = [name for name, _ in pairs]
            raise _Twice(next(name for name in names if names.count(name) > 1))
        return seen

    try:
        if text.lstrip("\ufeff \t\r\n").startswith("{"):
            found = json.loads(text.lstrip("\ufeff"), object_pairs_hook=once)
        else:
            found = tomllib.loads(text.lstrip("\ufeff"))
    except _Twice as bad:
        raise BadPolicy(f"{source}: {bad} appears twice in one object: write it once") from None
    except json.JSONDecodeError as bad:
        raise BadPolicy(f"{source}:{bad.lineno}: this is not JSON ({bad.msg})") from None
    except tomllib.TOMLDecodeError as bad:
        line = re.search(r"at line (\d+)", str(bad))
        raise BadPolicy(
            f"{source}{':' + line[1] if line else ''}: this is not TOML ({bad})"
        ) from None
    except (RecursionError, ValueError) as bad:
        raise BadPolicy(f"{source}: cannot be read: {bad}") from None
    return dict(found)


def _lines(text: str, source: str) -> dict[tuple[str, int], str]:
    """The line where each rule of a TOML file begins, as `file:line`."""
    places: dict[tuple[str, int], str] = {("", 0): source}
    counts: dict[str, int] = {}
    for found in _HEADER.finditer(text) if not text.lstrip().startswith("{") else ():
        counts[found[1]] = number = counts.get(found[1], 0) + 1
        places[found[1], number] = f"{source}:{text.count(chr(10), 0, found.start()) + 1}"
    return places


def _keys(found: Mapping[str, Any], known: Iterable[str], place: str) -> dict[str, Any]:
    """The keys of an object in their Python spelling.

    Raises BadPolicy for an unknown key, which would otherwise be ignored silently.
    """
    keys: dict[str, Any] = {}
    for key, value in found.items():
        plain = re.sub(r"(?<=[a-z])([A-Z])", lambda letter: "_" + letter[1].lower(), key)
        if plain not in known:
            near = difflib.get_close_matches(plain, list(known), 1, 0.5)
            advice = f"did you mean {near[0]}?" if near else f"write one of {', '.join(known)}"
            raise BadPolicy(f"{place}: {key!r} is unknown: {advice}")
        if plain in keys:
            raise BadPolicy(f"{place}: {key!r} appears twice, in two spellings: write it once")
        keys[plain] = value
    return keys


def _rules(
    found: Any, name: str, lines: Mapping[tuple[str, int], str], known: tuple[str, ...]
) -> list[Rule]:
    source = lines["", 0]
    if not isinstance(found, list) or not all(isinstance(each, Mapping) for each in found):
        raise BadPolicy(f"{source}: {name} is a list of rules: in TOML write [[{name}]] above each")
    if len(found) > MAX_RULES:
        raise BadPolicy(
            f"{source}: there are {len(found)} {name}; {MAX_RULES} are allowed: use patterns"
        )
    return [
        _rule(each, f"{lines.get((name, n), source)}: {name}[{n}]", name == "review", known)
        for n, each in enumerate(found, 1)
    ]


def _rule(found: Mapping[str, Any], place: str, review: bool, known: tuple[str, ...]) -> Rule:
    keys = _keys(found, known, place)
    if review:
        keys.setdefault("decision", "ask")
    if keys.get("decision") not in _CHOICES:
        given = f"is {_shown(keys['decision'])}" if "decision" in keys else "is missing"
        raise BadPolicy(f"{place}: decision {given}: write one of {', '.join(_CHOICES)}")
    for key in (*_TEXTS, *CALLER_CONDITIONS, "digest"):
        if not isinstance(keys.get(key, ""), str):
            raise BadPolicy(f"{place}: {key} is {_shown(keys[key])}: write a text")
    for key in ("server", "tool", *CALLER_CONDITIONS):
        if keys.get(key, "*") == "":
            raise BadPolicy(f'{place}: {key} is empty: write a name, or "*" for all')
    for key in HINTS:
        if key in keys and not isinstance(keys[key], bool):
            raise BadPolicy(f"{place}: {key} is {_shown(keys[key])}: write true or false")
    if not isinstance(keys.get("arguments", {}), Mapping):
        raise BadPolicy(
            f'{place}: arguments is {_shown(keys["arguments"])}: write {{path = "pattern"}}'
        )
    for path, pattern in keys.get("arguments", {}).items():
        if not _plain(pattern):
            raise BadPolicy(
                f"{place}: arguments.{path} holds a value that JSON does not have: write "
                "it as a text"
            )
    try:
        return Rule(**keys)
    except BadPattern as bad:
        raise BadPolicy(f"{place}: {bad}") from None


def _plain(value: Any) -> bool:
    """Whether a value is valid JSON: TOML also has dates and infinity."""
    if isinstance(value, Mapping):
        return all(_plain(each) for each in value.values())
    if isinstance(value, list):
        return all(_plain(each) for each in value)
    return (
        value is None
        or isinstance(value, str | bool | int)
        or (isinstance(value, float) and math.isfinite(value))
    )


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
