"""URI templates (RFC 6570, levels 1 to 4): expansion and matching."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from .uri_patterns import (
    OPERATORS,
    RESERVED,
    UNRESERVED,
    Expression,
    Matched,
    Operator,
    Pattern,
    Variable,
)

__all__ = ["Matched", "Template", "TemplateError", "Value"]

# Values for an expansion; None, also inside a list or a mapping, is undefined.
Scalar = str | int | float | bool
Value = Scalar | Sequence[Scalar | None] | Mapping[str, Scalar | None] | None

# Characters that are never unescaped in a URI, nor in the literals of a template (RFC 6570, section
# 2.1; an erratum permits the apostrophe).
_FORBIDDEN = re.compile(r"[\x00-\x20\"<>\\^`{|}\x7f-\x9f\ud800-\udfff]|%(?![0-9A-Fa-f]{2})")
_TRIPLET_OR_CHARACTER = re.compile(r"%[0-9A-Fa-f]{2}|.", re.DOTALL)
_NAME = r"(?:\w|%[0-9A-Fa-f]{2})+"
_VARIABLE = re.compile(rf"({_NAME}(?:\.{_NAME})*)(?:(\*)|:([1-9][0-9]{{0,3}}))?", re.ASCII)
_PLAIN = frozenset(UNRESERVED)
_PLAIN_OR_RESERVED = frozenset(UNRESERVED + RESERVED)


class TemplateError(ValueError):
    """A template is malformed, or a value does not fit in it; the message says where and why."""


class Template:
    """An RFC 6570 template of levels 1 to 4, which expands to URIs and matches them.

    Templates with equal texts are equal, and have the same hash. See MCP "Resource Templates".
    """

    __slots__ = ("_names", "_parts", "_pattern", "_text")

    def __init__(self, text: str) -> None:
        """Parse `text`. Raises TemplateError if it is malformed."""
        self._text = text
        self._parts = tuple(_parse(text))
        names = [
            variable.name
            for part in self._parts
            if isinstance(part, Expression)
            for variable in part.variables
        ]
        self._names = tuple(dict.fromkeys(names))
        try:
            self._pattern = Pattern(self._parts, self._names)
        except ValueError as error:
            raise TemplateError(f"{text!r}: {error}") from None

    @property
    def text(self) -> str:
        """The text of the template."""
        return self._text

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its variables, in order of first appearance."""
        return self._names

    @property
    def literal(self) -> bool:
        """Whether it has no expressions, and so matches exactly one URI."""
        return not self._names

    @property
    def specificity(self) -> tuple[int, int, int, str]:
        """A sort key: among the templates that match a URI, the one with the smallest key is the
        most specific.

        More literal characters come first, then fewer variables, then fewer variables that may span
        `/`; the text decides the rest.
        """
        literal = sum(len(part) for part in self._parts if isinstance(part, str))
        wide = sum(
            len(p.variables)
            for p in self._parts
            if isinstance(p, Expression) and OPERATORS[p.sign].reserved
        )
        return (-literal, len(self._names), wide, self._text)

    def __repr__(self) -> str:
        return f"Template({self._text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Template) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def expand(self, values: Mapping[str, Value]) -> str:
        """Return the URI for `values` (RFC 6570, section 3).

        A name that is missing, None, or an empty list or mapping is undefined and expands to
        nothing. Raises TemplateError if a value does not fit (a prefix of a list, text that is not
        Unicode), TypeError if its type is not supported.
        """
        return "".join(
            _encode(part, reserved=True) if isinstance(part, str) else _expand(part, values)
            for part in self._parts
        )

    def match(self, uri: str, *, safe: bool = True) -> dict[str, Matched] | None:
        """Return the values for which the template expands to `uri`, or None if it does not match.

        This is the inverse of `expand`. Values are percent-decoded once, as strict UTF-8. `{a}` and
        `{+a}` need at least one character. Every other operator is optional, and so are the last
        variables of `{/a,b}` and similar expressions; an omitted name is missing from the result.
        Query and matrix parameters may have any order; an unknown or repeated one does not match.
        An exploded variable returns a list, or in a query a dict if the URI has names of its own.
        Any other variable returns a str, in which unescaped commas stay. If several matches are
        possible, values are as short as possible from left to right.

        With `safe`, these values do not match: a value with a `.` or `..` segment (between `/` or
        `\\`) or a control character; a value with a decoded `/` or `\\` in a place that does not
        span segments; and a value that begins with either where that would make an absolute path
        (after a literal `/`, or in a query). `{+a}`, `{#a}`, `{?a}` and `{&a}` span segments.

        The work grows only with the length of `uri`.
        """
        return self._pattern.match(uri, safe)


def _parse(text: str) -> Iterator[str | Expression]:
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
            raise TemplateError(
                f"{text!r}: the expression that begins at character {brace} is never closed with }}"
            )
        yield _expression(
            f"{text!r}: the expression {text[brace : close + 1]} at character {brace}",
            text[brace + 1 : close],
        )
        position = close + 1


def _check_literal(text: str, literal: str, position: int) -> None:
    found = _FORBIDDEN.search(literal)
    if found is None:
        return
    char = found.group()
    where = position + found.start()
    if char == "}":
        raise TemplateError(f"{text!r}: the }} at character {where} closes nothing")
    if char == "%":
        raise TemplateError(
            f"{text!r}: the % at character {where} is not followed by two hexadecimal digits; a"
            " percent sign is %25"
        )
    raise TemplateError(
        f"{text!r}: {char!r} at character {where} may not stand in a URI; percent-encode it"
    )


def _expression(where: str, body: str) -> Expression:
    if not body:
        raise TemplateError(f"{where} is empty")
    if body[0] in "=,!@|":
        raise TemplateError(f"{where} uses {body[0]!r}, which RFC 6570 reserves")
    sign = body[0] if body[0] in OPERATORS else ""
    variables = []
    for piece in body[len(sign) :].split(","):
        found = _VARIABLE.fullmatch(piece)
        if found is None:
            rule = "a name of letters, digits, _ and inner dots, then * or :1 to :9999 or nothing"
            raise TemplateError(f"{where} has the malformed variable {piece!r}: {rule}")
        name, star, prefix = found.groups()
        variables.append(Variable(name, star is not None, int(prefix) if prefix else None))
    return Expression(sign, tuple(variables))


def _expand(expression: Expression, values: Mapping[str, Value]) -> str:
    operator = OPERATORS[expression.sign]
    pieces: list[str] = []
    for variable in expression.variables:
        name = variable.name
        value = values.get(variable.name)
        if isinstance(value, Mapping):
            pieces += _expand_many(
                operator, variable, [(key, item) for key, item in value.items() if item is not None]
            )
        elif isinstance(value, Sequence) and not isinstance(
            value, str | bytes | bytearray | memoryview
        ):
            pieces += _expand_many(
                operator, variable, [(None, item) for item in value if item is not None]
            )
        elif value is not None:
            text = _scalar(name, value)
            if variable.prefix is not None:
                # A triplet that stays as it is counts as one character, and is not split (section
                # 2.4.1).
                units = _TRIPLET_OR_CHARACTER.findall(text) if operator.reserved else text
                text = "".join(units[: variable.prefix])
            text = _encode(text, reserved=operator.reserved)
            pieces.append(_named(operator, name, text) if operator.named else text)
    return operator.first + operator.separator.join(pieces) if pieces else ""


def _expand_many(
    operator: Operator, variable: Variable, items: Sequence[tuple[str | None, object]]
) -> list[str]:
    if variable.prefix is not None:
        raise TemplateError(
            f"{variable.name}:{variable.prefix} takes the beginning of a string; a list or"
            " mapping has none"
        )
    pairs: list[tuple[str | None, str]] = []
    for key, item in items:
        text = _encode(_scalar(variable.name, item), reserved=operator.reserved)
        pairs.append(
            (
                None
                if key is None
                else _encode(_scalar(variable.name, key), reserved=operator.reserved),
                text,
            )
        )
    if not pairs:
        return []
    if not variable.explode:
        joined = ",".join(part for pair in pairs for part in pair if part is not None)
        return [_named(operator, variable.name, joined) if operator.named else joined]
    if operator.named:
        return [
            _named(operator, variable.name if key is None else key, text) for key, text in pairs
        ]
    return [text if key is None else f"{key}={text}" for key, text in pairs]


def _named(operator: Operator, name: str, text: str) -> str:
    return f"{name}={text}" if text else name + operator.if_empty


def _scalar(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return str(value)
    if isinstance(value, float):
        raise TemplateError(f"{name}: {value} is not a number that a URI can hold")
    raise TypeError(
        f"{name}: a value, or an item of a list or mapping, must be str, int, float or bool, not"
        f" {type(value).__name__}"
    )


def _encode(text: str, *, reserved: bool) -> str:
    """Percent-encode `text`. With `reserved`, reserved characters and triplets stay as they are."""
    plain = _PLAIN_OR_RESERVED if reserved else _PLAIN
    units = _TRIPLET_OR_CHARACTER.findall(text) if reserved else text
    try:
        return "".join(
            unit
            if unit in plain or len(unit) == 3
            else "".join(f"%{byte:02X}" for byte in unit.encode())
            for unit in units
        )
    except UnicodeEncodeError as error:
        raise TemplateError(f"{text!r} is not Unicode text: {error.reason}") from None
