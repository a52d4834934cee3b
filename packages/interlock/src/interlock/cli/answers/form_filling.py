"""Forms at a terminal: filled in field by field, checked, reviewed, and then sent or declined.

Every terminal uses this procedure. A `FormTerminal` decides how fields, errors and the review look,
and how a line is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import UNSET

from ...typed.form_fields import BadValue, FormField, check, read_value

Decision = Literal["send", "again", "change", "decline", "cancel"]
"""The user's decision about a form: to send it, to fill in all fields or one field again, to
decline, or to cancel.
"""


class LeaveFields(Exception):
    """The user wants to leave the fields and review the form."""


class FormTerminal(Protocol):
    """A terminal that shows a form and reads what the user types."""

    def show_field(self, field: FormField, number: int, count: int) -> None:
        """Show a field before it is filled in."""
        ...

    def show_problem(self, words: str) -> None:
        """Show why the input does not fit."""
        ...

    def show_review(
        self, fields: Sequence[FormField], content: Mapping[str, Any], wrong: Mapping[str, str]
    ) -> None:
        """Show the form before it is sent, with an error for each invalid field."""
        ...

    async def read_field(self, field: FormField, text: str, refused: str | None) -> str:
        """Return the user's input for a field.

        Args:
            field: The field.
            text: Its present value; empty for none.
            refused: The previous input, which does not fit.

        Raises:
            LeaveFields: The user wants to leave the fields.
        """
        ...

    async def read_number(self, fields: Sequence[FormField]) -> int:
        """Return the number of the field to change, from 1; 0 for none.

        Raises:
            LeaveFields: The user wants to change none.
        """
        ...

    async def decide(self, fields: Sequence[FormField], *, fits: bool) -> Decision:
        """Return the user's decision. `fits` says whether the form may be sent."""
        ...


async def fill_form(
    terminal: FormTerminal,
    fields: Sequence[FormField],
    requested_schema: Mapping[str, Any],
    content: dict[str, Any],
) -> Decision:
    """Let the user fill in a form and decide about it.

    Args:
        terminal: The user's terminal.
        fields: The fields of the form.
        requested_schema: The schema of the form.
        content: The values that the form starts with; it is filled in.

    Returns:
        "send", "decline" or "cancel".
    """
    decision: Decision = "again"
    while decision in ("again", "change"):
        try:
            if decision == "again":
                for number, field in enumerate(fields, 1):
                    await _fill_field(terminal, field, number, len(fields), content)
            elif number := await terminal.read_number(fields):
                await _fill_field(terminal, fields[number - 1], number, len(fields), content)
        except LeaveFields:
            pass
        wrong = check(requested_schema, content)
        terminal.show_review(fields, content, wrong)
        decision = await terminal.decide(fields, fits=not wrong)
    return decision


def value_text(field: FormField, value: Any) -> str:
    """Return a value in the form in which the user types it; empty for UNSET."""
    if value is UNSET:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value_text(field, each) for each in value)
    return str(dict(field.options).get(value, value)) if field.options else str(value)


async def _fill_field(
    terminal: FormTerminal, field: FormField, number: int, count: int, content: dict[str, Any]
) -> None:
    """Ask for one field until its value fits. An empty line skips an optional field."""
    terminal.show_field(field, number, count)
    text = value_text(field, content.get(field.name, UNSET))
    refused: str | None = None
    while True:
        typed = await terminal.read_field(field, text, refused)
        is_blank = not typed.strip()
        if is_blank and not field.required:
            content.pop(field.name, None)
            return
        # A required text may consist of spaces, but it cannot be empty.
        may_be_blank = field.kind == "text" and field.least in (None, 0) and typed
        try:
            if is_blank and not may_be_blank:
                raise BadValue("This field is required.")
            content[field.name] = read_value(field, typed)
            return
        except BadValue as bad:
            terminal.show_problem(str(bad))
            refused = typed
