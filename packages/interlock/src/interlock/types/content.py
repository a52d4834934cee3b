"""Content blocks of tools, prompts, resources and sampling messages."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType, field

from .base import Annotations, Icon, JSONObject, WireType


class TextContent(WireType, frozen=True, kw_only=False, tag_field="type", tag="text"):
    """Text, for a model or a person."""

    type: ClassVar[Literal["text"]] = "text"
    text: str
    annotations: Annotations | None = None
    meta: JSONObject | None = field(default=None, name="_meta")


class ImageContent(WireType, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """A picture; `data` is base64."""

    type: ClassVar[Literal["image"]] = "image"
    data: str
    mime_type: str
    annotations: Annotations | None = None
    meta: JSONObject | None = field(default=None, name="_meta")


class AudioContent(WireType, frozen=True, kw_only=True, tag_field="type", tag="audio"):
    """Sound; `data` is base64."""

    type: ClassVar[Literal["audio"]] = "audio"
    data: str
    mime_type: str
    annotations: Annotations | None = None
    meta: JSONObject | None = field(default=None, name="_meta")


class ResourceLink(WireType, frozen=True, kw_only=True, tag_field="type", tag="resource_link"):
    """A link to a resource that can be read; the resource need not be in `resources/list`."""

    type: ClassVar[Literal["resource_link"]] = "resource_link"
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Annotations | None = None
    icons: list[Icon] | None = None
    meta: JSONObject | None = field(default=None, name="_meta")


class ResourceContents(WireType, frozen=True, kw_only=True):
    """The content of one resource: either `text` or `blob` (base64) is set."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    meta: JSONObject | None = field(default=None, name="_meta")


class EmbeddedResource(WireType, frozen=True, kw_only=True, tag_field="type", tag="resource"):
    """A resource's content, included in a message."""

    type: ClassVar[Literal["resource"]] = "resource"
    resource: ResourceContents
    annotations: Annotations | None = None
    meta: JSONObject | None = field(default=None, name="_meta")


class ToolUseContent(WireType, frozen=True, kw_only=True, tag_field="type", tag="tool_use"):
    """In sampling: the model wants tool `name` called with `input`."""

    type: ClassVar[Literal["tool_use"]] = "tool_use"
    id: str
    name: str
    input: JSONObject
    meta: JSONObject | None = field(default=None, name="_meta")


class UnknownContent(
    WireType, frozen=True, kw_only=True, tag_field="type", tag="interlock/unknown"
):
    """A block of an unknown kind. It is kept whole, so that it can be forwarded without loss."""

    block: JSONObject


# The blocks of a tool's result and of a prompt's message.
ContentBlock = (
    TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource | UnknownContent
)


class ToolResultContent(WireType, frozen=True, kw_only=True, tag_field="type", tag="tool_result"):
    """In sampling: the result of the tool call `tool_use_id`."""

    type: ClassVar[Literal["tool_result"]] = "tool_result"
    tool_use_id: str
    content: list[ContentBlock]
    structured_content: Any | UnsetType = UNSET
    is_error: bool = False
    meta: JSONObject | None = field(default=None, name="_meta")


# The blocks of a sampling message.
SamplingContent = (
    TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent | UnknownContent
)

# The values of `type` that the protocol defines.
ContentType = Literal[
    "text", "image", "audio", "resource_link", "resource", "tool_use", "tool_result"
]
