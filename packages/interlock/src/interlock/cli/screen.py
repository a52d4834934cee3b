"""Output of the commands: colours on a terminal, plain text elsewhere, JSON for programs."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

import click
import msgspec

from .. import types as t
from ..untrusted.invisible import hidden, visible
from ..wire.codec import encode

WARNING: Final = "interlock: warning: "
"""The prefix of lines that `interlock run --dev` writes to stderr, and that the author should
always see.
"""

ERROR: Final = "interlock: error: "
"""The prefix of the line with which `interlock run --dev` says why it cannot run a file."""

_SERVER_INFO = "io.modelcontextprotocol/serverInfo"


def shown(text: str) -> str:
    """Untrusted text for a terminal: invisible characters are made visible, and terminal escapes
    are removed.
    """
    return visible(text.replace("\r\n", "\n"))


def result_text(text: str) -> str:
    """Untrusted text as the result of a command: unchanged for a file or a pipe, else as in
    `shown`.
    """
    return shown(text) if sys.stdout.isatty() else text


def say(text: str = "", **style: Any) -> None:
    """Print a line to stdout."""
    click.echo(click.style(shown(text), **style) if style else shown(text))


def note(text: str, **style: Any) -> None:
    """Print a line for people to stderr, without mixing it with a progress bar."""
    bar = Bar.drawn
    if bar is not None:
        bar.erase()
    click.echo(click.style(shown(text), **style) if style else shown(text), err=True)
    if bar is not None:
        bar.draw()


def plain(value: Any) -> Any:
    """A protocol value as plain data in the form of the newest revision, without envelope
    members.
    """
    if isinstance(value, t.UnknownContent):
        return value.block
    data = msgspec.json.decode(encode(value))
    if isinstance(data, dict):
        data.pop("resultType", None)
        if isinstance(data.get("_meta"), dict):
            data["_meta"].pop(_SERVER_INFO, None)
            if not data["_meta"]:
                del data["_meta"]
    return data


def print_json(data: Any) -> None:
    """Print data as indented JSON to stdout; in colours on a terminal if rich is installed."""
    text = escaped(msgspec.json.format(msgspec.json.encode(data), indent=2).decode())
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.json import JSON
        except ImportError:
            pass
        else:
            Console().print(JSON(text, ensure_ascii=True))
            return
    click.echo(text)


def escaped(text: str) -> str:
    """JSON with escapes for invisible characters: the data is the same, and nothing is hidden."""
    return text.translate({ord(sign): json.dumps(sign)[1:-1] for sign in set(hidden(text))})


def size(count: int) -> str:
    """A number of bytes in words."""
    if count < 1000:
        return f"{count} bytes"
    if count < 1_000_000:
        return f"{count / 1000:.1f} kB"
    return f"{count / 1_000_000:.1f} MB"


def size_of(base64: str) -> str:
    """The size of base64 data, in words."""
    return size(len(base64) * 3 // 4 - base64.count("=", max(len(base64) - 2, 0)))


class Bar:
    """A progress bar in the last line of the terminal; silent if stderr is not a terminal."""

    drawn: Bar | None = None

    def __init__(self) -> None:
        self._line = ""
        self._shows = sys.stderr.isatty()

    def __enter__(self) -> Bar:
        Bar.drawn = self
        return self

    def __exit__(self, *_: object) -> None:
        Bar.drawn = None
        self.erase()

    def update(self, params: t.ProgressNotificationParams) -> None:
        """Update the progress."""
        if params.total:
            share = min(max(params.progress / params.total, 0.0), 1.0)
            done = round(share * 24)
            self._line = f"[{'#' * done}{'.' * (24 - done)}] {share:4.0%}"
        else:
            self._line = f"[{params.progress:g}]"
        if params.message:
            self._line += " " + shown(params.message).partition("\n")[0][:60]
        self.draw()

    def draw(self) -> None:
        """Draw the line."""
        if self._shows and self._line:
            click.echo(f"\r\x1b[2K{self._line}", nl=False, err=True)

    def erase(self) -> None:
        """Erase the line."""
        if self._shows and self._line:
            click.echo("\r\x1b[2K", nl=False, err=True)
