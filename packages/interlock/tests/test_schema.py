"""JSON Schema: dialects, references that never leave the schema, bounds that hold, and what is said
about a wrong value.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from functools import cache
from types import MappingProxyType
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.schema import (
    DIALECTS,
    SchemaError,
    Validator,
    Violation,
    compile,
    defaults,
    header_parameters,
)
from interlock.schema import survey as bounds
from interlock.schema import validator as internals

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
# No empty names: the engine leaves them out of its paths.
names = st.text(min_size=1, max_size=3)
documents = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=15,
)


def nested(levels: int, leaf: Any = None, key: str | None = None) -> Any:
    """Lists, or objects with one key, that many inside one another around a leaf."""
    value = leaf
    for _ in range(levels):
        value = [value] if key is None else {key: value}
    return value


# --- dialects
# -------------------------------------------------------------------------------------------------

# In the older dialects a list of items goes by position; the newest calls that prefixItems, and is
# the default.
BY_POSITION = {"items": [{"type": "string"}]}
SPELLINGS = [
    "{scheme}://json-schema.org/draft/2020-12/schema{end}",
    "{scheme}://json-schema.org/draft/2019-09/schema{end}",
    "{scheme}://json-schema.org/draft-07/schema{end}",
]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("end", ["", "#"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_dialects_are_honoured_however_they_are_spelt(spelling: str, scheme: str, end: str) -> None:
    """`$schema` decides which keywords mean what (`JSC-02`, `JSC-03`)."""
    declared = spelling.format(scheme=scheme, end=end)
    newest = "2020-12" in declared
    keywords = {"prefixItems": [{"type": "string"}]} if newest else BY_POSITION
    assert not compile({"$schema": declared, **keywords}).is_valid([1])
    assert compile({"$schema": declared, **keywords}).is_valid(["a", 1])
    if newest:
        with pytest.raises(SchemaError, match="not valid 2020-12"):
            compile({"$schema": declared, **BY_POSITION})


def test_the_default_dialect_is_the_newest() -> None:
    """Without `$schema`, 2020-12 it is (`JSC-01`)."""
    assert not compile({"prefixItems": [{"type": "string"}]}).is_valid([1])
    assert list(DIALECTS) == ["2020-12", "2019-09", "draft-07"]
    for uri in DIALECTS.values():
        assert compile({"$schema": uri, "type": "string"}).is_valid("a")


@pytest.mark.parametrize(
    "declared",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "https://json-schema.org/draft/next/schema",
        "https://example.com/my-dialect",
        "2020-12",
        "",
        7,
        None,
    ],
)
@pytest.mark.parametrize("inner", [False, True])
def test_other_dialects_are_refused_by_name(declared: object, inner: bool) -> None:
    """An unsupported dialect is an error that names the supported ones, for a resource inside the
    schema too (`JSC-02`).
    """
    schema: dict[str, Any] = {"$schema": declared}
    with pytest.raises(SchemaError) as caught:
        compile({"properties": {"a": schema}} if inner else schema)
    assert all(uri in str(caught.value) for uri in DIALECTS.values())


@pytest.mark.parametrize(
    "schema,words",
    [
        ({"type": "strin"}, "at /type"),
        ({"type": 3}, "at /type"),
        (
            {"properties": {"a": {"minimum": "3"}}},
            '"3" is not of type "number" (at /properties/a/minimum)',
        ),
        ({"required": "a"}, "at /required"),
        ({"$ref": 7}, "$ref is a text, not 7"),
        ({"$id": "http://["}, "Invalid URI reference"),
        ({"$ref": "//["}, "leads to nothing"),
        ({"properties": []}, "at /properties"),
        ({"enum": {"a": 1}}, "at /enum"),
        ({"minLength": -1}, "at /minLength"),
    ],
)
def test_invalid_schemas_are_refused(schema: dict[str, Any], words: str) -> None:
    """A schema must be valid in its dialect; the message says where it is not (`JSC-04`)."""
    with pytest.raises(SchemaError) as caught:
        compile(schema)
    assert words in str(caught.value)


@pytest.mark.parametrize("schema", [None, 3, "{}", [{}], {"a": object()}, {"const": "\ud800"}])
def test_what_is_no_schema_at_all(schema: Any) -> None:
    """Neither an object nor a boolean, or not JSON inside."""
    with pytest.raises(SchemaError):
        compile(schema)


def test_any_mapping_is_a_schema() -> None:
    """Read-only mappings and booleans do as well as dicts."""
    assert (
        compile(MappingProxyType({"properties": MappingProxyType({"a": False})}))
        .check({"a": 1})[0]
        .path
        == "/a"
    )
    assert compile(True).check({"a": 1}) == []
    assert compile(False).check(1) == [Violation("", "False schema does not allow 1")]


# --- references
# -------------------------------------------------------------------------------------------------

TEXT = {"type": "string"}
LOCAL: dict[str, dict[str, Any]] = {
    "pointer": {"$ref": "#/$defs/a", "$defs": {"a": TEXT}},
    "pointer, escaped": {"$ref": "#/$defs/a%20b~1c~0d", "$defs": {"a b/c~d": TEXT}},
    "pointer into a list": {"$ref": "#/allOf/1", "allOf": [True, TEXT]},
    "pointer to where no keyword leads": {
        "$ref": "#/components/a",
        "components": {"a": {"$ref": "#/components/b"}, "b": TEXT},
    },
    "reference to a reference": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": TEXT},
    },
    "anchor": {"$ref": "#there", "$defs": {"a": {"$anchor": "there", **TEXT}}},
    "dynamic anchor": {
        "$dynamicRef": "#there",
        "$defs": {"a": {"$dynamicAnchor": "there", **TEXT}},
    },
    "own URI": {
        "$id": "https://example.com/s",
        "$ref": "https://example.com/s#/$defs/a",
        "$defs": {"a": TEXT},
    },
    "relative to its URI": {
        "$id": "https://example.com/s",
        "$ref": "t",
        "$defs": {"a": {"$id": "https://example.com/t", **TEXT}},
    },
    "embedded resource": {
        "$id": "https://example.com/a/s",
        "$ref": "../b/t#/$defs/x",
        "$defs": {"t": {"$id": "/b/t", "$defs": {"x": TEXT}}},
    },
    "no URI of its own": {"$ref": "t.json", "$defs": {"a": {"$id": "t.json", **TEXT}}},
    "urn": {"$id": "urn:example:s", "$ref": "#/$defs/a", "$defs": {"a": TEXT}},
    "urn of another": {"$ref": "urn:example:t", "$defs": {"a": {"$id": "urn:example:t", **TEXT}}},
    "a scheme of one's own": {
        "$id": "weather://schemas/s",
        "$ref": "t",
        "$defs": {"a": {"$id": "t", **TEXT}},
    },
    "another spelling": {
        "$ref": "HTTP://Example.com:80/a/../t",
        "$defs": {"a": {"$id": "http://example.com/t", **TEXT}},
    },
    "a URI with an anchor": {
        "$ref": "t#a",
        "$defs": {"t": {"$id": "t", "$defs": {"x": {"$anchor": "a", **TEXT}}}},
    },
    "draft-07 anchor": {
        "$schema": DIALECTS["draft-07"],
        "$ref": "#a",
        "definitions": {"x": {"$id": "#a", **TEXT}},
    },
    "draft-07, $id beside $ref": {
        **{
            "$schema": DIALECTS["draft-07"],
            "$id": "https://example.com/s",
            "$ref": "#/definitions/a",
        },
        "definitions": {"a": TEXT},
    },
    "2019-09 recursion": {
        **{"$schema": DIALECTS["2019-09"], "$recursiveAnchor": True},
        **{"type": ["string", "array"], "items": {"$recursiveRef": "#"}, "not": {"const": 7}},
    },
}


@pytest.mark.parametrize("name", LOCAL)
def test_references_inside_the_schema_work(name: str) -> None:
    """`#/...`, anchors, `$id` and embedded resources, in each dialect (`JSC-05` leaves them
    alone).
    """
    validator = compile(LOCAL[name])
    assert validator.is_valid("text")
    assert not validator.is_valid(7)


def test_dynamic_references_reach_what_extends_them() -> None:
    """The tree of the specification's own example: a strict tree makes every node strict."""
    tree = {
        "$id": "https://example.com/tree",
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {
            "data": True,
            "children": {"type": "array", "items": {"$dynamicRef": "#node"}},
        },
    }
    strict = {
        "$id": "https://example.com/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {"t": tree},
    }
    assert compile(tree).is_valid({"children": [{"daat": 1}]})
    assert compile(strict).is_valid({"children": [{"data": 1}]})
    assert not compile(strict).is_valid({"children": [{"daat": 1}]})


def test_the_metaschema_is_at_hand() -> None:
    """A schema may ask for a schema: that much is built in."""
    validator = compile({"$ref": DIALECTS["2020-12"]})
    assert validator.is_valid({"type": "string"})
    assert not validator.is_valid({"type": "strin"})


@pytest.fixture
def listener() -> Iterator[tuple[str, Callable[[], int]]]:
    """A listening socket that hangs up on everyone: its URL, and how many have called so far."""
    calls = 0
    marker_seen = threading.Event()

    def answer() -> None:
        nonlocal calls
        while True:
            connection, _ = server.accept()
            with connection:
                first = connection.recv(4)
                if first == b"mark":
                    marker_seen.set()
                elif first == b"stop":
                    return
                else:
                    calls += 1

    def say(word: bytes) -> None:
        with socket.create_connection(address) as connection:
            connection.sendall(word)

    def count() -> int:
        # Calls are answered in the order they came: once ours has been, so has every one before it.
        marker_seen.clear()
        say(b"mark")
        assert marker_seen.wait(30)
        return calls

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield f"http://127.0.0.1:{address[1]}/schema.json", count
        finally:
            say(b"stop")
            thread.join()


OUTSIDE: list[Callable[[str], dict[str, Any]]] = [
    lambda url: {"$ref": url},
    lambda url: {"$ref": url + "#/$defs/a"},
    lambda url: {"$dynamicRef": url},
    lambda url: {"$dynamicRef": url + "#node"},
    lambda url: {"$schema": DIALECTS["2019-09"], "$recursiveRef": url},
    lambda url: {"$schema": DIALECTS["draft-07"], "$ref": url},
    lambda url: {"$schema": url},
    lambda url: {"$schema": url, "$ref": "#"},
    lambda url: {"$id": url, "$ref": "other.json"},
    lambda url: {"$id": url, "$schema": url},
    lambda url: {"$defs": {"unused": {"$ref": url}}},
    lambda url: {"properties": {"a": {"items": {"anyOf": [True, {"not": {"$ref": url}}]}}}},
    lambda url: {"$defs": {"a": {"$id": url, "$ref": "x"}}},
    lambda url: {"$defs": {"a": {"$id": url, "$schema": url}}},
    lambda url: {"$ref": "#/x/a", "x": {"a": {"$ref": url}}},
    lambda url: {"$ref": url.removeprefix("http:")},
    lambda url: {"$id": "http://127.0.0.1/", "$ref": url.removeprefix("http:")},
    lambda url: {"if": {"$ref": url}, "then": False},
    lambda url: {"dependentSchemas": {"a": {"$ref": url}}},
    lambda url: {"contentSchema": {"$ref": url}},
    lambda url: {"type": "object", "x-mcp-header": {"$ref": url}, "$ref": url},
    lambda url: {"$ref": "file:///etc/hostname"},
    lambda url: {"$ref": "file://" + __file__},
    lambda url: {"$id": "file:///etc/", "$ref": "hostname"},
    lambda url: {"$ref": "https://json-schema.org.example.com/draft/2020-12/schema"},
    lambda url: {"$ref": "ftp://127.0.0.1/x"},
]


@pytest.mark.parametrize("make", OUTSIDE)
def test_nothing_outside_the_schema_is_fetched(
    make: Callable[[str], dict[str, Any]], listener: tuple[str, Callable[[], int]]
) -> None:
    """A reference that leads outside, over whatever road, is refused, and the socket it leads to
    hears nothing (`JSC-05` to `JSC-07`).
    """
    url, calls = listener
    for formats in (True, False):
        with pytest.raises(SchemaError):
            compile(make(url), formats=formats)
    assert calls() == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda url: {"$id": url, "type": "string"},
        lambda url: {"const": {"$ref": url}},
        lambda url: {"enum": ["text", {"$ref": url, "$schema": url}]},
        lambda url: {"default": {"$ref": url}, "examples": [{"$ref": url}]},
        lambda url: {"properties": {"$ref": {"const": url}, "$id": True, "$schema": True}},
        lambda url: {"x-origin": {"$ref": url}},
        lambda url: {"$comment": url, "title": url},
        lambda url: {"type": "string", "format": "uri"},
    ],
)
def test_what_only_looks_like_a_reference_is_left_alone(
    make: Callable[[str], Any], listener: tuple[str, Callable[[], int]]
) -> None:
    """Names, data and annotations are no references, and using the schema fetches nothing either
    (`JSC-05`, `JSC-09`).
    """
    url, calls = listener
    validator = compile(make(url))
    for value in (url, {"$ref": url}, {"$schema": url}):
        validator.check(value)
    assert calls() == 0


def test_the_second_lock_holds_too(listener: tuple[str, Callable[[], int]]) -> None:
    """Were our own look at the references blind, the engine would still be refused; left to itself
    it does call (`JSC-05`).
    """
    url, calls = listener
    with pytest.raises(SchemaError, match="nothing is ever fetched"):
        internals._engine({"$ref": url}, bounds.Survey({}), formats=True)
    assert calls() == 0
    with pytest.raises(ValueError, match="is not present in a registry"):
        jsonschema_rs.validator_for({"$ref": url})
    assert calls() == 1


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a"},
        {"$ref": "#/$defs/a", "$defs": {"b": {}}},
        {"$defs": {"unused": {"$ref": "#/$defs/a"}}},
        {"$ref": "#anchor"},
        {"$dynamicRef": "#anchor"},
        {"$ref": "#/allOf/7", "allOf": [True]},
        {"$ref": "#/allOf/x", "allOf": [True]},
        {"$ref": "other.json#/a"},
    ],
)
def test_unresolved_references_are_refused(schema: dict[str, Any]) -> None:
    """A reference to nothing is an error with advice, used or not, never a schema that allows
    everything (`JSC-07`).
    """
    with pytest.raises(SchemaError, match=r'put what it means under "\$defs"'):
        compile(schema)


# --- bounds
# -------------------------------------------------------------------------------------------------


def doubling(levels: int) -> dict[str, Any]:
    """A small schema that asks the same question two to the power of `levels` times."""
    defs: dict[str, Any] = {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(levels)
    }
    return {"$ref": "#/$defs/a0", "$defs": {**defs, f"a{levels}": TEXT}}


def chain(length: int) -> dict[str, Any]:
    """A schema in which each definition is another one, up to the last."""
    defs: dict[str, Any] = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(length)}
    return {"$ref": "#/$defs/a0", "$defs": {**defs, f"a{length}": TEXT}}


REFUSED: dict[str, tuple[Any, str]] = {
    "too deep": (nested(200, {}, "items"), "nested too deeply"),
    "far too deep": (nested(100_000, {}, "items"), "nested too deeply"),
    "too deep in data": ({"const": nested(200)}, "nested too deeply"),
    "too many": ({"anyOf": [TEXT] * (bounds.MAX_SUBSCHEMAS + 1)}, "more than 10000 subschemas"),
    "too many booleans": (
        {"anyOf": [True] * (bounds.MAX_SUBSCHEMAS + 1)},
        "more than 10000 subschemas",
    ),
    "too large": ({"description": "x" * internals.MAX_BYTES}, "1048576 are allowed"),
    "doubling": (doubling(30), "subschemas apply at once"),
    "doubling in depth": (
        {"$defs": doubling(30)["$defs"], "items": {"$ref": "#/$defs/a0"}},
        "subschemas apply at once",
    ),
    "itself": ({"$ref": "#"}, "refers to itself"),
    "itself, round about": (
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}},
        "refers to itself",
    ),
    "a chain": (chain(1_000), "lead to one another in a chain"),
    "many large patterns": (
        {"anyOf": [{"pattern": f"^.{{1,{900 - n}}}$"} for n in range(65)]},
        "More than 64 patterns",
    ),
    "many large names": (
        {"patternProperties": {f"^\\p{{L}}{{{n}}}$": {} for n in range(65)}},
        "More than 64 patterns",
    ),
    "one too large pattern": ({"pattern": r"^(\p{L}{1,99}){1,99}$"}, "malformed or too large"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_schemas_that_would_exhaust_the_checker_are_refused(name: str) -> None:
    """Depth, number, size, and what small schemas unfold to, are bounded (`JSC-08`)."""
    schema, words = REFUSED[name]
    with pytest.raises(SchemaError, match=words):
        compile(schema)


@pytest.mark.parametrize("other", ["http://example.com/t", "HTTP://Example.com:80/a/../%74"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_name_given_twice_hides_nothing(other: str, order: int) -> None:
    """Of two subschemas with one URI the engine takes which it likes; the costs of both are counted
    (`JSC-08`).
    """
    named = [
        {"$id": "http://example.com/t", **TEXT},
        {"$id": other, "$ref": "#/$defs/a0", "$defs": doubling(30)["$defs"]},
    ]
    with pytest.raises(SchemaError, match="subschemas apply at once"):
        compile(
            {"$ref": "http://example.com/t", "$defs": dict(zip("ab", named[::order], strict=True))}
        )


def test_a_schema_that_contains_itself_is_refused() -> None:
    """A Python object may; JSON cannot."""
    schema: dict[str, Any] = {}
    schema["items"] = schema
    with pytest.raises(SchemaError, match="nested too deeply"):
        compile(schema)


@pytest.mark.parametrize(
    "schema",
    [
        nested(100, TEXT, "items"),
        {"anyOf": [TEXT] * 5_000},
        {
            "properties": {
                f"p{n}": {"type": "object", "properties": {"a": TEXT}} for n in range(4_000)
            }
        },
        chain(200),
        doubling(10),
    ],
    ids=["deep", "many", "wide", "a chain", "doubling a little"],
)
def test_large_schemas_are_not_yet_too_large(schema: Any) -> None:
    """The bounds are far from what people write (`JSC-08`)."""
    assert isinstance(compile(schema).is_valid("text"), bool)


RECURSIVE = {
    "type": ["array", "object"],
    "items": {"$ref": "#"},
    "additionalProperties": {"$ref": "#"},
}
# Every level asks two questions about the next one, each of which asks two: as many as there are
# atoms, for an engine that forgets.
ENTANGLED: list[dict[str, Any]] = [
    {"type": "array", "allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]},
    {"type": "array", "anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}, "maxItems": 9}]},
    {
        "type": "array",
        "oneOf": [
            {"items": {"$ref": "#"}},
            {"items": {"$ref": "#"}, "minItems": 9},
            {"prefixItems": [{"$ref": "#"}], "minItems": 8},
        ],
    },
    {
        "$anchor": "r",
        "type": "array",
        "if": {"items": {"$ref": "#r"}},
        "then": {"items": {"$ref": "#r"}},
        "else": {"items": {"$ref": "#r"}},
    },
    {
        "$dynamicAnchor": "r",
        "type": "array",
        "anyOf": [{"items": {"$dynamicRef": "#r"}}, {"contains": {"$dynamicRef": "#r"}}],
    },
    {
        "type": "array",
        "anyOf": [{"prefixItems": [{"$ref": "#"}]}, {"contains": {"$ref": "#"}}],
        "unevaluatedItems": {"$ref": "#"},
    },
]


@cache
def abyss(key: str | None) -> Any:
    """A hundred thousand levels, made once for all the schemas."""
    return nested(100_000, key=key)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"type": "array"},
        RECURSIVE,
        {"uniqueItems": True},
        {"const": []},
        {"enum": [[[]]]},
        *ENTANGLED,
    ],
)
@pytest.mark.parametrize("key", [None, "a"])
def test_deep_values_are_in_violation_and_break_nothing(schema: Any, key: str | None) -> None:
    """A hundred thousand levels, or a value inside itself: a violation, never a RecursionError or a
    crash (`JSC-08`).
    """
    validator = compile(schema)
    for value in (nested(bounds.MAX_DEPTH + 1, key=key), abyss(key), [abyss(key)] * 2):
        assert [violation.path for violation in validator.check(value)] == [""]
        assert "deep" in validator.check(value)[0].message
        assert not validator.is_valid(value)
    itself: list[Any] = []
    itself.append(itself)
    assert not validator.is_valid(itself)


def test_depth_is_counted_to_the_letter() -> None:
    """The deepest value allowed is checked down to its leaf."""
    validator = compile(RECURSIVE)
    assert validator.is_valid(nested(bounds.MAX_DEPTH - 1, []))
    found = validator.check(nested(bounds.MAX_DEPTH, 7))
    assert found == [Violation("/0" * bounds.MAX_DEPTH, '7 is not of types "array", "object"')]


@pytest.mark.parametrize("schema", ENTANGLED)
@pytest.mark.parametrize("leaf", [[], 7])
def test_entangled_schemas_are_answered_for(schema: dict[str, Any], leaf: Any) -> None:
    """Where giving all reasons would take for ever, there is still the verdict and one violation
    (`JSC-08`).
    """
    for levels in (3, 30, 100):
        violations = compile(schema).check(nested(levels, leaf))
        assert len(violations) <= internals.MAX_VIOLATIONS
        assert compile(schema).is_valid(nested(levels, leaf)) is (not violations)


def ring(length: int) -> dict[str, Any]:
    """A recursive schema that takes that many steps on each level of the value."""
    defs: dict[str, Any] = {
        f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}]} for n in range(length)
    }
    return {
        "$ref": "#/$defs/a0",
        "$defs": {**defs, f"a{length}": {"type": "array", "items": {"$ref": "#/$defs/a0"}}},
    }


def test_the_stack_suffices_for_whatever_is_let_through() -> None:
    """In a thread with half a megabyte of stack, the engine comes back from every schema and depth
    that we let it have (`JSC-08`).
    """
    answers: list[bool] = []

    def work() -> None:
        for schema in (ring(1), ring(5), ring(40), ring(250), chain(500), *ENTANGLED):
            validator = compile(schema)
            for levels in (1, 2, 5, 10, 40, bounds.MAX_DEPTH):
                answers.append(not validator.check(nested(levels, 7)))

    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert answers == [False] * (11 * 6)


def test_large_values_are_refused_by_entangled_schemas_only() -> None:
    """Work is the weight of the schema times the size of the value (`JSC-08`)."""
    large = ["x" * 100] * 5_000
    mild, entangled = (
        {"$defs": doubling(levels)["$defs"], "items": {"$ref": "#/$defs/a0"}} for levels in (6, 15)
    )
    assert compile({"items": TEXT}).is_valid(large)
    assert compile(mild).is_valid(large)
    refused = compile(entangled).check(large)
    assert refused == [
        Violation("", "the value is too large to be checked against so entangled a schema")
    ]
    assert compile(entangled).is_valid(large[:1])


RECORDS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"anyOf": [TEXT, {"type": "null"}]}},
        "additionalProperties": False,
    },
}


def test_an_account_of_a_large_value_stays_affordable() -> None:
    """With much to look at, the first violation is told, and where even that could take long, that
    there is one (`JSC-08`).
    """
    good = [{"a": 1, "b": "x"}] * 20_000
    for bad, path in (({"a": "1"}, "/a"), ({"b": 7}, "/b"), ({"c": 1}, "")):
        found = compile(RECORDS).check([*good, bad, bad])
        assert [violation.path for violation in found] == ["/20000" + path]
    at_the_root = compile({"anyOf": [RECORDS, {"type": "null"}]}).check([*good, {"a": "1"}])
    assert at_the_root[0].path == ""
    assert "does not match the schema" in at_the_root[0].message


# --- patterns and formats
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "^(a+)+$",
            "^(a|a)*$",
            "^(a|aa)+$",
            "(a*)*b",
            "^(([a-z])+.)+[A-Z]([a-z])+$",
            "(x+x+)+y",
            "^(?:a?){500}a{500}b$",
        ),
        *(
            r"^(?=a)(a+)+\1$",
            r"^(a|a)*\1b$",
            r"(?:(?=a*$)a)*X",
            r"(?:(?!a*b)a)*X",
            r"((?:(?=a*$)a)*)*\1b",
            r"(a*)(a*)(a*)(a*)\1\2\3\4b",
        ),
    ],
)
def test_catastrophic_patterns_do_not_hang(pattern: str) -> None:
    """Regular expressions that make a backtracking engine hang for centuries come back at once
    (`JSC-08`).

    That the test ends is what is shown.
    """
    validator = compile({"pattern": pattern, "propertyNames": {"pattern": pattern}})
    for length in (30, internals.MAX_LOOKED_AT, 100_000):
        for text in ("a" * length, "a" * length + "!", "ab" * length):
            assert isinstance(validator.is_valid(text), bool)
            assert isinstance(validator.is_valid({text: 1}), bool)


# Patterns as other people's tools write them into schemas: for passwords, numbers, and addresses.
WRITTEN = [
    (r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{8,}$", "Passw0rd", "password"),
    (r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$", "12.50", "+"),
    (
        r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
        "a.b@example.org",
        "a..b@example.org",
    ),
    (r"^(['\"]).*\1$", "'a'", "'a\""),
    (r"^[\w.-]+\/\d{2}$", "a-b/12", "a-b/1"),
    (r"^\d+$", "12", "١٢"),
    (r"^\p{L}+$", "héllo", "h1"),
    (r"^[(?=a)]+$", "(=)?a", "b"),
    (r"^\\1$", r"\1", "1"),
]


@pytest.mark.parametrize("pattern,good,bad", WRITTEN)
def test_patterns_as_they_are_written(pattern: str, good: str, bad: str) -> None:
    """ECMA regular expressions, those with look-around and back-references included."""
    validator = compile({"pattern": pattern})
    assert validator.check(good) == []
    found = validator.check(bad)
    assert [violation.path for violation in found] == [""]
    assert found[0].message.startswith(json.dumps(bad, ensure_ascii=False) + " does not match ")
    assert validator.check(7) == []


def test_look_around_has_limits() -> None:
    """It is tried on short texts only, not inside itself, not without end, and not in names
    (`JSC-08`).
    """
    violations = compile({"properties": {"a": {"pattern": "^(?=a)"}}}).check(
        {"a": "a" * (internals.MAX_LOOKED_AT + 1)}
    )
    assert [violation.path for violation in violations] == ["/a"]
    assert "is longer than 500 characters" in violations[0].message
    assert compile({"pattern": "^a"}).is_valid("a" * 10_000)
    for pattern, words in (
        ("(?=(?:(?=a)a)*$)", "inside look-around"),
        ("(?=a)" * 9, "looks around 9 times"),
        ("(?=(", "malformed"),
    ):
        with pytest.raises(SchemaError, match=words):
            compile({"pattern": pattern})
    with pytest.raises(SchemaError, match="only `pattern` may"):
        compile({"patternProperties": {"(?=a)": {}}})
    with pytest.raises(SchemaError, match="malformed"):
        compile({"pattern": "("})


FORMATS = [
    ("date", "2024-02-29", "2023-02-29"),
    ("date-time", "2024-01-01T12:00:00Z", "2024-01-01 12:00"),
    ("time", "12:00:00Z", "25:00:00Z"),
    ("email", "ann@example.org", "ann.example.org"),
    ("uri", "https://example.org/a?b", "//example.org"),
    ("uri", "urn:isbn:1", "a b"),
    ("ipv4", "127.0.0.1", "256.1.1.1"),
    ("ipv6", "::1", "1"),
    ("hostname", "example.org", "-a"),
    ("json-pointer", "/a", "a"),
    ("uri-template", "x://{a}", "x://{a"),
    ("regex", "a+", "("),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name,good,bad", FORMATS)
def test_formats(name: str, good: str, bad: str, dialect: str) -> None:
    """`format` is checked, in every dialect, unless one says otherwise (`ELI-08`)."""
    schema = {"$schema": DIALECTS[dialect], "format": name}
    assert compile(schema).check(good) == []
    assert compile(schema).check(bad) == [Violation("", f'{json.dumps(bad)} is not a "{name}"')]
    assert compile(schema, formats=False).is_valid(bad)


def test_unknown_formats_are_annotations() -> None:
    """A format that nobody knows says nothing."""
    assert compile({"format": "colour"}).is_valid("blue")


# --- what is said
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema,value,expected",
    [
        ({"type": "integer"}, "x", [("", '"x" is not of type "integer"')]),
        (
            {"properties": {"a": {"items": {"type": "integer"}}}},
            {"a": [1, "x"]},
            [("/a/1", '"x" is not of type "integer"')],
        ),
        (
            {"properties": {"a/b~c": False}},
            {"a/b~c": [1]},
            [("/a~1b~0c", "False schema does not allow the list")],
        ),
        (
            {"required": ["a", "b"]},
            {},
            [("", '"a" is a required property'), ("", '"b" is a required property')],
        ),
        ({"additionalProperties": False}, {"a": 1}, [("", "False schema does not allow 1")]),
        (
            {"properties": {"x": {}}, "additionalProperties": False},
            {"a": 1},
            [("", "Additional properties are not allowed ('a' was unexpected)")],
        ),
        ({"maximum": 10**30}, 10**31, [("", f"{10**31} is greater than the maximum of {10**30}")]),
        (
            {"allOf": [TEXT, TEXT, {"$ref": "#/$defs/t"}], "$defs": {"t": TEXT}},
            1,
            [("", '1 is not of type "string"')],
        ),
        ({"maxLength": 3}, "x" * 500, [("", '"' + "x" * 77 + '..." is longer than 3 characters')]),
        ({"type": "number"}, True, [("", 'true is not of type "number"')]),
    ],
)
def test_violations(schema: dict[str, Any], value: Any, expected: list[tuple[str, str]]) -> None:
    """Each violation once, with a JSON pointer and words that do not repeat the whole value."""
    assert [
        (violation.path, violation.message) for violation in compile(schema).check(value)
    ] == expected


def test_violations_are_few_and_short() -> None:
    """The first twenty, none of them long (`JSC-08`)."""
    found = compile({"items": TEXT}).check(list(range(1_000)))
    assert [violation.path for violation in found] == [f"/{index}" for index in range(20)]
    assert len(compile({"enum": ["x" * 100] * 100}).check(1)[0].message) <= 500


@pytest.mark.parametrize("value", [b"x", {1: 2}, {1, 2}, object(), "\ud800", {"\udfff": 1}, 1j])
def test_what_is_not_json_is_in_violation(value: Any) -> None:
    """A value of a type, or a text, that JSON does not have is told apart, without an exception."""
    for schema in (
        {"type": "string"},
        {"const": {"a": ["b"]}},
        {"type": "object", "properties": {"a": {"items": TEXT}}},
    ):
        validator = compile(schema)
        assert validator.check(value)
        assert not validator.is_valid(value)


def test_equal_schemas_share_a_validator_and_are_not_held_to_later_changes() -> None:
    """Schemas are kept by content, and by a copy of it."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    validator = compile(schema)
    assert compile(json.loads(json.dumps(schema))) is validator
    assert compile(schema, formats=False) is not validator
    schema["properties"]["a"]["type"] = "integer"
    assert not validator.is_valid({"a": 1})
    assert compile(schema).is_valid({"a": 1})
    assert schema == {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
    }  # and compiling leaves no mark


keywords = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "object", "array", "null", "boolean"]),
        "minLength": st.integers(0, 3),
        "maximum": st.integers(-5, 5),
        "required": st.lists(st.text(max_size=2), max_size=2, unique=True),
        "const": leaves,
        "enum": st.lists(leaves, min_size=1, max_size=3),
        "pattern": st.sampled_from(["^a", "b$", "(?=a)", "[0-9]+"]),
        "format": st.sampled_from(["date", "email", "uri", "nonsense"]),
        "$ref": st.sampled_from(["#/$defs/a", "#/$defs/b"]),
    },
)
schemas = st.recursive(
    keywords | st.booleans(),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(names, inner, max_size=3),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "not": inner,
            "additionalProperties": inner,
        },
    ),
    max_leaves=8,
)


@given(schemas, schemas, schemas, documents)
def test_check_and_is_valid_agree(root: Any, a: Any, b: Any, value: Any) -> None:
    """`check` finds nothing exactly when `is_valid` says so, and what it finds is somewhere in the
    value.
    """
    if isinstance(root, bool):
        root = {"anyOf": [root]}
    schema = {**root, "$defs": {"a": a, "b": b}}
    try:
        validator = compile(schema)
    except SchemaError:
        with pytest.raises(
            SchemaError, match="refers to itself"
        ):  # the only thing that can be wrong with these
            compile(schema)
        return
    found = validator.check(value)
    assert validator.is_valid(value) is (not found)
    assert len(found) <= internals.MAX_VIOLATIONS
    for violation in found:
        part = value
        for step in violation.path.split("/")[1:]:
            part = (
                part[step.replace("~1", "/").replace("~0", "~")]
                if isinstance(part, dict)
                else part[int(step)]
            )


words = [
    "$ref",
    "$id",
    "$schema",
    "$anchor",
    "$dynamicRef",
    "type",
    "properties",
    "items",
    "allOf",
    "pattern",
    "x-mcp-header",
    "#",
    "#/items",
]
wild = st.recursive(
    leaves | st.sampled_from(words),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(words) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(wild, wild)
def test_anything_is_a_schema_or_a_schema_error(schema: Any, value: Any) -> None:
    """Whatever JSON arrives as a schema, it is usable or it is a SchemaError: never another
    exception, never a hang (`JSC-08`).
    """
    for attempt in (compile, header_parameters):
        try:
            made = attempt(schema)
        except SchemaError:
            continue
        assert isinstance(made, Validator | dict)
        if isinstance(made, Validator):
            assert made.is_valid(value) is (not made.check(value))


# --- parameters that travel as headers
# ----------------------------------------------------------------------------------------


def tool(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_header_parameters_are_collected_with_their_paths() -> None:
    """Integers, strings and booleans, at the top or inside objects, in the order they stand
    (`XMH-01`, `XMH-04`, `XMH-05`).
    """
    schema = tool(
        region={"type": "string", "x-mcp-header": "Region"},
        query={"type": "string"},
        options={
            "type": "object",
            "properties": {
                "limit": {"type": "integer", "x-mcp-header": "X-Limit"},
                "default": tool(properties={}),
            },
        },
        dry={"type": "boolean", "x-mcp-header": "!#$%&'*+-.^_`|~09azAZ"},
    )
    schema["properties"]["x-mcp-header"] = {
        "type": "string"
    }  # a parameter of that name is not an annotation
    schema["properties"]["query"]["default"] = {"x-mcp-header": "data is not one either"}
    schema["properties"]["options"]["examples"] = [{"x-mcp-header": ""}]
    assert header_parameters(schema) == {
        "Region": ("region",),
        "X-Limit": ("options", "limit"),
        "!#$%&'*+-.^_`|~09azAZ": ("dry",),
    }
    assert list(header_parameters(schema)) == ["Region", "X-Limit", "!#$%&'*+-.^_`|~09azAZ"]
    assert header_parameters(True) == header_parameters({}) == {}


@pytest.mark.parametrize(
    "token",
    [
        "",
        " ",
        "a b",
        "a:b",
        "a\r\nb",
        "a\x00",
        "é",
        "a/b",
        "(a)",
        '"a"',
        "a,b",
        "\x7f",
        None,
        7,
        True,
        ["a"],
        {},
    ],
)
def test_header_tokens(token: object) -> None:
    """One or more token characters and nothing else (`XMH-02`)."""
    with pytest.raises(SchemaError, match="is not a header token"):
        header_parameters(tool(a={"type": "string", "x-mcp-header": token}))


def test_header_tokens_are_unique() -> None:
    """Upper and lower case are the same, wherever in the schema they stand (`XMH-03`)."""
    inner = tool(b={"type": "string", "x-mcp-header": "REGION"})
    with pytest.raises(SchemaError, match="given twice"):
        header_parameters(tool(a={"type": "string", "x-mcp-header": "Region"}, c=inner))


@pytest.mark.parametrize(
    "kind", ["number", "object", "array", "null", None, ["string"], ["string", "null"], "strin"]
)
def test_header_types(kind: Any) -> None:
    """Only integer, string and boolean, said as such: a number, or a type left open, is refused
    (`XMH-04`).
    """
    node = {"x-mcp-header": "A"} if kind is None else {"type": kind, "x-mcp-header": "A"}
    with pytest.raises(SchemaError, match="only integer, string and boolean"):
        header_parameters(tool(a=node))


@pytest.mark.parametrize("bound", [{"const": 2**53}, {"default": -(2**53)}, {"enum": [1, 2**60]}])
def test_header_integers_travel_exactly(bound: dict[str, Any]) -> None:
    """A value that is promised, and that no double holds, is refused (`XMH-04`)."""
    with pytest.raises(SchemaError, match="would not travel exactly"):
        header_parameters(tool(a={"type": "integer", "x-mcp-header": "A", **bound}))
    assert header_parameters(
        tool(a={"type": "integer", "x-mcp-header": "A", "enum": [2**53 - 1, 1 - 2**53]})
    )


ANNOTATED = {"type": "string", "x-mcp-header": "A"}


@pytest.mark.parametrize(
    "schema",
    [
        {"x-mcp-header": "A", "type": "string"},
        tool(a={"type": "array", "items": ANNOTATED}),
        tool(a={"type": "array", "items": tool(b=ANNOTATED)}),
        tool(a={"prefixItems": [ANNOTATED]}),
        tool(a={"contains": ANNOTATED}),
        *(tool(a={keyword: [ANNOTATED]}) for keyword in ("oneOf", "anyOf", "allOf")),
        *(
            {"type": "object", keyword: [tool(b=ANNOTATED)]}
            for keyword in ("oneOf", "anyOf", "allOf")
        ),
        *(
            {"type": "object", keyword: tool(b=ANNOTATED)}
            for keyword in ("not", "if", "then", "else", "propertyNames")
        ),
        *(
            tool(a={keyword: ANNOTATED})
            for keyword in ("additionalProperties", "unevaluatedProperties", "additionalItems")
        ),
        {"patternProperties": {"^a": ANNOTATED}},
        {"dependentSchemas": {"a": tool(b=ANNOTATED)}},
        {"$defs": {"a": ANNOTATED}, **tool(a={"$ref": "#/$defs/a"})},
        {"definitions": {"a": tool(b=ANNOTATED)}},
        {"x-more": {"properties": {"a": ANNOTATED}}},
    ],
)
def test_header_positions(schema: dict[str, Any]) -> None:
    """Anywhere but at the end of a chain of `properties`, an annotation makes the tool invalid
    (`XMH-05`).
    """
    with pytest.raises(SchemaError, match="through `properties` alone"):
        header_parameters(schema)


def test_deep_schemas_are_searched_without_recursion() -> None:
    """The search goes as deep as it must."""
    schema = ANNOTATED
    for _ in range(2_000):
        schema = tool(a=schema)
    assert header_parameters(schema) == {"A": ("a",) * 2_000}


# --- defaults
# -------------------------------------------------------------------------------------------------


def test_defaults_fill_in_what_is_missing() -> None:
    """An answer to a form holds the defaults of what was not answered; the answer itself is not
    touched (`ELI-11`, `ELI-12`).
    """
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive"], "default": "active"},
            "verified": {"type": "boolean", "default": False},
            "colours": {"type": "array", "items": {"enum": ["red", "green"]}, "default": ["red"]},
            "note": {"type": "string"},
            "anything": True,
        },
    }
    given_value = {"age": 31, "verified": None, "more": 1}
    filled = defaults(schema, given_value)
    assert filled == {
        **{"name": "John Doe", "age": 31, "score": 95.5, "status": "active"},
        **{"verified": None, "colours": ["red"], "more": 1},
    }
    assert given_value == {"age": 31, "verified": None, "more": 1}
    filled["colours"].append("green")
    assert defaults(schema, {})["colours"] == ["red"]
    assert defaults({"type": "object"}, {"a": 1}) == {"a": 1}
