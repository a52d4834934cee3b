"""Patterns for the arguments of a call, by dotted path: match, no match, or unknown."""

from __future__ import annotations

import json
import math
import ntpath
import os.path
import posixpath
import re
import unicodedata
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from interlock.schema import SchemaError, Validator, compile

KEYS = ("is", "in", "matches", "finds", "under", "least", "most", "given")
MAX_REGEX = 500  # characters in one
MAX_GLOB = 1_000  # characters in one
MAX_STARS = 16  # in one glob
MAX_VALUES = 10_000  # at one path; with more values the result is unknown

_SURROGATES = re.compile("[\ud800-\udfff]")
_SEGMENT = re.compile(r"((?:[^.\\]|\\.)+)(?:\.|$)", re.DOTALL)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]|\\\\|//[^/]")


class BadPattern(ValueError):
    """A pattern that cannot be used; the message says what to write instead."""


# A pattern is a glob for text, or an object of KEYS that must all match.
Pattern = str | int | float | bool | dict[str, Any]


def check_pattern(path: str, pattern: Any) -> None:
    """Check a pattern. Raises BadPattern."""
    if (
        not path
        or "".join(found[0] for found in _SEGMENT.finditer(path)) != path
        or (path.endswith(".") and not path.endswith("\\."))
    ):
        raise BadPattern(
            f"{path!r} is not the path of an argument: write its name, or names with dots "
            "between, as in edits.path"
        )
    if isinstance(pattern, str):
        check_glob(pattern)
    elif isinstance(pattern, Mapping):
        _check_keys(pattern)
    elif not isinstance(pattern, int | float):
        raise BadPattern(
            f"{pattern!r}is not a pattern: write a text with * for any characters, or an "
            f"object with one of {', '.join(KEYS)}"
        )


def check_glob(glob: str) -> None:
    """Check a glob. Raises BadPattern."""
    if len(glob) > MAX_GLOB or glob.count("*") > MAX_STARS:
        raise BadPattern(
            f"the pattern {glob[:40]!r} is too long: {MAX_GLOB} characters and {MAX_STARS} "
            "stars are allowed"
        )


def _check_keys(pattern: Mapping[str, Any]) -> None:
    if not pattern or any(key not in KEYS for key in pattern):
        wrong = next((key for key in pattern if key not in KEYS), "")
        raise BadPattern(f"{wrong!r} is not a key of a pattern: write one of {', '.join(KEYS)}")
    for key in ("matches", "finds"):
        if key in pattern:
            _regex(pattern[key], key == "matches")
    if "in" in pattern and not isinstance(pattern["in"], list):
        raise BadPattern("`in` wants a list of values, as in {in = ['a', 'b']}")
    if "given" in pattern and not isinstance(pattern["given"], bool):
        raise BadPattern("`given` is true or false")
    for key in ("least", "most"):
        if key in pattern and (
            isinstance(pattern[key], bool)
            or not isinstance(pattern[key], int | float)
            or math.isnan(pattern[key])
        ):
            raise BadPattern(f"`{key}` wants a number")
    if "under" in pattern:
        folders = pattern["under"] if isinstance(pattern["under"], list) else [pattern["under"]]
        for folder in folders:
            if not isinstance(folder, str) or _folder(folder) is None:
                raise BadPattern(
                    "`under` wants a whole path without .., such as /home/me/notes or "
                    f"~/notes, not {folder!r}"
                )
        if not folders:
            raise BadPattern("`under` wants a folder")


def matches(
    path: str, pattern: Pattern, arguments: Mapping[str, Any], *, every: bool
) -> bool | None:
    """Whether the value at `path` in the arguments matches the pattern; None if it is unknown.

    A path may lead to several values (lists, `*`), or to a value with values inside. With `every`
    all of them must match, as in a rule that allows; without it one is enough, as in a rule that
    denies. A missing argument matches only `given: false`.
    """
    values, missing = _reach(path, arguments)
    if isinstance(pattern, Mapping) and "given" in pattern:
        if pattern["given"] is False:
            return not values if every else missing or not values
        if every and missing:
            return False
    elif missing and (every or not values):
        return False
    leaves: list[Any] = []
    for value in values:
        for leaf in _leaves(value):
            leaves.append(leaf)
            if len(leaves) > MAX_VALUES:
                return None
    if isinstance(pattern, Mapping) and set(pattern) == {"given"}:
        return bool(values)
    whole = isinstance(pattern, Mapping) and ("is" in pattern or "in" in pattern)
    verdicts = [_fits(pattern, each) for each in (values if whole else leaves)]
    if not verdicts:
        return False
    strong, weak = (
        (all(v is True for v in verdicts), any(v is False for v in verdicts))
        if every
        else (any(verdicts), all(v is False for v in verdicts))
    )
    if strong:
        return True
    if weak:
        return False
    return None


# -- paths ----------------------------------------------------------------------------------------


def _reach(path: str, arguments: Mapping[str, Any]) -> tuple[list[Any], bool]:
    """The values at a path, and whether the path is missing in any branch.

    A name that contains dots may be written as it is.
    """
    steps = [
        re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL) if "\\" in found[1] else found[1]
        for found in _SEGMENT.finditer(path)
    ]
    plain = [found[1] == "*" for found in _SEGMENT.finditer(path)]
    values: list[Any] = [arguments]
    missing = False
    for step, star in zip(steps, plain, strict=True):
        following: list[Any] = []
        for value in values:
            found = list(_step(value, step, star))
            missing = missing or not found
            for each in found:
                if each is _NOTHING:
                    missing = True
                else:
                    following.append(each)
        values = following[: MAX_VALUES + 1]
    if len(steps) > 1 and path in arguments:
        values = [*values, arguments[path]] if values else [arguments[path]]
        missing = missing and len(values) > 1
    return values, missing


_NOTHING: Any = object()


def _step(value: Any, step: str, star: bool) -> Iterator[Any]:
    if isinstance(value, Mapping):
        if star:
            yield from value.values()
        else:
            yield value.get(step, _NOTHING)
    elif isinstance(value, list):
        if star:
            yield from value
        elif step.isascii() and step.isdigit() and len(step) < 9:
            yield value[int(step)] if int(step) < len(value) else _NOTHING
        else:
            for each in value:
                yield from _step(each, step, star)
    else:
        yield _NOTHING


def _leaves(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
        else:
            yield each


# -- one value -------------------------------------------------------------------------------------


def _fits(pattern: Pattern, value: Any) -> bool | None:
    if isinstance(pattern, str):
        text = _as_text(value)
        return None if text is None else fnmatchcase(text, pattern)
    if not isinstance(pattern, Mapping):
        return _same(value, pattern)
    verdicts = [_holds(key, wanted, value) for key, wanted in pattern.items() if key != "given"]
    if any(v is False for v in verdicts):
        return False
    if None in verdicts:
        return None
    return True


def _holds(key: str, wanted: Any, value: Any) -> bool | None:
    if key == "is":
        return _same(value, wanted)
    if key == "in":
        return any(_same(value, each) for each in wanted)
    if key in ("matches", "finds"):
        text = _as_text(value)
        return None if text is None else _regex(wanted, key == "matches").is_valid(text)
    if key == "under":
        verdicts = [
            under(value, folder) for folder in ([wanted] if isinstance(wanted, str) else wanted)
        ]
        if True in verdicts:
            return True
        if None in verdicts:
            return None
        return False
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return bool(value >= wanted if key == "least" else value <= wanted)


def _same(value: Any, wanted: Any) -> bool:
    """JSON equality: true is not 1, but 1.0 is."""
    if isinstance(value, bool) or isinstance(wanted, bool):
        return value is wanted
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(_same, value, wanted))
    if isinstance(value, Mapping) and isinstance(wanted, Mapping):
        return value.keys() == wanted.keys() and all(
            _same(value[key], wanted[key]) for key in value
        )
    return bool(value == wanted)


def _as_text(value: Any) -> str | None:
    """A value as text for patterns: text as it is, other values as JSON; None for huge numbers."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (ValueError, TypeError):
        return None
    return _SURROGATES.sub("\ufffd", text)


@lru_cache(maxsize=512)
def _ready(regex: str, whole: bool) -> Validator:
    try:
        # Property names are matched only by the linear-time engine, so this rejects lookaround and
        # backreferences.
        compile({"patternProperties": {regex: True}})
        if whole:
            compile({"patternProperties": {f"^(?:{regex})$": True}})
        return compile({"type": "string", "pattern": f"^(?:{regex})$" if whole else regex})
    except SchemaError:
        raise BadPattern(
            f"the regular expression {regex[:80]!r} is malformed, too large, or has "
            "look-around or back-references, which could take forever: simplify it"
        ) from None


def _regex(regex: Any, whole: bool) -> Validator:
    if not isinstance(regex, str) or len(regex) > MAX_REGEX:
        raise BadPattern(f"a regular expression is a text of at most {MAX_REGEX} characters")
    return _ready(regex, whole)


# -- folders ---------------------------------------------------------------------------------------


def under(value: Any, folder: str) -> bool | None:
    """Whether a path is inside a folder, judged by its text. The disk is not read, so links are not
    followed.

    Returns None where only the server can know: a relative path; `~`; `..` that would leave the
    folder or return to it through a link; or a difference in case only. A `file:` URI counts as its
    path.
    """
    inside = _folder(folder)
    if not isinstance(value, str) or inside is None:
        return None
    path = value
    if path[:5].lower() == "file:":
        if not path[5:].startswith("///"):
            return None
        path = unquote(path[7:])
        path = path[1:] if _DRIVE.match(path[1:3] + "/") and path[2:3] == ":" else path
    if "\0" in path or "%2" in path.lower() or path.startswith(("\\\\?\\", "\\\\.\\")):
        return None
    parts = _parts(path)
    if parts is None:
        return None
    climbs = ".." in parts.raw
    if parts.windows != inside.windows:
        return None  # on the other system this is a relative path
    names = parts.names
    wanted = inside.names
    if names[: len(wanted)] == wanted:
        return None if climbs else True
    if [n.casefold() for n in names[: len(wanted)]] == [n.casefold() for n in wanted]:
        return (parts.windows and not climbs) or None
    short = parts.windows and any("~" in name for name in names)  # as in PROGRA~1
    return None if climbs or short else False


class _Path:
    """An absolute path, split into names."""

    __slots__ = ("names", "raw", "windows")

    def __init__(self, windows: bool, raw: list[str]) -> None:
        self.windows = windows
        self.raw = raw
        names: list[str] = []
        for each in raw:
            if each == "..":
                names = names[:-1]
            elif each not in ("", "."):
                # Windows drops trailing dots and blanks of a name.
                names.append(
                    unicodedata.normalize("NFC", each.rstrip(". ") or each if windows else each)
                )
        self.names = names


def _parts(path: str) -> _Path | None:
    if posixpath.isabs(path) and not _DRIVE.match(path):
        if "\\" in path and ".." in re.split(r"[\\/]", path):
            return None  # the `..` climbs only on systems where a backslash separates names
        return _Path(False, path.split("/"))
    if _DRIVE.match(path) and not path.startswith("//"):
        drive, rest = ntpath.splitdrive(path.replace("/", "\\"))
        return _Path(True, [drive.lower(), *rest.split("\\")])
    return _Path(False, path.split("/")) if path.startswith("//") else None


def _folder(folder: str) -> _Path | None:
    parts = _parts(os.path.expanduser(folder) if folder.startswith("~") else folder)
    return None if parts is None or ".." in parts.raw else parts
