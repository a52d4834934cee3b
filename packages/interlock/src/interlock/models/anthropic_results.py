"""The results of tool calls in the form of Anthropic's messages API."""

from __future__ import annotations

from interlock.types import JSONObject, ToolResultContent

from .content_pieces import ContentPiece, result_pieces
from .interface import AcceptedContent

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MOST_IMAGE = 5_000_000  # bytes


def tool_result(result: ToolResultContent, id: str, taken: AcceptedContent) -> JSONObject:
    """The block with the result of a call."""
    block: JSONObject = {"type": "tool_result", "tool_use_id": id}
    block["content"] = [
        content_part(piece)
        for piece in result_pieces(result, taken)
        if piece.kind != "text" or piece.text.strip()
    ]
    return block | ({"is_error": True} if result.is_error else {})


def content_part(piece: ContentPiece) -> JSONObject:
    """A block of content."""
    source = {"type": "base64", "media_type": piece.mime, "data": piece.data}
    if piece.kind == "image":
        return {"type": "image", "source": source}
    if piece.kind == "document":
        return {"type": "document", "source": source} | (
            {"title": piece.name[:200]} if piece.name else {}
        )
    return {"type": "text", "text": piece.text}
