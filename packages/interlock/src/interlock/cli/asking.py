"""Asking the person at the terminal, field by field, on stderr, so that stdout stays the command's result."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import click

from .. import types as t
from ..schema import compile as compile_schema
from .screen import note, shown


class Dismissed(Exception):
    """The person ended the input (Ctrl-D) instead of answering."""


class Person:
    """Whoever sits at the terminal. Ctrl-D at any prompt dismisses the whole question."""

    async def visit(self, params: t.ElicitRequestParams) -> t.ElicitResult:
        """Show an address and ask whether it was opened. Nothing is opened unasked."""
        host = urlsplit(params.url or "").hostname or "an unknown host"
        note(f"\nThe server asks you to visit {host}: {params.message}", bold=True)
        note(f"  {params.url}")
        if "xn--" in host or not host.isascii():
            note(
                "  Look twice: the name of this host is written in letters that may look like others.",
                fg="yellow",
            )
        agreed = await self._yes_or_no("Do you agree to open it? (open it yourself)", None)
        return t.ElicitResult(action="accept" if agreed else "decline")

    async def calls_again(self, tool: str) -> bool:
        """Ask whether a tool that ended at its question may run a second time."""
        note(f"\n{shown(tool)} could not ask its question; now it can.", bold=True)
        note("  What it did before its question may happen a second time.")
        return await self._yes_or_no("Call it again?", None)

    async def fill_in(
        self, params: t.ElicitRequestParams, known: Mapping[str, Any]
    ) -> t.ElicitResult:
        """Go through a form; what is `known` is offered as the default."""
        schema = params.requested_schema or {}
        fields: dict[str, Any] = schema.get("properties", {})
        note(f"\nThe server asks: {params.message}", bold=True)
        if not fields:
            return t.ElicitResult(
                action="accept" if await self._yes_or_no("Agree?", None) else "decline", content={}
            )
        note("  (Ctrl-D dismisses the question)", dim=True)
        while True:
            content: dict[str, Any] = {}
            for name, field in fields.items():
                value = await self._field(
                    name,
                    field,
                    name in schema.get("required", ()),
                    known.get(name, field.get("default", ...)),
                )
                if value is not ...:
                    content[name] = value
            if len(fields) == 1 and next(iter(fields.values())).get("type") == "boolean":
                return t.ElicitResult(action="accept", content=content)
            answer = await self._choose(
                "Send this? [y]es, [n]o (decline), [a]gain",
                {"y": "yes", "n": "no", "a": "again"},
                "y",
            )
            if answer != "again":
                return (
                    t.ElicitResult(action="accept", content=content)
                    if answer == "yes"
                    else t.ElicitResult(action="decline")
                )

    async def _field(
        self, name: str, field: Mapping[str, Any], required: bool, default: Any
    ) -> Any:
        """One field, asked until its value fits; ... where it is left out."""
        title = str(field.get("title") or name)
        if field.get("type") == "boolean":
            detail = f" ({field['description']})" if field.get("description") else ""
            return await self._yes_or_no(
                f"  {title}{detail}", default if isinstance(default, bool) else None
            )
        note(f"  {title}{_remark(field, required)}")
        checker = compile_schema({"type": "object", "properties": {name: dict(field)}})
        while True:
            offered = (
                ""
                if default is ...
                else f" [{default if isinstance(default, str) else json.dumps(default, ensure_ascii=False)}]"
            )
            text = await self._line(f"  {name}{offered}: ")
            if not text:
                if default is not ...:
                    return default
                if not required:
                    return ...
                note("  A value is needed here.", fg="yellow")
                continue
            value = _read(text, field)
            violations = checker.check({name: value})
            if not violations:
                return value
            note(f"  {violations[0].message}", fg="yellow")

    async def _yes_or_no(self, question: str, default: bool | None) -> bool:
        offered = {True: "Y/n", False: "y/N", None: "y/n"}[default]
        preset = None if default is None else "y" if default else "n"
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
        """A line of input, waited for without a thread where the platform can: a thread would outlive an interrupt."""
        click.echo(shown(prompt), nl=False, err=True)
        loop = asyncio.get_running_loop()
        if sys.platform == "win32":
            line = await asyncio.to_thread(sys.stdin.readline)
        else:  # one read gives one line, and nothing waits unseen in a buffer
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


def _remark(field: Mapping[str, Any], required: bool) -> str:
    """What a field takes, in words."""
    choices = _choices(field)
    parts = [str(field["description"])] if field.get("description") else []
    if choices:
        several = "several, with commas between: " if field.get("type") == "array" else "one of "
        parts.append(
            several
            + ", ".join(
                value if value == title else f"{value} ({title})"
                for value, title in choices.items()
            )
        )
    else:
        parts += [str(field["format"])] if field.get("format") else [str(field.get("type", ""))]
        parts += [
            f"{word} {field[key]}"
            for key, word in (("minimum", "from"), ("maximum", "to"))
            if key in field
        ]
    if not required:
        parts.append("may be left empty")
    return f": {'; '.join(part for part in parts if part)}"


def _choices(field: Mapping[str, Any]) -> dict[str, str]:
    """The values of a choice and their titles; none where it is no choice (2026-07-28, "Elicitation", "Enum Values")."""
    inner = (
        field["items"]
        if field.get("type") == "array" and isinstance(field.get("items"), dict)
        else field
    )
    if isinstance(inner.get("enum"), list):
        names = inner.get("enumNames")
        titles = (
            names if isinstance(names, list) and len(names) == len(inner["enum"]) else inner["enum"]
        )
        return dict(zip(map(str, inner["enum"]), map(str, titles), strict=True))
    options = inner.get("oneOf") or inner.get("anyOf") or []
    return {
        str(o["const"]): str(o.get("title", o["const"]))
        for o in options
        if isinstance(o, dict) and "const" in o
    }


def _read(text: str, field: Mapping[str, Any]) -> Any:
    """What was typed, as the kind of value that the field takes; as it stands where it is none."""
    if field.get("type") == "array":
        return [part.strip() for part in text.split(",") if part.strip()]
    if field.get("type") in ("integer", "number"):
        try:
            return int(text)
        except ValueError:
            pass
        try:
            return float(text)
        except ValueError:
            return text
    return text
