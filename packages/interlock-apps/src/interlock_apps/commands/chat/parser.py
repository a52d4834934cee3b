"""Parser of the input line: a command, a prompt with arguments, or a message with attachments."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from interlock.types import Prompt, Resource, ResourceTemplate

from ...fleet.events import Attached

_TRAILING = ".,;:!?)]}'\""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BLANK = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"\w[\w.-]*")


class ServerOffer(Struct, frozen=True, kw_only=True):
    """What a server offers to a person."""

    server: str
    prompts: Sequence[Prompt] = ()
    resources: Sequence[Resource] = ()
    templates: Sequence[ResourceTemplate] = ()
    completes: bool = False


class Word(Struct, frozen=True):
    """A word of a line.

    `text` is without its quotes; `start` and `end` are its indexes in the line.
    """

    text: str
    start: int
    end: int


class Command(Struct, frozen=True):
    """A command of the chat, with the rest of the line."""

    name: str
    rest: str


class PromptCall(Struct, frozen=True):
    """A prompt of a server, with the arguments typed so far and attached resources."""

    server: str
    prompt: Prompt
    arguments: dict[str, str]
    attached: tuple[Attached, ...]


class ChatMessage(Struct, frozen=True):
    """A message, and resources attached to it."""

    text: str
    attached: tuple[Attached, ...]


class LineError(Struct, frozen=True):
    """A line that cannot be parsed; `words` say why."""

    words: str


Line = Command | PromptCall | ChatMessage | LineError


def read_line(line: str, commands: Collection[str], offers: Sequence[ServerOffer]) -> Line:
    """Parse an input line.

    A command of the chat hides a prompt of the same name; `/server:prompt` still reaches the
    prompt.
    """
    text = line.strip()
    if not text.startswith("/") or text.startswith("//"):
        return _speech(text.removeprefix("/") if text.startswith("//") else text, offers)
    head, _, rest = text[1:].partition(" ")
    head, _, below = head.partition("\n")
    rest = f"{below} {rest}".strip()
    if head in commands:
        return Command(head, rest)
    found = prompts_called(head, offers)
    if len(found) > 1:
        return LineError(
            f"Several servers have a prompt {head}: "
            f"{', '.join(f'/{server}:{prompt.name}' for server, prompt in found)}"
        )
    if not found:
        near = sorted(
            name for name in [*commands, *names_of_prompts(offers)] if name.startswith(head[:2])
        )[:5]
        return LineError(
            f"There is no /{head}."
            + (
                f" Did you mean {', '.join('/' + name for name in near)}?"
                if near
                else " See /help."
            )
        )
    return _prompt_call(*found[0], rest, offers)


def prompts_called(name: str, offers: Sequence[ServerOffer]) -> list[tuple[str, Prompt]]:
    """The prompts that a name may mean: `server:prompt`, or just the prompt's name."""
    full = [(o.server, p) for o in offers for p in o.prompts if f"{o.server}:{p.name}" == name]
    return full or [(o.server, p) for o in offers for p in o.prompts if p.name == name]


def names_of_prompts(
    offers: Sequence[ServerOffer], commands: Collection[str] = ()
) -> dict[str, tuple[str, Prompt]]:
    """All prompts, each by its shortest unambiguous name."""
    count: dict[str, int] = {}
    for offer in offers:
        for prompt in offer.prompts:
            count[prompt.name] = count.get(prompt.name, 0) + 1
    return {
        prompt.name
        if count[prompt.name] == 1 and prompt.name not in commands
        else f"{offer.server}:{prompt.name}": (offer.server, prompt)
        for offer in offers
        for prompt in offer.prompts
    }


def words_of(text: str) -> Iterator[Word]:
    """The words of a text.

    A blank between quotation marks or after a backslash does not end a word.
    """
    word: list[str] | None = None
    start = 0
    quote = ""
    place = 0
    while place < len(text):
        letter = text[place]
        if (
            letter == "\\"
            and quote != "'"
            and place + 1 < len(text)
            and text[place + 1] in "\\\"' "
        ):
            word, start = (word, start) if word is not None else ([], place)
            place += 1
            word.append(text[place])
        elif quote and letter == quote:
            quote = ""
        elif not quote and letter in "\"'" and (word is None or word[-1:] == ["="]):
            word, start = (word, start) if word is not None else ([], place)
            quote = letter
        elif not quote and letter.isspace():
            if word is not None:
                yield Word("".join(word), start, place)
            word = None
        else:
            word, start = (word, start) if word is not None else ([], place)
            word.append(letter)
        place += 1
    if word is not None:
        yield Word("".join(word), start, len(text))


def quoted(text: str) -> str:
    """Quote a text so that it is one word of a line."""
    return (
        text
        if text and not re.search(r"[\s\"'\\]", text)
        else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    )


def _prompt_call(server: str, prompt: Prompt, rest: str, offers: Sequence[ServerOffer]) -> Line:
    known = [argument.name for argument in prompt.arguments or ()]
    given: dict[str, str] = {}
    attached: list[Attached] = []
    for word in words_of(rest):
        name, equals, value = word.text.partition("=")
        if equals and name in known:
            given[name] = value
        elif word.text.startswith("@") and (place := attachment(word.text[1:], offers)) is not None:
            attached.append(place)
        elif word.text.startswith("@"):
            return LineError(f"No server has a resource {word.text[1:]}.")
        else:
            takes = (
                f"Its arguments: {', '.join(f'{name}=…' for name in known)}."
                if known
                else "It has no arguments."
            )
            return LineError(f"{word.text} is not an argument of {prompt.name}. {takes}")
    return PromptCall(server, prompt, given, tuple(dict.fromkeys(attached)))


def _speech(text: str, offers: Sequence[ServerOffer]) -> ChatMessage:
    attached: list[Attached] = []

    def take(found: re.Match[str]) -> str:
        token = found[1]
        found_places = [(end, attachment(end, offers)) for end in (token, token.rstrip(_TRAILING))]
        listed = [
            (end, place) for end, place in found_places if place is not None and place.title
        ]  # punctuation at the end of a sentence is not part of a URI
        for end, place in [*listed, *reversed(found_places)]:
            if place is not None:
                attached.append(place)
                return place.uri + token[len(end) :]
        return found[0]

    text = re.sub(r"(?<!\S)@(\S+)", take, text)
    return ChatMessage(text, tuple(dict.fromkeys(attached)))


def attachment(token: str, offers: Sequence[ServerOffer]) -> Attached | None:
    """The resource that the text after an `@` names: `server:uri`, or a URI of any server."""
    for offer in offers:
        server, colon, uri = token.partition(":")
        if colon and server == offer.server and _SCHEME.match(uri):
            return _attached(offer, uri)
    if not _SCHEME.match(token):
        return None
    for offer in offers:
        if any(resource.uri == token for resource in offer.resources):
            return _attached(offer, token)
    for offer in offers:
        if any(fits(template.uri_template, token) for template in offer.templates):
            return _attached(offer, token)
    return None


def _attached(offer: ServerOffer, uri: str) -> Attached:
    title = next(
        (resource.title or resource.name for resource in offer.resources if resource.uri == uri), ""
    )
    return Attached(server=offer.server, uri=uri, title=title)


def fits(template: str, uri: str) -> bool:
    """Whether a URI matches a template, or is the template itself."""
    parts = [
        re.escape(part) if index % 2 == 0 else ".+"
        for index, part in enumerate(_BLANK.split(template))
    ]
    return uri == template or re.fullmatch("".join(parts), uri) is not None


def blanks(template: str) -> list[str]:
    """The names of a template's variables, in order."""
    names = [name for expression in _BLANK.findall(template) for name in _NAME.findall(expression)]
    return list(dict.fromkeys(names))


class TemplateBlank(Struct, frozen=True):
    """The variable of a template that is being typed.

    `before` has the values of the variables before it, `head` and `tail` the text around it.
    """

    name: str
    value: str
    before: dict[str, str]
    head: str
    tail: str


def blank_at(template: str, typed: str) -> TemplateBlank | None:
    """The variable that is being typed at the end of a text; None if the text does not match.

    Only plain `{name}` expressions can be filled in while typing.
    """
    parts = _BLANK.split(template)
    names = parts[1::2]
    literals = parts[0::2]
    if (
        any(_NAME.fullmatch(name) is None for name in names)
        or not names
        or not typed.startswith(literals[0])
    ):
        return None
    at = len(literals[0])
    before = dict[str, str]()
    for index, name in enumerate(names):
        literal = literals[index + 1]
        end = typed.find(literal, at) if literal else -1
        if end < 0:
            tail = literal if index + 1 < len(names) else "".join(literals[index + 1 :])
            return TemplateBlank(name, typed[at:], before, typed[:at], tail)
        before[name] = typed[at:end]
        at = end + len(literal)
    return None
