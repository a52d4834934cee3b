"""Parts of a URI template, and matching of a URI against them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = [
    "OPERATORS",
    "RESERVED",
    "UNRESERVED",
    "Expression",
    "Matched",
    "Operator",
    "Pattern",
    "Variable",
    "flatten",
]

# The value of a matched variable: a str; for an exploded variable a list, or a dict with names from
# the URI.
Matched = str | list[str] | dict[str, str]


class Operator(NamedTuple):
    """One row of the table in RFC 6570, appendix A."""

    first: str
    separator: str
    named: bool = False
    if_empty: str = ""
    reserved: bool = False


# By the first character of an expression.
OPERATORS = {
    "": Operator("", ","),
    "+": Operator("", ",", reserved=True),
    "#": Operator("#", ",", reserved=True),
    ".": Operator(".", "."),
    "/": Operator("/", "/"),
    ";": Operator(";", ";", named=True),
    "?": Operator("?", "&", named=True, if_empty="="),
    "&": Operator("&", "&", named=True, if_empty="="),
}

# The two kinds of characters of RFC 3986, section 2.
UNRESERVED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
RESERVED = ":/?#[]@!$&'()*+,;="

# The characters that RFC 3986 permits unescaped inside a path segment. An expansion would have
# percent-encoded the reserved ones, but people and models write `mail://ann@example.org` by hand,
# and that is a valid URI.
_SEGMENT = UNRESERVED + "!$&'()*+,;=:@"
# Characters that are never unescaped in a URI. (Surrogates are not text, and `flatten` uses them.)
_FORBIDDEN = re.compile(r"[\x00-\x20\"<>\\^`{|}\x7f\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TRIPLETS = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_SLASHES = re.compile(r"[/\\]")
_STAND_IN = 0xDC00
_RESTORE = {_STAND_IN + code: code for code in range(128)}


class Variable(NamedTuple):
    """One variable of an expression, with its modifier: `{name}`, `{name*}` or `{name:prefix}`."""

    name: str
    explode: bool
    prefix: int | None


class Expression(NamedTuple):
    """One `{...}`: the character of its operator, and its variables."""

    sign: str
    variables: tuple[Variable, ...]


class _Alphabet(dict[int, str]):
    """A translation table that says for each character whether a run may contain it. Characters
    beyond ASCII are always allowed.
    """

    def __init__(self, allowed: str) -> None:
        super().__init__({code: "1" if chr(code) in allowed else "0" for code in range(128)})

    def __missing__(self, code: int) -> str:
        return "1"


class _Literal(NamedTuple):
    """A step that matches exactly this text."""

    text: str


class _CharacterRun(NamedTuple):
    """A step that matches `least` to `most` characters of an alphabet, and captures them for the
    variables of one operator.
    """

    alphabet: _Alphabet
    least: int
    most: int | None
    sign: str
    variables: tuple[Variable, ...]
    rooted: bool  # a leading slash would make an absolute path here


class _Maybe(NamedTuple):
    """A step that continues with the next one, or jumps to step `target`."""

    target: int


_Step = _Literal | _CharacterRun | _Maybe


class _Captures:
    """The values that the runs of one match have captured so far."""

    __slots__ = ("prefixes", "safe", "whole")

    def __init__(self, safe: bool) -> None:
        self.safe = safe
        self.whole: dict[str, Matched] = {}
        self.prefixes: list[tuple[Variable, str]] = []

    def keep(self, variable: Variable, value: Matched | None) -> bool:
        """Record a variable's value. False if there is none, or if it differs from an earlier value
        of the variable.
        """
        if value is None:
            return False
        if variable.prefix is None:
            return self.whole.setdefault(variable.name, value) == value
        if not isinstance(value, str) or len(value) > variable.prefix:
            return False
        self.prefixes.append((variable, value))
        return True

    def restore(self, flat: str, *, spans: bool, rooted: bool = False) -> str | None:
        """Return the decoded text of a value, or None if it is unsafe in its place."""
        text = flat.translate(_RESTORE)
        if not self.safe:
            return text
        segments = _SLASHES.split(text)
        if "." in segments or ".." in segments or _CONTROL.search(text):
            return None
        if len(segments) > 1 and (not spans or (rooted and not segments[0])):
            return None
        return text

    def settle(self, names: Sequence[str]) -> dict[str, Matched] | None:
        """Return the values by name. A prefix must agree with the whole value, or else with the
        longest prefix.
        """
        values = dict(self.whole)
        for variable, text in sorted(self.prefixes, key=lambda pair: -len(pair[1])):
            whole = values.setdefault(variable.name, text)
            if not isinstance(whole, str) or whole[: variable.prefix] != text:
                return None
        return {name: values[name] for name in names if name in values}


class Pattern:
    """The compiled parts of a template.

    The parts become a sequence of steps: literals, runs of characters, and jumps over optional
    parts. The set of positions of the URI from which each step can reach the end is computed
    backwards, as the bits of an integer. Then each choice is made once, forwards, without
    backtracking. So the work grows with the length of the URI, not with the number of possible
    matches.
    """

    __slots__ = ("_names", "_steps")

    def __init__(self, parts: Sequence[str | Expression], names: Sequence[str]) -> None:
        self._names = names
        self._steps: list[_Step] = []
        rooted = False
        for part in _merged(parts):
            if isinstance(part, str):
                flat = flatten(part)
                if flat is None:
                    raise ValueError(f"{part!r} holds percent-encoded bytes that are not UTF-8")
                self._steps.append(_Literal(flat))
                rooted = part.endswith("/") and not part.endswith("://")
            else:
                self._steps.extend(_compile(part, len(self._steps), rooted))
                rooted = False

    def match(self, uri: str, safe: bool) -> dict[str, Matched] | None:
        """Return the values by name, or None if `uri` does not match or, with `safe`, if a value is
        unsafe.
        """
        flat = flatten(uri)
        spans = None if flat is None else _walk(self._steps, flat)
        if flat is None or spans is None:
            return None
        captures = _Captures(safe)
        for run, start, end in spans:
            gather = _gather_named if OPERATORS[run.sign].named else _gather
            if not gather(captures, run, flat[start:end]):
                return None
        return captures.settle(self._names)


def flatten(uri: str) -> str | None:
    """Return `uri` with one character for each unit, or None if it is not a URI.

    Percent-encoded triplets are decoded, so that a multi-byte character is one unit. A decoded
    character that would have a meaning unescaped (`%2F`) becomes its stand-in, a lone surrogate,
    which no literal equals and every alphabet contains. Unescaped characters beyond ASCII are
    accepted.
    """
    if _FORBIDDEN.search(uri):
        return None
    if "%" not in uri:
        return uri
    try:
        flat = _TRIPLETS.sub(_decode, uri)
    except UnicodeDecodeError:
        return None
    return None if "%" in flat else flat


def _decode(found: re.Match[str]) -> str:
    text = bytes.fromhex(found.group().replace("%", "")).decode()
    return "".join(
        char if char in UNRESERVED or ord(char) > 127 else chr(_STAND_IN + ord(char))
        for char in text
    )


def _merged(parts: Sequence[str | Expression]) -> list[str | Expression]:
    """Return `parts` with adjacent parameter expressions merged: in `{?a}{&b}`, a and b may have
    any order, as in `{?a,b}`.
    """
    merged: list[str | Expression] = []
    for part in parts:
        last = merged[-1] if merged else ""
        if (
            isinstance(part, Expression)
            and part.sign in ("&", ";")
            and isinstance(last, Expression)
        ):
            operator = OPERATORS[part.sign]
            before = OPERATORS[last.sign]
            if before.named and before.separator == operator.separator:
                merged[-1] = Expression(last.sign, last.variables + part.variables)
                continue
        merged.append(part)
    return merged


def _alphabet(sign: str, *, several: bool) -> _Alphabet:
    if OPERATORS[sign].reserved:
        return _Alphabet(UNRESERVED + RESERVED)
    if sign in ("?", "&"):
        return _Alphabet(_SEGMENT + "/?")
    # Between several values the separator has a meaning. In a single value (`{.ext}` of `.tar.gz`)
    # it is an ordinary character.
    return _Alphabet(_SEGMENT.replace(OPERATORS[sign].separator, "") if several else _SEGMENT)


def _compile(expression: Expression, start: int, rooted: bool) -> Iterator[_Step]:
    """Yield the steps that match an expression; the first one has the index `start`."""
    sign, variables = expression
    operator = OPERATORS[sign]
    optional = bool(operator.first)
    if operator.named or any(variable.explode for variable in variables):
        # One run captures all items with their separators; it is split after the match.
        allowed = _alphabet(sign, several=False)
        allowed[ord(operator.separator)] = "1"
        if optional:
            yield _Maybe(start + 3)
            yield _Literal(operator.first)
        least = 1 if operator.named or not optional else 0
        yield _CharacterRun(allowed, least, None, sign, variables, rooted and sign == "+")
        return
    alphabet = _alphabet(sign, several=len(variables) > 1)
    for index, variable in enumerate(variables):
        if optional:
            yield _Maybe(start + len(variables) * 3)
        if index or optional:
            yield _Literal(operator.separator if index else operator.first)
        yield _CharacterRun(
            alphabet,
            0 if optional else 1,
            variable.prefix,
            sign,
            (variable,),
            rooted and sign == "+" and not index,
        )


def _walk(steps: Sequence[_Step], flat: str) -> list[tuple[_CharacterRun, int, int]] | None:
    """Return each run with the span of `flat` that it matches, or None."""
    if steps and isinstance(steps[0], _Literal) and not flat.startswith(steps[0].text):
        return None  # most templates of a server fail here
    # reach[i] becomes the set of positions from which the steps from i on can get to the end.
    reach = [0] * len(steps) + [1 << len(flat)]
    for index in range(len(steps) - 1, -1, -1):
        step = steps[index]
        after = reach[index + 1]
        if isinstance(step, _Maybe):
            reach[index] = after | reach[step.target]
        elif not after:
            continue
        elif isinstance(step, _Literal):
            reach[index] = (after >> len(step.text)) & _places(flat, step.text)
        else:
            mask = int(flat.translate(step.alphabet)[::-1] or "0", 2)
            reach[index] = _before(
                after,
                mask,
                step.least,
                len(flat) if step.most is None else min(step.most, len(flat)),
            )
    if not reach[0] & 1:
        return None
    spans: list[tuple[_CharacterRun, int, int]] = []
    index = position = 0
    while index < len(steps):
        step = steps[index]
        index += 1
        if isinstance(step, _Literal):
            position += len(step.text)
        elif isinstance(step, _Maybe):
            index = index if reach[index] >> position & 1 else step.target
        else:
            ahead = reach[index] >> (position + step.least)
            end = position + step.least + (ahead & -ahead).bit_length() - 1
            spans.append((step, position, end))
            position = end
    return spans


def _places(flat: str, text: str) -> int:
    """Return the set of positions at which `text` occurs in `flat`."""
    places = bytearray(b"0") * (len(flat) + 1)
    found = flat.find(text)
    while found >= 0:
        places[-1 - found] = 0x31  # an ASCII "1"
        found = flat.find(text, found + 1)
    return int(places, 2)


def _before(after: int, mask: int, least: int, most: int) -> int:
    """Return the positions from which a run of `least` (0 or 1) to `most` characters in `mask`
    leads to a position in `after`.
    """
    left = most - least
    one = mask
    stride = 1
    strides = []
    while stride <= left:
        # `mask` holds the positions from which `stride` characters may be taken at once; strides
        # double, so this is done soon.
        after |= (after >> stride) & mask
        left -= stride
        strides.append((stride, mask))
        mask &= mask >> stride
        stride *= 2
    for stride, mask in reversed(strides):
        if stride <= left:
            after |= (after >> stride) & mask
            left -= stride
    return (after >> 1) & one if least else after


def _gather(captures: _Captures, run: _CharacterRun, flat: str) -> bool:
    """Record the values of a run of positional variables. False if it does not match after all."""
    operator = OPERATORS[run.sign]
    variables = list(run.variables)
    if not any(variable.explode for variable in variables):
        return captures.keep(
            variables[0], captures.restore(flat, spans=operator.reserved, rooted=run.rooted)
        )
    items: list[str] = []
    for item in flat.split(operator.separator):
        text = captures.restore(item, spans=operator.reserved, rooted=run.rooted and not items)
        if text is None:
            return False
        items.append(text)
    if not operator.first and len(items) < len(variables):
        return False
    while items and variables:
        variable = variables.pop(0)
        # The first exploded variable gets all items that the variables after it do not need.
        count = max(1, len(items) - len(variables)) if variable.explode else 1
        taken = items[:count]
        items = items[count:]
        if not captures.keep(variable, taken if variable.explode else taken[0]):
            return False
    return not items


def _gather_named(captures: _Captures, run: _CharacterRun, flat: str) -> bool:
    """The same for a run of `name=value` pairs in any order. An exploded variable gets pairs with
    unknown names.
    """
    known = {flatten(variable.name): variable for variable in run.variables}
    stray = next((variable for variable in run.variables if variable.explode), None)
    found: dict[Variable, list[tuple[str, str]]] = {}
    for pair in flat.split(OPERATORS[run.sign].separator):
        name, _, rest = pair.partition("=")
        variable = known.get(name, stray)
        key = captures.restore(name, spans=False)
        value = captures.restore(rest, spans=run.sign != ";", rooted=True)
        if variable is None or not key or value is None:
            return False
        found.setdefault(variable, []).append((variable.name if name in known else key, value))
    for variable, pairs in found.items():
        kept: Matched
        if variable.explode and all(key == variable.name for key, _ in pairs):
            kept = [value for _, value in pairs]
        else:
            kept = dict(pairs) if variable.explode else pairs[0][1]
            if len({key for key, _ in pairs}) < len(pairs):
                return False  # a parameter occurs twice
        if not captures.keep(variable, kept):
            return False
    return True
