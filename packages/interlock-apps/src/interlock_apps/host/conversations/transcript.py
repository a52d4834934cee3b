"""The transcript of a conversation: what a reader of an export gets to see, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from interlock import AudioContent, CallToolResult, ImageContent, TextContent
from interlock.types import JSONObject, ResourceLink

from ...fleet import threat_scan
from ...fleet.events import (
    CallDecided,
    CallEnded,
    CallProposed,
    ModelFailed,
    ModelSaid,
    PersonSaid,
    QuestionAnswered,
    QuestionAsked,
    SessionBegan,
    TaskEnded,
    TurnEnded,
)
from ...fleet.questions import Filled, FormQuestion
from ..loop.context_window import blocks
from .branches import Branch
from .search import said_text


class Picture(Struct, frozen=True):
    """An image: its media type, and its bytes in Base64."""

    mime_type: str
    data: str


class Message(Struct, frozen=True, kw_only=True):
    """A message of the person or a model.

    Attributes:
        at: Its time, in seconds of the wall clock.
        model: The name of the model; "" for the person.
        text: Its text; Markdown if it is the model's.
        pictures: Its images.
        remarks: What else it has: attachments, a prompt.
    """

    at: float
    model: str
    text: str
    pictures: tuple[Picture, ...] = ()
    remarks: tuple[str, ...] = ()


class Call(Struct, kw_only=True):
    """A tool call: its arguments, and its result, or the reason why there is none."""

    at: float
    server: str
    tool: str
    arguments: JSONObject
    outcome: str = "It did not end."
    text: str = ""
    pictures: tuple[Picture, ...] = ()
    warnings: tuple[str, ...] = ()


class Form(Struct, kw_only=True):
    """A form of a server, and what the person entered; None: it was declined."""

    at: float
    server: str
    message: str
    content: JSONObject | None = None


class Remark(Struct, frozen=True, kw_only=True):
    """Something that happened, in words of the host."""

    at: float
    words: str


Part = Message | Call | Form | Remark


class Transcript(Struct, frozen=True, kw_only=True):
    """A conversation for a reader.

    Attributes:
        title: Its title.
        model: The model that it began with.
        began: Its beginning, in seconds of the wall clock.
        parts: What it consists of, in order.
    """

    title: str
    model: str
    began: float
    parts: tuple[Part, ...]


def transcript_of(branch: Branch, title: str) -> Transcript:
    """The transcript of a branch of a conversation."""
    parts: list[Part] = []
    calls: dict[str, Call] = {}
    forms: dict[str, Form] = {}
    model = ""
    failure = ""
    for entry in branch.entries:
        at = entry.at
        event = entry.event
        match event:
            case SessionBegan():
                model = model or event.model
            case PersonSaid():
                parts.append(_of_person(at, event))
            case ModelSaid():
                failure = ""
                if (message := _of_model(at, event)) is not None:
                    parts.append(message)
            case CallProposed():
                calls[event.call] = Call(
                    at=at,
                    server=event.server,
                    tool=event.tool or event.name,
                    arguments=event.arguments,
                )
                parts.append(calls[event.call])
            case CallDecided() if event.call in calls:
                _decide(calls[event.call], event)
            case CallEnded() | TaskEnded() if event.call in calls:
                _end(calls[event.call], event)
            case QuestionAsked(question=FormQuestion() as question):
                forms[question.id] = Form(at=at, server=question.server, message=question.message)
                parts.append(forms[question.id])
            case QuestionAnswered(answer=Filled(action="accept") as answer) if (
                event.question in forms
            ):
                forms[event.question].content = answer.content or {}
            case ModelFailed():
                failure = event.words
                parts.append(Remark(at=at, words=f"{event.model} gave no answer. {event.words}"))
            case TurnEnded() if event.words and event.words != failure:
                parts.append(Remark(at=at, words=event.words))
            case _:
                pass
    began = branch.entries[0].at if branch.entries else 0.0
    return Transcript(title=title, model=model, began=began, parts=tuple(parts))


def _of_person(at: float, event: PersonSaid) -> Message:
    remarks = [f"Attached: {each.title or each.uri} ({each.server})" for each in event.attached]
    if event.prompt:
        remarks.insert(0, f"Prompt {event.prompt} of {event.server}")
    found = [picture for message in event.messages for picture in _pictures(blocks(message))]
    return Message(
        at=at,
        model="",
        text=said_text(event),
        pictures=tuple(found),
        remarks=tuple(remarks),
    )


def _of_model(at: float, event: ModelSaid) -> Message | None:
    content = event.result.content
    pictures = _pictures(content if isinstance(content, list) else [content])
    text = said_text(event)
    if not text.strip() and not pictures:
        return None
    return Message(at=at, model=event.model, text=text, pictures=pictures)


def _decide(call: Call, event: CallDecided) -> None:
    if event.arguments is not None:
        call.arguments = event.arguments
    if not event.allow:
        call.outcome = f"Not called. {event.why}".strip()


def _end(call: Call, event: CallEnded | TaskEnded) -> None:
    call.warnings = tuple(warned.words for warned in event.warnings)
    if event.result is None:
        if not call.outcome.startswith("Not called"):
            call.outcome = event.error or "No result."
        return
    seconds = f" in {event.seconds:.1f} s" if isinstance(event, CallEnded) else ""
    call.outcome = f"{'Failed' if event.result.is_error else 'Done'}{seconds}"
    call.text = _result_text(event.result)
    call.pictures = _pictures(event.result.content)


def _result_text(result: CallToolResult) -> str:
    texts = []
    for block in result.content:
        if isinstance(block, TextContent):
            texts.append(block.text)
        elif isinstance(block, ResourceLink):
            texts.append(f"{block.title or block.name}: {block.uri}")
        elif isinstance(block, AudioContent):
            texts.append(f"(sound, {block.mime_type})")
        elif not isinstance(block, ImageContent):
            text = getattr(getattr(block, "resource", None), "text", None)
            texts.append(text if isinstance(text, str) else f"({type(block).__name__})")
    return "\n\n".join(texts)


def _pictures(content: Sequence[Any]) -> tuple[Picture, ...]:
    return tuple(
        Picture(block.mime_type, block.data) for block in content if isinstance(block, ImageContent)
    )


def visible(text: str) -> str:
    """A text with its invisible characters written out."""
    return threat_scan.visible(text)
