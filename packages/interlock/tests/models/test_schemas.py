"""Tools' schemas as each provider takes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.models.schema_inlining import _TAKEN
from interlock.models.schema_merging import subschemas
from interlock.models.tool_schemas import compile
from interlock.schema import SchemaError
from interlock.schema import compile as validator

DIALECTS = ("openai", "anthropic", "gemini")

FLIGHTS = {
    "type": "object",
    "properties": {
        "origin": {"type": "string", "description": "Departure city"},
        "date": {"type": "string", "format": "date"},
        "seats": {"type": "integer", "minimum": 1, "maximum": 9},
        "cabin": {"type": "string", "enum": ["economy", "business"]},
        "near": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "back": {"type": ["string", "null"]},
    },
    "required": ["origin", "date"],
    "additionalProperties": False,
}

TREE = {
    "type": "object",
    "properties": {
        "root": {"$ref": "#/$defs/node"},
        "more": {"$ref": "#/$defs/node", "description": "Another."},
    },
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name"],
        }
    },
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_provider_takes_is_kept(dialect: Any) -> None:
    """JSC-09: a plain schema goes out as it came."""
    assert compile(FLIGHTS, dialect).schema == FLIGHTS
    assert compile(FLIGHTS, dialect).lost == ()
    assert compile(FLIGHTS, dialect).words == ""


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_json_schema_is_kept_where_it_is_taken(dialect: Any) -> None:
    """JSC-09: $defs, $anchor, if/then/else and composition below the root stay."""
    deep = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/a"},
            "b": {"$ref": "#bee"},
            "c": {
                "if": {"const": 1},
                "then": {"type": "integer"},
                "else": {"oneOf": [{"type": "string"}, {"type": "null"}]},
            },
            "d": {
                "type": "object",
                "patternProperties": {"^x": {"type": "string"}},
                "propertyNames": {"maxLength": 4},
                "minProperties": 1,
            },
        },
        "$defs": {
            "a": {"allOf": [{"type": "string"}, {"pattern": "^a"}]},
            "b": {"$anchor": "bee", "type": "number", "exclusiveMinimum": 0},
        },
    }
    assert compile(deep, dialect).schema == deep


def test_references_are_written_out_for_gemini() -> None:
    """JSC-08: as deep as the bound; there anything is allowed, and it is said that something was
    lost.
    """
    made = compile(TREE, "gemini")
    assert "$ref" not in json.dumps(made.schema)
    assert made.schema["properties"]["root"]["properties"]["children"]["items"]["properties"][
        "name"
    ] == {"type": "string"}
    assert made.schema["properties"]["more"]["description"] == "Another."
    assert any("$ref" in lost for lost in made.lost)
    document = {
        "root": {
            "name": "a",
            "children": [{"name": "b", "children": [{"name": "c", "children": [{"name": "d"}]}]}],
        }
    }
    assert validator(made.schema).is_valid(document)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_refers_elsewhere_is_anything(dialect: Any) -> None:
    """JSC-05: nothing is fetched; what is not in the schema is told as anything."""
    made = compile(
        {
            "type": "object",
            "properties": {
                "a": {"$ref": "https://example.com/a.json"},
                "b": {"$ref": "#/$defs/none"},
            },
        },
        dialect,
    )
    assert made.schema["properties"] == {"a": {}, "b": {}}
    assert len(made.lost) == 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_is_composed_at_the_root(dialect: Any) -> None:
    """JSC-09: providers refuse the whole request for it; the properties are named all the same, and
    the rest is told in words.
    """
    made = compile(
        {
            "type": "object",
            "properties": {"id": {"type": "string"}},
            "oneOf": [
                {
                    "properties": {"by": {"const": "name"}, "name": {"type": "string"}},
                    "required": ["name"],
                },
                {
                    "properties": {
                        "by": {"const": "mail"},
                        "mail": {"type": "string", "format": "email"},
                    },
                    "required": ["mail"],
                },
            ],
            "allOf": [{"properties": {"when": {"type": "string"}}, "required": ["when"]}],
            "not": {"required": ["forbidden"]},
        },
        dialect,
    )
    assert not made.schema.keys() & {"oneOf", "anyOf", "allOf", "not"}
    assert set(made.schema["properties"]) == {"id", "by", "name", "mail", "when"}
    assert made.schema["required"] == ["when"]
    assert "exactly one" in made.words
    assert "email" in made.words
    assert "forbidden" in made.words
    assert {"oneOf", "not"} <= set(made.lost)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "schema",
    [
        True,
        None,
        [],
        "x",
        {},
        {"type": "string"},
        {"type": "object", "properties": []},
        {"type": "nonsense"},
        {"$ref": "#"},
        {"properties": 1},
    ],
    ids=json.dumps,
)
def test_whatever_it_is_an_object_is_left(dialect: Any, schema: Any) -> None:
    """JSC-04: one tool with a broken schema does not have the whole request refused."""
    made = compile(schema, dialect).schema
    assert made["type"] == "object"
    assert isinstance(made["properties"], dict)
    validator(made)


def test_a_bomb_of_references_is_bounded() -> None:
    """JSC-08: references that double at each level end somewhere."""
    bomb: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/d0"}},
        "$defs": {},
    }
    for level in range(30):
        bomb["$defs"][f"d{level}"] = {
            "type": "object",
            "properties": {name: {"$ref": f"#/$defs/d{level + 1}"} for name in "xyz"},
        }
    bomb["$defs"]["d30"] = {"type": "string"}
    made = compile(bomb, "gemini")
    assert len(json.dumps(made.schema)) < 300_000
    assert made.lost


def test_what_gemini_does_not_take_is_told() -> None:
    """JSC-09: what is dropped stands in the description, where the model can read it; a const is an
    enum, a bound stays a bound.
    """
    made = compile(
        {
            "type": "object",
            "properties": {
                "a": {
                    "type": "string",
                    "description": "A name",
                    "pattern": "^[a-z]+$",
                    "minLength": 2,
                },
                "b": {"const": "x"},
                "c": {"type": "number", "exclusiveMinimum": 0},
                "d": {"enum": [True, None]},
                "e": {
                    "type": "object",
                    "patternProperties": {"^x": {}},
                    "additionalProperties": False,
                },
                "f": {
                    "allOf": [
                        {"type": "object", "properties": {"g": {"type": "string"}}},
                        {"required": ["g"]},
                    ]
                },
                "h": {"type": "array"},
            },
        },
        "gemini",
    )
    shown = made.schema["properties"]
    assert shown["a"] == {
        "type": "string",
        "description": 'A name (pattern: "^[a-z]+$"; minLength: 2)',
    }
    assert shown["b"] == {"enum": ["x"]}
    assert shown["c"] == {"type": "number", "minimum": 0, "description": "(exclusiveMinimum: 0)"}
    assert "enum: [true,null]" in shown["d"]["description"]
    assert "additionalProperties" not in shown["e"]
    assert shown["f"] == {
        "type": "object",
        "properties": {"g": {"type": "string"}},
        "required": ["g"],
    }
    assert shown["h"] == {"type": "array", "items": {}}


def test_names_that_anthropic_refuses_are_told() -> None:
    """JSC-09: a property whose name is refused is left out, told, and still allowed."""
    schema = {
        "type": "object",
        "properties": {"größe": {"type": "integer"}, "ok": {}},
        "required": ["größe"],
        "additionalProperties": False,
    }
    made = compile(schema, "anthropic").schema
    assert made["properties"] == {"ok": {}}
    assert made["required"] == []
    assert "größe" in made["description"]
    assert "additionalProperties" not in made


TUPLES = {
    "prefixItems": [{"type": "string"}],
    "allOf": [{"prefixItems": [{}, {}], "items": {"type": "string"}}],
}
SEEN = {"$ref": "#/$defs/x", "anyOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}
ALLOWED: dict[str, tuple[dict[str, Any], Any]] = {
    "tuples of different lengths": ({"properties": {"p": TUPLES}}, {"p": ["x", 1]}),
    "properties that only one of two variants has seen": (
        {
            "properties": {"p": SEEN, "q": {"$ref": "#/none"}},
            "$defs": {"x": {"anyOf": [{"properties": {"b": {}}}]}},
        },
        {"p": {"b": 1}},
    ),
    "patterns of two": (
        {
            "patternProperties": {"^a": {}},
            "allOf": [{"patternProperties": {"^a|^b": {}}, "additionalProperties": False}],
        },
        {"b": 1},
    ),
    "a variant with patterns": (
        {
            "anyOf": [
                {"properties": {"a": {"type": "string"}}},
                {"patternProperties": {"^a": {}}, "additionalProperties": False},
            ]
        },
        {"a": 1},
    ),
    "a variant that says nothing": (
        {"anyOf": [{"properties": {"a": {"type": "string"}}, "required": ["b"]}, {}]},
        {"a": 1},
    ),
    "a root that is meant again": ({"properties": {"a": {"$ref": "#"}}}, {"a": None}),
    "a root that is meant again and changed": (
        {"properties": {"a": {"$ref": "#"}}, "not": {"required": ["b"]}},
        {"a": {"a": {}}},
    ),
    "what only a variant has seen": (
        {"anyOf": [{"allOf": [{"properties": {"a": {}}}]}], "unevaluatedProperties": False},
        {"a": 1},
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("case", list(ALLOWED))
def test_what_must_not_be_forbidden(case: str, dialect: Any) -> None:
    """JSC-09: where keywords lean on each other, losing one must not make another stricter."""
    schema, document = ALLOWED[case]
    original = {name: value for name, value in schema.items() if name != "properties"}
    original["properties"] = {
        name: value for name, value in schema.get("properties", {}).items() if name != "q"
    }
    assert validator(original).is_valid(document)
    assert validator(compile(schema, dialect).schema).is_valid(document)


NAMES = st.sampled_from(["a", "b", "c", "größe"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "a", "bb"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
TYPES = st.sampled_from(["string", "integer", "number", "object", "array", "boolean", "null"])


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=2)
    keywords = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=2),
        "propertyNames": st.just({"maxLength": 1}),
        "items": inner,
        "prefixItems": some,
        "contains": inner,
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 3),
        "minimum": st.integers(-2, 2),
        "exclusiveMinimum": st.integers(-2, 2),
        "maxLength": st.integers(0, 2),
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        "allOf": some,
        "anyOf": some,
        "oneOf": some,
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "unevaluatedProperties": inner,
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=1), max_size=1),
        "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y", "#"]),
        "description": st.just("It."),
    }
    one = [st.tuples(st.just(keyword), values) for keyword, values in keywords.items()]
    return st.lists(st.one_of(one), max_size=4).map(dict)


SCHEMAS = st.recursive(
    st.booleans() | st.fixed_dictionaries({"type": TYPES}), _schemas, max_leaves=6
)


@given(
    root=_schemas(SCHEMAS),
    x=SCHEMAS,
    y=SCHEMAS,
    documents=st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=8),
    dialect=st.sampled_from(DIALECTS),
)
def test_nothing_that_was_allowed_is_forbidden(
    root: Any, x: Any, y: Any, documents: list[Any], dialect: Any
) -> None:
    """JSC-09: what the original accepts the compiled one accepts, whatever was lost; and only
    keywords that are taken are left.
    """
    schema = {**root, "$defs": {"x": x, "y": y}}
    try:
        original = validator(schema)
    except SchemaError:  # such as references that lead nowhere but round
        return
    made = compile(schema, dialect)
    compiled = validator(made.schema)
    for document in documents:
        if original.is_valid(document):
            assert compiled.is_valid(document), (made.schema, document)
    assert made.schema["type"] == "object"
    assert not made.schema.keys() & {"allOf", "anyOf", "oneOf", "not", "enum", "const", "if"}
    if dialect == "gemini":
        assert all(part.keys() <= _TAKEN for part in subschemas(made.schema))
