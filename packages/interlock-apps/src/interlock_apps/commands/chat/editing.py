"""Editing text or JSON: in the person's editor if one is set, else at the prompt."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.shortcuts import PromptSession

from ...fleet.threat_scan import clean
from .focus import QuestionAbandoned, TerminalFocus
from .output import in_line

T = TypeVar("T")


class EditRejected(ValueError):
    """The edited text cannot be used; the message says why."""


async def edit_text(front: TerminalFocus, text: str, ending: str = ".txt") -> str | None:
    """Return the text as the person edited it; None if they cancel."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if editor:
        return await _in_editor(front, editor, text, ending)
    keys = KeyBindings()
    keys.add("c-s")(lambda event: event.current_buffer.validate_and_handle())
    session: PromptSession[str] = PromptSession(key_bindings=keys, multiline=True)
    shown = clean(text)
    if shown != text:
        front.terminal.note("! Invisible characters were removed.", "yellow")
    front.terminal.note("Ctrl-S (or Esc, then Enter) saves, Ctrl-C discards the change.")
    try:
        return await front.text(session, "┃ ", default=shown, prompt_continuation="┃ ")
    except (QuestionAbandoned, EOFError):
        return None


async def edit_data(front: TerminalFocus, data: Any, check: Callable[[Any], T]) -> T | None:
    """Return JSON data as the person edited it, after `check` accepted it; None if they cancel.

    `check` raises EditRejected for data that it does not accept.
    """
    text = _escaped(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())
    while True:
        edited = await edit_text(front, text, ".json")
        if edited is None or edited.strip() == "":
            front.terminal.note("Not changed.")
            return None
        try:
            return check(msgspec.json.decode(edited))
        except (msgspec.DecodeError, UnicodeError, EditRejected) as bad:
            front.terminal.note(f"! {in_line(str(bad), 500)}", "bold red")
            if edited == text and os.environ.get(
                "EDITOR"
            ):  # closed without a change: the person cancels
                return None
            text = edited


def _escaped(text: str) -> str:
    """JSON with invisible characters written as escapes, which mean the same."""
    return "".join(
        each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text
    )


async def _in_editor(front: TerminalFocus, editor: str, text: str, ending: str) -> str | None:
    with tempfile.TemporaryDirectory(prefix="interlock-") as folder:
        path = Path(folder) / f"edit{ending}"
        path.write_text(text, encoding="utf-8")
        try:
            with front.input.cooked_mode():
                code = await asyncio.to_thread(subprocess.call, [*shlex.split(editor), str(path)])
        except (OSError, ValueError) as bad:
            front.terminal.note(f"! {editor} cannot be started: {bad}", "bold red")
            return None
        if code:
            front.terminal.note(f"{editor} ended with {code}.")
            return None
        edited = path.read_text(encoding="utf-8", errors="replace")
        return (
            edited if text.endswith("\n") else edited.removesuffix("\n")
        )  # editors add a line break at the end
