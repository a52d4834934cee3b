"""Schemas: nullable, discriminators, inheritance, recursion and limits, to 2020-12."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.schema import compile
from interlock.server.sources.openapi.document import ApiDocument, OpenApiError
from interlock.server.sources.openapi.schemas import Direction, SchemaConverter


def convert(
    schema: Any,
    components: dict[str, Any] | None = None,
    *,
    version: str = "3.0.3",
    direction: Direction = "request",
) -> Any:
    """A schema with its definitions."""
    document = ApiDocument(
        {"openapi": version, "info": {}, "paths": {}, "components": {"schemas": components or {}}}
    )
    converter = SchemaConverter(document, direction)
    reached: set[str] = set()
    made = converter.convert(schema, reached)
    definitions = converter.definitions(reached)
    return {**made, "$defs": definitions} if definitions else made


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize(
    "given, made",
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        ({"nullable": True}, {}),
        (
            {"allOf": [{"type": "object"}], "nullable": True, "description": "d"},
            {
                "description": "d",
                "anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}],
            },
        ),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"type": "number", "maximum": 1, "exclusiveMaximum": False}, {"maximum": 1}),
        ({"type": "integer", "format": "int64"}, {"type": "integer"}),
        ({"type": "string", "format": "uuid"}, {"format": "uuid"}),
        ({"type": "string", "format": "byte"}, {"type": "string", "contentEncoding": "base64"}),
        (
            {"type": "string", "example": "x", "title": "T", "x-a": 1, "xml": {}},
            {"examples": ["x"]},
        ),
        ({"type": "any"}, {}),
        ({"type": "object", "required": True}, {"type": "object"}),
        (
            {"type": "object", "properties": {"id": {"readOnly": True}}, "required": ["id"]},
            {"type": "object"},
        ),
        ({"type": "object", "additionalProperties": False}, {"additionalProperties": False}),
    ],
)
def test_keywords_of_30(given: dict[str, Any], made: dict[str, Any]) -> None:
    """Everything that is expected is there; what is dropped is not."""
    converted = convert(given)
    assert made.items() <= converted.items()
    assert not converted.keys() & {"nullable", "title", "x-a", "xml", "example", "discriminator"}
    compile(converted)


def test_keywords_of_31() -> None:
    """3.1 is 2020-12: types are lists, and a reference has siblings."""
    made = convert(
        {**ref("A"), "description": "d", "minProperties": 1},
        {"A": {"type": ["object", "null"], "properties": {"c": {"const": 1}}}},
        version="3.1.0",
    )
    assert made["$ref"] == "#/$defs/A"
    assert (made["description"], made["minProperties"]) == ("d", 1)
    assert made["$defs"]["A"]["type"] == ["object", "null"]
    assert made["$defs"]["A"]["properties"]["c"] == {"const": 1}


def test_siblings_of_a_reference_in_30() -> None:
    """3.0 ignores them, but authors write these two."""
    made = convert({**ref("A"), "nullable": True, "description": "d"}, {"A": {"type": "object"}})
    assert made["anyOf"] == [{"$ref": "#/$defs/A"}, {"type": "null"}]
    assert made["description"] == "d"


CAT = {"type": "object", "properties": {"kind": {"type": "string"}, "lives": {"type": "integer"}}}
DOG = {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["bark"]}


def test_a_discriminator_selects_one_branch() -> None:
    """By its mapping, or else by the name of the component."""
    pet = {
        "oneOf": [ref("Cat"), ref("Dog")],
        "discriminator": {
            "propertyName": "kind",
            "mapping": {"cat": "#/components/schemas/Cat", "kitten": "Cat"},
        },
    }
    made = convert(pet, {"Cat": CAT, "Dog": DOG})
    cat, dog = made["oneOf"]
    assert cat["properties"] == {"kind": {"enum": ["cat", "kitten"]}}
    assert dog["properties"] == {"kind": {"const": "Dog"}}
    check = compile({**made, "type": "object"}).is_valid
    assert check({"kind": "kitten", "lives": 9})
    assert check({"kind": "Dog", "bark": True})
    assert not check({"kind": "Dog"})
    assert not check({"lives": 9})


PET = {
    "type": "object",
    "required": ["kind"],
    "properties": {"kind": {"type": "string"}, "name": {"type": "string"}},
    "discriminator": {"propertyName": "kind"},
}
KITTEN = {"allOf": [ref("Pet"), {"properties": {"age": {"type": "integer"}}, "required": ["age"]}]}


def test_inheritance_is_a_choice_among_subtypes() -> None:
    """A reference to the parent accepts each subtype; a subtype has the parent's own members."""
    made = convert(ref("Pet"), {"Pet": PET, "Kitten": KITTEN})
    assert set(made["$defs"]) == {"Pet", "Pet_base", "Kitten"}
    check = compile(made).is_valid
    assert check({"kind": "Kitten", "age": 1})
    assert not check({"kind": "Kitten"})
    assert check({"kind": "Pet", "name": "Rex"})
    assert not check({"kind": "Kitten", "age": 1, "name": 5})


def test_a_circle_of_choice_and_inheritance_ends() -> None:
    """A parent that lists its subtypes, which extend it, is common; taken literally it has no
    end.
    """
    parent = {**PET, "oneOf": [ref("Kitten")]}
    made = convert(ref("Pet"), {"Pet": parent, "Kitten": KITTEN})
    check = compile(made).is_valid
    assert check({"kind": "Kitten", "age": 1})
    assert not check({"kind": "Kitten"})


def test_definitions_are_those_that_are_reached() -> None:
    components = {
        "Tree": {"type": "object", "properties": {"child": ref("Tree"), "leaf": ref("Leaf")}},
        "Leaf": {"type": "string"},
        "Other": {"type": "object", "properties": {"tree": ref("Tree")}},
        "Alias": ref("Tree"),
    }
    made = convert({"type": "array", "items": ref("Alias")}, components)
    assert set(made["$defs"]) == {"Tree", "Leaf"}
    assert made["items"] == {"$ref": "#/$defs/Tree"}
    assert convert({"type": "array", "items": ref("Leaf")}, components)["$defs"].keys() == {"Leaf"}


def test_references_to_other_places_and_odd_names() -> None:
    components = {"a b/c": {"type": "integer"}, "Thing": {"properties": {"n": {"type": "number"}}}}
    made = convert(
        {
            "properties": {
                "one": {"$ref": "#/components/schemas/a%20b~1c"},
                "two": {"$ref": "#/components/schemas/Thing/properties/n"},
            }
        },
        components,
    )
    assert made["$defs"] == {"a_20b_1c": {"type": "integer"}, "n": {"type": "number"}}


@pytest.mark.parametrize(
    "reference, words",
    [
        ("https://evil.example/schema.json", "leads outside"),
        ("other.json#/A", "leads outside"),
        ("#/components/schemas/None", "leads nowhere"),
        ("#/components/schemas/Loop", "back to itself"),
    ],
)
def test_references_that_cannot_be_followed(reference: str, words: str) -> None:
    with pytest.raises(OpenApiError, match=words):
        convert({"$ref": reference}, {"Loop": ref("Pool"), "Pool": ref("Loop")})


def test_a_schema_without_end_is_an_error() -> None:
    schema: dict[str, Any] = {}
    for _ in range(200):
        schema = {"items": schema}
    with pytest.raises(OpenApiError, match="nested"):
        convert(schema)


def test_responses_are_lenient() -> None:
    """What APIs often break is not asked for."""
    made = convert(
        {
            "type": "object",
            "required": ["a"],
            "additionalProperties": False,
            "properties": {
                "a": {"type": "string", "enum": ["x"], "pattern": "^x", "default": "x"},
                "b": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                "c": {"type": "string", "writeOnly": True},
            },
        },
        direction="response",
    )
    assert made == {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        },
    }
