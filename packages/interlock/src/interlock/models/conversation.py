"""Repairs a conversation for providers: alternating roles, each tool call with its result.

Providers reject a conversation in any other order. A cancelled turn, a shortened history or the
messages of a server must not end in such an error (`SAM-14`, `SAM-15`).
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
    """What one side said at a time, all its messages together."""

    role: Role
    blocks: list[SamplingContent]


def blocks_of(message: SamplingMessage) -> list[SamplingContent]:
    """The content of a message as a list."""
    return message.content if isinstance(message.content, list) else [message.content]


def prepared(messages: Iterable[SamplingMessage]) -> list[RoleTurn]:
    """The conversation with empty parts left out, roles in turn, and after each tool use its
    result, in the order of the uses.

    A use without a result gets one that says so, marked as an error. A result that answers no use
    becomes text, so that it is not lost.
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
    """The same with the user's words at both ends, which some providers demand."""
    if talk and talk[0].role == "assistant":
        talk = [
            RoleTurn("user", [TextContent("(The beginning of the conversation is not here.)")]),
            *talk,
        ]
    if talk and talk[-1].role == "assistant":
        talk = [*talk, RoleTurn("user", [TextContent("Go on.")])]
    return talk


def without_tools(talk: list[RoleTurn]) -> list[RoleTurn]:
    """The same for a model that takes no tools: calls and results told as text."""
    told = []
    for turn in talk:
        blocks: list[SamplingContent] = []
        for block in turn.blocks:
            if isinstance(block, ToolUseContent):
                blocks.append(TextContent(f"[The tool {block.name} was called.]"))
            elif isinstance(block, ToolResultContent):
                blocks.extend(_told(block))
            else:
                blocks.append(block)
        told.append(RoleTurn(turn.role, blocks))
    return told


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
    """Put the results behind the uses that wait for them."""
    found: dict[str, ToolResultContent] = {}
    others: list[SamplingContent] = []
    for result in results:
        if result.tool_use_id in waiting and result.tool_use_id not in found:
            found[result.tool_use_id] = result
        else:
            others.extend(_told(result))
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


def _told(result: ToolResultContent) -> list[SamplingContent]:
    """A result as content that a user may say."""
    told: list[SamplingContent] = [TextContent("[The result of a tool call:]")]
    for block in result.content:
        if isinstance(block, SamplingContent):
            told.append(block)
        elif hasattr(block, "uri"):
            told.append(TextContent(f"[{block.uri}]"))
        else:
            told.append(TextContent(block.resource.text or f"[{block.resource.uri}]"))
    return [block for block in told if not _is_empty(block)]


class IdMap:
    """Names (or ids) as a provider takes them: those that it would refuse are replaced, always by
    the same, and can be turned back.

    `allowed` and `first` are what stands in a class of a regular expression: signs that may be in a
    word, and at its beginning.
    """

    def __init__(self, allowed: str, most: int, *, first: str = "") -> None:
        self._sound = re.compile(rf"[{first or allowed}][{allowed}]{{0,{most - 1}}}")
        self._other = re.compile(rf"[^{allowed}]")
        self._most = most
        self._back: dict[str, str] = {}

    def out(self, word: str) -> str:
        """As the provider takes it."""
        if self._sound.fullmatch(word):
            return word
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        made = f"{self._other.sub('_', word)[: self._most - 9]}_{digest}"
        if not self._sound.fullmatch(made):  # for its first sign
            made = f"_{made[1:]}"
        self._back[made] = word
        return made

    def back(self, word: str) -> str:
        """As it was before, where it was replaced."""
        return self._back.get(word, word)


def fresh_id(taken: Callable[[str], bool], messages: int, ordinal: int) -> str:
    """An id for a tool use that came without one: of its place in the conversation, so that the
    same answer gives the same id again.
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
    """What a provider wants to see again with this block: what its `_meta` has under `key`, if it
    is from that very `source` (`SAM-21`).
    """
    meta = getattr(block, "meta", None) or {}
    found = meta.get(key)
    return found if isinstance(found, dict) and found.get("from") == source else {}


def keeping(block: SamplingContent, key: str, source: str, what: JSONObject) -> SamplingContent:
    """The block with what its provider wants to see again."""
    if not what:
        return block
    meta = {**(getattr(block, "meta", None) or {}), key: {"from": source, **what}}
    return structs.replace(block, meta=meta)
