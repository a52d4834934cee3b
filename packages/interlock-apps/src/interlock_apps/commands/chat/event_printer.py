"""Prints events: the model's text, a line for each call, and notices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from prompt_toolkit.formatted_text import StyleAndTextTuples
from rich.markdown import Markdown
from rich.text import Text

from interlock import TextContent
from interlock.cli.screen import shown as seen

from ...fleet import events as e
from ...fleet.events import LogEntry
from .markdown_stream import MarkdownStream
from .output import TerminalOutput, in_line
from .results import folded

MOST_LIVE = 6  # lines of unfinished text that are shown
BAR = 16  # columns
MOST_ENDED = 200
_STATES = {"up": "green", "down": "red", "refused": "red", "login": "red", "off": "dim"}


class RunningCall(Struct):
    """A call that is running."""

    server: str
    title: str
    arguments: dict[str, Any]
    began: float
    progress: float = 0.0
    total: float | None = None
    message: str = ""


class EndedCall(Struct, frozen=True):
    """A finished call, kept so that the person can display it in full."""

    arguments: dict[str, Any]
    event: e.CallEnded


class EventPrinter:
    """Prints the events of one conversation, and of the host.

    `ended` has the last finished calls; `live` returns what is running.
    """

    def __init__(self, terminal: TerminalOutput, clock: Callable[[], float] | None = None) -> None:
        self._terminal = terminal
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self.session = ""
        self.running: dict[str, RunningCall] = {}
        self.ended: list[EndedCall] = []
        self._tasks: dict[str, RunningCall] = {}  # the calls that go on as tasks
        self._speech = MarkdownStream()
        self._thought = MarkdownStream()
        self._states: dict[str, str] = {}
        self._failure = ""  # the error of the last request to the model
        self._table: dict[type[e.Event], Callable[[Any], None]] = {
            e.ModelSays: self._says,
            e.ModelSaid: self._model_said,
            e.ModelFailed: self._failed,
            e.Trimmed: self._trimmed,
            e.TurnEnded: self._turn_ended,
            e.CallProposed: self._proposed,
            e.CallDecided: self._decided,
            e.CallProgress: self._progress,
            e.CallEnded: self._call_ended,
            e.TaskBegan: self._task_began,
            e.TaskEnded: self._task_ended,
            e.SampleEnded: self._sampled,
            e.ResourceRead: self._read,
            e.ServerState: self._state,
            e.Pinned: self._pinned,
            e.RootsChanged: self._roots,
            e.RuleRemembered: self._rule,
            e.PolicyEdited: self._policy,
            e.Tainted: self._tainted,
            e.FilesChanged: self._files,
            e.SettingsChanged: self._settings,
            e.Notice: self._notice,
            e.ModelChosen: self._model_chosen,
            e.ResourceUpdated: self._updated,
        }

    def receive(self, noted: LogEntry) -> None:
        """Handle an event."""
        event: Any = noted.event
        print_event = self._table.get(type(event))
        if print_event is not None and event.session in ("", self.session):
            print_event(event)

    # -- the model ---------------------------------------------------------------------------------

    def _says(self, event: e.ModelSays) -> None:
        if event.kind == "text":
            self._print_blocks(self._speech.feed(event.text))
        elif event.kind == "thought":
            for block in self._thought.feed(event.text):
                self._terminal.note(block, "dim italic")
        elif event.kind == "note":
            self._terminal.note(event.text)

    def _model_said(self, event: e.ModelSaid) -> None:
        streamed = self._speech.said
        self._end_speech()
        if not streamed:
            content = event.result.content
            for block in content if isinstance(content, list) else [content]:
                if isinstance(block, TextContent) and block.text.strip():
                    self._print_blocks([block.text])

    def _end_speech(self) -> None:
        for block in self._thought.end():
            self._terminal.note(block, "dim italic")
        self._print_blocks(self._speech.end())

    def _print_blocks(self, blocks: list[str]) -> None:
        for block in blocks:
            self._terminal.print(Text(""), Markdown(seen(block), hyperlinks=False))

    def _model_chosen(self, event: e.ModelChosen) -> None:
        effort = f", effort {event.effort}" if event.effort else ""
        self._terminal.note(f"· From now on {event.model} answers{effort}.")

    def _failed(self, event: e.ModelFailed) -> None:
        self._end_speech()
        self._failure = event.words
        self._terminal.note(f"✗ {event.model} gave no answer. {event.words}", "bold red")

    def _trimmed(self, event: e.Trimmed) -> None:
        self._terminal.note(
            f"· Left out of what the model sees ({event.rule}): {event.words} About "
            f"{event.tokens:,} tokens.",
            "yellow",
        )

    def _turn_ended(self, event: e.TurnEnded) -> None:
        self._end_speech()
        self.running.clear()
        if event.reason in ("failed", "refused"):
            words = "" if event.words == self._failure else event.words
            parts = ("■", words, "/retry asks the model again.")
            self._terminal.note(" ".join(part for part in parts if part), "yellow")
        elif event.reason != "done":
            self._terminal.note(
                f"■ The turn ended ({event.reason}). {event.words}".rstrip(), "yellow"
            )
        self._failure = ""
        used = event.usage
        if used.input or used.output:
            price = "" if event.price is None else f", {dollars(event.price)}"
            self._terminal.note(f"  {used.input:,} tokens in, {used.output:,} out{price}")

    # -- calls -------------------------------------------------------------------------------------

    def _proposed(self, event: e.CallProposed) -> None:
        title = event.title or event.tool or event.name
        self.running[event.call] = RunningCall(event.server, title, event.arguments, self._clock())

    def _decided(self, event: e.CallDecided) -> None:
        call = self.running.get(event.call)
        if call is not None and event.arguments is not None:
            call.arguments = event.arguments

    def _progress(self, event: e.CallProgress) -> None:
        call = self.running.get(event.call)
        if call is not None:
            call.progress = event.progress
            call.total = event.total
            call.message = event.message
            self._redraw()

    def _task_began(self, event: e.TaskBegan) -> None:
        call = self.running.get(event.call) or RunningCall(
            event.server, event.tool, event.arguments, self._clock()
        )
        self._tasks[event.call] = call
        self._terminal.note(
            f"· {event.server}: {call.title} goes on as a task. Its result comes later."
        )

    def _task_ended(self, event: e.TaskEnded) -> None:
        call = self._tasks.pop(event.call, None)
        if call is not None:
            self.running[event.call] = call
        seconds = 0.0 if call is None else self._clock() - call.began
        self._call_ended(
            e.CallEnded(
                session=event.session,
                call=event.call,
                server=event.server,
                tool=event.tool,
                result=event.result,
                error=event.error,
                seconds=seconds,
                warnings=event.warnings,
            )
        )

    def _call_ended(self, event: e.CallEnded) -> None:
        if event.call in self._tasks:  # with a message to the model; the task goes on
            self.running.pop(event.call, None)
            return
        call = self.running.pop(event.call, None) or RunningCall(
            event.server, event.tool, {}, self._clock()
        )
        self.ended.append(EndedCall(call.arguments, event))
        del self.ended[:-MOST_ENDED]
        self._terminal.print(self.card(len(self.ended), call.title, event))

    def card(self, number: int, title: str, event: e.CallEnded) -> Text:
        """A finished call in one line, with a summary of its result below."""
        result = event.result
        good = result is not None and not result.is_error
        card = Text(overflow="fold")
        card.append("✓ " if good else "✗ ", style="green" if good else "bold red")
        card.append(
            f"{in_line(event.server, 40) or 'interlock'} · {in_line(title, 80)}", style="bold"
        )
        card.append(f"  {event.seconds:.1f} s  /show {number}", style="dim")
        words = folded(result) if result is not None else in_line(event.error, 300)
        card.append(f"\n  {words}", style="dim" if good else "red")
        if event.warnings:
            card.append(
                "\n  ! This result seems to give orders to the model:",
                "bold yellow",
            )
        for warned in event.warnings:
            where = f" ({in_line(warned.where, 200)})" if warned.where else ""
            card.append(f"\n    {in_line(warned.words)}{where}", style="yellow")
        return card

    def _sampled(self, event: e.SampleEnded) -> None:
        if event.error:
            self._terminal.note(
                f"✗ {event.model} gave {event.server} no answer: {event.error}", "red"
            )

    def _read(self, event: e.ResourceRead) -> None:
        if event.error:
            self._terminal.note(
                f"✗ {event.server}: {event.uri} cannot be read: {event.error}", "red"
            )
        elif event.by == "person":
            self._terminal.note(f"@ {event.server}: {event.uri}, {event.size:,} characters")

    # -- servers and the host ----------------------------------------------------------------------

    def _state(self, event: e.ServerState) -> None:
        if self._states.get(event.server) == event.state or event.state in ("starting", "waiting"):
            return
        self._states[event.server] = event.state
        words = (
            counts(event.tools, event.resources, event.prompts)
            if event.state == "up"
            else event.words
        )
        line = Text("● ", style=_STATES.get(event.state, ""))
        line.append(f"{in_line(event.server, 60)} {event.state}", style="bold")
        line.append(f"  {in_line(words)}", style="dim")
        self._terminal.print(line)

    def _pinned(self, event: e.Pinned) -> None:
        what = f"{event.server}: {event.kind} {event.name}".rstrip()
        if event.how == "blocked":
            self._terminal.note(f"! {what} is not what was approved, and is blocked.", "yellow")
        elif event.how == "approved":
            self._terminal.note(f"· {what} is approved.")

    def _policy(self, event: e.PolicyEdited) -> None:
        self._terminal.note(f"· {event.path} was changed; /policy shows its rules.")

    def _tainted(self, event: e.Tainted) -> None:
        self._terminal.note(
            "! From here on you are asked about every call that writes. /taint clear ends this.",
            "bold yellow",
        )

    def _files(self, event: e.FilesChanged) -> None:
        count = len(event.files)
        files = "1 file" if count == 1 else f"{count:,} files"
        self._terminal.note(f"· {in_line(event.tool, 80)} changed {files}; /undo lists them.")

    def _roots(self, event: e.RootsChanged) -> None:
        folders = [
            f"{folder} ({server or 'all servers'})"
            for server, listed in event.folders.items()
            for folder in listed
        ]
        self._terminal.note(f"· Servers may work in {', '.join(folders) or 'no folder'}.")

    def _rule(self, event: e.RuleRemembered) -> None:
        how = "from now on" if event.remember == "always" else "in this conversation"
        self._terminal.note(
            f"· Remembered {how}: {event.rule.decision} {event.rule.server} "
            f"{event.rule.tool}. /rules forget removes it."
        )

    def _settings(self, event: e.SettingsChanged) -> None:
        self._terminal.note(f"· The {event.what} {event.name} was {event.how} in {event.file}.")

    def _notice(self, event: e.Notice) -> None:
        style = {"info": "dim", "warning": "yellow", "error": "bold red"}[event.level]
        self._terminal.note(f"! {event.server + ': ' if event.server else ''}{event.words}", style)

    def _updated(self, event: e.ResourceUpdated) -> None:
        self._terminal.note(f"· {event.server}: {event.uri} has changed.")

    # -- what is under way -------------------------------------------------------------------------

    def live(self) -> StyleAndTextTuples:
        """The text below the output while something is running."""
        shown: StyleAndTextTuples = []
        for text, style in ((self._thought.rest, "italic"), (self._speech.rest, "")):
            if text.strip():
                lines = seen(text).expandtabs(4).rstrip().split("\n")[-MOST_LIVE:]
                shown += [(style, "\n".join(lines)), ("", "\n")]
        for call in self.running.values():
            seconds = f"{self._clock() - call.began:.0f} s"
            head = f"{in_line(call.server, 40)} · {in_line(call.title, 60)}"
            shown += [
                ("bold", f"  {head} "),
                ("", f"{_bar(call)} {in_line(call.message, 60)} {seconds}\n"),
            ]
        shown.append(("italic", "  … Ctrl-C cancels"))
        return shown

    def _redraw(self) -> None:
        if self._terminal.app is not None:
            self._terminal.app.invalidate()


def dollars(price: float) -> str:
    """A price for people: small ones with the digits that matter."""
    return f"${price:.2f}" if price >= 0.1 or not price else f"${price:.2g}"


def counts(tools: int, resources: int, prompts: int) -> str:
    """The numbers of tools, resources and prompts that a server offers."""
    named = ((tools, "tool"), (resources, "resource"), (prompts, "prompt"))
    return (
        ", ".join(f"{number} {name}{'s' * (number != 1)}" for number, name in named if number)
        or "nothing"
    )


def _bar(call: RunningCall) -> str:
    if call.total is not None and call.total > 0:
        share = min(max(call.progress / call.total, 0.0), 1.0)
        done = round(share * BAR)
        return f"[{'#' * done}{'.' * (BAR - done)}] {share:4.0%}"
    return f"[{call.progress:g}]" if call.progress else ""
