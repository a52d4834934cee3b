"""Compiles a tool's input schema into what a provider accepts, and reports what was lost.

The compiled schema accepts everything that the original accepts. It may allow more; then the
descriptions say in words what the server checks. Keywords that the provider supports are kept
(`JSC-09`). Nothing is ever fetched (`JSC-05`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal

import msgspec
from msgspec import Struct

from interlock.schema import SchemaError
from interlock.schema import compile as check
from interlock.types import JSONObject, Tool

from ..untrusted.invisible import plain_line as plain
from .json_pointers import dangling, resolve
from .lenient_json import list_of, object_of, text_of
from .schema_inlining import SchemaInliner
from .schema_merging import both, subschemas

Dialect = Literal["openai", "anthropic", "gemini"]

# of a compiled schema; a larger one becomes "any object"
MOST_BYTES = 200_000
_COMPOSED = ("allOf", "anyOf", "oneOf")
_NOT_AT_THE_ROOT = (*_COMPOSED, "not", "enum", "const", "if", "then", "else", "$ref", "$dynamicRef")
_PROPERTY_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")  # the names that Anthropic accepts


class Compiled(Struct, frozen=True):
    """A schema for a provider.

    Attributes:
        schema: The schema.
        lost: The keywords that were dropped.
        words: A text for the tool's description that replaces dropped keywords.
    """

    schema: JSONObject
    lost: tuple[str, ...] = ()
    words: str = ""


class ToolDescription(Struct, frozen=True):
    """A tool as the provider receives it."""

    name: str
    description: str
    schema: JSONObject


def described(tool: Tool, name: str, dialect: Dialect) -> ToolDescription:
    """A tool for a provider, under a name that the provider accepts."""
    made = compile(tool.input_schema, dialect)
    description = "\n".join(filter(None, [tool.description or tool.title or "", made.words]))
    return ToolDescription(name, description, made.schema)


def compile(schema: Any, dialect: Dialect) -> Compiled:
    """Compile a schema for a provider. Do not change the result, which is cached.

    It never raises: a schema that cannot be compiled becomes "any object".
    """
    try:
        return _compiled(msgspec.json.encode(schema), dialect)
    except (RecursionError, ValueError, TypeError, SchemaError) as bad:
        empty: JSONObject = {"type": "object", "properties": {}}
        return Compiled(
            empty,
            (f"the whole: {plain(str(bad), 100)}",),
            "(Its parameters could not be described.)",
        )


@lru_cache(2_048)
def _compiled(text: bytes, dialect: Dialect) -> Compiled:
    lost: list[str] = []
    words: list[str] = []
    root = msgspec.json.decode(text)
    if not isinstance(root, dict):
        raise ValueError("the schema is not an object")
    if root.get("type") != "object" or root.keys() & set(_NOT_AT_THE_ROOT):
        root = _apart(root)
    whole = root
    for _ in range(8):  # the root may be a reference
        target = resolve(whole, root.get("$ref"))
        if not isinstance(target, dict) or target is whole:
            break
        root = both({name: value for name, value in root.items() if name != "$ref"}, target)
    root = _rooted(root, whole, lost, words)
    if dialect == "anthropic":
        _named(root, lost)
    if dialect == "gemini" or dangling(root):
        root = SchemaInliner({**whole, **root}, lost, every_keyword=dialect != "gemini").root(root)
    if dialect == "anthropic":
        _named(root, lost)
    else:
        _itemized(root)
    root["type"] = "object"
    root.setdefault("properties", {})
    if len(msgspec.json.encode(root)) > MOST_BYTES:
        raise ValueError("the schema is too large")
    check(root)  # one invalid tool would make the provider reject the whole request
    return Compiled(root, tuple(dict.fromkeys(lost)), " ".join(words))


def _apart(root: JSONObject) -> JSONObject:
    """Prepare a root that will be changed: references to it then point to a copy among the
    definitions.
    """
    ways = [
        (part, keyword)
        for part in subschemas(root)
        for keyword in ("$ref", "$dynamicRef")
        if part.get(keyword) == "#"
    ]
    if not ways:
        return root
    definitions = object_of(root, "$defs")
    name = "whole"
    while name in definitions:
        name += "_"
    for part, keyword in ways:
        part[keyword] = f"#/$defs/{name}"
    copied = msgspec.json.decode(
        msgspec.json.encode(
            {keyword: value for keyword, value in root.items() if keyword != "$defs"}
        )
    )
    return {**root, "$defs": {**definitions, name: copied}}


def _rooted(root: JSONObject, whole: JSONObject, lost: list[str], words: list[str]) -> JSONObject:
    """The root in the form that all providers require: an object with properties, without
    composition.
    """
    for part in list_of(root, "allOf"):
        part = _resolved(part, whole)
        root = both(root, part) if isinstance(part, dict) else root
    root = dict(root)
    composed = any(keyword in root for keyword in (*_COMPOSED, "if", "$ref", "$dynamicRef"))
    for keyword in ("anyOf", "oneOf"):
        variants = [_resolved(variant, whole) for variant in list_of(root, keyword)]
        if variants:
            _spread(root, [object_of(variant) for variant in variants])
            how = "exactly one" if keyword == "oneOf" else "at least one"
            words.append(
                f"The arguments must fit {how} of these JSON Schemas: {_short(root[keyword])}"
            )
    for keyword in ("not", "enum", "const", "if"):
        if keyword in root:
            parts = {
                name: root[name]
                for name in (keyword, *(("then", "else") if keyword == "if" else ()))
                if name in root
            }
            words.append(f"The arguments must also fit this JSON Schema: {_short(parts)}")
    for keyword in _NOT_AT_THE_ROOT:
        if keyword in root:
            if keyword != "allOf":
                lost.append(keyword)
            del root[keyword]
    if composed and root.pop("unevaluatedProperties", None) is not None:
        lost.append("unevaluatedProperties")
    if not isinstance(root.get("properties", {}), dict):
        del root["properties"]
        lost.append("properties")
    return root


def _spread(root: JSONObject, variants: list[JSONObject]) -> None:
    """Add the properties that only variants have to the root, with the constraints that all
    variants share.
    """
    properties = dict(object_of(root, "properties"))
    names = dict.fromkeys(
        name
        for variant in variants
        for name in object_of(variant, "properties")
        if name not in properties
    )
    for name in names:
        all_say = all(
            name in object_of(variant, "properties") or _is_closed(variant) for variant in variants
        )
        said = [
            object_of(variant, "properties")[name]
            for variant in variants
            if name in object_of(variant, "properties")
        ]
        distinct = [schema for at, schema in enumerate(said) if schema not in said[:at]]
        if all_say:
            properties[name] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        else:  # a variant without the property allows any value
            properties[name] = {
                "description": (
                    f"In some cases: {_short(distinct[0] if len(distinct) == 1 else distinct)}"
                )
            }
    if properties:
        root["properties"] = properties


def _is_closed(variant: JSONObject) -> bool:
    return variant.get("additionalProperties") is False and "patternProperties" not in variant


def _resolved(part: Any, whole: JSONObject) -> Any:
    """The subschema merged with the target of its reference, if there is one."""
    if isinstance(part, dict) and "$ref" in part:
        target = resolve(whole, part["$ref"])
        if isinstance(target, dict):
            return both({name: value for name, value in part.items() if name != "$ref"}, target)
    return part


def _named(schema: JSONObject, lost: list[str]) -> None:
    """Remove properties whose names the provider rejects, from all subschemas."""
    for part in subschemas(schema):
        properties = object_of(part, "properties")
        bad = [name for name in properties if not _PROPERTY_NAME.fullmatch(name)]
        for name in bad:
            lost.append(f"the property {plain(name, 80)}")
            removed = _short({name: properties.pop(name)})
            part["description"] = f"{text_of(part, 'description')}\n(Also takes: {removed})".strip()
        if bad:
            for keyword in ("additionalProperties", "unevaluatedProperties", "propertyNames"):
                part.pop(keyword, None)
            if "required" in part:
                part["required"] = [name for name in list_of(part, "required") if name not in bad]


def _itemized(schema: JSONObject) -> None:
    """Add `items` to every array schema without it: OpenAI and Gemini reject such schemas."""
    for part in subschemas(schema):
        kind = part.get("type")
        if (
            kind == "array" or (isinstance(kind, list) and "array" in kind)
        ) and "items" not in part:
            part["items"] = {}


def _short(value: Any, most: int = 1_500) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= most else text[: most - 1] + "…"
