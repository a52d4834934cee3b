"""URI templates (RFC 6570) both ways: values to a URI, and a URI back to values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from urllib.parse import quote

Scalar = str | int | float | bool
Value = Scalar | Sequence[Scalar | None] | Mapping[str, Scalar | None] | None
Matched = str | list[str] | dict[str, str]


class TemplateError(ValueError):
    """A template is malformed, or a value cannot be put into it; the message says where and why."""


@dataclass(frozen=True, slots=True)
class _Operator:
    """One row of the table in RFC 6570, appendix A."""

    first: str
    separator: str
    named: bool = False
    if_empty: str = ""
    reserved: bool = False


_OPERATORS = {
    "": _Operator("", ","),
    "+": _Operator("", ",", reserved=True),
    "#": _Operator("#", ",", reserved=True),
    ".": _Operator(".", "."),
    "/": _Operator("/", "/"),
    ";": _Operator(";", ";", named=True),
    "?": _Operator("?", "&", named=True, if_empty="="),
    "&": _Operator("&", "&", named=True, if_empty="="),
}
_UNRESERVED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
_RESERVED = ":/?#[]@!$&'()*+,;="
# What RFC 3986 lets stand raw inside one path segment. An expansion would have percent-encoded the reserved ones, but people and
# models write `mail://ann@example.org` by hand, and that is a correct URI.
_SEGMENT = _UNRESERVED + "!$&'()*+,;=:@"
_TRIPLET = re.compile(r"%[0-9A-Fa-f]{2}")
_TRIPLETS = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_FORBIDDEN = re.compile(r"[\x00-\x20\"<>\\^`{|}\x7f\ud800-\udfff]")  # never raw in a URI; surrogates are ours, see _flatten
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_VARIABLE = re.compile(r"((?:\w|%[0-9A-Fa-f]{2})(?:\.?(?:\w|%[0-9A-Fa-f]{2}))*)(?:(\*)|:([1-9][0-9]{0,3}))?", re.ASCII)
_STAND_IN = 0xDC00  # an encoded reserved character is held as this lone surrogate plus its code, so that one character is one unit
_RESTORE = {_STAND_IN + code: code for code in range(128)}


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str
    explode: bool
    prefix: int | None


@dataclass(frozen=True, slots=True)
class _Expression:
    operator: str
    variables: tuple[_Variable, ...]


class _Alphabet(dict[int, str]):
    """A translation table that says, for every character, whether a run may hold it; what is not ASCII it always may."""

    def __init__(self, allowed: str) -> None:
        super().__init__({code: "1" if chr(code) in allowed else "0" for code in range(128)})

    def __missing__(self, code: int) -> str:
        return "1"


@dataclass(frozen=True, slots=True)
class _Literal:
    """Matches exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class _Run:
    """Matches `least` to `most` characters of an alphabet, and keeps them for an expression's variables."""

    alphabet: _Alphabet
    least: int
    most: int | None
    expression: _Expression
    variables: tuple[_Variable, ...]
    rooted: bool = False  # stands right after a literal "/"


@dataclass(frozen=True, slots=True)
class _Maybe:
    """Goes on with the next step, or else jumps to step `target`."""

    target: int


@dataclass(slots=True)
class _Harvest:
    """What the runs of one match have yielded so far, by variable."""

    safe: bool
    whole: dict[str, Matched] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)


class Template:
    """An RFC 6570 template of level 1 to 4, which expands to URIs and matches them.

    Templates are equal, and hash alike, when their texts are equal. See MCP "Resource Templates".
    """

    __slots__ = ("_names", "_parts", "_steps", "_text")

    def __init__(self, text: str) -> None:
        """Parse `text`; raises TemplateError when it is malformed."""
        self._text = text
        self._parts = tuple(_parse(text))
        names = [variable.name for part in self._parts if isinstance(part, _Expression) for variable in part.variables]
        self._names = tuple(dict.fromkeys(names))
        self._steps = tuple(_compile(self._parts))

    @property
    def text(self) -> str:
        """The template as it was written."""
        return self._text

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its variables in order of first appearance."""
        return self._names

    @property
    def literal(self) -> bool:
        """Whether it has no expressions at all, and so stands for one URI."""
        return not self._names

    @property
    def specificity(self) -> tuple[int, int, int, str]:
        """A sort key: of several templates that match a URI, the smallest key is the most specific.

        More literal characters win, then fewer variables, then fewer variables that may span `/`; the text settles the rest.
        """
        literal = sum(len(part) for part in self._parts if isinstance(part, str))
        wide = sum(len(p.variables) for p in self._parts if isinstance(p, _Expression) and _OPERATORS[p.operator].reserved)
        return (-literal, len(self._names), wide, self._text)

    def __repr__(self) -> str:
        return f"Template({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def expand(self, values: Mapping[str, Value]) -> str:
        """Return the URI that the template makes of `values` (RFC 6570, section 3).

        A name that is missing, None, or an empty list or mapping is undefined and leaves nothing behind. Raises TemplateError
        when a value does not fit its place (a prefix of a list, text that is not Unicode), TypeError when it is of no usable type.
        """
        return "".join(_encode(part, reserved=True) if isinstance(part, str) else _expand(part, values) for part in self._parts)

    def match(self, uri: str, *, safe: bool = True) -> dict[str, Matched] | None:
        """Return the values from which the template would make `uri`, or None when it does not match.

        It is the inverse of `expand`. Values are percent-decoded once, as strict UTF-8. `{a}` and `{+a}` need at least one
        character; every other operator may be left out, and of `{/a,b}` and its like the last variables may be: such a name is
        missing from the answer. Query and matrix parameters come in any order; one that is unknown or doubled does not match.
        Exploded variables give a list, or a dict where every item is `key=value`; others give a str, in which raw commas stay.
        Where several readings are possible, values are as short as they can be from left to right.

        While `safe` is true, these values do not match: one that holds a `.` or `..` segment (between `/` or `\\`) or a control
        character; one with a decoded `/` or `\\` in a place that does not span segments; and one that begins with either where
        it would be read as an absolute path (after a literal `/`, or in a query). A query parameter may hold them further on.

        The work grows with the length of `uri` only, whatever the template.
        """
        flat = _flatten(uri)
        if flat is None:
            return None
        spans = _walk(self._steps, flat)
        if spans is None:
            return None
        harvest = _Harvest(safe)
        for run, start, end in spans:
            if not _gather(harvest, run, flat[start:end]):
                return None
        return _settle(harvest, self._names)


def _parse(text: str) -> Iterator[str | _Expression]:
    position = 0
    while position < len(text):
        brace = text.find("{", position)
        literal = text[position : brace if brace >= 0 else len(text)]
        if literal:
            _check_literal(text, literal, position)
            yield literal
        if brace < 0:
            return
        close = text.find("}", brace)
        if close < 0:
            raise TemplateError(f"{text!r}: the expression that begins at character {brace} is never closed with }}")
        yield _expression(text, text[brace + 1 : close], brace)
        position = close + 1


def _check_literal(text: str, literal: str, position: int) -> None:
    found = _FORBIDDEN.search(literal) or re.search(r"%(?![0-9A-Fa-f]{2})", literal)
    if found is None:
        return
    char, where = found.group(), position + found.start()
    if char == "}":
        raise TemplateError(f"{text!r}: the }} at character {where} closes nothing")
    if char == "%":
        raise TemplateError(f"{text!r}: the % at character {where} is not followed by two hexadecimal digits; write %25 for a percent sign")
    raise TemplateError(f"{text!r}: {char!r} at character {where} may not stand in a URI; percent-encode it")


def _expression(text: str, body: str, brace: int) -> _Expression:
    where = f"{text!r}: the expression {{{body}}} at character {brace}"
    if not body:
        raise TemplateError(f"{where} is empty")
    operator = body[0] if body[0] in "+#./;?&" else ""
    if body[0] in "=,!@|":
        raise TemplateError(f"{where} uses {body[0]!r}, which RFC 6570 reserves for later")
    variables = []
    for piece in body[len(operator) :].split(","):
        found = _VARIABLE.fullmatch(piece)
        if found is None:
            raise TemplateError(
                f"{where} has a malformed variable {piece!r}: a name of letters, digits, _ and inner dots, then * or :1 to :9999 or nothing"
            )
        name, star, prefix = found.groups()
        variables.append(_Variable(name, star is not None, int(prefix) if prefix else None))
    return _Expression(operator, tuple(variables))


# --- values to URI ------------------------------------------------------------------------------------------------------------


def _encode(value: str, *, reserved: bool) -> str:
    try:
        if not reserved:
            return quote(value, safe="")
        # Where reserved characters are allowed, so are triplets that the value brings along.
        ends = [found.span() for found in _TRIPLET.finditer(value)]
        pieces, position = [], 0
        for start, end in ends:
            pieces += [quote(value[position:start], safe=_RESERVED), value[start:end]]
            position = end
        return "".join([*pieces, quote(value[position:], safe=_RESERVED)])
    except UnicodeEncodeError as error:
        raise TemplateError(f"{value!r} is not Unicode text: {error.reason}") from None


def _scalar(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return str(value)
    if isinstance(value, float):
        raise TemplateError(f"{name}: {value} is not a number that a URI can hold")
    raise TypeError(f"{name}: a value, or an item of a list or mapping, must be str, int, float or bool, not {type(value).__name__}")


def _expand(expression: _Expression, values: Mapping[str, Value]) -> str:
    operator = _OPERATORS[expression.operator]
    pieces: list[str] = []
    for variable in expression.variables:
        value = values.get(variable.name)
        if isinstance(value, Mapping):
            pairs = [(key, _scalar(variable.name, item)) for key, item in value.items() if item is not None]
            pieces += _expand_many(operator, variable, pairs)
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
            items = [(None, _scalar(variable.name, item)) for item in value if item is not None]
            pieces += _expand_many(operator, variable, items)
        elif value is not None:
            text = _cut(_scalar(variable.name, value), variable.prefix, operator.reserved)
            text = _encode(text, reserved=operator.reserved)
            pieces.append(_named(operator, variable.name, text) if operator.named else text)
    return operator.first + operator.separator.join(pieces) if pieces else ""


def _expand_many(operator: _Operator, variable: _Variable, items: Sequence[tuple[str | None, str]]) -> list[str]:
    if variable.prefix is not None:
        raise TemplateError(f"{variable.name}:{variable.prefix} takes the beginning of a string; a list or mapping has none")
    if not items:
        return []
    encoded = [
        (None if key is None else _encode(key, reserved=operator.reserved), _encode(item, reserved=operator.reserved)) for key, item in items
    ]
    if not variable.explode:
        joined = ",".join(part for pair in encoded for part in pair if part is not None)
        return [_named(operator, variable.name, joined) if operator.named else joined]
    if operator.named:
        return [_named(operator, key if key is not None else variable.name, item) for key, item in encoded]
    return [item if key is None else f"{key}={item}" for key, item in encoded]


def _named(operator: _Operator, name: str, text: str) -> str:
    return f"{name}={text}" if text else name + operator.if_empty


def _cut(text: str, prefix: int | None, reserved: bool) -> str:
    if prefix is None:
        return text
    if not reserved:
        return text[:prefix]
    # A triplet that will pass through unencoded counts as one character and is never cut in two (section 2.4.1).
    return "".join(re.findall(r"%[0-9A-Fa-f]{2}|.", text, re.DOTALL)[:prefix])


# --- URI to values ------------------------------------------------------------------------------------------------------------


def _flatten(uri: str) -> str | None:
    """Return `uri` with one character for each unit, or None when it is no URI.

    Triplets are decoded, so that a multi-byte character is one unit. A decoded character that would mean something else raw
    (`%2F`) becomes its stand-in, which no literal equals and no alphabet leaves out. Raw characters beyond ASCII are let through.
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
    return "".join(char if char in _UNRESERVED or ord(char) > 127 else chr(_STAND_IN + ord(char)) for char in text)


def _alphabet(operator: str, *, several: bool) -> _Alphabet:
    if _OPERATORS[operator].reserved:
        return _Alphabet(_UNRESERVED + _RESERVED)
    if operator in ("?", "&"):
        return _Alphabet(_SEGMENT + "/?")
    # Between several values the separator means something; in a lone one (`{.ext}` of `.tar.gz`) it is a character like others.
    return _Alphabet(_SEGMENT.replace(_OPERATORS[operator].separator, "") if several else _SEGMENT)


def _compile(parts: Sequence[str | _Expression]) -> Iterator[_Literal | _Run | _Maybe]:
    """Yield the steps that match `parts`; a variable is a run, and what may be left out is jumped over."""
    count, rooted = 0, False
    for part in parts:
        steps: list[_Literal | _Run | _Maybe]
        if isinstance(part, str):
            flat = _flatten(part)
            if flat is None:
                raise TemplateError(f"{part!r} holds percent-encoded bytes that are not UTF-8")
            steps = [_Literal(flat)]
            rooted = part.endswith("/")
        else:
            steps = list(_compile_expression(part, count, rooted))
            rooted = False
        yield from steps
        count += len(steps)


def _compile_expression(expression: _Expression, start: int, rooted: bool) -> Iterator[_Literal | _Run | _Maybe]:
    operator, variables = _OPERATORS[expression.operator], expression.variables
    exploded = any(variable.explode for variable in variables)
    if operator.named or exploded:
        # One run holds all the items; `_gather` takes it apart.
        allowed = _alphabet(expression.operator, several=False)
        allowed.update({ord(char): "1" for char in operator.separator + "="})
        if operator.first:
            yield _Maybe(start + 3)
            yield _Literal(operator.first)
        yield _Run(allowed, 0 if operator.first and not operator.named else 1, None, expression, variables, rooted)
        return
    alphabet = _alphabet(expression.operator, several=len(variables) > 1)
    optional = bool(operator.first)
    end = start + len(variables) * 3 if optional else 0
    for index, variable in enumerate(variables):
        if optional:
            yield _Maybe(end)
        if index or operator.first:
            yield _Literal(operator.separator if index else operator.first)
        yield _Run(alphabet, 0 if optional else 1, variable.prefix, expression, (variable,), rooted and not index)


def _walk(steps: Sequence[_Literal | _Run | _Maybe], flat: str) -> list[tuple[_Run, int, int]] | None:
    """Return each run with the span of `flat` it takes, or None.

    Sets of positions are the bits of an integer. Going backwards over the steps, `reach[i]` becomes the positions from which the
    steps from `i` on can get to the end; going forwards, each choice is then made once and never taken back.
    """
    if steps and isinstance(steps[0], _Literal) and not flat.startswith(steps[0].text):
        return None  # most templates of a server end here
    reach = [0] * len(steps) + [1 << len(flat)]
    masks: dict[int, int] = {}
    for index in range(len(steps) - 1, -1, -1):
        step, after = steps[index], reach[index + 1]
        if isinstance(step, _Maybe):
            reach[index] = after | reach[step.target]
        elif isinstance(step, _Literal):
            reach[index] = (after >> len(step.text)) & _places(flat, step.text) if after else 0
        elif after:
            mask = masks.get(id(step.alphabet))
            if mask is None:
                mask = masks[id(step.alphabet)] = int(flat.translate(step.alphabet)[::-1] or "0", 2)
            reach[index] = _before(after, mask, step.least, step.most, len(flat))
    if not reach[0] & 1:
        return None
    spans: list[tuple[_Run, int, int]] = []
    index = position = 0
    while index < len(steps):
        step = steps[index]
        index += 1
        if isinstance(step, _Literal):
            position += len(step.text)
        elif isinstance(step, _Maybe):
            if not reach[index] >> position & 1:
                index = step.target
        else:
            ahead = reach[index] >> (position + step.least)
            end = position + step.least + (ahead & -ahead).bit_length() - 1
            spans.append((step, position, end))
            position = end
    return spans


def _places(flat: str, text: str) -> int:
    """Return the set of positions at which `text` stands in `flat`."""
    places = bytearray(b"0") * (len(flat) + 1)
    found = flat.find(text)
    while found >= 0:
        places[-1 - found] = 0x31
        found = flat.find(text, found + 1)
    return int(places, 2)


def _before(after: int, mask: int, least: int, most: int | None, length: int) -> int:
    """Return the positions from which a run of `least` (0 or 1) to `most` characters in `mask` leads to a position in `after`."""
    left = (length if most is None else min(most, length)) - least
    stride, reached = 1, after
    while left > 0:
        # `mask` holds the positions from which `stride` characters may be taken at once; strides double, so this is done soon.
        stride = min(stride, left)
        reached |= (reached >> stride) & mask
        left -= stride
        mask &= mask >> stride
        stride *= 2
    return reached
