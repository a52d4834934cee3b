"""The answers to the servers' questions in the tour: scripted, or from the terminal."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from interlock import types as t

from .stage import Stage, short

ANSWERS = {"guests": 2, "seat": "window", "name": "Ada", "confirm": True}
_HINTS = {"boolean": "yes or no", "integer": "a number", "number": "a number"}


class Scripted:
    """Answers forms with prepared values, and shows them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def elicit(self, params: t.ElicitRequestParams) -> dict[str, Any]:
        """Accept the form."""
        answer = {name: ANSWERS[name] for name in _fields(params) if name in ANSWERS}
        self._stage.asked(f"the server asks: {params.message}")
        self._stage.asked(f"the tour answers: {short(answer)}")
        return answer


class AtTerminal:
    """Shows forms to the user at the terminal, one field after the other."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def elicit(self, params: t.ElicitRequestParams) -> t.ElicitResult:
        """The user's answers; an empty one takes the default, a dash declines."""
        self._stage.asked(
            f"the server asks: {params.message}   (Enter accepts the value in brackets, - declines)"
        )
        content: dict[str, Any] = {}
        required = (params.requested_schema or {}).get("required", ())
        for name, field in _fields(params).items():
            while True:
                typed = await _line(f"     {_label(name, field)}: ")
                if typed is None:
                    return t.ElicitResult(action="cancel")
                if typed == "-":
                    return t.ElicitResult(action="decline")
                if not typed and ("default" in field or name not in required):
                    if "default" in field:
                        content[name] = field["default"]
                    break
                try:
                    content[name] = _value(typed, field)
                    break
                except ValueError as bad:
                    self._stage.asked(f"  {bad}")
        return t.ElicitResult(action="accept", content=content)


def _fields(params: t.ElicitRequestParams) -> dict[str, Any]:
    fields: dict[str, Any] = (params.requested_schema or {}).get("properties", {})
    return fields


def _label(name: str, field: dict[str, Any]) -> str:
    hint = ", ".join(field["enum"]) if "enum" in field else _HINTS.get(field.get("type", ""), "")
    default = field.get("default")
    if isinstance(default, bool):
        default = "yes" if default else "no"
    title = str(field.get("title", name))
    if hint:
        title += f" ({hint})"
    return title if default is None else f"{title} [{default}]"


def _value(typed: str, field: dict[str, Any]) -> Any:
    """Convert the input to the field's type. Raises ValueError with a message for the user."""
    if "enum" in field:
        fits = [choice for choice in field["enum"] if choice.startswith(typed)]
        if len(fits) != 1:
            raise ValueError(f"Please say one of {', '.join(field['enum'])}.")
        return fits[0]
    match field.get("type"):
        case "boolean":
            if typed[:1].lower() not in ("y", "n"):
                raise ValueError("Please say yes or no.")
            return typed[:1].lower() == "y"
        case "integer" | "number":
            try:
                value = int(typed) if field["type"] == "integer" else float(typed)
            except ValueError:
                raise ValueError("Please say a number.") from None
            low = field.get("minimum", value)
            high = field.get("maximum", value)
            if not low <= value <= high:
                raise ValueError(f"Please say a number from {low} to {high}.")
            return value
    return typed


async def _line(question: str) -> str | None:
    """Read a line; None at the end of input. Its thread does not keep the program alive."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[str | None] = loop.create_future()

    def settle(typed: str | None) -> None:
        if not answer.done():
            answer.set_result(typed)

    def read() -> None:
        try:
            typed: str | None = input(question).strip()
        except EOFError:
            typed = None
        loop.call_soon_threadsafe(settle, typed)

    threading.Thread(target=read, daemon=True).start()
    return await answer
