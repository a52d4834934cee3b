"""Schema validators, compiled once, with bounded cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from .survey import MAX_DEPTH, MAX_STACK, SchemaError, Survey, depth, inside

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["MAX_BYTES", "MAX_LOOKED_AT", "MAX_VIOLATIONS", "Validator", "Violation", "compile"]

# Further bounds (`JSC-08`), in addition to those of the survey.
MAX_BYTES = 1 << 20  # of a schema as JSON
MAX_VIOLATIONS = 20  # reported for one value
MAX_WORK = 50_000_000  # weight of the schema times size of the value; above it nothing is validated
# the same for a report of all violations, which costs a thousand times more than a yes or no
MAX_ACCOUNT = 200_000
MAX_REGEX_BYTES = 1 << 20  # of one compiled pattern
# patterns with large counts or Unicode classes, which are large when compiled
MAX_LARGE_REGEXES = 64
MAX_LOOK_AROUNDS = 8  # in one pattern
MAX_BACKTRACKS = 10_000  # of such a pattern, or one with back-references, on one text
MAX_LOOKED_AT = 500  # the longest text for such a pattern, in characters
_CACHED_BYTES = 1 << 16
_MASK = "\x00"  # the placeholder for the value in the engine's messages

_LARGE = re.compile(r"\{\d*,?\d{3,}\}|\\[pP]")
_REGEX_PARTS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\((?:\?<?[=!])?|\)", re.DOTALL)


class Violation(msgspec.Struct, frozen=True):
    """One violation of a schema by a value."""

    # a JSON pointer to the invalid part, "" for the whole value; the engine omits empty property
    # names
    path: str
    message: str


class Validator:
    """A compiled schema, as `compile` returns it. It may be shared between threads."""

    __slots__ = ("_engine", "_survey")

    def __init__(self, engine: jsonschema_rs.Validator, survey: Survey) -> None:
        self._engine = engine
        self._survey = survey

    def is_valid(self, value: Any) -> bool:
        """Whether `value`, a tree of JSON types, is valid. Never raises."""
        return not self._refusal(value) and self._verdict(value) is True

    def check(self, value: Any) -> list[Violation]:
        """Return the violations of `value`: an empty list if it is valid, else at most 20. Never
        raises.

        A value is invalid too if it is nested too deeply, too large for a complex schema, or not of
        JSON's types.
        """
        trouble = self._refusal(value)
        if not trouble:
            verdict = self._verdict(value)
            if verdict is True:
                return []
            trouble = verdict or ""
        return [Violation("", trouble)] if trouble else self._account(value)

    def _refusal(self, value: Any) -> str:
        levels = depth(value)
        if levels > MAX_DEPTH:
            return f"the value is nested more than {MAX_DEPTH} levels deep"
        if self._survey.stack(levels) > MAX_STACK:
            return (
                f"the value is nested {levels} levels deep, too deep to be checked against so"
                " entangled a schema"
            )
        if self._survey.weight > 1_000 and self._survey.weight * _size(value) > MAX_WORK:
            return "the value is too large to be checked against so entangled a schema"
        return ""

    def _verdict(self, value: Any) -> bool | str:
        try:
            return self._engine.is_valid(value)
        except ValueError as error:  # a type, a key or a text that is not valid JSON
            return f"the value is not JSON: {error}"

    def _account(self, value: Any) -> list[Violation]:
        """Report the violations if that is affordable, because the engine computes all at once and
        follows every branch of a choice.
        """
        survey = self._survey
        size = _size(value)
        work = survey.work(depth(value))
        try:
            if work * size <= MAX_ACCOUNT:
                # two paths to one subschema may find the same violation
                violations: dict[Violation, None] = {}
                for error in self._engine.iter_errors(value):
                    violations[_violation(error)] = None
                    if len(violations) == MAX_VIOLATIONS:
                        break
                if violations:
                    return list(violations)
            elif work * size <= MAX_WORK and work * _largest(value, survey.choice) <= MAX_ACCOUNT:
                self._engine.validate(value)
        except ValueError as error:
            return [
                _violation(error)
                if hasattr(error, "instance_path")
                else Violation("", f"the value is not JSON: {error}")
            ]
        return [
            Violation(
                "",
                "the value does not match the schema; it is too large, or the schema too"
                " entangled, to say where",
            )
        ]


def compile(schema: Mapping[str, Any] | bool, *, formats: bool = True) -> Validator:
    """Compile a schema; equal schemas share one validator.

    Raises SchemaError. See MCP "JSON Schema Usage".

    The dialect is 2020-12, or the one in `$schema` if it is one of DIALECTS. References must point
    into the schema: nothing is ever fetched, and a reference to anything else is an error.
    `formats` says whether `format` is checked or ignored.

    Patterns run in linear time. Patterns with look-around or back-references run with a limit on
    backtracking, and do not match texts longer than 500 characters.
    """
    if not isinstance(schema, Mapping | bool):
        raise SchemaError(f"A schema is an object or a boolean, not {type(schema).__name__}.")
    try:
        encoded = msgspec.json.encode(schema, enc_hook=_plain)
        if len(encoded) > MAX_BYTES:
            raise SchemaError(
                f"The schema is {len(encoded)} bytes of JSON; {MAX_BYTES} are allowed."
            )
        return (
            _compile(encoded, formats)
            if len(encoded) <= _CACHED_BYTES
            else _compile.__wrapped__(encoded, formats)
        )
    except SchemaError:
        raise
    except RecursionError:
        raise SchemaError(
            f"The schema is nested too deeply; {MAX_DEPTH} levels are allowed."
        ) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise SchemaError(f"The schema is not JSON: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds a {type(value).__name__}")


@lru_cache(maxsize=256)
def _compile(encoded: bytes, formats: bool) -> Validator:
    schema = msgspec.json.decode(encoded)
    if depth(schema) > MAX_DEPTH:
        raise SchemaError(f"The schema is nested too deeply; {MAX_DEPTH} levels are allowed.")
    survey = Survey({} if isinstance(schema, bool) else schema)
    return Validator(_engine(schema, survey, formats), survey)


def _engine(
    schema: dict[str, Any] | bool, survey: Survey, formats: bool
) -> jsonschema_rs.Validator:
    looks = _check_patterns(survey)
    # imported late: it would take half of the time budget of `import interlock`
    import jsonschema_rs as rs

    classes = {
        "2020-12": rs.Draft202012Validator,
        "2019-09": rs.Draft201909Validator,
        "draft-07": rs.Draft7Validator,
    }
    linear = rs.RegexOptions(size_limit=MAX_REGEX_BYTES)
    try:
        return classes[survey.dialect](
            schema,
            validate_formats=formats,
            retriever=_refuse,
            pattern_options=linear,
            mask=_MASK,
            keywords={"pattern": _pattern_keyword(rs, survey.patterns)} if looks else None,
        )
    except rs.ValidationError as error:
        where = f" (at {_pointer(error.instance_path)})" if error.instance_path else ""
        if getattr(error.kind, "format", None) == "regex":
            never = (
                ", or looks around, which only `pattern` may"
                if "patternProperties" in error.instance_path[-2:]
                else ""
            )
            raise SchemaError(
                f"The pattern {_short(error.instance)} is malformed or too large{never}{where}."
            ) from None
        if error.kind.name == "$ref":
            raise SchemaError(
                f"The schema leads outside itself, where nothing is ever fetched: {_words(error)}."
            ) from None
        raise SchemaError(
            f"The schema is not valid {survey.dialect}: {_words(error)}{where}."
        ) from None


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is not part of the schema, and nothing is fetched")


def _check_patterns(survey: Survey) -> bool:
    """Return whether a `pattern` needs look-around or back-references.

    Raises SchemaError for patterns that cost too much: too many large patterns, and look-around
    inside look-around, which no backtracking limit bounds, because each level is another power of
    the text's length.
    """
    if (
        sum(1 for pattern in {**survey.patterns, **survey.name_patterns} if _LARGE.search(pattern))
        > MAX_LARGE_REGEXES
    ):
        raise SchemaError(
            f"More than {MAX_LARGE_REGEXES} patterns have counts over 99 or Unicode classes; use"
            " fewer or smaller ones."
        )
    return any([_looks(pattern) for pattern in survey.patterns])


def _looks(pattern: str) -> bool:
    groups: list[bool] = []
    total = 0
    refers = False
    for found in _REGEX_PARTS.finditer(pattern):
        part = found.group()
        if part == ")":
            groups = groups[:-1]
        elif part[0] == "\\":
            refers = refers or part[1] in "123456789"
        elif part[0] == "(":
            looks = len(part) > 1
            if looks and any(groups):
                raise SchemaError(
                    f"The pattern {_short(pattern)} has look-around inside look-around; write it"
                    " flat."
                )
            groups.append(looks)
            total += looks
    if total > MAX_LOOK_AROUNDS:
        raise SchemaError(
            f"The pattern {_short(pattern)} looks around {total} times; {MAX_LOOK_AROUNDS} times"
            " are allowed."
        )
    return refers or total > 0


def _pattern_keyword(rs: Any, patterns: Iterable[str]) -> type[jsonschema_rs.KeywordValidator]:
    """Return the keyword `pattern` for a schema with patterns that the linear engine does not
    support.
    """
    linear = rs.RegexOptions(size_limit=MAX_REGEX_BYTES)
    backtracking = rs.FancyRegexOptions(backtrack_limit=MAX_BACKTRACKS, size_limit=MAX_REGEX_BYTES)
    ready: dict[str, tuple[Any, bool]] = {}
    for pattern in patterns:
        looks = _looks(pattern)
        try:
            engine = rs.Draft202012Validator(
                {"pattern": pattern}, pattern_options=backtracking if looks else linear
            )
        except rs.ValidationError:
            raise SchemaError(f"The pattern {_short(pattern)} is malformed or too large.") from None
        ready[pattern] = (engine, looks)

    class PatternKeyword:
        def __init__(
            self, parent_schema: dict[str, Any], value: Any, schema_path: list[str | int]
        ) -> None:
            self.value = value
            self.engine, self.looks = ready[value]

        def validate(self, instance: Any) -> None:
            if not isinstance(instance, str):
                return
            if self.looks and len(instance) > MAX_LOOKED_AT:
                raise ValueError(
                    f"{_MASK} is longer than {MAX_LOOKED_AT} characters, the most that"
                    f" {_short(self.value)} is tried on"
                )
            if not self.engine.is_valid(instance):
                raise ValueError(f"{_MASK} does not match {_short(self.value)}")

    return PatternKeyword


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


def _size(value: Any) -> int:
    """Return the approximate number of values inside a value; a long text counts as several."""
    try:
        return len(msgspec.json.encode(value)) // 4 + 1
    except (TypeError, ValueError, OverflowError):
        return 1  # not JSON; the engine reports the error


def _largest(value: Any, levels: int | None) -> int:
    """Return the size of the largest part of `value` at the depth `levels`; 0 for None."""
    if levels is None:
        return 0
    level = [value]
    for _ in range(levels):
        level = inside(level)
    return max(map(_size, level), default=0)
