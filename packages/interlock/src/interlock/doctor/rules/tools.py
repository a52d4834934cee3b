"""Rules about names, descriptions, annotations and icons."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from ... import types as t
from ...untrusted.invisible import hidden, visible_line
from ...untrusted.lookalikes import lookalikes
from ..diagnostics import RuleFinding, rule
from ..facts import CatalogueFacts

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")  # TOL-19
_PROVIDER_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")  # what OpenAI and Gemini accept
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_DESTROYS = frozenset(
    {"delete", "remove", "drop", "erase", "destroy", "purge", "kill", "wipe", "overwrite"}
)
_WRITES = frozenset(
    {"write", "create", "update", "insert", "send", "move", "rename", "edit", "upload"}
)
_MOST_TOOLS = 128
_LONGEST_DESCRIPTION = 1_024


@rule(
    "tool-name",
    "warning",
    "The name of a tool breaks the rules",
    advice="Use 1 to 128 of A-Z, a-z, 0-9, _, - and dots.",
)
def tool_name(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """`TOL-19`: clients may refuse the tool."""
    for tool in facts.tools:
        if not _NAME.fullmatch(tool.name):
            yield RuleFinding(
                "its name has other characters, or too many", visible_line(tool.name[:80])
            )


@rule(
    "tool-name-provider",
    "warning",
    "Models of some providers cannot call a tool of this name",
    advice="Use at most 64 of A-Z, a-z, 0-9, _ and -, and begin with a letter.",
)
def tool_name_provider(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """OpenAI and Gemini reject a request with such a name, unless the host renames the tool."""
    for tool in facts.tools:
        if _NAME.fullmatch(tool.name) and not _PROVIDER_NAME.fullmatch(tool.name):
            yield RuleFinding("OpenAI or Gemini rejects this name", tool.name)


@rule(
    "name-duplicate",
    "error",
    "Two items of a list have the same name",
    advice="Give each tool, prompt and resource a name or URI of its own.",
)
def name_duplicate(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """Only one of them can be called."""
    names = {
        "tool": [tool.name for tool in facts.tools],
        "prompt": [prompt.name for prompt in facts.prompts],
        "resource": [resource.uri for resource in facts.resources],
    }
    for kind, found in names.items():
        for name, count in Counter(found).items():
            if count > 1:
                yield RuleFinding(f"there are {count} {kind}s of this name", visible_line(name))


@rule(
    "name-lookalike",
    "warning",
    "A name can be confused with another one",
    advice="Use ASCII letters, and names that differ by more than their case.",
)
def name_lookalike(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """Homographs, invisible characters, and names that differ by their case only."""
    for names in ([tool.name for tool in facts.tools], [prompt.name for prompt in facts.prompts]):
        for name, words in lookalikes(names).items():
            yield RuleFinding(words, visible_line(name))
        folded = Counter(name.lower() for name in set(names))
        for name in dict.fromkeys(names):
            if folded[name.lower()] > 1:
                yield RuleFinding(
                    "another name differs from it by the case only", visible_line(name)
                )


@rule(
    "tools-many",
    "warning",
    "The server has more tools than some hosts accept",
    advice="Offer at most 128, or let the user choose groups of tools.",
)
def tools_many(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """OpenAI and VS Code accept 128 tools in a request."""
    if len(facts.tools) > _MOST_TOOLS:
        yield RuleFinding(
            f"it has {len(facts.tools)} tools; OpenAI and VS Code accept {_MOST_TOOLS}"
        )


@rule(
    "description-missing",
    "warning",
    "A tool has no description",
    advice="Say in a sentence what it does: the model chooses tools by their descriptions.",
)
def description_missing(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """The model knows the name only."""
    for tool in facts.tools:
        if not (tool.description or "").strip():
            yield RuleFinding("it has no description", tool.name)


@rule(
    "description-long",
    "note",
    "The description of a tool is long",
    advice="Keep it below 1,024 characters, where some APIs cut it or reject the request.",
)
def description_long(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """Azure OpenAI and some hosts have this limit."""
    for tool in facts.tools:
        if len(tool.description or "") > _LONGEST_DESCRIPTION:
            yield RuleFinding(f"it has {len(tool.description or ''):,} characters", tool.name)


@rule(
    "hidden-text",
    "error",
    "A text for the model has characters that nobody sees",
    advice="Remove them: they can hide instructions (tool poisoning).",
)
def hidden_text(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """Zero-width characters, tags, terminal escapes and marks that turn the direction."""
    for where, text in _texts(facts):
        found = list(dict.fromkeys(hidden(text)))
        if found:
            signs = ", ".join(f"U+{ord(sign):04X}" for sign in found[:5])
            yield RuleFinding(f"it has {signs}", visible_line(where))


@rule(
    "annotations-contradict",
    "warning",
    "The annotations of a tool contradict each other",
    advice="A read-only tool is not destructive. Set one of the hints.",
)
def annotations_contradict(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """`readOnlyHint` and `destructiveHint` are both true."""
    for tool, hints in _annotated(facts):
        if hints.read_only_hint and hints.destructive_hint:
            yield RuleFinding("it is said to be read-only and destructive", tool.name)


@rule(
    "read-only-name",
    "warning",
    "A tool is said to be read-only, and its name says that it changes something",
    advice="Set `readOnlyHint` to false, or rename the tool: hosts run it without asking.",
)
def read_only_name(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """For example a read-only `delete_file`."""
    for tool, hints in _annotated(facts):
        if hints.read_only_hint and (word := _changing_word(tool.name)):
            yield RuleFinding(f"`readOnlyHint` is true, and its name says {word}", tool.name)


@rule(
    "destructive-name",
    "warning",
    "A tool is said to be harmless, and its name says that it destroys something",
    advice="Set `destructiveHint` to true, or leave it out.",
)
def destructive_name(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """For example `destructiveHint: false` on `delete_file`."""
    for tool, hints in _annotated(facts):
        words = _DESTROYS.intersection(_words(tool.name))
        if hints.destructive_hint is False and not hints.read_only_hint and words:
            yield RuleFinding(
                f"`destructiveHint` is false, and its name says {min(words)}", tool.name
            )


@rule(
    "annotations-missing",
    "note",
    "A tool has no annotations",
    advice="Set `readOnlyHint` and `destructiveHint`: hosts ask the user less.",
)
def annotations_missing(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """Without hints, clients assume that a tool destroys data and reaches the network."""
    names = [
        tool.name
        for tool in facts.tools
        if tool.annotations is None
        or (tool.annotations.read_only_hint is None and tool.annotations.destructive_hint is None)
    ]
    if names:
        shown = ", ".join(visible_line(name) for name in names[:5])
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        yield RuleFinding(f"clients assume that {shown}{more} can destroy data")


@rule(
    "icon-source",
    "warning",
    "Clients do not load an icon",
    advice="Use an https or data URI.",
)
def icon_source(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """`ICO-02`: clients reject all other sources."""
    for item in facts.items:
        for icon in item.icons or ():
            scheme = _scheme(icon.src)
            if scheme not in ("https", "data"):
                yield RuleFinding(
                    f"the source of its icon is {scheme or 'no'} URI", visible_line(item.name)
                )


def _annotated(facts: CatalogueFacts) -> Iterator[tuple[t.Tool, t.ToolAnnotations]]:
    for tool in facts.tools:
        if tool.annotations is not None:
            yield tool, tool.annotations


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def _changing_word(name: str) -> str:
    """The word of a name that says that something is changed; empty if there is none."""
    words = _words(name)
    for word in words:
        if word in _DESTROYS:
            return word
    return words[0] if words and words[0] in _WRITES else ""


def _texts(facts: CatalogueFacts) -> Iterator[tuple[str, str]]:
    """The texts of a catalogue that a model reads, with their places."""
    yield "instructions", facts.instructions
    for item in facts.items:
        yield item.name, f"{item.title or ''} {item.description or ''}"
    for tool in facts.tools:
        properties = tool.input_schema.get("properties")
        for name, schema in properties.items() if isinstance(properties, dict) else ():
            yield f"{tool.name}.{name}", f"{name} {_description(schema)}"


def _description(schema: Any) -> str:
    found = schema.get("description") if isinstance(schema, dict) else None
    return found if isinstance(found, str) else ""


def _scheme(uri: str) -> str:
    try:
        return urlsplit(uri).scheme
    except ValueError:
        return ""


RULES: Final = (
    tool_name,
    tool_name_provider,
    name_duplicate,
    name_lookalike,
    tools_many,
    description_missing,
    description_long,
    hidden_text,
    annotations_contradict,
    read_only_name,
    destructive_name,
    annotations_missing,
    icon_source,
)
