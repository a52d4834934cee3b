"""The output of the tour: a heading for each part, a line for each message, and the outcome."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from typing import Any, TextIO

import msgspec
from msgspec import Struct

_STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
    "magenta": "35",
}
_ASCII = {
    "→": ">",
    "←": "<",
    "✓": "ok",
    "✗": "failed:",
    "!": "!",
    "·": "-",
    "─": "-",
    "…": "...",
    "?": "?",
}
_HEAVY = ("data", "blob", "requestState")  # members that are long and of little interest
_HOUSEKEEPING = ("resultType", "ttlMs", "cacheScope", "_meta")  # shown last
_NARROWEST = 60
_WIDEST = 160
_USUAL = 120


class Counts(Struct):
    """The numbers of messages between the client and one server."""

    sent: int = 0
    received: int = 0
    bytes: int = 0


class Stage:
    """Prints with colours to a terminal, and without them otherwise.

    Untrusted text cannot move the cursor.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        tty = self._out.isatty() and os.environ.get("TERM") != "dumb"
        self._colours = tty and not os.environ.get("NO_COLOR")
        self._plain = "utf" not in (getattr(self._out, "encoding", None) or "utf-8").lower()
        self.width = max(
            _NARROWEST,
            min(_WIDEST, shutil.get_terminal_size((_USUAL, 24)).columns if tty else _USUAL),
        )

    def line(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """Print one line; a part is plain text, or text with its style."""
        room = self.width - indent
        made = " " * indent
        for part in parts:
            text, style = part if isinstance(part, tuple) else (part, "")
            text = self._cut(_harmless(text), room)
            room -= len(text)
            made += self._styled(text, style)
        print(made.rstrip(), file=self._out, flush=True)

    def heading(self, number: int, title: str, remark: str) -> None:
        """Print the heading of a part."""
        bar = "─" * max(2, self.width - len(title) - len(remark) - 8)
        self.line()
        self.line((f"{number}  {title} ", "bold"), (bar, "dim"), (f" {remark}", "cyan"))

    def aim(self, words: str) -> None:
        """Print the purpose of the next messages."""
        self.line()
        self._words("", words, "")

    def done(self, words: str) -> None:
        """Print a success."""
        self._words("✓ ", words, "green")

    def remark(self, words: str) -> None:
        """Print a remark that is not an error of the tour."""
        self._words("! ", words, "yellow")

    def failed(self, words: str) -> None:
        """Print a failure."""
        self._words("✗ ", words, "red")

    def asked(self, words: str) -> None:
        """Print a question to the user, or the answer."""
        self._words("? ", words, "magenta")

    def show_received(self, words: str) -> None:
        """Print a server's log message or other notification."""
        self._words("· ", words, "dim")

    def _words(self, sign: str, words: str, style: str) -> None:
        """Print text of any length, with a sign before the first line."""
        lines = textwrap.wrap(_harmless(words), self.width - 6) or [""]
        if len(lines) > 3:
            lines = [*lines[:2], lines[2] + "..."]
        for number, text in enumerate(lines):
            self.line((sign if number == 0 else "  ", style), (text, style), indent=3)

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if style and self._colours else text

    def _cut(self, text: str, room: int) -> str:
        if self._plain:
            text = "".join(_ASCII.get(c, c) for c in text).encode("ascii", "replace").decode()
        return text if len(text) <= room else text[: max(0, room - 3)] + "..."


class Messages:
    """Shows and counts each message of one conversation.

    `revision` is set once it is negotiated.
    """

    def __init__(self, stage: Stage) -> None:
        self.counts = Counts()
        self.revision = ""
        self._stage = stage
        self._asked: dict[tuple[str, Any], tuple[str, float]] = {}  # sender and id -> method, when

    def __call__(self, sender: str, frame: bytes) -> None:
        """Handle one frame, from "client" or "server"."""
        message: dict[str, Any] = msgspec.json.decode(frame)
        self.counts.bytes += len(frame)
        if sender == "client":
            self.counts.sent += 1
        else:
            self.counts.received += 1
        arrow, style = ("→", "cyan") if sender == "client" else ("←", "yellow")
        self.revision = self.revision or _announced(message)
        label, body = self._read(sender, message)
        self._stage.line(
            (f"{self.revision:10} ", "dim"),
            (f"{arrow} ", style),
            (f"{label:27} ", "bold"),
            body,
            indent=3,
        )

    def _read(self, sender: str, message: dict[str, Any]) -> tuple[str, str]:
        """A message's label, with its id and the response time, and its shortened JSON."""
        id = f" #{_brief(message['id'])}" if "id" in message else ""
        if "method" in message:
            if id:
                self._asked[sender, message["id"]] = (message["method"], time.perf_counter())
            # The `_meta` of every request says who asks and under which revision: it is shown once.
            return message["method"] + id, short(
                message.get("params", {}), meta=message["method"] == "server/discover"
            )
        other = "server" if sender == "client" else "client"
        _, since = self._asked.pop((other, message.get("id")), ("", time.perf_counter()))
        took = f"{(time.perf_counter() - since) * 1000:.1f} ms"
        if "error" in message:
            return f"error{id}  {took}", short(message["error"])
        result = message.get("result", {})
        label = "questions" if result.get("resultType") == "input_required" else "result"
        return f"{label}{id}  {took}", short(result)


def _brief(id: Any) -> str:
    """The end of an id, if it is a long globally unique one."""
    text = str(id)
    return text if len(text) <= 6 else f"…{text[-4:]}"


def short(value: Any, *, meta: bool = False) -> str:
    """JSON for display: `…` for long values, and for `_meta` unless requested; common members come
    last.
    """
    if isinstance(value, dict):
        value = {key: value[key] for key in sorted(value, key=_HOUSEKEEPING.__contains__)}
        if "_meta" in value and not meta:
            value["_meta"] = "…"
    return msgspec.json.encode(_lightened(value)).decode().replace('"…"', "…")


def _lightened(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "…" if key in _HEAVY and isinstance(item, str) else _lightened(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_lightened(item) for item in value[:3]] + (["…"] if len(value) > 3 else [])
    return f"{value[:60]}..." if isinstance(value, str) and len(value) > 63 else value


def _announced(message: dict[str, Any]) -> str:
    """The revision that a message names, before one is negotiated."""
    params = message.get("params") or {}
    meta = params.get("_meta") or {}
    result = message.get("result") or {}
    found = (
        meta.get("io.modelcontextprotocol/protocolVersion")
        or params.get("protocolVersion")
        or result.get("protocolVersion")
    )
    return found if isinstance(found, str) else ""


def _harmless(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
