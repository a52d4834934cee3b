"""Dialogs with the user at a plain terminal, on stderr: stdout is for the result of the command."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import click

from ... import types as t
from ...typed.form_fields import BadForm, FormField, defaults, form_fields, remark
from ..screen import note, shown
from .form_filling import Decision, fill_form


class Dismissed(Exception):
    """The user ended the input (Ctrl-D) without an answer."""


class TerminalDialogs:
    """Asks the user at the terminal. Ctrl-D at any prompt dismisses the whole question."""

    async def visit(self, params: t.ElicitRequestParams) -> t.ElicitResult:
        """Show a URL and ask whether the user agrees to open it. The program does not open it."""
        host = urlsplit(params.url or "").hostname or "an unknown host"
        note(f"\nThe server asks you to visit {host}: {params.message}", bold=True)
        note(f"  {params.url}")
        if "xn--" in host or not host.isascii():
            note(
                "  Careful: the name of this host has letters that look like other letters.",
                fg="yellow",
            )
        agreed = await self._yes_or_no("Do you agree to open it? (open it yourself)", None)
        return t.ElicitResult(action="accept" if agreed else "decline")

    async def calls_again(self, tool: str) -> bool:
        """Ask whether a tool that stopped at its question may run again."""
        note(f"\n{shown(tool)} could not ask its question before; now it can.", bold=True)
        note("  What it did before the question may happen twice.")
        return await self._yes_or_no("Call it again?", None)

    async def fill_in(
        self, params: t.ElicitRequestParams, known: Mapping[str, Any]
    ) -> t.ElicitResult:
        """Let the user fill in a form; the values in `known` are offered as defaults."""
        schema = params.requested_schema or {}
        note(f"\nThe server asks: {params.message}", bold=True)
        try:
            fields = form_fields(schema)
        except BadForm as bad:
            note(f"  Its form is invalid, so the question is cancelled: {bad}", fg="yellow")
            return t.ElicitResult(action="cancel")
        if not fields:
            agreed = await self._yes_or_no("Agree?", None)
            return t.ElicitResult(action="accept" if agreed else "decline", content={})
        note("  (Ctrl-D dismisses the question)", dim=True)
        names = {field.name for field in fields}
        content = {name: value for name, value in known.items() if name in names}
        content = {**defaults(fields), **content}
        if await fill_form(self, fields, schema, content) == "send":
            return t.ElicitResult(action="accept", content=content)
        return t.ElicitResult(action="decline")

    # -- as the FormTerminal of a plain terminal ----------------------------------------------

    def show_field(self, field: FormField, number: int, count: int) -> None:
        """See FormTerminal."""
        if field.kind != "boolean":
            about = remark(field) or field.kind
            note(f"  {field.title}: {about}")

    def show_problem(self, words: str) -> None:
        """See FormTerminal."""
        note(f"  {words}", fg="yellow")

    def show_review(
        self, fields: Sequence[FormField], content: Mapping[str, Any], wrong: Mapping[str, str]
    ) -> None:
        """See FormTerminal. The lines above show the input."""
        for name, words in wrong.items():
            note(f"  {name}: {words}", fg="yellow")

    async def read_field(self, field: FormField, text: str, refused: str | None) -> str:
        """See FormTerminal. An empty line accepts the value in brackets, but never a rejected
        one.
        """
        if field.kind == "boolean":
            detail = f" ({field.description})" if field.description else ""
            preset = {"yes": True, "no": False}.get(text)
            agreed = await self._yes_or_no(f"  {field.title}{detail}", preset)
            return "yes" if agreed else "no"
        offered = f" [{text}]" if text else ""
        return await self._line(f"  {field.name}{offered}: ") or text

    async def read_number(self, fields: Sequence[FormField]) -> int:
        """See FormTerminal. This terminal fills in all fields again instead (`decide`)."""
        return 0

    async def decide(self, fields: Sequence[FormField], *, fits: bool) -> Decision:
        """See FormTerminal. The answer to a single yes/no field is sent at once."""
        if fits and [field.kind for field in fields] == ["boolean"]:
            return "send"
        decisions: dict[str, Decision] = {"no": "decline", "again": "again", "yes": "send"}
        choices = {"y": "yes", "n": "no", "a": "again"}
        question = "Send this? [y]es, [n]o (decline), [a]gain"
        if not fits:
            del choices["y"]
            question = "[n]o (decline), [a]gain"
        return decisions[await self._choose(question, choices, "y" if fits else "a")]

    # -- reading a line -----------------------------------------------------------------------

    async def _yes_or_no(self, question: str, default: bool | None) -> bool:
        offered = {True: "Y/n", False: "y/N", None: "y/n"}[default]
        if default is None:
            preset = None
        elif default:
            preset = "y"
        else:
            preset = "n"
        return (
            await self._choose(f"{question} [{offered}]", {"y": "yes", "n": "no"}, preset) == "yes"
        )

    async def _choose(self, question: str, choices: Mapping[str, str], default: str | None) -> str:
        while True:
            text = (await self._line(f"{question}: ")).lower() or (default or "")
            for letter, word in choices.items():
                if text in (letter, word):
                    return word
            note(f"  Please answer {' or '.join(choices)}.", fg="yellow")

    async def _line(self, prompt: str) -> str:
        """Read a line, without a thread if possible: a thread would outlive an interrupt."""
        click.echo(shown(prompt), nl=False, err=True)
        loop = asyncio.get_running_loop()
        if sys.platform == "win32":
            line = await asyncio.to_thread(sys.stdin.readline)
        else:  # one read returns one line, and no further input stays in a buffer
            ready: asyncio.Future[None] = loop.create_future()
            loop.add_reader(
                sys.stdin.fileno(), lambda: None if ready.done() else ready.set_result(None)
            )
            try:
                await ready
            finally:
                loop.remove_reader(sys.stdin.fileno())
            line = os.read(sys.stdin.fileno(), 64 * 1024).decode("utf-8", "replace")
        if not line:
            note("")
            raise Dismissed
        return line.strip()
