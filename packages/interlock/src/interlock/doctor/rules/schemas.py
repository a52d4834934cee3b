"""Rules about the schemas of tools: JSON Schema itself, and the limits of each provider."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ... import types as t
from ...models.schema_merging import subschemas
from ...models.tool_schemas import compile as compile_for
from ...schema import SchemaError, header_parameters
from ...schema import compile as compile_schema
from ...wire.revisions import supports
from ..diagnostics import RuleFinding, rule
from ..facts import CatalogueFacts

_COMPOSED = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "$ref")
_OPENAI_REJECTS = ("anyOf", "oneOf", "allOf", "not", "enum")  # at the root
_ANTHROPIC_REJECTS = ("anyOf", "oneOf", "allOf")  # at the root
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_BEYOND_GEMINI = re.compile(r".*: (?:\$ref .*|too much|false)|the whole: .*", re.DOTALL)
_NO_CONSTRAINTS = ("default", "examples")
_QUOTED = 5  # keywords or parameters that are named


@rule(
    "schema-invalid",
    "error",
    "The input schema of a tool is not valid JSON Schema",
    advice="Correct the schema. References must point into it: nothing is fetched.",
)
def schema_invalid(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """No client can check arguments with it, and providers reject the request."""
    for tool in facts.tools:
        words = _invalid(tool.input_schema)
        if words:
            yield RuleFinding(words, tool.name)


@rule(
    "schema-not-object",
    "error",
    'The input schema of a tool has no `type: "object"` at its root',
    advice='Add `"type": "object"`: arguments are always an object.',
)
def schema_not_object(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """`TOL-02`: clients of the official SDKs reject the whole list."""
    for tool in facts.tools:
        kind = tool.input_schema.get("type")
        if kind != "object":
            yield RuleFinding(
                f"the type of its root is {kind!r}" if kind else "it has none", tool.name
            )


@rule(
    "output-schema-invalid",
    "error",
    "The output schema of a tool is not valid JSON Schema",
    advice="Correct the schema, or leave it out.",
)
def output_schema_invalid(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """Clients that validate results reject every result of the tool."""
    for tool in facts.tools:
        words = "" if tool.output_schema is None else _invalid(tool.output_schema)
        if words:
            yield RuleFinding(words, tool.name)


@rule(
    "output-schema-not-object",
    "warning",
    "The output schema of a tool is not that of an object",
    advice='Wrap the result in an object, such as {"result": ...}.',
)
def output_schema_not_object(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """`TOL-06`: revisions of the handshake era allow objects only."""
    if not facts.revision or supports(facts.revision, "questions_in_results"):
        return
    for tool in facts.tools:
        if tool.output_schema is not None and tool.output_schema.get("type") != "object":
            yield RuleFinding("older clients reject the whole list", tool.name)


@rule(
    "header-parameter",
    "error",
    "A parameter is mirrored into a header that is not allowed",
    advice="Correct `x-mcp-header`, or remove it: clients leave the tool out over HTTP.",
)
def header_parameter(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """2026-07-28, "Custom Headers from Tool Parameters"."""
    for tool in facts.tools:
        try:
            header_parameters(tool.input_schema)
        except SchemaError as bad:
            yield RuleFinding(str(bad), tool.name)


@rule(
    "schema-openai",
    "warning",
    "OpenAI rejects the input schema of a tool",
    advice="Move anyOf, oneOf and the like below the root, and give arrays `items`.",
)
def schema_openai(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """A composed root, or an array without `items`. The adapters of Interlock rewrite both."""
    for tool in _sound_tools(facts):
        words = [*_at_root(tool, _OPENAI_REJECTS), *_arrays_without_items(tool.input_schema)]
        if words:
            yield RuleFinding(f"it has {', '.join(words)}", tool.name)


@rule(
    "schema-anthropic",
    "warning",
    "Anthropic rejects the input schema of a tool",
    advice="Name parameters with up to 64 of A-Z, a-z, 0-9, _, . and -; no anyOf at the root.",
)
def schema_anthropic(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """A composed root, or the name of a property. The adapters of Interlock rewrite both."""
    for tool in _sound_tools(facts):
        properties = tool.input_schema.get("properties")
        names = [
            repr(name)
            for name in (properties if isinstance(properties, dict) else ())
            if not _PROPERTY.fullmatch(name)
        ]
        words = [*_at_root(tool, _ANTHROPIC_REJECTS), *(f"the property {name}" for name in names)]
        if words:
            yield RuleFinding(f"it has {', '.join(words[:_QUOTED])}", tool.name)


@rule(
    "schema-gemini",
    "warning",
    "Gemini cannot express the input schema of a tool",
    advice="Avoid recursion, `false` as a schema, and schemas of thousands of parts.",
)
def schema_gemini(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """What is left after references are written out."""
    for tool in _sound_tools(facts):
        lost = [
            words
            for words in compile_for(tool.input_schema, "gemini").lost
            if _BEYOND_GEMINI.fullmatch(words)
        ]
        if lost:
            yield RuleFinding(", ".join(lost[:_QUOTED]), tool.name)


@rule(
    "schema-keywords",
    "note",
    "Gemini ignores keywords of an input schema",
    advice="Say the constraint in the description of the parameter too.",
)
def schema_keywords(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """The model does not see these constraints; the server still checks them."""
    for tool in _sound_tools(facts):
        lost = [
            words
            for words in compile_for(tool.input_schema, "gemini").lost
            if not _BEYOND_GEMINI.fullmatch(words) and not words.endswith(_NO_CONSTRAINTS)
        ]
        if lost:
            more = f" and {len(lost) - _QUOTED} more" if len(lost) > _QUOTED else ""
            yield RuleFinding(f"{', '.join(lost[:_QUOTED])}{more}", tool.name)


@rule(
    "parameter-undescribed",
    "note",
    "A parameter has no description",
    advice="Say what it means, and in which form: the model fills it in.",
)
def parameter_undescribed(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """The model knows the name and the type only."""
    for tool in facts.tools:
        names = [
            name
            for name, schema in _properties(tool)
            if isinstance(schema, dict) and not schema.get("description") and "$ref" not in schema
        ]
        if names:
            yield RuleFinding(f"{_listed(names)} {_have(names)} no description", tool.name)


@rule(
    "parameter-untyped",
    "note",
    "A parameter has no type",
    advice="Give it a type, an enum or a composition of schemas.",
)
def parameter_untyped(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """The model may give any value."""
    for tool in facts.tools:
        names = [
            name
            for name, schema in _properties(tool)
            if schema is True
            or (isinstance(schema, dict) and not schema.keys() & {"type", *_COMPOSED})
        ]
        if names:
            yield RuleFinding(f"{_listed(names)} {_have(names)} no type", tool.name)


def _invalid(schema: Any) -> str:
    try:
        compile_schema(schema)
    except SchemaError as bad:
        return str(bad)
    return ""


def _sound_tools(facts: CatalogueFacts) -> list[t.Tool]:
    """The tools whose schemas are valid, so that each fault has one diagnostic."""
    return [
        tool
        for tool in facts.tools
        if tool.input_schema.get("type") == "object" and not _invalid(tool.input_schema)
    ]


def _at_root(tool: t.Tool, keywords: tuple[str, ...]) -> list[str]:
    return [f"{keyword} at its root" for keyword in keywords if keyword in tool.input_schema]


def _arrays_without_items(schema: dict[str, Any]) -> list[str]:
    for part in subschemas(schema):
        kind = part.get("type")
        is_array = kind == "array" or (isinstance(kind, list) and "array" in kind)
        if is_array and not part.keys() & {"items", "prefixItems"}:
            return ["an array without items"]
    return []


def _properties(tool: t.Tool) -> list[tuple[str, Any]]:
    properties = tool.input_schema.get("properties")
    return list(properties.items()) if isinstance(properties, dict) else []


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _QUOTED} more" if len(names) > _QUOTED else ""
    return f"{', '.join(names[:_QUOTED])}{more}"


def _have(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


RULES: Final = (
    schema_invalid,
    schema_not_object,
    output_schema_invalid,
    output_schema_not_object,
    header_parameter,
    schema_openai,
    schema_anthropic,
    schema_gemini,
    schema_keywords,
    parameter_undescribed,
    parameter_untyped,
)
