"""JSON Schema, bounded: schemas made ready once, values checked against them, and nothing ever fetched."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["DIALECTS", "SchemaError", "Validator", "Violation", "compile", "defaults", "header_parameters"]

# The dialects understood, by name; `$schema` may say them with http or https, with or without a trailing `#` (`JSC-01` to `JSC-03`).
DIALECTS: Mapping[str, str] = {
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft-07": "http://json-schema.org/draft-07/schema#",
}

# Bounds (`JSC-08`). People stay far below them; a schema or a value made to exhaust the checker does not.
MAX_BYTES = 1 << 20  # of a schema as JSON
MAX_DEPTH = 128  # objects and lists inside one another, in a schema or in a value
MAX_SUBSCHEMAS = 10_000
MAX_WEIGHT = 1_000_000  # subschemas that may have a say on one path through a value
MAX_WORK = 50_000_000  # weight times size of the value: beyond it there is no verdict
MAX_ACCOUNT = 200_000  # the same, for giving an account of all that is wrong: each item costs a thousand times more than a verdict
MAX_VIOLATIONS = 20
MAX_REGEX_BYTES = 1 << 20  # one pattern, compiled
MAX_BIG_REGEXES = 64  # patterns with large counts or Unicode classes, which are the ones that grow when compiled
MAX_LOOK_AROUNDS = 8  # in one pattern
MAX_LOOKED_AT = 1_000  # characters that a pattern with look-around is tried on
_CACHED_BYTES = 1 << 16
_MASK = "\x00"  # stands for the value in the checker's messages

# How a keyword's subschemas apply: to the same value, to values inside it (all of them, or one of them each), or not where they stand.
_HERE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
_BELOW = (
    *("items", "additionalItems", "unevaluatedItems", "contains"),
    *("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"),
)
_APART = ("properties", "prefixItems")
_ASIDE = ("$defs", "definitions", "contentSchema")
_SUBSCHEMAS = frozenset(_HERE + _BELOW + _APART + _ASIDE)
_BY_NAME = frozenset(("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"))
_DATA = frozenset(("const", "enum", "default", "examples", "example"))
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

_METASCHEMA = re.compile(r"https?://json-schema\.org/draft(/2020-12|/2019-09|-07)/")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, section 5.6.2
_NOT_LINEAR = re.compile(r"\(\?<?[=!]|\\[1-9k]")
_REGEX_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?<?[=!])?|\)", re.DOTALL)
_BIG_REGEX = re.compile(r"\{\d*,?\d{3,}\}|\\[pP]")


class SchemaError(ValueError):
    """The schema itself is unusable; the message says why and what to do."""


class Violation(msgspec.Struct, frozen=True):
    """One thing that is wrong with a value."""

    path: str  # a JSON pointer to the offending part, "" for the whole
    message: str


class Validator:
    """A schema made ready, as `compile` returns it. May be shared between threads."""

    __slots__ = ("_engine", "_survey")

    def __init__(self, engine: jsonschema_rs.Validator, survey: _Survey) -> None:
        self._engine = engine
        self._survey = survey

    def is_valid(self, value: Any) -> bool:
        """Whether `value`, a tree of what JSON knows, satisfies the schema. Never raises."""
        return not self._refusal(value) and self._verdict(value) is True

    def check(self, value: Any) -> list[Violation]:
        """Return what is wrong with `value`: nothing when it is valid, else the first 20 violations or fewer. Never raises.

        A value nested too deeply, too large for an entangled schema, or not of JSON's types is in violation too.
        """
        trouble = self._refusal(value)
        if not trouble:
            verdict = self._verdict(value)
            if verdict is True:
                return []
            trouble = verdict or ""
        return [Violation("", trouble)] if trouble else self._account(value)

    def _refusal(self, value: Any) -> str:
        if _too_deep(value):
            return f"The value is nested more than {MAX_DEPTH} levels deep."
        if self._survey.weight > 1_000 and self._survey.weight * _size(value) > MAX_WORK:
            return "The value is too large to be checked against so entangled a schema."
        return ""

    def _verdict(self, value: Any) -> bool | str:
        try:
            return self._engine.is_valid(value)
        except ValueError as error:  # a type, a key or a text that JSON does not have
            return f"The value is not JSON: {error}"

    def _account(self, value: Any) -> list[Violation]:
        """Collect violations as far as that is affordable: the engine finds all at once, and follows every branch of every choice."""
        survey, size = self._survey, _size(value)
        work = survey.work(_depth(value))
        try:
            if work * size <= MAX_ACCOUNT:
                return [_violation(error) for error, _ in zip(self._engine.iter_errors(value), range(MAX_VIOLATIONS), strict=False)]
            if work * size <= MAX_WORK and work * _largest(value, survey.choice) <= MAX_ACCOUNT:
                self._engine.validate(value)
        except ValueError as error:
            if hasattr(error, "instance_path"):
                return [_violation(error)]
            return [Violation("", f"The value is not JSON: {error}")]
        return [Violation("", "The value does not match the schema. It is too large, or the schema too entangled, to say where.")]


def compile(schema: Mapping[str, Any] | bool, *, formats: bool = True) -> Validator:
    """Make a schema ready for checking; equal schemas share one result. Raises SchemaError. See MCP "JSON Schema Usage".

    The dialect is 2020-12, or what `$schema` says if that is one of DIALECTS. Only what is inside the schema can be referred to:
    nothing is ever fetched, and a reference that leads outside is refused. `formats` says whether `format` is checked or ignored.

    Patterns run in linear time. Those that need look-around or back-references run under a limit on backtracking, and match no
    text longer than 1000 characters.
    """
    if not isinstance(schema, Mapping | bool):
        raise SchemaError(f"A schema is an object or a boolean, not {type(schema).__name__}.")
    try:
        encoded = msgspec.json.encode(schema, enc_hook=_plain)
        if len(encoded) > MAX_BYTES:
            raise SchemaError(f"The schema is {len(encoded)} bytes of JSON; {MAX_BYTES} are allowed.")
        return _compile(encoded, formats) if len(encoded) <= _CACHED_BYTES else _compile.__wrapped__(encoded, formats)
    except SchemaError:
        raise
    except RecursionError:
        raise SchemaError(f"The schema is nested too deeply; {MAX_DEPTH} levels are allowed.") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise SchemaError(f"The schema is not JSON: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds a {type(value).__name__}")


@lru_cache(maxsize=256)
def _compile(encoded: bytes, formats: bool) -> Validator:
    schema = msgspec.json.decode(encoded)
    if _too_deep(schema):
        raise SchemaError(f"The schema is nested too deeply; {MAX_DEPTH} levels are allowed.")
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
    survey = _Survey(schema)
    return Validator(_engine(schema, survey, formats), survey)


def _engine(schema: dict[str, Any], survey: _Survey, formats: bool) -> jsonschema_rs.Validator:
    import jsonschema_rs as rs  # late: its loading would be half of the time that `import interlock` may take

    classes = {"2020-12": rs.Draft202012Validator, "2019-09": rs.Draft201909Validator, "draft-07": rs.Draft7Validator}
    linear = rs.RegexOptions(size_limit=MAX_REGEX_BYTES)
    try:
        return classes[survey.dialect](
            schema,
            validate_formats=formats,
            retriever=_refuse,
            pattern_options=linear,
            mask=_MASK,
            keywords={"pattern": _look_around(rs, survey.patterns)} if any(map(_NOT_LINEAR.search, survey.patterns)) else None,
        )
    except rs.ValidationError as error:
        where = f" (at {_pointer(error.instance_path)})" if error.instance_path else ""
        if error.kind.name == "format":
            raise SchemaError(f"The pattern {_short(error.instance)} is malformed, too large, or not linear{where}.") from None
        raise SchemaError(f"The schema is not valid {survey.dialect}: {_words(error)}{where}.") from None


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is not part of the schema, and nothing is fetched")


def _look_around(rs: Any, patterns: Iterable[str]) -> type[jsonschema_rs.KeywordValidator]:
    """Return the keyword `pattern` for a schema where some patterns are beyond the linear engine."""
    linear = rs.RegexOptions(size_limit=MAX_REGEX_BYTES)
    backtracking = rs.FancyRegexOptions(backtrack_limit=10_000, size_limit=MAX_REGEX_BYTES)
    ready: dict[str, tuple[Any, bool]] = {}
    for pattern in patterns:
        looks = bool(_NOT_LINEAR.search(pattern))
        if looks:
            _check_look_around(pattern)
        try:
            engine = rs.Draft202012Validator({"pattern": pattern}, pattern_options=backtracking if looks else linear)
        except rs.ValidationError:
            raise SchemaError(f"The pattern {_short(pattern)} is malformed or too large.") from None
        ready[pattern] = (engine, looks)

    class Pattern:
        def __init__(self, parent_schema: dict[str, Any], value: Any, schema_path: list[str | int]) -> None:
            self.value = value
            self.engine, self.looks = ready[value]

        def validate(self, instance: Any) -> None:
            if not isinstance(instance, str):
                return
            if self.looks and len(instance) > MAX_LOOKED_AT:
                raise ValueError(f"{_MASK} is longer than {MAX_LOOKED_AT} characters, on which {_short(self.value)} is not tried")
            if not self.engine.is_valid(instance):
                raise ValueError(f"{_MASK} does not match {_short(self.value)}")

    return Pattern


def _check_look_around(pattern: str) -> None:
    """Refuse what a limit on backtracking does not bound: look-around inside look-around, each level another power of the length."""
    groups: list[bool] = []
    total = 0
    for found in _REGEX_PARTS.finditer(pattern):
        part = found.group()
        if part == ")" and groups:
            groups.pop()
        elif part[0] == "(":
            looks = len(part) > 1
            total += looks
            if looks and any(groups):
                raise SchemaError(f"The pattern {_short(pattern)} has look-around inside look-around; write it flat.")
            groups.append(looks)
    if total > MAX_LOOK_AROUNDS:
        raise SchemaError(f"The pattern {_short(pattern)} looks around {total} times; {MAX_LOOK_AROUNDS} are allowed.")


# --- what the engine says, in our words ---------------------------------------------------------------------------------------


def _violation(error: Any) -> Violation:
    return Violation(_pointer(error.instance_path), _words(error))


def _words(error: Any) -> str:
    text = str(error.message).replace(_MASK, _short(error.instance))
    return text if len(text) <= 500 else text[:497] + "..."


def _short(value: Any) -> str:
    if isinstance(value, Mapping | list | tuple):
        return "the object" if isinstance(value, Mapping) else "the list"
    text = value if isinstance(value, str) else ""
    return msgspec.json.encode(text[:77] + "..." if len(text) > 80 else value).decode()


def _pointer(path: Iterable[str | int]) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


# --- how deep and how large a value is ----------------------------------------------------------------------------------------


def _inside(level: Iterable[Any]) -> list[Any]:
    containers = (outer for outer in level if isinstance(outer, dict | list | tuple))
    return [inner for outer in containers for inner in (outer.values() if isinstance(outer, dict) else outer)]


def _depth(value: Any) -> int:
    """Return how many containers stand inside one another, without recursion; MAX_DEPTH + 1 when there are more than MAX_DEPTH."""
    level, depth = [value], 0
    while depth <= MAX_DEPTH and (level := _inside(level)):
        depth += 1
    return depth


def _too_deep(value: Any) -> bool:
    return _depth(value) > MAX_DEPTH


def _size(value: Any) -> int:
    """Return about how many values there are inside one, long texts counted as several."""
    try:
        return len(msgspec.json.encode(value)) // 4 + 1
    except (TypeError, ValueError, OverflowError):
        return 1


def _largest(value: Any, depth: int | None) -> int:
    """Return the size of the largest part of `value` that stands `depth` levels inside; 0 for None."""
    if depth is None:
        return 0
    level = [value]
    for _ in range(depth):
        level = _inside(level)
    return max(map(_size, level), default=0)
