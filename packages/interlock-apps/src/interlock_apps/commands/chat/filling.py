"""Forms of servers in the chat: its keys, completion of choices, and Esc to leave the fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.shortcuts import PromptSession

from interlock.cli.answers.form_filling import Decision, LeaveFields, fill_form
from interlock.typed.form_fields import FormField, defaults

from ...fleet.questions import Filled, FormQuestion
from .focus import KeyChoice, TerminalFocus
from .output import in_line
from .question_views import field_lines, filled_lines

_CHANGE = KeyChoice("e", "change a field")
_DECLINE = KeyChoice("d", "decline")
_CANCEL = KeyChoice("c", "cancel")
_DECISIONS: dict[str, Decision] = {"y": "send", "e": "change", "d": "decline", "c": "cancel"}


class Options(Completer):
    """Completes the choices of a field."""

    def __init__(self, field: FormField) -> None:
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


class ChatForm:
    """The `FormTerminal` of the chat."""

    def __init__(self, focus: TerminalFocus) -> None:
        self._focus = focus

    def show_field(self, field: FormField, number: int, count: int) -> None:
        """See FormTerminal."""
        self._focus.terminal.print(*field_lines(field, number, count))

    def show_problem(self, words: str) -> None:
        """See FormTerminal."""
        self._focus.terminal.note(f"    ! {words}", "bold red")

    def show_review(
        self, fields: Sequence[FormField], content: Mapping[str, Any], wrong: Mapping[str, str]
    ) -> None:
        """See FormTerminal."""
        self._focus.terminal.print(*filled_lines(fields, content, wrong))

    async def read_field(self, field: FormField, text: str, refused: str | None) -> str:
        """See FormTerminal. A rejected text is put back into the line for correction."""
        session: PromptSession[str] = PromptSession(
            key_bindings=_escape_key(),
            completer=Options(field) if field.options else None,
            complete_while_typing=True,
            reserve_space_for_menu=5,
        )
        return await self._focus.text(session, "  ❯ ", default=text if refused is None else refused)

    async def read_number(self, fields: Sequence[FormField]) -> int:
        """See FormTerminal."""
        session: PromptSession[str] = PromptSession(key_bindings=_escape_key())
        said = (await self._focus.text(session, f"Which field (1 to {len(fields)})? ")).strip()
        if said.isascii() and said.isdigit():
            number = int(said)
        else:
            names = ((n, (f.name, f.title)) for n, f in enumerate(fields, 1))
            number = next((n for n, named in names if said in named), 0)
        if not 1 <= number <= len(fields):
            self._focus.terminal.note(f"  There is no field {in_line(said, 60)}.", "bold red")
            return 0
        return number

    async def decide(self, fields: Sequence[FormField], *, fits: bool) -> Decision:
        """See FormTerminal."""
        send = [KeyChoice("y", "send")] if fits else []
        return _DECISIONS[await self._focus.key([*send, _CHANGE, _DECLINE, _CANCEL])]


async def fill(focus: TerminalFocus, question: FormQuestion) -> Filled:
    """Return the user's answer to a form. Raises QuestionAbandoned and EOFError."""
    fields: tuple[FormField, ...] = question.fields
    content = defaults(fields)
    first = KeyChoice("f", "fill in") if fields else KeyChoice("y", "yes")
    key = await focus.key([first, _DECLINE, _CANCEL])
    if key == "y":
        return Filled(action="accept", content={})
    decision = _DECISIONS.get(key)
    if decision is None:
        decision = await fill_form(ChatForm(focus), fields, question.requested_schema, content)
    if decision == "send":
        focus.terminal.note("  → sent", "green")
        return Filled(action="accept", content=content)
    focus.terminal.note("  → declined" if decision == "decline" else "  → cancelled", "yellow")
    return Filled(action="decline" if decision == "decline" else "cancel")


def _escape_key() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", eager=True)
    def _(event: KeyPressEvent) -> None:
        event.app.exit(exception=LeaveFields())

    return keys
