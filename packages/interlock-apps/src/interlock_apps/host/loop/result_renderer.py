"""Renders results for the model: marked text in pages, media of limited size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from interlock import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from interlock.types import ToolResultContent

from .budget import Budget
from .result_store import ResultStore
from .untrusted_text import UntrustedTextMarker

MOST_BLOCKS = 100
Clean = Callable[[str], str]
Media = ImageContent | AudioContent


class ResultRenderer:
    """Renders results of servers as content of a conversation.

    `clean` removes characters that a person cannot see.
    """

    def __init__(
        self, budget: Budget, marker: UntrustedTextMarker, results: ResultStore, clean: Clean = str
    ) -> None:
        self.budget = budget
        self.marker = marker
        self.results = results
        self._clean = clean

    def result(self, use: str, result: CallToolResult, origin: str) -> ToolResultContent:
        """The answer to the tool use `use`; `origin` names the tool and server of the result."""
        text, media = self.parts(result.content[:MOST_BLOCKS])
        if len(result.content) > MOST_BLOCKS:
            text += f"\n({len(result.content) - MOST_BLOCKS} more blocks were left out.)"
        if result.structured_content is not UNSET and not says(text, result.structured_content):
            text = f"{text}\n{msgspec.json.encode(result.structured_content).decode()}".strip()
        content: list[Any] = [TextContent(text=self.paged(text or "(no text)", origin)), *media]
        structured = (
            {}
            if result.structured_content is UNSET
            else {"structured_content": self._cleaned(result.structured_content)}
        )
        return ToolResultContent(
            tool_use_id=use, content=content, is_error=result.is_error, **structured
        )

    def refusal(self, use: str, words: str, said: str = "", origin: str = "") -> ToolResultContent:
        """The answer to a tool use that was not called, in the host's words.

        `said` is the server's message about it, from `origin`.
        """
        text = f"{words}\n{self.paged(said, origin)}" if said else words
        return ToolResultContent(tool_use_id=use, content=[TextContent(text=text)], is_error=True)

    def paged(self, text: str, origin: str) -> str:
        """The first page of a text between marks, and how to read the other pages."""
        text = self._clean(text)
        origin = self._clean(origin)
        if len(text) <= self.budget.page:
            return self.marker.wrap(text, origin)
        name = self.results.put(text)
        pages = self.results.pages(name)
        more = (
            f'(Page 1 of {pages}. The others: interlock__read_result with {{"result": '
            f'"{name}", "page": 2}} and so on.)'
        )
        return f"{self.marker.wrap(self.results.read(name, 1) or '', origin)}\n{more}"

    def parts(self, blocks: list[Any]) -> tuple[str, list[Media]]:
        """The text of blocks, and their images and sounds; other blocks become a line of text."""
        lines: list[str] = []
        media: list[Media] = []
        for block in blocks:
            if isinstance(block, TextContent):
                lines.append(block.text)
            elif isinstance(block, ImageContent | AudioContent):
                self._medium(block, lines, media)
            elif isinstance(block, ResourceLink):
                lines.append(_link(block))
            elif isinstance(block, EmbeddedResource):
                self._resource(block.resource, lines, media)
            else:
                lines.append(f"(a block of type {type(block).__name__})")
        return "\n".join(lines), media

    def contents(self, contents: ResourceContents) -> tuple[str, list[Media]]:
        """The text of a resource, or its image or sound."""
        lines: list[str] = []
        media: list[Media] = []
        self._resource(contents, lines, media)
        return "\n".join(lines), media

    def _cleaned(self, data: Any) -> Any:
        if isinstance(data, str):
            return self._clean(data)
        if isinstance(data, list):
            return [self._cleaned(each) for each in data]
        return (
            {self._clean(key): self._cleaned(each) for key, each in data.items()}
            if isinstance(data, dict)
            else data
        )

    def _medium(self, block: Media, lines: list[str], media: list[Media]) -> None:
        what = "an image" if isinstance(block, ImageContent) else "a sound"
        size = len(block.data) * 3 // 4
        before = sum(len(each.data) for each in media) * 3 // 4
        if size > self.budget.picture or before + size > self.budget.pictures:
            lines.append(f"({what} of type {block.mime_type}, too large to be shown to you)")
        else:
            media.append(block)

    def _resource(self, contents: ResourceContents, lines: list[str], media: list[Media]) -> None:
        kind = contents.mime_type or ""
        blob = contents.blob
        if contents.text is not None:
            lines.append(f"Resource {contents.uri} ({kind or 'text'}):\n{contents.text}")
        elif blob is not None and kind.startswith("image/"):
            lines.append(f"Resource {contents.uri} ({kind}), an image:")
            self._medium(ImageContent(data=blob, mime_type=kind), lines, media)
        elif blob is not None and kind.startswith("audio/"):
            lines.append(f"Resource {contents.uri} ({kind}), a sound:")
            self._medium(AudioContent(data=blob, mime_type=kind), lines, media)
        else:
            lines.append(
                f"Resource {contents.uri} ({kind or 'of unknown type'}, "
                f"{len(blob or '') * 3 // 4} bytes) is not text."
            )


def says(text: str, data: Any) -> bool:
    """Whether a text is only the JSON of `data`, or of its only value, and need not be repeated."""
    inner = data["result"] if isinstance(data, dict) and data.keys() == {"result"} else data
    try:
        return text == inner or msgspec.json.decode(text) in (data, inner)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return False


def _link(link: ResourceLink) -> str:
    about = ", ".join(
        part
        for part in (link.mime_type, f"{link.size} bytes" if link.size is not None else "")
        if part
    )
    words = f": {link.description}" if link.description else ""
    return (
        f"Link to the resource {link.uri} "
        f"({link.title or link.name}{', ' + about if about else ''}){words}"
    )
