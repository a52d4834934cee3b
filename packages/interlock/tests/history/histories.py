"""Two histories of the protocol in the same words: what the schemas say, under our names, and what
our types and table say."""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Raw, Struct, UnsetType

from interlock import types as t
from interlock.wire.revisions import INPUT_REQUIRED_METHODS, METHODS, NEWEST, Span
from tests.history import allowances

Facts = dict[str, dict[str, Any]]
Lives = dict[str, set[str]]
"""Name: the revisions that have it. Fields are named `Type.field`."""

SENDERS = {
    "client requests": "client",
    "client notifications": "client",
    "server requests": "server",
    "server notifications": "server",
    "input requests": "server",
}
"""Sections of the facts that list methods, and who sends them."""

PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", Any: "any", Raw: "any"}


# -- shapes, in the words of the facts


def alternatives(shape: str) -> set[str]:
    """What is between the bars of a shape, but not inside its brackets."""
    parts = [""]
    depth = 0
    for sign in shape:
        depth += (sign in "[{") - (sign in "]}")
        if sign == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return set(parts)


def leaves(shape: set[str]) -> set[str]:
    """The names and values in a shape, without its brackets."""
    return set().union(
        *(leaves(alternatives(one[1:-1])) if one[0] in "[{" else {one} for one in shape)
    )


def renamed(shape: set[str]) -> set[str]:
    """A shape of the schemas with our names for its types."""
    return {
        f"{one[0]}{'|'.join(sorted(renamed(alternatives(one[1:-1]))))}{one[-1]}"
        if one[0] in "[{"
        else our_name(one)
        for one in shape
    }


def our_shape(annotation: Any) -> set[str]:
    """A type annotation as a shape. Absence (None, UNSET) is no shape."""
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin in (Union, UnionType):
        return set().union(*(our_shape(one) for one in arguments))
    if origin is Literal:
        return {f"'{value}'" for value in arguments}
    if origin is list:
        return {f"[{'|'.join(sorted(our_shape(arguments[0])))}]"}
    if origin is dict:
        values = "|".join(sorted(our_shape(arguments[1])))
        return {"object" if values == "any" else "{" + values + "}"}
    if annotation in (None, type(None), UnsetType):
        return set()
    return {PLAIN.get(annotation) or annotation.__name__}


def is_type(leaf: str) -> bool:
    """Whether a leaf of a shape names a type; values are in quotes, and plain words are small."""
    return leaf[0].isupper()


def covers(ours: set[str], theirs: set[str]) -> bool:
    """Whether every value of their shape can be held by ours."""
    return all(any(_covers(mine, one) for mine in ours) for one in theirs)


def _covers(mine: str, one: str) -> bool:
    if mine == one or mine == "any":
        return True
    if mine == "object":
        return one[0] == "{" or is_type(one)
    if mine[0] in "[{" and mine[0] == one[0]:
        return covers(alternatives(mine[1:-1]), alternatives(one[1:-1]))
    return (mine == "number" and one == "integer") or (mine == "string" and one[0] == "'")


# -- our types


def lives(revision: str, span: Span | None) -> bool:
    """Whether a row holds for a revision; what lives in the newest that the table knows lives on in
    those to come."""
    return span is None or (span[0] <= revision and (revision <= span[1] or span[1] == NEWEST))


def our_name(schema_name: str) -> str:
    called = allowances.CALLED.get(schema_name)
    return called.__name__ if called else schema_name


def our_type(name: str) -> type[Any] | None:
    found = getattr(t, name, None)
    return found if isinstance(found, type) and issubclass(found, Struct) else None


@cache
def our_fields(kind: type[Any]) -> dict[str, tuple[set[str], bool]]:
    """Every field of a type as it is called on the wire: its shape, and whether we cannot do
    without."""
    config = kind.__struct_config__
    fields = {f.encode_name: (our_shape(f.type), f.required) for f in msgspec.structs.fields(kind)}
    return fields | ({config.tag_field: ({f"'{config.tag}'"}, True)} if config.tag_field else {})


class Theirs:
    """The schemas' history, under our names, without what is kept as JSON or comes later."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.methods: Lives = {}
        self.types: Lives = {}
        self.fields: Lives = {}
        self.senders: dict[tuple[str, str], set[str]] = {}  # (method, revision): sides
        self.params: dict[str, set[str]] = {}
        self.results: dict[str, set[str]] = {}
        self.shapes: dict[str, dict[str, set[str]]] = {}  # Type.field: revision: shape
        self.variants: dict[
            tuple[str, str], list[set[str]]
        ] = {}  # (type, revision): what each schema type of that name demands
        self._walked: set[tuple[str, str]] = set()
        for revision, fact in facts.items():
            for side in SENDERS.keys() & fact.keys():
                for method, row in fact[side].items():
                    if not method.startswith(tuple(allowances.LATER)):
                        self._method(method, row, side, revision)

    def _method(self, method: str, row: dict[str, str], side: str, revision: str) -> None:
        self.methods.setdefault(method, set()).add(revision)
        self.senders.setdefault((method, revision), set()).add(SENDERS[side])
        params = alternatives(row.get("params") or row["params?"])
        results = (
            alternatives(row["result"]) - allowances.LATER.keys() if "result" in row else set()
        )
        self.params.setdefault(method, set()).update(map(our_name, params))
        self.results.setdefault(method, set()).update(results)
        for name in params | results:
            self._walk(name, revision)

    def _walk(self, name: str, revision: str) -> None:
        if (name, revision) in self._walked:
            return
        self._walked.add((name, revision))
        ours = our_name(name)
        fields = self.facts[revision]["types"].get(name, {})
        self.types.setdefault(ours, set()).add(revision)
        self.variants.setdefault((ours, revision), []).append(
            {field for field in fields if not field.endswith("?")}
        )
        for field, shape in fields.items():
            wire_name = field.removesuffix("?")
            path = f"{name}.{wire_name}"
            place = f"{ours}.{wire_name}"
            if path in allowances.LATER:
                continue
            self.fields.setdefault(place, set()).add(revision)
            # A schema calls it an object as long as it has no fields.
            found = (
                {path} if shape == "object" and path in allowances.CALLED else alternatives(shape)
            )
            self.shapes.setdefault(place, {}).setdefault(revision, set()).update(renamed(found))
            if path not in allowances.KEPT_AS_JSON:
                for inner in filter(is_type, leaves(found) - allowances.KEPT_AS_JSON.keys()):
                    self._walk(inner, revision)

    def demanded(self, type_name: str, field: str) -> set[str]:
        """The revisions in which a field must be there, whichever of the schema's types it is."""
        return {
            r
            for r in self.types[type_name]
            if all(field in variant for variant in self.variants[type_name, r])
        }

    def spelled_out(self, shape: set[str], revision: str) -> str:
        """A shape with the fields of those types that are only JSON here, for no row dates their
        words."""
        types = self.facts[revision]["types"]
        spelled = []
        for one in sorted(shape):
            if one[0] in "[{":
                spelled.append(
                    one[0] + self.spelled_out(alternatives(one[1:-1]), revision) + one[-1]
                )
            elif one in types and one not in self.types:
                spelled.append(
                    one
                    + str(
                        {
                            field: self.spelled_out(alternatives(inner), revision)
                            for field, inner in types[one].items()
                        }
                    )
                )
            else:
                spelled.append(one)
        return "|".join(spelled)


class Ours:
    """Which of our types can travel in each revision, as the table has it; the dates of methods and
    fields are taken to be right, for they are compared by themselves."""

    def __init__(self, theirs: Theirs, table: dict[type[Any], Span]) -> None:
        self.theirs = theirs
        self.table = table
        self.types: Lives = {}
        for revision in theirs.facts:
            # These two are read from `_meta`, which is kept unread until then.
            for kind in (t.RequestMeta, t.NotificationMeta):
                self._walk(kind, revision)
            for method, row in METHODS.items():
                if revision in theirs.methods.get(method, ()):
                    self._walk(row.params, revision)
                    self._walk(row.result, revision)
                    if method in INPUT_REQUIRED_METHODS:
                        self._walk(t.InputRequiredResult, revision)

    def _walk(self, kind: type[Any] | None, revision: str) -> None:
        if (
            kind is None
            or revision in self.types.get(kind.__name__, ())
            or not lives(revision, self.table.get(kind))
        ):
            return
        self.types.setdefault(kind.__name__, set()).add(revision)
        for wire_name, (shape, _) in our_fields(kind).items():
            if revision in self.theirs.fields.get(f"{kind.__name__}.{wire_name}", ()):
                for name in leaves(shape):
                    self._walk(our_type(name), revision)
