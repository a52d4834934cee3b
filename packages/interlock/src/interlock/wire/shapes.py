"""Changes of shape between revisions that dropping a field cannot express."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import UNSET, Raw
from msgspec.structs import replace

from .. import types as t
from .revisions import R3, R4

Reshape = Callable[[Any, str], Any]
ToolOutcome = TypeVar("ToolOutcome", t.CallToolResult, t.ToolResultContent)


def reshape_tool(tool: t.Tool, revision: str) -> t.Tool:
    """Before 2026-07-28 an output schema must describe an object. Other schemas are removed
    (`TOL-06`, `TOL-07`).
    """
    if (
        revision <= R4
        and tool.output_schema is not None
        and tool.output_schema.get("type") != "object"
    ):
        return replace(tool, output_schema=None)
    return tool


def reshape_tool_result(result: ToolOutcome, revision: str) -> ToolOutcome:
    """Before 2026-07-28 structured content must be an object. Other content is removed."""
    data = result.structured_content
    if revision <= R4 and data is not UNSET and not _encodes_as_object(data):
        return replace(result, structured_content=UNSET)
    return result


def _encodes_as_object(data: Any) -> bool:
    if type(data) is Raw:
        return bytes(memoryview(data)[:1]) == b"{"
    return not (
        data is None or isinstance(data, str | int | float | list | tuple | set | frozenset | bytes)
    )


def reshape_sampling_params(
    params: t.CreateMessageRequestParams, revision: str
) -> t.CreateMessageRequestParams:
    """Before 2025-11-25 a sampling message has one block. A message with several blocks becomes
    several messages (`SAM-11`).
    """
    if revision > R3 or not any(isinstance(m.content, list) for m in params.messages):
        return params
    flat = [replace(m, content=block) for m in params.messages for block in _blocks(m.content)]
    return replace(params, messages=flat)


def reshape_sampling_result(result: t.CreateMessageResult, revision: str) -> t.CreateMessageResult:
    """Before 2025-11-25 a sampling result has one block. Texts are joined; otherwise only the first
    block is kept.
    """
    if revision > R3 or not isinstance(result.content, list):
        return result
    texts = [block.text for block in result.content if isinstance(block, t.TextContent)]
    rest = [block for block in result.content if not isinstance(block, t.TextContent)]
    one: Any = t.TextContent("\n".join(texts)) if texts or not rest else rest[0]
    return replace(result, content=one)


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content]


def reshape_elicitation(params: t.ElicitRequestParams, revision: str) -> t.ElicitRequestParams:
    """2025-06-18 has fewer forms: choices only by `enum` and `enumNames`, defaults only for
    booleans (`ELI-09`).
    """
    schema = params.requested_schema
    if (
        revision != R3
        or schema is None
        or not isinstance(properties := schema.get("properties"), dict)
    ):
        return params
    return replace(
        params,
        requested_schema={
            **schema,
            "properties": {name: _early_property(p) for name, p in properties.items()},
        },
    )


def _early_property(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    early = {key: value for key, value in schema.items() if key != "oneOf"}
    if early.get("type") != "boolean":
        early.pop("default", None)
    if isinstance(choices := schema.get("oneOf"), list) and all(
        isinstance(choice, dict) for choice in choices
    ):
        early["enum"] = [choice.get("const") for choice in choices]
        early["enumNames"] = [choice.get("title", choice.get("const")) for choice in choices]
    return early


RESHAPES: dict[type[Any], Reshape] = {
    t.Tool: reshape_tool,
    t.CallToolResult: reshape_tool_result,
    t.ToolResultContent: reshape_tool_result,
    t.CreateMessageRequestParams: reshape_sampling_params,
    t.CreateMessageResult: reshape_sampling_result,
    t.ElicitRequestParams: reshape_elicitation,
}


def stand_in(block: Any) -> t.TextContent:
    """Return text that replaces a content block for which an older revision has no type."""
    match block:
        case t.ResourceLink():
            return t.TextContent(f"[resource {block.title or block.name}: {block.uri}]")
        case t.AudioContent():
            return t.TextContent(f"[audio, {block.mime_type}, {len(block.data) * 3 // 4} bytes]")
        case t.ToolUseContent():
            return t.TextContent(f"[the model asked for the tool {block.name}]")
        case t.ToolResultContent():
            return t.TextContent(
                "\n".join(b.text for b in block.content if isinstance(b, t.TextContent))
            )
        case _:
            return t.TextContent(f"[{type(block).__name__}]")
