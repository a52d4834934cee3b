"""Compares two catalogues: breaking and compatible changes of what a server offers.

An input schema breaks callers if it accepts less than before. An output schema breaks readers if it
guarantees less. The rules cover the keywords that servers use. A difference that no rule covers is
reported as compatible.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

Schema = Any
Catalogue = dict[str, dict[str, Any]]
"""The features of a server by kind (`tools`, `prompts`, `resources`, `templates`), then by name or
URI, with the members that callers rely on. JSON can hold it.
"""
FeatureKind = Literal["tool", "prompt", "resource", "template"]
"""The kind of a feature; its plural is the key in a `Catalogue`."""

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_ANY_CHANGE = ("pattern", "format", "multipleOf", "uniqueItems", "contentEncoding")
_MOST_DEPTH = 32


class CatalogueChange(Struct, frozen=True):
    """One change of one feature. `str()` gives it as a sentence.

    Attributes:
        kind: The kind of the feature.
        name: Its name, URI or URI template.
        breaks: Whether the change breaks callers.
        words: What changed, in words.
    """

    kind: FeatureKind
    name: str
    breaks: bool
    words: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.words}"


class Drift(Struct, frozen=True):
    """The changes of a catalogue. It is false if there are none.

    Attributes:
        changes: The changes by kind and feature.
    """

    changes: tuple[CatalogueChange, ...] = ()

    @property
    def breaking(self) -> list[str]:
        """The changes that break callers, one sentence each."""
        return [str(change) for change in self.changes if change.breaks]

    @property
    def compatible(self) -> list[str]:
        """The changes that do not, one sentence each."""
        return [str(change) for change in self.changes if not change.breaks]

    def __bool__(self) -> bool:
        return bool(self.changes)


def compare_catalogues(before: Catalogue, after: Catalogue) -> Drift:
    """Compare what a server offered with what it offers now, or with what another one offers.

    Args:
        before: The first catalogue; `take_catalogue` and `read_catalogue` return one.
        after: The second one.
    """
    found: list[CatalogueChange] = []
    for kind, compare in _COMPARISONS.items():
        old = before.get(f"{kind}s", {})
        new = after.get(f"{kind}s", {})
        found += [
            CatalogueChange(kind, name, True, "it is gone") for name in old if name not in new
        ]
        found += [
            CatalogueChange(kind, name, False, "it is new") for name in new if name not in old
        ]
        found += [
            CatalogueChange(kind, name, breaks, words)
            for name in old
            if name in new
            for breaks, words in compare(old[name], new[name])
        ]
    return Drift(tuple(found))


_Finding = tuple[bool, str]  # whether it breaks callers, and what changed


def _compare_tools(old: Any, new: Any) -> Iterator[_Finding]:
    breaks = list(narrowed(old["inputSchema"], new["inputSchema"]))
    given = old.get("outputSchema")
    gives = new.get("outputSchema")
    if given is not None and gives is None:
        breaks.append("its results have no schema any more")
    elif given is not None:
        breaks += weakened(given, gives)
    yield from ((True, words) for words in breaks)
    if not breaks:
        for member, words in (("inputSchema", "what it takes"), ("outputSchema", "what it gives")):
            if old.get(member) != new.get(member):
                yield False, f"{words} has changed in a way that breaks nobody"
    yield from _compare_members(old, new, passed=("inputSchema", "outputSchema"))


def _compare_prompts(old: Any, new: Any) -> Iterator[_Finding]:
    before = {a["name"]: a for a in old.get("arguments", ())}
    after = {a["name"]: a for a in new.get("arguments", ())}
    yield from ((True, f"the argument {name} is gone") for name in before if name not in after)
    for name, argument in after.items():
        if argument.get("required") and not before.get(name, {}).get("required"):
            yield True, f"the argument {name} is required now"
        elif name not in before:
            yield False, f"the argument {name} is new"
    yield from _compare_members(old, new, passed=("arguments",))


def _compare_members(old: Any, new: Any, passed: tuple[str, ...] = ()) -> Iterator[_Finding]:
    """Compare all other members of a feature: descriptions, hints, MIME types."""
    if old.get("words") != new.get("words"):
        yield False, "the words about its members changed"
    for member in sorted({*old, *new} - {*passed, "words"}):
        if old.get(member) != new.get(member):
            yield False, f"its {member} changed"


_COMPARISONS: Final[Mapping[FeatureKind, Callable[[Any, Any], Iterable[_Finding]]]] = {
    "tool": _compare_tools,
    "prompt": _compare_prompts,
    "resource": _compare_members,
    "template": _compare_members,
}


# -- arguments: values that were accepted must still be accepted -----------------------------------


def narrowed(old: Schema, new: Schema) -> Iterator[str]:
    """Values that a schema no longer accepts, one sentence each."""
    yield from _Pair(old, new).narrowed(old, new, "", 0)


def weakened(old: Schema, new: Schema) -> Iterator[str]:
    """Guarantees that a schema no longer gives, one sentence each."""
    yield from _Pair(old, new).weakened(old, new, "", 0)


class _Pair:
    """Two schemas, each with references into its own root."""

    def __init__(self, old_root: Schema, new_root: Schema) -> None:
        self._old_root = old_root
        self._new_root = new_root

    def narrowed(self, old: Schema, new: Schema, at: str, depth: int) -> Iterator[str]:
        old = _resolved(old, self._old_root)
        new = _resolved(new, self._new_root)
        if old == new or new in (True, {}) or depth > _MOST_DEPTH:
            return
        alternatives = _alternatives(old)
        choices = _alternatives(new)
        if len(alternatives) > 1 or len(choices) > 1:
            for alternative in alternatives:
                if all(
                    any(True for _ in self.narrowed(alternative, choice, at, depth + 1))
                    for choice in choices
                ):
                    yield (
                        f"{_named(at)} no longer takes "
                        f"{_described(_resolved(alternative, self._old_root))}"
                    )
            return
        if gone := _types(old) - _types(new):
            yield f"{_named(at)} no longer takes {_or(gone)}"
            return
        yield from _limits(old, new, at)
        yield from self._members(old, new, at, depth)

    def _members(self, old: Schema, new: Schema, at: str, depth: int) -> Iterator[str]:
        before = _of(old, "properties")
        after = _of(new, "properties")
        for name, schema in before.items():
            if name in after:
                yield from self.narrowed(schema, after[name], f"{at}.{name}", depth + 1)
            else:
                yield f"{_named(f'{at}.{name}')} is gone"
        required = set(_list(old, "required"))
        yield from (
            f"{_named(f'{at}.{name}')} is required now"
            for name in _list(new, "required")
            if name not in required
        )
        rest = _member(old, "additionalProperties", True)
        now = _member(new, "additionalProperties", True)
        if now is False and rest is not False:
            yield f"{_named(at)} no longer takes members that it does not name"
        elif isinstance(rest, dict) and isinstance(now, dict):
            yield from self.narrowed(rest, now, f"{at}.*", depth + 1)
        if (items := _member(new, "items", True)) is not True:
            yield from self.narrowed(_member(old, "items", True), items, f"{at}[]", depth + 1)

    # -- results: guarantees must still hold ------------------------------------------------------

    def weakened(self, old: Schema, new: Schema, at: str, depth: int) -> Iterator[str]:
        old = _resolved(old, self._old_root)
        new = _resolved(new, self._new_root)
        if old == new or old in (True, {}) or depth > _MOST_DEPTH:
            return
        alternatives = _alternatives(old)
        choices = _alternatives(new)
        if len(alternatives) > 1 or len(choices) > 1:
            for choice in choices:
                if all(
                    any(True for _ in self.weakened(alternative, choice, at, depth + 1))
                    for alternative in alternatives
                ):
                    yield f"{_given(at)} may now be {_described(_resolved(choice, self._new_root))}"
            return
        if more := _types(new) - _types(old):
            yield f"{_given(at)} may now be {_or(more)}"
            return
        before = _of(old, "properties")
        after = _of(new, "properties")
        required = set(_list(new, "required"))
        for name, schema in before.items():
            path = f"{at}.{name}"
            if name not in after:
                yield f"{_given(path)} is gone"
                continue
            if name in _list(old, "required") and name not in required:
                yield f"{_given(path)} may now be missing"
            yield from self.weakened(schema, after[name], path, depth + 1)
        yield from self.weakened(
            _member(old, "items", True), _member(new, "items", True), f"{at}[]", depth + 1
        )


# -- helpers --------------------------------------------------------------------------------------


def _limits(old: Schema, new: Schema, at: str) -> Iterator[str]:
    """Constraints that are new or tighter."""
    before = _choices(old)
    after = _choices(new)
    if after is not None:
        gone = [value for value in before if value not in after] if before is not None else None
        if gone is None:
            yield f"{_named(at)} takes only {_or(map(repr, after))} now"
        elif gone:
            yield f"{_named(at)} no longer takes {_or(map(repr, gone))}"
    for keywords, tighter in ((_LOWER, operator.gt), (_UPPER, operator.lt)):
        for keyword in keywords:
            was = _member(old, keyword)
            now = _member(new, keyword)
            if now is not None and (was is None or tighter(now, was)):
                yield f"{_named(at)} has a tighter {keyword}: {now}" + (
                    f" (it was {was})" if was is not None else ""
                )
    for keyword in _ANY_CHANGE:
        was = _member(old, keyword)
        now = _member(new, keyword)
        if now not in (None, False) and now != was:
            yield f"{_named(at)} has another {keyword}: {now}"


def _resolved(schema: Schema, root: Schema) -> Schema:
    for _ in range(_MOST_DEPTH):
        reference = _member(schema, "$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            break
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        target = root
        for step in reference.removeprefix("#").split("/")[1:]:
            target = (
                target.get(step.replace("~1", "/").replace("~0", "~"), {})
                if isinstance(target, Mapping)
                else {}
            )
        schema = {**target, **rest} if isinstance(target, Mapping) else target
    return schema


def _alternatives(schema: Schema) -> list[Schema]:
    for keyword in ("anyOf", "oneOf"):
        options = _list(schema, keyword)
        if options:
            return options
    return [schema]


def _types(schema: Schema) -> frozenset[str]:
    """The JSON types that a schema accepts. A schema that accepts numbers accepts integers."""
    if schema is False:
        return frozenset()
    kinds = _member(schema, "type")
    found = set([kinds] if isinstance(kinds, str) else kinds) if kinds is not None else {*_TYPES}
    if kinds is None and (choices := _choices(schema)) is not None:
        found = {_type_of(value) for value in choices}
    return frozenset(found | ({"integer"} if "number" in found else set()))


def _type_of(value: Any) -> str:
    names = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
        type(None): "null",
    }
    return names[type(value)]


def _choices(schema: Schema) -> list[Any] | None:
    if isinstance(schema, Mapping) and "const" in schema:
        return [schema["const"]]
    choices = _member(schema, "enum")
    return choices if isinstance(choices, list) else None


def _described(schema: Schema) -> str:
    choices = _choices(schema)
    return _or(map(repr, choices)) if choices is not None else _or(_types(schema))


def _member(schema: Schema, name: str, default: Any = None) -> Any:
    return schema.get(name, default) if isinstance(schema, Mapping) else default


def _of(schema: Schema, name: str) -> dict[str, Any]:
    value = _member(schema, name)
    return value if isinstance(value, dict) else {}


def _list(schema: Schema, name: str) -> list[Any]:
    value = _member(schema, name)
    return value if isinstance(value, list) else []


def _named(at: str) -> str:
    return f"the argument {at.removeprefix('.')}" if at else "it"


def _given(at: str) -> str:
    return f"{at.removeprefix('.')} of its result" if at else "its result"


def _or(words: Any) -> str:
    items = sorted(map(str, words))
    return " or ".join(items) if len(items) < len(_TYPES) else "anything"
