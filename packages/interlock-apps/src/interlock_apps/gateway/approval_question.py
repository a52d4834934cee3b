"""The question of a gateway to the caller, before a call for which a rule asks."""

from __future__ import annotations

import json

from interlock import Exchange, McpError, Unanswerable
from interlock.types import ElicitRequest, ElicitRequestParams, ElicitResult
from interlock.untrusted.invisible import visible, visible_line

from .asked import Asked

_MOST_ARGUMENTS = 1_500  # characters of the arguments in a question
_FIELD = "allow"
_SCHEMA = {
    "type": "object",
    "properties": {
        _FIELD: {
            "type": "boolean",
            "title": "Allow this request once",
            "default": False,
        }
    },
    "required": [_FIELD],
}
_WHAT = {
    "tool": "call the tool",
    "prompt": "get the prompt",
    "resource": "read the resource",
    "skill": "read the skill",
}


async def approved_by_caller(x: Exchange, asked: Asked, why: str) -> tuple[bool, str]:
    """Ask the caller about exactly this request.

    The question has a key with the digest of the caller, the feature and the arguments, so that an
    answer is never taken for another request.

    Args:
        x: The request.
        asked: What it asks for.
        why: Why a question is asked.

    Returns:
        Whether the caller allows it, and how it answered, in words.
    """
    params = ElicitRequestParams(
        message=_message(asked, why), mode="form", requested_schema=_SCHEMA
    )
    try:
        answer = await x.asker.ask(ElicitRequest(params), f"gateway.{asked.digest[:32]}")
    except Unanswerable as bad:
        return False, f"A rule asks before this, and {_decapitalized(str(bad))}"
    except McpError as bad:
        return False, f"A rule asks before this, and the question failed: {bad.message}"
    if not isinstance(answer, ElicitResult):
        return False, "A rule asks before this, and the answer is not one to the question."
    if answer.action == "accept" and (answer.content or {}).get(_FIELD) is True:
        return True, "The caller allowed it."
    return False, "The caller did not allow it."


def _message(asked: Asked, why: str) -> str:
    """Return the question. What others have chosen is shown with invisible characters visible."""
    name = visible_line(asked.name[:200])
    server = visible_line(asked.server)
    lines = [f"The gateway asks: {_WHAT[asked.kind]} {name} of {server}?", visible(why)]
    if asked.raw_arguments:
        shown = visible(json.dumps(asked.arguments, indent=2, ensure_ascii=False))
        if len(shown) > _MOST_ARGUMENTS:
            left_out = len(shown) - _MOST_ARGUMENTS
            shown = f"{shown[:_MOST_ARGUMENTS]}\n... and {left_out:,} more characters"
        lines.append(f"Arguments:\n{shown}")
    return "\n\n".join(lines)


def _decapitalized(words: str) -> str:
    return words[:1].lower() + words[1:]
