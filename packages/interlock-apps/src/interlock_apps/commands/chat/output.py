"""Terminal output: text of servers never reaches the terminal as an escape sequence."""

from __future__ import annotations

import contextlib
import io
import os
from typing import Any

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.output import Output
from rich.console import Console
from rich.segment import Segment, Segments
from rich.text import Text

from interlock.cli.screen import shown
from interlock.untrusted.invisible import visible

LEAST_WIDTH = 40
MOST_WIDTH = 120


def in_line(text: str, most: int = 400) -> str:
    """Untrusted text made safe to display, in one line of at most `most` characters."""
    line = " ".join(shown(text).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def colours() -> bool:
    """Whether colours may be used: not with NO_COLOR, and not in a terminal without colours."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("dumb", "")


def rendered(renderable: Any, width: int, coloured: bool) -> str:
    """Render with rich. The only escape sequences in the output are those of its own colours."""
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=width,
        force_terminal=True,
        color_system="standard" if coloured else None,
        no_color=not coloured,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    if isinstance(renderable, str):
        renderable = Text(renderable, overflow="fold")
    segments = []
    for each in console.render(renderable, console.options):
        if not each.control:
            style = (
                each.style.update_link(None)
                if each.style is not None and each.style.link
                else each.style
            )
            segments.append(Segment(visible(each.text), style if coloured else None))
    lines = [_trimmed(line) for line in Segment.split_lines(segments)]
    console.print(
        Segments([each for line in lines for each in (*line, Segment.line())]),
        end="",
        crop=False,
        soft_wrap=True,
    )
    return buffer.getvalue()


def _trimmed(line: list[Segment]) -> list[Segment]:
    """A line without the blanks at its end, which would be copied with it."""
    while line and line[-1].text.isspace() and not (line[-1].style and line[-1].style.bgcolor):
        line.pop()
    if line and not (line[-1].style and line[-1].style.bgcolor):
        line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
    return line


class TerminalOutput:
    """Prints above the running application, if there is one (`app`)."""

    def __init__(self, output: Output, *, coloured: bool | None = None) -> None:
        self.output = output
        self.coloured = colours() if coloured is None else coloured
        self.app: Application[Any] | None = None
        self._waiting: list[str] = []
        self._is_flushing = False

    @property
    def width(self) -> int:
        """The width in columns."""
        return min(max(self.output.get_size().columns, LEAST_WIDTH), MOST_WIDTH)

    @property
    def height(self) -> int:
        """The height of the screen in lines."""
        return self.output.get_size().rows

    def print(self, *renderables: Any) -> None:
        """Print text, or anything that rich can render."""
        for each in renderables:
            text = rendered(each, self.width, self.coloured)
            self._waiting.append(text if text.endswith("\n") else f"{text}\n")
        if self.app is None or not self.app.is_running:
            self.flush()
        elif not self._is_flushing:
            self._is_flushing = True
            run_in_terminal(self.flush)

    def note(self, text: str, style: str = "dim") -> None:
        """Print a line in a style."""
        self.print(Text(shown(text), style=style, overflow="fold"))

    def flush(self) -> None:
        """Print the queued output."""
        self._is_flushing = False
        waiting = self._waiting
        self._waiting = []
        if waiting:
            with contextlib.suppress(OSError):  # the terminal is gone; the input reports that too
                self.output.write_raw("".join(waiting))
                self.output.flush()
