"""Answers elicitation requests of a server: from the command line, by the user, or not at all."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from ... import types as t
from ..screen import note


class AnswersGiven(Struct, frozen=True):
    """The answers from the command line.

    Attributes:
        yes: Whether everything else is answered with yes.
        fields: Values by field, for all questions.
        in_order: Answers to the questions, in order.
    """

    yes: bool = False
    fields: dict[str, Any] | None = None
    in_order: list[Any] | None = None


def answers_given(yes: bool, text: str | None) -> AnswersGiven:
    """Read `--yes` and `--answers`. Raises click.UsageError."""
    if text is None:
        return AnswersGiven(yes)
    try:
        data = json.loads(
            Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text
        )
    except (OSError, ValueError) as bad:
        raise click.UsageError(f"--answers cannot be read: {bad}") from None
    if isinstance(data, dict):
        return AnswersGiven(yes, fields=data)
    if isinstance(data, list) and all(
        answer is None or isinstance(answer, bool | dict) for answer in data
    ):
        return AnswersGiven(yes, in_order=data)
    raise click.UsageError(
        "--answers must be an object {field: value} for all questions, or a list of objects, true, "
        "false and null."
    )


class Unanswered(Exception):
    """A question cannot be answered; the message says which one and why."""


class Answering:
    """Answers each elicitation request of a server.

    Attributes:
        unanswered: Set to a message when a question could not be answered.
    """

    def __init__(self, given: AnswersGiven) -> None:
        self._given = given
        self._next = iter(given.in_order or ())
        # questions may arrive at the same time, but a person answers them one by one
        self._lock = asyncio.Lock()
        self.unanswered: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def answer(self, params: t.ElicitRequestParams) -> t.ElicitResult:
        """Answer one question. If that is impossible, the question stays open, and `unanswered` is
        set.
        """
        async with self._lock:
            try:
                return await self._answer(params)
            except Unanswered as bad:
                if not self.unanswered.done():
                    self.unanswered.set_result(str(bad))
        await asyncio.get_running_loop().create_future()  # the call is about to be cancelled
        raise AssertionError("never reached")

    async def _answer(self, params: t.ElicitRequestParams) -> t.ElicitResult:
        given = self._given
        if given.in_order is not None and (answer := next(self._next, ...)) is not ...:
            return self._from_list(params, answer)
        if params.mode == "url":
            return await self._visit(params)
        content, lacking = self._content(params, given.fields or {})
        why = ""
        if lacking and given.yes:
            why = f"{_listed(lacking)} no default and no value was given"
        elif lacking and given.fields:
            why = f"no value was given for {', '.join(lacking)}"
        elif given.yes or any(name in (given.fields or {}) for name in _fields(params)):
            return self._accepted(params, content)
        elif given.fields is not None or given.in_order is not None:
            why = "--answers has no answer to it"
        return await self._ask_person(params, why)

    def _from_list(self, params: t.ElicitRequestParams, answer: Any) -> t.ElicitResult:
        if answer is None:
            return t.ElicitResult(action="cancel")
        if answer is False:
            return t.ElicitResult(action="decline")
        if params.mode == "url":
            return t.ElicitResult(action="accept")
        content, lacking = self._content(
            params, answer if isinstance(answer, dict) else {}, yes=answer is True
        )
        if lacking:
            raise Unanswered(
                self._words(params, f"the answer has no value for {', '.join(lacking)}")
            )
        return self._accepted(params, content)

    def _content(
        self, params: t.ElicitRequestParams, values: Mapping[str, Any], *, yes: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """The form filled in as far as possible, and the required fields that are still empty.

        For a form with a single yes/no field, yes is the value, whatever its default is, because
        that is the question.
        """
        fields = _fields(params)
        required = (params.requested_schema or {}).get("required", [])
        yes = yes or self._given.yes
        content: dict[str, Any] = {}
        for name, field in fields.items():
            if name in values:
                content[name] = values[name]
            elif (
                yes
                and field.get("type") == "boolean"
                and (len(fields) == 1 or (name in required and "default" not in field))
            ):
                content[name] = True
            elif "default" in field:
                content[name] = field["default"]
        return content, [name for name in required if name not in content]

    async def _visit(self, params: t.ElicitRequestParams) -> t.ElicitResult:
        if self._given.yes:
            note(f"The server asks to open: {params.url}\n  {params.message}")
            return t.ElicitResult(action="accept")
        return await self._ask_person(params, "")

    async def _ask_person(self, params: t.ElicitRequestParams, why: str) -> t.ElicitResult:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise Unanswered(
                self._words(params, why or "nobody can be asked, since this is not a terminal")
            )
        from .terminal_dialogs import Dismissed, TerminalDialogs  # late: few servers ask

        person = TerminalDialogs()
        try:
            return await (
                person.visit(params)
                if params.mode == "url"
                else person.fill_in(params, self._given.fields or {})
            )
        except Dismissed:
            return t.ElicitResult(action="cancel")

    def _accepted(self, params: t.ElicitRequestParams, content: dict[str, Any]) -> t.ElicitResult:
        """The result for an accepted form with valid content. Raises Unanswered."""
        from ...schema import compile as compile_schema  # late: as above

        if params.requested_schema is not None and (
            violations := compile_schema(params.requested_schema).check(content)
        ):
            words = "; ".join(
                f"{v.path.lstrip('/') or 'the answer'}: {v.message}" for v in violations
            )
            raise Unanswered(self._words(params, words))
        return t.ElicitResult(action="accept", content=content)

    def _words(self, params: t.ElicitRequestParams, why: str) -> str:
        """The error message: the question, why it is unanswered, and how it could be answered."""
        if params.mode == "url":
            return (
                f'The server asks to open {params.url} ("{params.message}"), and {why}. '
                "Pass --yes to agree."
            )
        example = json.dumps(
            {name: _sample(field) for name, field in _fields(params).items()}, ensure_ascii=False
        )
        words = (
            f"The server asks \"{params.message}\", and {why}. Answer with --answers '{example}'"
        )
        if self._given.yes:
            return f"{words}; --yes takes the defaults of the other fields."
        _, lacking = self._content(params, self._given.fields or {}, yes=True)
        if lacking:
            return f"{words}; --yes is not enough, because {_listed(lacking)} no default."
        return f"{words} or take the defaults with --yes."


def _fields(params: t.ElicitRequestParams) -> dict[str, dict[str, Any]]:
    properties = (params.requested_schema or {}).get("properties", {})
    return {name: field for name, field in properties.items() if isinstance(field, dict)}


def _listed(names: Sequence[str]) -> str:
    """Names with the verb that follows them."""
    return f"{', '.join(names)} {'has' if len(names) == 1 else 'have'}"


def _sample(field: Mapping[str, Any]) -> Any:
    """An example value for a field."""
    if "default" in field:
        return field["default"]
    if field.get("enum"):
        return field["enum"][0]
    kinds: dict[Any, Any] = {
        "boolean": True,
        "integer": field.get("minimum", 1),
        "number": field.get("minimum", 1.0),
        "array": [],
    }
    return kinds.get(field.get("type"), "...")
