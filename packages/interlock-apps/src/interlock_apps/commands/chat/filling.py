"""Forms, filled in field by field and reviewed before they are sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.shortcuts import PromptSession

from ...fleet import forms
from ...fleet.questions import Filled, FormQuestion
from .focus import KeyChoice, TerminalFocus
from .output import in_line
from .question_views import field_lines, filled_lines, shown_value

_FORM = (KeyChoice("f", "fill in"), KeyChoice("d", "decline"), KeyChoice("c", "cancel"))
_REVIEW = (
    KeyChoice("y", "send"),
    KeyChoice("e", "change a field"),
    KeyChoice("d", "decline"),
    KeyChoice("c", "cancel"),
)
_WRONG = (KeyChoice("e", "change a field"), KeyChoice("d", "decline"), KeyChoice("c", "cancel"))


class Back(Exception):
    """The person wants out of a field."""


class Options(Completer):
    """Offers the choices of a field."""

    def __init__(self, field: forms.Field) -> None:
        self._field = field

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """See Completer."""
        text = document.text_before_cursor
        if self._field.kind == "choices":
            text = text.rpartition(",")[2].lstrip()
        if text.isdigit():
            return
        for value, title in self._field.options:
            named = in_line(title, 200)
            if text.casefold() in title.casefold() and named == title and "," not in title:
                yield Completion(
                    title,
                    start_position=-len(text),
                    display_meta="" if value == title else in_line(value, 60),
                )


async def fill(front: TerminalFocus, question: FormQuestion) -> Filled:
    """The person's answer to a form. Raises GivenUp and EOFError."""
    fields: tuple[forms.Field, ...] = question.fields
    content = forms.defaults(fields)
    wrong = {warned.where: warned.words for warned in question.warnings if warned.kind == "invalid"}
    key = await front.key(_FORM if fields else (KeyChoice("y", "yes"), *_FORM[1:]))
    if key == "f":
        try:
            for number, field in enumerate(fields, 1):
                await _fill_in(front, field, number, len(fields), content)
        except Back:
            pass
        key = ""
    elif key == "y":
        return Filled(action="accept", content={})
    while not key or key == "e":
        if key == "e":
            await _change(front, fields, content)
        wrong = forms.check(question.requested_schema, content)
        front.paper.print(*filled_lines(fields, content, wrong))
        key = await front.key(_WRONG if wrong else _REVIEW)
    if key == "y":
        front.paper.note("  → sent", "green")
        return Filled(action="accept", content=content)
    front.paper.note("  → declined" if key == "d" else "  → cancelled", "yellow")
    return Filled(action="decline" if key == "d" else "cancel")


async def _change(
    front: TerminalFocus, fields: tuple[forms.Field, ...], content: dict[str, Any]
) -> None:
    """Ask which field is to be filled in again, and do so."""
    session: PromptSession[str] = PromptSession(key_bindings=_out())
    try:
        said = (await front.text(session, f"Which field (1 to {len(fields)})? ")).strip()
        number = (
            int(said)
            if said.isascii() and said.isdigit()
            else next((n for n, f in enumerate(fields, 1) if said in (f.name, f.title)), 0)
        )
        if not 1 <= number <= len(fields):
            front.paper.note(f"  There is no field {in_line(said, 60)}.", "bold red")
            return
        await _fill_in(front, fields[number - 1], number, len(fields), content)
    except Back:
        return


async def _fill_in(
    front: TerminalFocus, field: forms.Field, number: int, count: int, content: dict[str, Any]
) -> None:
    """Ask for one field until what is typed fits; empty leaves an optional one out. Raises Back at Esc."""
    front.paper.print(*field_lines(field, number, count))
    options = Options(field) if field.options else None
    session: PromptSession[str] = PromptSession(
        key_bindings=_out(), completer=options, complete_while_typing=True, reserve_space_for_menu=5
    )
    text = shown_value(field, content.get(field.name, UNSET))
    while True:
        typed = await front.text(session, "  ❯ ", default=text)
        if not typed.strip() and not field.required:
            content.pop(field.name, None)
            return
        try:
            if not typed.strip() and not (
                field.kind == "text" and field.least in (None, 0) and typed
            ):
                raise forms.BadValue("A value is needed here.")
            content[field.name] = forms.read(field, typed)
            return
        except forms.BadValue as bad:
            front.paper.note(f"    ! {bad}", "bold red")
            text = typed


def _out() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", eager=True)
    def _(event: KeyPressEvent) -> None:
        event.app.exit(exception=Back())

    return keys
