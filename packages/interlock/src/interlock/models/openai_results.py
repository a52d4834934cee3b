"""The results of tool calls in the form of OpenAI's chat completions API."""

from __future__ import annotations

from interlock.types import JSONObject, ToolResultContent

from .content_pieces import ContentPiece, result_pieces, text_of_pieces
from .interface import AcceptedContent

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
SOUNDS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}
FROM_RESULTS = ContentPiece("text", "[From the results of the calls above:]")


def tool_message(
    result: ToolResultContent, id: str, taken: AcceptedContent
) -> tuple[JSONObject, list[ContentPiece]]:
    """The message with the result of a call, and what has to follow in a message of the user: a
    tool message contains only text.
    """
    found = result_pieces(result, taken)
    text = text_of_pieces(found)
    media = [piece for piece in found if piece.kind != "text"]
    if media:
        text = f"{text}\n[What is not text follows in the next message.]".lstrip()
    if result.is_error:
        text = f"[The call failed.]\n{text}"
    return {"role": "tool", "tool_call_id": id, "content": text}, media


def message_content(parts: list[ContentPiece]) -> str | list[JSONObject]:
    """The content of a message: a plain text if there is nothing else, because not every server
    accepts content parts.
    """
    if all(part.kind == "text" for part in parts):
        return "\n\n".join(part.text for part in parts)
    return [_part(part) for part in parts]


def _part(part: ContentPiece) -> JSONObject:
    if part.kind == "image":
        return {"type": "image_url", "image_url": {"url": f"data:{part.mime};base64,{part.data}"}}
    if part.kind == "audio":
        return {
            "type": "input_audio",
            "input_audio": {"data": part.data, "format": SOUNDS[part.mime]},
        }
    if part.kind == "document":
        return {
            "type": "file",
            "file": {
                "filename": part.name or "document.pdf",
                "file_data": f"data:{part.mime};base64,{part.data}",
            },
        }
    return {"type": "text", "text": part.text}
