"""The REPL of the chat: it reads input, runs turns, and prints events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click
from prompt_toolkit.application.current import get_app_session
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.shortcuts import PromptSession
from rich.padding import Padding
from rich.text import Text

from interlock import InterlockError
from interlock.cli.screen import shown as seen
from interlock.cli.user_folder import user_folder
from interlock.types import PromptReference, ResourceTemplateReference

from ...fleet.events import Attached, TurnEnded
from ...fleet.log import LogError
from ...host.app import Host
from ...host.attachments import AttachedFile
from ...host.session import Session
from .commands import COMMANDS, Commands
from .completion import PAUSE, LineCompleter, ValueCompleter
from .conversation_commands import CommandError
from .dialogs import Asker
from .event_printer import EventPrinter
from .focus import KeyChoice, LeaveChat, QuestionAbandoned, TerminalFocus
from .output import TerminalOutput, in_line
from .parser import (
    ChatMessage,
    Command,
    LineError,
    PromptCall,
    ServerOffer,
    attachment,
    blanks,
    read_line,
)
from .results import MediaFiles, blocks, contents

log = logging.getLogger("interlock")
_PREVIEW = (
    KeyChoice("y", "send"),
    KeyChoice("a", "attach a resource"),
    KeyChoice("e", "change the arguments"),
    KeyChoice("n", "do not"),
)


def begin(host: Host, *, hint: str = "", resume: str = "", follow: Any = None) -> None:
    """Run the chat until the person quits; see `run_chat`."""

    async def run() -> None:
        session = get_app_session()
        task = asyncio.current_task()
        for name in (
            "SIGTERM",
            "SIGHUP",
        ):  # a signal, too, closes everything that was started
            if task is not None and hasattr(signal, name) and sys.platform != "win32":
                asyncio.get_running_loop().add_signal_handler(getattr(signal, name), task.cancel)
        with _printed(terminal := TerminalOutput(session.output)):
            talk = ChatRepl(host, session.input, terminal, history=_history(), hint=hint)
            with (
                session.input.raw_mode()
            ):  # also between two prompts: keys are not echoed there, and Ctrl-C is a key
                await talk.run(resume=resume, follow=follow)

    try:
        asyncio.run(run())
    except asyncio.CancelledError:
        raise click.Abort from None
    except (OSError, LogError, InterlockError) as bad:
        raise click.ClickException(str(bad)) from None
    click.echo("Ended.")


class ChatRepl:
    """The chat of a person with a host at a terminal.

    `pause` is how many seconds without a keystroke pass before a server is asked for suggestions.
    """

    def __init__(
        self,
        host: Host,
        input: Input,
        terminal: TerminalOutput,
        *,
        history: History | None = None,
        hint: str = "",
        pause: float = PAUSE,
        asker: Asker | None = None,
    ) -> None:
        self.host = host
        self.terminal = terminal
        self._hint = hint
        self._pause = pause
        self.front = TerminalFocus(terminal, input)
        self.feed = EventPrinter(terminal)
        self.media = MediaFiles()
        asker = asker or Asker(self.front, self.media)
        self.front.ask = asker.ask
        self.front.ask_group = asker.ask_group
        self.front.live = self.feed.live
        self.session: Session
        self.files: list[AttachedFile] = []  # for the next message
        self._steering: set[asyncio.Task[Any]] = set()
        self._commands = Commands(self)
        self._typed = ""
        self._choices = LineCompleter(
            host.complete, self.offers, COMMANDS, self._commands.arguments_of, pause
        )
        self._reading: PromptSession[str] = PromptSession(
            history=history or InMemoryHistory(),
            completer=self._choices,
            complete_while_typing=True,
            multiline=True,
            key_bindings=_keys(),
            reserve_space_for_menu=6,
            prompt_continuation="… ",
            enable_history_search=False,
        )
        self._reading.default_buffer.on_text_changed += self._choices.outdated

    async def run(self, *, resume: str = "", follow: Any = None) -> None:
        """Open the host, run the chat, close the host. Raises LogError and errors of the host."""
        self.host.prompter.person = self.front
        stop_listening = self.host.listen(self.feed.receive)
        following: asyncio.Task[Any] | None = None
        try:
            with contextlib.suppress(LeaveChat, QuestionAbandoned):
                await self.front.during(self.host.open())
                if follow is not None:
                    following = asyncio.create_task(follow())
                self.begin(await self._first(resume))
                await self._talk()
        finally:
            stop_listening()
            self.media.forget()
            if following is not None:
                following.cancel()
            await self.host.aclose()
            await asyncio.gather(
                *([following] if following is not None else []), return_exceptions=True
            )

    async def _first(self, resume: str) -> Session:
        """The conversation to start with."""
        if resume:
            if any(row.id == resume for row in await self.host.log.sessions()):
                return await self.host.resume(resume)
            self.terminal.note(
                f"! There is no conversation {in_line(resume, 60)}; this is a new one.", "bold red"
            )
        return self.host.session()

    def begin(self, session: Session) -> None:
        """Switch to a conversation: a new one, or one that is resumed."""
        self.session = session
        self.feed.session = session.id
        self.feed.ended.clear()
        model = session.model
        if self._hint:
            self.terminal.note(self._hint, "bold")
            self._hint = ""
        remark = f"  {in_line(model.facts.remark)}" if model.facts.remark else ""
        self.terminal.print(
            Text.assemble(
                ("You talk with ", ""),
                (in_line(model.name, 60), "bold"),
                (remark, "yellow"),
                overflow="fold",
            )
        )
        for message in session.messages[-4:]:
            self.terminal.print(
                Text(f"{message.role}:", style="dim"),
                *(Padding(each, (0, 0, 0, 2)) for each in blocks(message.content, self.media)),
            )
        self.terminal.note("/ prompts and commands, @ resources, /help. Ctrl-D quits.")

    async def _talk(self) -> None:
        given_up = False
        while True:
            try:
                line = await self.front.idle(self._line, typed=lambda: bool(self._typed))
            except EOFError:
                return
            except QuestionAbandoned:
                if given_up:
                    return
                given_up = True
                self.terminal.note("Press Ctrl-C again or Ctrl-D to quit.")
                continue
            given_up = False
            if line.strip():
                await self._act(line)

    async def _line(self) -> str:
        model = self.session.model
        kind = (
            in_line(model.facts.remark, 200).partition(",")[0].partition(":")[0].partition(".")[0]
        )
        mark = [
            ("bold", in_line(model.name, 24)),
            ("", f" ({in_line(kind, 20)})" if kind else ""),
            ("bold", " ❯ "),
        ]
        text = self._typed
        self._typed = ""
        buffer = self._reading.default_buffer
        try:
            return await self.front.text(self._reading, mark, default=text)
        except asyncio.CancelledError:
            self._typed = buffer.text  # a question interrupts the input
            raise

    async def _act(self, line: str) -> None:
        """Run an input line. Raises LeaveChat."""
        meant = read_line(line, COMMANDS, self.offers())
        try:
            if isinstance(meant, LineError):
                self.terminal.note(f"! {meant.words}", "bold red")
            elif isinstance(meant, Command):
                await self._commands.do(meant.name, meant.rest)
            elif isinstance(meant, PromptCall):
                await self._prompt(meant)
            else:
                await self._say(meant)
        except (InterlockError, ValueError) as bad:
            self.terminal.note(f"! {bad}", "bold red")
        except (QuestionAbandoned, EOFError):
            self.terminal.note("Given up.")

    def offers(self) -> tuple[ServerOffer, ...]:
        """What the servers offer now, without blocked prompts."""
        return tuple(
            ServerOffer(
                server=link.id,
                prompts=[
                    p
                    for p in link.prompts
                    if ("prompt", p.name) not in self.host.features.blocked.get(link.id, {})
                ],
                resources=link.resources,
                templates=link.templates,
                completes=link.capabilities.completions is not None,
            )
            for link in self.host.hub.servers.values()
        )

    # -- saying something --------------------------------------------------------------------------

    async def _say(self, speech: ChatMessage) -> None:
        attach = await self._expanded(speech.attached)
        files = self.files
        self.files = []
        await self.turn(self.session.say(speech.text, attach=attach, files=files))

    def _steer(self, text: str) -> None:
        """Give the model a line at its next step; without a turn it is kept for the next line."""
        if not self.session.running:
            self.front.typed = text
            return
        work = asyncio.create_task(self._queue(text))
        self._steering.add(work)
        work.add_done_callback(self._steering.discard)

    async def _queue(self, text: str) -> None:
        try:
            await self.session.steer(text)
        except InterlockError as bad:
            self.terminal.note(f"! {bad}", "bold red")
        else:
            self.terminal.note(f"+ {in_line(text, 200)} (for the model's next step)")

    def write(self, text: str) -> None:
        """Put a text into the next input line."""
        self._typed = text

    async def _prompt(self, call: PromptCall) -> None:
        """Ask for missing arguments, show the prompt's messages, and send them."""
        given = await self._arguments(call)
        attach = list(await self._expanded(call.attached))
        while True:
            got = await self.front.during(
                self.host.get_prompt(call.server, call.prompt.name, given)
            )
            self.terminal.print(
                Text(f"{in_line(call.server, 60)} suggests this message:", style="bold")
            )
            for message in got.messages:
                who = [] if message.role == "user" else [Text(f"  {message.role}:", style="dim")]
                self.terminal.print(
                    *who,
                    *(Padding(each, (0, 0, 0, 2)) for each in blocks(message.content, self.media)),
                )
            for each in attach:
                self.terminal.note(f"  @ {each.server}: {each.uri}")
            key = await self.front.idle(lambda: self.front.key(_PREVIEW))
            if key == "y":
                await self.turn(
                    self.session.prompt(call.server, call.prompt.name, given, attach=attach)
                )
                return
            if key == "n":
                self.terminal.note("Nothing was sent.")
                return
            if key == "a":
                attach += [each for each in await self._chosen() if each not in attach]
            else:
                given = await self._arguments(call, given)

    async def _arguments(
        self, call: PromptCall, again: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """The arguments of a prompt: those in the line, or each asked for, required ones first."""
        given = dict(call.arguments if again is None else again)
        known = sorted(call.prompt.arguments or (), key=lambda argument: not argument.required)
        if (
            again is None
            and call.arguments
            and all(argument.name in given for argument in known if argument.required)
        ):
            return given  # arguments in the line are the person's choice
        for argument in known:
            if again is None and argument.name in given:
                continue
            words = argument.description or argument.title or ""
            need = "" if argument.required else " (optional, Enter skips it)"
            self.terminal.print(
                Text.assemble(
                    (f"  {in_line(argument.name, 60)}{need}", "bold"),
                    (f"  {in_line(words)}", "dim"),
                    overflow="fold",
                )
            )
            ref = PromptReference(name=call.prompt.name)
            while True:
                value = await self._value(
                    call.server, ref, argument.name, given, given.get(argument.name, "")
                )
                if value or not argument.required:
                    break
                self.terminal.note("    ! This field is required.", "bold red")
            if value:
                given[argument.name] = value
            else:
                given.pop(argument.name, None)
        return given

    async def _value(
        self, server: str, ref: Any, name: str, before: Mapping[str, str], text: str = ""
    ) -> str:
        """Ask for one value, with the server's suggestions."""
        values = ValueCompleter(self.host.complete, server, ref, name, before, self._pause)
        keys = KeyBindings()
        keys.add("enter", filter=completion_is_selected)(_take)
        session: PromptSession[str] = PromptSession(
            completer=values,
            complete_while_typing=True,
            key_bindings=keys,
            reserve_space_for_menu=6,
        )
        session.default_buffer.on_text_changed += values.outdated
        kept = [text]

        async def read() -> str:
            try:
                return await self.front.text(session, "  ❯ ", default=kept[0])
            except asyncio.CancelledError:
                kept[0] = session.default_buffer.text
                raise

        return (await self.front.idle(read, typed=lambda: bool(kept[0]))).strip()

    async def _chosen(self) -> Sequence[Attached]:
        """Ask which resources to attach."""
        session: PromptSession[str] = PromptSession(
            completer=self._choices, complete_while_typing=True, reserve_space_for_menu=6
        )
        session.default_buffer.on_text_changed += self._choices.outdated
        line = await self.front.idle(
            lambda: self.front.text(session, "  resources ❯ ", default="@")
        )
        found = [attachment(word.removeprefix("@"), self.offers()) for word in line.split()]
        if None in found:
            self.terminal.note("! There is no such resource.", "bold red")
        return await self._expanded([each for each in found if each is not None])

    async def _expanded(self, attached: Sequence[Attached]) -> list[Attached]:
        """The resources, with the variables of templates filled in."""
        whole: list[Attached] = []
        for each in attached:
            if "{" in each.uri:
                values: dict[str, str] = {}
                for name in blanks(each.uri):
                    self.terminal.print(
                        Text(
                            f"  {in_line(each.uri, 200)}: {in_line(name, 60)}",
                            style="bold",
                            overflow="fold",
                        )
                    )
                    values[name] = await self._value(
                        each.server, ResourceTemplateReference(uri=each.uri), name, values
                    )
                each = Attached(
                    server=each.server, uri=self.host.expand(each.uri, values), title=each.title
                )
            whole.append(each)
        return whole

    async def turn(self, turn: Any) -> None:
        """Run a turn to its end; Ctrl-C cancels it."""
        task: asyncio.Task[TurnEnded] = asyncio.create_task(turn)

        async def wait() -> TurnEnded:
            return await task

        def stop() -> None:
            if self.session.running:
                self.session.cancel()
            else:
                task.cancel()  # it is still reading the attachments

        try:
            ended = await self.front.during(wait(), stop=stop, steer=self._steer)
        finally:
            self._typed = self.front.typed  # begun in the turn, and not sent
            self.front.typed = ""
        if ended.reason == "done":
            self.terminal.print("")

    async def read(self, words: str) -> None:
        """Print a resource."""
        found = attachment(words.removeprefix("@"), self.offers())
        if found is None:
            raise CommandError(f"No server has a resource {in_line(words, 200)}.")
        (place,) = await self._expanded([found])
        result = await self.front.during(self.host.read(place.server, place.uri))
        for part in result.contents:
            self.terminal.print(*contents(part, self.media))


def _take(event: KeyPressEvent) -> None:
    """Accept the selected suggestion, and continue typing."""
    event.current_buffer.complete_state = None


def _keys() -> KeyBindings:
    keys = KeyBindings()
    keys.add("enter", filter=~completion_is_selected)(
        lambda event: event.current_buffer.validate_and_handle()
    )
    keys.add("enter", filter=completion_is_selected)(_take)
    keys.add("escape", "enter")(lambda event: event.current_buffer.insert_text("\n"))
    return keys


def _history() -> History:
    """The input history, in a file that only this user can read."""
    try:
        path = user_folder() / "history"
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600))
    except (OSError, click.UsageError):
        return InMemoryHistory()
    return FileHistory(str(path))


class _TerminalLogHandler(logging.Handler):
    """Prints the program's warnings above the input line."""

    def __init__(self, terminal: TerminalOutput) -> None:
        super().__init__(logging.WARNING)
        self._terminal = terminal

    def emit(self, record: logging.LogRecord) -> None:
        """See Handler."""
        self._terminal.note(f"! {seen(record.getMessage())}", "yellow")


@contextlib.contextmanager
def _printed(terminal: TerminalOutput) -> Any:
    handler = _TerminalLogHandler(terminal)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
