"""Functions, and the results of their calls, in the form of Gemini's generateContent API."""

from __future__ import annotations

from interlock.types import JSONObject, ToolResultContent

from .content_pieces import ContentPiece, result_pieces, text_of_pieces
from .interface import AcceptedContent
from .tool_schemas import ToolDescription

IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"})
SOUNDS = frozenset(
    {"audio/wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"}
)
MOST_MEDIA = 15_000_000  # bytes


def function_response(
    result: ToolResultContent, named: JSONObject, taken: AcceptedContent
) -> tuple[JSONObject, list[JSONObject]]:
    """The part with the result of a call, and the parts that have to follow: not every model
    accepts media inside a response. `named` has the name of the function, and the ID of the call.
    """
    found = result_pieces(result, taken)
    media = [piece for piece in found if piece.kind != "text"]
    text = text_of_pieces(found)
    shown: list[JSONObject] = []
    if media:
        text = f"{text}\n[What is not text follows.]".lstrip()
        shown = [
            {"text": f"[From the result of {named['name']}:]"},
            *(content_part(piece) for piece in media),
        ]
    said = {"error" if result.is_error else "output": text}
    return {"functionResponse": {**named, "response": said}}, shown


def content_part(piece: ContentPiece) -> JSONObject:
    """A part of content."""
    return (
        {"text": piece.text}
        if piece.kind == "text"
        else {"inlineData": {"mimeType": piece.mime, "data": piece.data}}
    )


def declared(tool: ToolDescription) -> JSONObject:
    """The declaration of a function."""
    made: JSONObject = {"name": tool.name, "description": tool.description}
    if tool.schema.get("properties") or isinstance(tool.schema.get("additionalProperties"), dict):
        made["parametersJsonSchema"] = tool.schema
    return made
