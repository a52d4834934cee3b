"""Tools: how they are listed and called (2026-07-28, "Tools")."""

from __future__ import annotations

from typing import Any, Literal, TypeVar, overload

from msgspec import UNSET, Raw, UnsetType, convert, field

from .base import (
    NOTHING,
    Icon,
    JSONObject,
    PaginatedParams,
    PaginatedResult,
    Params,
    Result,
    WireType,
)
from .content import ContentBlock, TextContent
from .errors import ProtocolError, ToolError

T = TypeVar("T")


class ToolAnnotations(WireType, frozen=True, kw_only=True):
    """Hints about a tool's behavior. Believe them only if you trust the server.

    For a missing hint a client assumes: not read-only, destructive, not idempotent, open world.
    """

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class ToolExecution(WireType, frozen=True, kw_only=True):
    """How a tool runs; only 2025-11-25 has it. Without `task_support` the tool cannot be a task."""

    task_support: Literal["forbidden", "optional", "required"] | None = None


class TaskMetadata(WireType, frozen=True, kw_only=True):
    """Asks the receiver of a request to make it a task, kept for `ttl` milliseconds; only
    2025-11-25 has it.
    """

    ttl: int | None = None


class Tool(WireType, frozen=True, kw_only=True):
    """A tool as it is listed; a schema is JSON Schema 2020-12 unless it names another dialect."""

    name: str
    input_schema: JSONObject
    title: str | None = None
    description: str | None = None
    output_schema: JSONObject | None = None
    annotations: ToolAnnotations | None = None
    icons: list[Icon] | None = None
    execution: ToolExecution | None = None
    meta: JSONObject | None = field(default=None, name="_meta")

    @property
    def label(self) -> str:
        """The name to show to a person: the title, the annotations' title, or the name
        (`TOL-26`).
        """
        return self.title or (self.annotations and self.annotations.title) or self.name


class ListToolsRequestParams(PaginatedParams, frozen=True, kw_only=True):
    """Params of `tools/list`."""


class ListToolsResult(PaginatedResult, frozen=True, kw_only=True):
    """One page of tools."""

    tools: list[Tool]


class InputResponseParams(Params, frozen=True, kw_only=True):
    """Params of a request that the server may answer with questions; a retry brings the answers
    (2026-07-28, "MRTR").
    """

    input_responses: dict[str, Raw] | None = None
    request_state: str | None = None


class CallToolRequestParams(InputResponseParams, frozen=True, kw_only=True):
    """Params of `tools/call`; `arguments` is the undecoded JSON of the arguments object."""

    name: str
    arguments: Raw = NOTHING
    task: TaskMetadata | None = None


class CallToolResult(Result, frozen=True, kw_only=True):
    """The result of a tool, or (`is_error`) its failure."""

    content: list[ContentBlock]
    structured_content: Any | UnsetType = UNSET
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text of all text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    @overload
    def value(self) -> Any: ...

    @overload
    def value(self, kind: type[T]) -> T: ...

    def value(self, kind: Any = None) -> Any:
        """Return the result as Python data: the structured content, or the text if there is none.

        Structured content that consists of `{"result": x}` is unwrapped.

        Args:
            kind: The type of the value: a dataclass, TypedDict, Struct, attrs class, pydantic
                model, or another type that msgspec decodes.

        Raises:
            ToolError: The call failed; the message is the tool's.
            ProtocolError: The data does not fit `kind`.
        """
        if self.is_error:
            raise ToolError(self.text or "The tool failed without a message.")
        data = self.structured_content
        if data is UNSET:
            data = self.text
        elif isinstance(data, dict) and data.keys() == {"result"}:
            data = data["result"]
        if kind is None:
            return data
        try:
            return (
                kind.model_validate(data)
                if hasattr(kind, "model_validate")
                else convert(data, kind)
            )
        except ValueError as bad:  # msgspec's and pydantic's errors are both ValueErrors
            raise ProtocolError(
                f"The tool's result does not fit the requested type: {bad}"
            ) from None
