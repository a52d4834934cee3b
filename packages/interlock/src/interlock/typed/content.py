"""Results of resources and prompts as content of the protocol."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from .. import types as t
from .media import Audio, File, Image, guess_mime

_BLOCKS = (t.TextContent, t.ImageContent, t.AudioContent, t.ResourceLink, t.EmbeddedResource)


def user(*content: Any) -> list[t.PromptMessage]:
    """Messages of the user, one for each argument: strings, images, files, content blocks."""
    return [t.PromptMessage(role="user", content=block(item)) for item in content]


def assistant(*content: Any) -> list[t.PromptMessage]:
    """Messages of the assistant, one for each argument: strings, images, files, content blocks."""
    return [t.PromptMessage(role="assistant", content=block(item)) for item in content]


def block(value: Any) -> t.ContentBlock:
    """The content block for a value. Plain data becomes JSON text."""
    if isinstance(value, _BLOCKS):
        return value
    if isinstance(value, str):
        return t.TextContent(value)
    if isinstance(value, Image | Audio | File):
        return value.content()
    if isinstance(value, t.ResourceContents):
        return t.EmbeddedResource(resource=value)
    return t.TextContent(msgspec.json.encode(value).decode())


def prompt_result(value: Any, description: str | None) -> t.GetPromptResult:
    """The result of a prompt. A string is one message of the user; a list may mix strings, blocks
    and messages.
    """
    if isinstance(value, t.GetPromptResult):
        return value
    items = value if isinstance(value, list | tuple) else [value]
    messages: list[t.PromptMessage] = []
    for item in items:
        if isinstance(item, t.PromptMessage):
            messages.append(item)
        elif isinstance(item, list):
            messages += item if all(isinstance(m, t.PromptMessage) for m in item) else user(*item)
        else:
            messages += user(item)
    return t.GetPromptResult(messages=messages, description=description)


def resource_result(value: Any, uri: str, mime_type: str | None) -> t.ReadResourceResult:
    """The result of reading a resource: text, bytes, media, contents, several of these, or data
    that becomes JSON.
    """
    if isinstance(value, t.ReadResourceResult):
        return value
    several: Sequence[Any] = (
        value if isinstance(value, list | tuple) and _is_contents(value) else [value]
    )
    return t.ReadResourceResult(contents=[contents(item, uri, mime_type) for item in several])


def _is_contents(values: Sequence[Any]) -> bool:
    return bool(values) and all(
        isinstance(v, t.ResourceContents | bytes | Image | Audio | File) for v in values
    )


def contents(value: Any, uri: str, mime_type: str | None) -> t.ResourceContents:
    """The content of one resource. Without a MIME type, the type is guessed from the URI
    (`RES-02`).
    """
    if isinstance(value, t.ResourceContents):
        return value
    if isinstance(value, t.EmbeddedResource):
        return value.resource
    if isinstance(value, File):
        made = value.content().resource
        return (
            made if value.uri else msgspec.structs.replace(made, uri=uri)
        )  # without a URI of its own it gets the requested one
    if isinstance(value, Image | Audio):
        media = value.content()
        return t.ResourceContents(uri=uri, mime_type=mime_type or media.mime_type, blob=media.data)
    if isinstance(value, bytes | bytearray | memoryview):
        mime = mime_type or guess_mime(uri) or "application/octet-stream"
        return t.ResourceContents(uri=uri, mime_type=mime, blob=base64.b64encode(value).decode())
    if isinstance(value, str):
        return t.ResourceContents(
            uri=uri, mime_type=mime_type or guess_mime(uri) or "text/plain", text=value
        )
    return t.ResourceContents(
        uri=uri, mime_type=mime_type or "application/json", text=msgspec.json.encode(value).decode()
    )
