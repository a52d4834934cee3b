"""Threat scan: signs of tool poisoning, prompt injection, phishing and dangerous commands.

A warning is not a proof, and no warnings are not an all-clear. The protection is the policy, which
decides what a server may do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from interlock import CallToolResult, EmbeddedResource, TextContent
from interlock.typed.form_fields import FormField
from interlock.types import CreateMessageRequestParams, Prompt, Tool, ToolResultContent
from interlock.untrusted.invisible import clean, hidden, smuggled, turned, visible
from interlock.untrusted.urls import examine

from ..questions import Warned
from .phrases import phrases, secrets
from .results import UNREMARKABLE, pieces

__all__ = [
    "clean",
    "in_result",
    "pieces",
    "of_content",
    "of_form",
    "of_prompt",
    "of_sampling",
    "of_text",
    "of_tool",
    "of_tools",
    "of_url",
    "visible",
]

# characters of one text that are scanned; the rest is only scanned for hidden characters
MAX_TEXT = 200_000
MOST_TOKENS = 32_000  # tokens of one sampling request; more is unusual
_DEPTH = 32  # of schemas

_ADDRESS = re.compile(r"https?://[^\s<>\"'`)\]]+")


def of_text(text: str, *, where: str = "") -> tuple[Warned, ...]:
    """The warnings about a text of a server, such as a description, a result or a prompt.

    `where` names its place.
    """
    found = [
        Warned(kind=kind, words=words, where=_at(where, seen))
        for kind, words, seen in phrases(clean(text[:MAX_TEXT]))
    ]
    if said := smuggled(text):
        found.insert(
            0,
            Warned(
                kind="smuggled",
                words=f"It contains an invisible message: {said[:200]!r}.",
                where=where,
            ),
        )
        found += [
            each for each in of_text(said, where=where) if each.kind not in {w.kind for w in found}
        ]
    elif unseen := hidden(text):
        codes = ", ".join(dict.fromkeys(f"U+{ord(each):04X}" for each in unseen[:8]))
        words = f"It holds {len(unseen)} invisible characters ({codes})."
        if turned(text):
            words = (
                "Its characters are shown in another order: it contains marks that change "
                "the direction of "
                f"writing ({codes})."
            )
        elif "\x1b" in unseen or "\x9b" in unseen:
            words = f"It contains terminal escape sequences, which can hide text ({codes})."
        found.insert(0, Warned(kind="hidden", words=words, where=where))
    return tuple(found)


def of_tool(tool: Tool) -> tuple[Warned, ...]:
    """The warnings about a tool: all text that a model reads, down to the descriptions in its
    schemas (`HST-03`).
    """
    return _once(
        warned for where, text in _texts_of_tool(tool) for warned in of_text(text, where=where)
    )


def of_prompt(prompt: Prompt) -> tuple[Warned, ...]:
    """The warnings about a listed prompt."""
    texts = [("name", prompt.name), ("title", prompt.title), ("description", prompt.description)]
    for each in prompt.arguments or ():
        texts += [
            (f"argument {each.name}", text) for text in (each.name, each.title, each.description)
        ]
    return _once(warned for where, text in texts if text for warned in of_text(text, where=where))


def of_tools(
    server: str, tools: Sequence[Tool], others: Mapping[str, Sequence[Tool]]
) -> dict[str, tuple[Warned, ...]]:
    """The warnings about a server's tools by name, including texts that mention other servers'
    tools.

    Tools without warnings are left out. `others` are the tools of the other servers by their ids. A
    name that is one plain word is not a sign: it is an ordinary word.
    """
    foreign: dict[str, str] = {}
    own = {tool.name.casefold() for tool in tools} | {server.casefold()}
    for other, theirs in others.items():
        if other != server:
            foreign |= {
                tool.name: other
                for tool in theirs
                if _is_distinctive(tool.name) and tool.name.casefold() not in own
            }
    mentioned = re.compile(
        "|".join(
            rf"(?<![\w-]){re.escape(name)}(?![\w-])"
            for name in sorted(foreign, key=len, reverse=True)
        )
        or r"(?!)"
    )
    found: dict[str, tuple[Warned, ...]] = {}
    for tool in tools:
        warned = list(of_tool(tool))
        for where, text in _texts_of_tool(tool):
            if seen := mentioned.search(text):
                words = (
                    f"It mentions {seen[0]}, a tool of another server "
                    f"({foreign[seen[0]]}): it may want to change how that is used."
                )
                warned.append(Warned(kind="shadowing", words=words, where=where))
                break
        if warned:
            found[tool.name] = tuple(warned)
    return found


def in_result(result: CallToolResult) -> Iterator[tuple[Warned, ...]]:
    """The instructions to the model that a result contains, piece by piece, so that the caller can
    pause.

    At most `MOST_SCANNED` characters of a result are scanned.
    """
    for piece in pieces(result, _texts_of_blocks(result.content)):
        yield tuple(each for each in of_text(piece) if each.kind not in UNREMARKABLE)


def of_content(blocks: Iterable[Any]) -> tuple[Warned, ...]:
    """The warnings about content blocks: texts, embedded texts, and results inside requests."""
    return _once(warned for text in _texts_of_blocks(blocks) for warned in of_text(text))


def of_form(message: str, fields: Sequence[FormField]) -> tuple[Warned, ...]:
    """The warnings about a form: secrets that it must not ask for (`ELI-15`, `ELI-16`), addresses
    in fields (`ELI-28`), hidden text.
    """
    found: list[Warned] = []
    for field in fields:
        if field.kind in ("boolean", "choice", "choices"):
            asked = []  # a field without text input
        else:
            asked = secrets(field.name) or secrets(field.title) or secrets(field.description)
        for kind, what in asked:
            words = (
                f"It asks for {what}. A server must not ask for that in a form: do not type it "
                "here."
            )
            found.append(Warned(kind=kind, words=words, where=field.name))
        for text in (field.title, field.description):
            found += of_text(text, where=field.name)
            if _ADDRESS.search(text):
                words = (
                    "A field of the form contains an address, which does not belong "
                    "there. Do not open it."
                )
                found.append(Warned(kind="link", words=words, where=field.name))
    if not found and any(field.kind in ("text", "number", "integer") for field in fields):
        asked = (
            secrets(message)
            if re.search(
                r"\b(?:enter|type|give|provide|confirm|your)\b|请|输入|bitte|eingeben|votre"
                r"|ingrese|tu\b",
                message,
                re.I,
            )
            else []
        )
        found += [
            Warned(
                kind=kind,
                words=f"It seems to ask for {what}. Do not type that into a form.",
                where="message",
            )
            for kind, what in asked
        ]
    return _once([*found, *of_text(message, where="message")])


def of_url(url: str, *, server: str = "") -> tuple[str, str, tuple[Warned, ...]]:
    """The host that a URL leads to, its site, and the warnings about the URL.

    Args:
        url: The URL as the server wrote it.
        server: The URL of the server that sent it.
    """
    found = examine(url, own=server)
    warned = tuple(Warned(kind=each.kind, words=each.words, where=url) for each in found.dangers)
    return found.host, found.site, warned


def of_sampling(params: CreateMessageRequestParams) -> tuple[Warned, ...]:
    """The warnings about a sampling request (`SAM-06`, `SAM-17`): what it sends, what it wants to
    see, and how much.
    """
    found: list[Warned] = []
    if params.include_context in ("thisServer", "allServers"):
        words = (
            "It wants the model to see the output of other servers."
            if params.include_context == "allServers"
            else ("It wants the model to see the earlier conversation with this server.")
        )
        found.append(
            Warned(
                kind="context",
                words=words + " The host does not share that.",
                where="includeContext",
            )
        )
    if params.max_tokens > MOST_TOKENS:
        words = f"It wants up to {params.max_tokens:,} tokens, which you pay for."
        found.append(Warned(kind="tokens", words=words, where="maxTokens"))
    if params.system_prompt:
        found += of_text(params.system_prompt, where="systemPrompt")
    for message in params.messages:
        blocks = message.content if isinstance(message.content, list) else [message.content]
        for text in _texts_of_blocks(blocks):
            found += of_text(text, where="messages")
    for tool in params.tools or ():
        found += of_tool(tool)
    return _once(found)


# -- where texts are -------------------------------------------------------------------------------


def _texts_of_tool(tool: Tool) -> Iterator[tuple[str, str]]:
    title = tool.annotations.title if tool.annotations else None
    for where, text in (
        ("name", tool.name),
        ("title", tool.title),
        ("title", title),
        ("description", tool.description),
    ):
        if text:
            yield where, text
    for where, schema in (("inputSchema", tool.input_schema), ("outputSchema", tool.output_schema)):
        yield from _texts_inside(schema, where, 0)


def _texts_inside(value: Any, where: str, depth: int) -> Iterator[tuple[str, str]]:
    """All texts of a schema, including its names: a server controls all that a model reads."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping) and depth < _DEPTH:
        for key, each in value.items():
            yield where, str(key)
            yield from _texts_inside(each, f"{where}/{key}", depth + 1)
    elif isinstance(value, list) and depth < _DEPTH:
        for each in value:
            yield from _texts_inside(each, where, depth + 1)


def _texts_of_blocks(blocks: Iterable[Any]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, TextContent):
            yield block.text
        elif isinstance(block, EmbeddedResource) and block.resource.text:
            yield block.resource.text
        elif isinstance(block, ToolResultContent):
            yield from _texts_of_blocks(block.content or ())


def _is_distinctive(name: str) -> bool:
    """Whether a tool's name is more than an ordinary word: parts joined by a mark or a capital."""
    return len(name) > 4 and re.search(r"[a-z0-9][A-Z]|[\w][_\-./:][\w]", name) is not None


def _at(where: str, seen: str) -> str:
    return f"{where}: {seen}" if where else seen


def _once(warned: Iterable[Warned]) -> tuple[Warned, ...]:
    """Each kind of warning once for each place, in order."""
    return tuple({(each.kind, each.where): each for each in warned}.values())
