"""Repairs a conversation for providers: alternating roles, each tool call with its result.

Providers reject a conversation in any other order. A cancelled turn, a shortened history or the
messages of a server must not cause such an error (`SAM-14`, `SAM-15`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, structs

from interlock.types import (
    JSONObject,
    Role,
    SamplingContent,
    SamplingMessage,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)

NOT_RUN = "This call was not run: the turn ended before it."


class RoleTurn(Struct):
    """Consecutive messages of one role, joined."""

    role: Role
    blocks: list[SamplingContent]


def blocks_of(message: SamplingMessage) -> list[SamplingContent]:
    """The content of a message as a list."""
    return message.content if isinstance(message.content, list) else [message.content]


def prepared(messages: Iterable[SamplingMessage]) -> list[RoleTurn]:
    """The conversation without empty parts, with alternating roles, and with each tool use followed
    by its result, in the order of the uses.

    A use without a result gets an error result that says so. A result without a use becomes text,
    so that it is not lost.
    """
    talk: list[RoleTurn] = []
    waiting: dict[str, ToolUseContent] = {}
    for message in messages:
        blocks = [block for block in blocks_of(message) if not _is_empty(block)]
        if message.role == "assistant":
            _settle(talk, waiting, [])
            blocks = [block for block in blocks if not isinstance(block, ToolResultContent)]
            waiting = {block.id: block for block in blocks if isinstance(block, ToolUseContent)}
            _say(talk, "assistant", blocks)
        else:
            results = [block for block in blocks if isinstance(block, ToolResultContent)]
            if results or waiting:
                _settle(talk, waiting, results)
                waiting = {}
            _say(
                talk,
                "user",
                [
                    block
                    for block in blocks
                    if not isinstance(block, ToolResultContent | ToolUseContent)
                ],
            )
    _settle(talk, waiting, [])
    return talk


def begun_and_ended_by_user(talk: list[RoleTurn]) -> list[RoleTurn]:
    """The conversation with a user message at both ends, which some providers require."""
    if talk and talk[0].role == "assistant":
        talk = [
            RoleTurn("user", [TextContent("(The beginning of the conversation was left out.)")]),
            *talk,
        ]
    if talk and talk[-1].role == "assistant":
        talk = [*talk, RoleTurn("user", [TextContent("Go on.")])]
    return talk


def without_tools(talk: list[RoleTurn]) -> list[RoleTurn]:
    """The conversation for a model that does not support tools: calls and results become text."""
    turns = []
    for turn in talk:
        blocks: list[SamplingContent] = []
        for block in turn.blocks:
            if isinstance(block, ToolUseContent):
                blocks.append(TextContent(f"[The tool {block.name} was called.]"))
            elif isinstance(block, ToolResultContent):
                blocks.extend(_result_as_text(block))
            else:
                blocks.append(block)
        turns.append(RoleTurn(turn.role, blocks))
    return turns


def _is_empty(block: SamplingContent) -> bool:
    return isinstance(block, TextContent) and not block.text.strip()


def _say(talk: list[RoleTurn], role: Role, blocks: list[SamplingContent]) -> None:
    if not blocks:
        return
    if talk and talk[-1].role == role:
        talk[-1].blocks.extend(blocks)
    else:
        talk.append(RoleTurn(role, blocks))


def _settle(
    talk: list[RoleTurn], waiting: dict[str, ToolUseContent], results: Sequence[ToolResultContent]
) -> None:
    """Put the results after the uses that wait for them."""
    found: dict[str, ToolResultContent] = {}
    others: list[SamplingContent] = []
    for result in results:
        if result.tool_use_id in waiting and result.tool_use_id not in found:
            found[result.tool_use_id] = result
        else:
            others.extend(_result_as_text(result))
    absent = [TextContent(NOT_RUN)]
    _say(
        talk,
        "user",
        [
            found.get(id) or ToolResultContent(tool_use_id=id, content=[*absent], is_error=True)
            for id in waiting
        ],
    )
    _say(talk, "user", others)


def _result_as_text(result: ToolResultContent) -> list[SamplingContent]:
    """A tool result as content of a user message."""
    blocks: list[SamplingContent] = [TextContent("[The result of a tool call:]")]
    for block in result.content:
        if isinstance(block, SamplingContent):
            blocks.append(block)
        elif hasattr(block, "uri"):
            blocks.append(TextContent(f"[{block.uri}]"))
        else:
            blocks.append(TextContent(block.resource.text or f"[{block.resource.uri}]"))
    return [block for block in blocks if not _is_empty(block)]


class IdMap:
    """Maps names or IDs to ones that a provider accepts, and back.

    An accepted name stays as it is. Any other is always replaced by the same name.

    Args:
        allowed: The accepted characters, as in a character class of a regular expression.
        most: The largest length.
        first: The accepted first characters; `allowed` by default.
    """

    def __init__(self, allowed: str, most: int, *, first: str = "") -> None:
        self._sound = re.compile(rf"[{first or allowed}][{allowed}]{{0,{most - 1}}}")
        self._other = re.compile(rf"[^{allowed}]")
        self._most = most
        self._back: dict[str, str] = {}

    def out(self, word: str) -> str:
        """The name that the provider accepts."""
        if self._sound.fullmatch(word):
            return word
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        made = f"{self._other.sub('_', word)[: self._most - 9]}_{digest}"
        if not self._sound.fullmatch(made):  # because of its first character
            made = f"_{made[1:]}"
        self._back[made] = word
        return made

    def back(self, word: str) -> str:
        """The original name."""
        return self._back.get(word, word)


def fresh_id(taken: Callable[[str], bool], messages: int, ordinal: int) -> str:
    """An ID for a tool use that came without one. It depends on the position in the conversation,
    so that the same answer gets the same ID again.
    """
    id = f"call_{messages}_{ordinal}"
    while taken(id):
        id += "_"
    return id


def ids_in(messages: Iterable[SamplingMessage]) -> set[str]:
    """The ids of all tool uses."""
    return {
        block.id
        for message in messages
        for block in blocks_of(message)
        if isinstance(block, ToolUseContent)
    }


def kept(block: SamplingContent, key: str, source: str) -> JSONObject:
    """The data that a provider needs again with this block: the member `key` of its `_meta`, if it
    came from the same `source` (`SAM-21`).
    """
    meta = getattr(block, "meta", None) or {}
    found = meta.get(key)
    return found if isinstance(found, dict) and found.get("from") == source else {}


def keeping(block: SamplingContent, key: str, source: str, what: JSONObject) -> SamplingContent:
    """The block with the data that its provider needs again."""
    if not what:
        return block
    meta = {**(getattr(block, "meta", None) or {}), key: {"from": source, **what}}
    return structs.replace(block, meta=meta)
