"""Focus of the terminal: the input line, a running turn, or one question at a time."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.shortcuts import PromptSession

from ...fleet.questions import Answer, AnyQuestion, CallQuestion, NotAnswered
from .output import TerminalOutput, in_line

T = TypeVar("T")


class LeaveChat(Exception):
    """The person wants to quit the chat."""


class QuestionAbandoned(Exception):
    """The person cancels a question, and with it the work that the question belongs to."""


class KeyChoice(Struct, frozen=True):
    """A key that answers a question, and its label."""

    key: str
    words: str


class QueuedQuestion(Struct, eq=False):
    """A question in the queue."""

    question: AnyQuestion
    answered: asyncio.Future[Answer]


class TerminalFocus:
    """Gives the terminal to one task at a time. It is the host's UserInterface.

    `ask` shows a question and returns the answer. `ask_group` does so for the calls of one step;
    None means that each is asked about on its own. `live` returns the text shown below the output
    while something is running. `typed` is what the person has begun to type meanwhile.
    """

    def __init__(self, terminal: TerminalOutput, input: Input) -> None:
        self.terminal = terminal
        self.input = input
        self.ask: Callable[[AnyQuestion], Coroutine[Any, Any, Answer]]
        self.ask_group: Callable[[Sequence[CallQuestion]], Coroutine[Any, Any, Answer | None]]
        self.live: Callable[[], StyleAndTextTuples] = lambda: []
        self.typed = ""  # while some work runs, and not sent yet
        self._steer: Callable[[str], None] | None = None
        self.waiting: list[QueuedQuestion] = []
        self._came = asyncio.Event()
        self._stop: Callable[[], None] | None = None
        self._stops = 0
        self._leaving = False
        self._who = ""
        self._apart: set[str] = set()  # groups whose calls are asked about one by one

    # -- questions ---------------------------------------------------------------------------------

    async def answer(self, question: AnyQuestion) -> Answer:
        """See UserInterface."""
        waiting = QueuedQuestion(question, asyncio.get_running_loop().create_future())
        self.waiting.append(waiting)
        self._came.set()
        try:
            return await waiting.answered
        finally:
            self.waiting.remove(waiting)

    async def _settle(self, gate: bool = False) -> None:
        """Ask all queued questions, one after the other."""
        while (waiting := self._next()) is not None and not self._leaving:
            group = self._group(waiting)
            if len(group) > 1:
                await self._settle_group(group, gate)
            else:
                await self._settle_one(waiting, gate)
            gate = False
            await asyncio.sleep(0)  # lets the task that waits for the answer run
        self._came.clear()

    def _next(self) -> QueuedQuestion | None:
        """The oldest question that has no answer yet."""
        return next((each for each in self.waiting if not each.answered.done()), None)

    def _group(self, waiting: QueuedQuestion) -> list[QueuedQuestion]:
        """The open questions about ordinary calls of the same step of the model."""
        if not isinstance(waiting.question, CallQuestion):
            return []
        group = waiting.question.group
        if not group or group in self._apart:
            return []
        return [
            each
            for each in self.waiting
            if not each.answered.done()
            and isinstance(each.question, CallQuestion)
            and each.question.group == group
            and not (each.question.warnings or each.question.risk or each.question.flagged)
        ]

    async def _settle_group(self, group: Sequence[QueuedQuestion], gate: bool) -> None:
        """Ask once about all calls of a step; if one is closed meanwhile, about the others."""
        questions = [each.question for each in group if isinstance(each.question, CallQuestion)]
        asking = asyncio.create_task(self._asked_group(questions, gate))
        either: set[asyncio.Future[Any]] = {asking, *(each.answered for each in group)}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asking.cancel()
            await asyncio.wait({asking})
        if asking.cancelled():
            return
        answer = asking.result()
        if answer is None:
            self._apart.add(questions[0].group)
            return
        for each in group:
            if not each.answered.done():
                each.answered.set_result(answer)
        if self._stops or self._leaving:
            self._stopped()

    async def _asked_group(self, questions: Sequence[CallQuestion], gate: bool) -> Answer | None:
        try:
            if gate:
                await self.key([KeyChoice("enter", f"{len(questions)} calls wait: look at them")])
            return await self.ask_group(questions)
        except QuestionAbandoned:
            self._stops += 1
            return NotAnswered(words="The user cancelled it.")
        except EOFError:
            self._leaving = True
            return NotAnswered(words="The user has quit.")

    async def _settle_one(self, waiting: QueuedQuestion, gate: bool) -> None:
        asking = asyncio.create_task(self._asked(waiting.question, gate))
        try:
            await asyncio.wait({asking, waiting.answered}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                self.terminal.note(
                    f"The question of {waiting.question.server or 'the host'} is no longer open."
                )
        finally:
            asking.cancel()
            await asyncio.wait({asking})
        if waiting.answered.done():
            return
        waiting.answered.set_result(asking.result())
        if self._stops or self._leaving:
            self._stopped()

    async def _asked(self, question: AnyQuestion, gate: bool) -> Answer:
        try:
            if gate:  # keys typed just now were not meant for the question
                await self.key(
                    [
                        KeyChoice(
                            "enter",
                            f"{in_line(question.server, 40) or 'the host'} asks you a "
                            "question: look at it",
                        )
                    ]
                )
            self._who = in_line(
                question.server, 40
            )  # the name stays visible when a long question has scrolled away
            return await self.ask(question)
        except QuestionAbandoned:
            self._stops += 1
            return NotAnswered(words="The user cancelled it.")
        except EOFError:
            self._leaving = True
            return NotAnswered(words="The user has quit.")
        except (
            Exception
        ) as bad:  # a question that cannot be shown counts as denied, and does not end the chat
            self.terminal.note(
                f"! The question of {question.server or 'the host'} cannot be shown: "
                f"{type(bad).__name__}: {bad}",
                "bold red",
            )
            return NotAnswered(words=f"The question could not be shown ({type(bad).__name__}).")
        finally:
            self._who = ""

    def _stopped(self) -> None:
        if self._leaving or self._stops > 1 or self._stop is None:
            self._leaving = self._leaving or self._stops > 1
            if self._leaving:
                raise LeaveChat
            self._stops = 0
        else:
            self._stop()

    # -- what else wants the terminal --------------------------------------------------------------

    async def idle(
        self,
        begin: Callable[[], Coroutine[Any, Any, T]],
        *,
        typed: Callable[[], bool] = lambda: False,
    ) -> T:
        """Run something that reads input.

        A question cancels it. It starts again after the question.
        """
        while True:
            await self._settle(gate=typed())
            reading = asyncio.create_task(begin())
            came = asyncio.create_task(self._came.wait())
            try:
                await asyncio.wait({reading, came}, return_when=asyncio.FIRST_COMPLETED)
                if reading.done():
                    return reading.result()
            finally:
                reading.cancel()
                came.cancel()
                await asyncio.wait({reading, came})

    async def during(
        self,
        work: Coroutine[Any, Any, T],
        *,
        stop: Callable[[], None] | None = None,
        steer: Callable[[str], None] | None = None,
    ) -> T:
        """Run some work, show its progress, and ask the questions that arrive meanwhile.

        Ctrl-C calls `stop`; without `stop` it cancels the work. `steer` gets the lines that are
        typed meanwhile; without it they are ignored.

        Raises QuestionAbandoned if the work was cancelled, and LeaveChat at the second Ctrl-C.
        """
        task = asyncio.create_task(work)

        def cancel() -> None:
            task.cancel()

        self._stop = stop or cancel
        self._steer = steer
        self._stops = 0
        try:
            while not task.done():
                if self._next() is not None:
                    await self._settle()
                else:
                    await self._watch(task)
            if task.cancelled():
                raise QuestionAbandoned
            return task.result()
        finally:
            self._stop = None
            self._steer = None
            self._stops = 0
            task.cancel()
            await asyncio.wait({task})

    async def _watch(self, task: asyncio.Task[Any]) -> None:
        keys = KeyBindings()

        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            self._stops += 1
            event.app.exit()

        if self._steer is not None:
            self._take_lines(keys, self._steer)
        app: Application[None] = Application(
            layout=Layout(
                Window(
                    FormattedTextControl(self._shown_live),
                    wrap_lines=True,
                    dont_extend_height=True,
                    always_hide_cursor=True,
                )
            ),
            key_bindings=keys,
            erase_when_done=True,
            refresh_interval=0.2,
        )
        before = self._stops
        watching = asyncio.create_task(self.run(app))
        came = asyncio.create_task(self._came.wait())
        try:
            await asyncio.wait({watching, came, task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            watching.cancel()
            came.cancel()
            await asyncio.wait({watching, came})
        if not watching.cancelled() and isinstance(watching.exception(), EOFError):
            raise LeaveChat  # the terminal is gone
        if self._stops > before:
            if self._stops == 1:
                self.terminal.note("Cancelled. Press Ctrl-C again to quit.", "yellow")
            self._stopped()

    def _take_lines(self, keys: KeyBindings, steer: Callable[[str], None]) -> None:
        """Collect what is typed while some work runs; Enter passes it on."""

        @keys.add(Keys.Any)
        @keys.add(Keys.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            words = " ".join(event.data.splitlines())
            self.typed += "".join(sign for sign in words if sign.isprintable())
            event.app.invalidate()

        @keys.add("backspace")
        def _(event: KeyPressEvent) -> None:
            self.typed = self.typed[:-1]
            event.app.invalidate()

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            text = self.typed
            self.typed = ""
            if text.strip():
                steer(text)

    def _shown_live(self) -> StyleAndTextTuples:
        shown = self.live()
        return [*shown, ("", "\n"), ("bold", "  + "), ("", self.typed)] if self.typed else shown

    async def run(self, app: Application[T]) -> T:
        """Run an application, which has the terminal until it ends."""
        self.terminal.app = app
        try:
            return await app.run_async(handle_sigint=False, set_exception_handler=False)
        finally:
            self.terminal.app = None
            self.terminal.flush()

    async def key(self, keys: Sequence[KeyChoice]) -> str:
        """Wait for one of these keys, and return it.

        Raises QuestionAbandoned at Ctrl-C and EOFError at Ctrl-D.
        """
        bindings = KeyBindings()

        def on(key: str, result: str) -> None:
            bindings.add(key)(lambda event: event.app.exit(result=result))

        for each in keys:
            on(each.key, each.key)
            if len(each.key) == 1 and each.key.isalpha():
                on(each.key.upper(), each.key)
        bindings.add("c-c")(lambda event: event.app.exit(exception=QuestionAbandoned()))
        bindings.add("c-d")(lambda event: event.app.exit(exception=EOFError()))
        control = FormattedTextControl(lambda: laid_out(keys, self.terminal.width, self._who))
        window = Window(control, wrap_lines=True, dont_extend_height=True, always_hide_cursor=True)
        self.forget_keys()
        app: Application[str] = Application(
            layout=Layout(window), key_bindings=bindings, erase_when_done=True
        )
        return await self.run(app)

    async def text(self, session: PromptSession[str], message: Any, **options: Any) -> str:
        """Read a line. Raises QuestionAbandoned (Ctrl-C), or EOFError (Ctrl-D in an empty line)."""
        self.terminal.app = session.app
        try:
            return await session.prompt_async(
                message, handle_sigint=False, set_exception_handler=False, **options
            )
        except KeyboardInterrupt:
            raise QuestionAbandoned from None
        finally:
            self.terminal.app = None
            self.terminal.flush()

    def forget_keys(self) -> None:
        """Drop keys typed before the question was visible."""
        try:
            descriptor = self.input.fileno()
        except (
            NotImplementedError,
            OSError,
            ValueError,
        ):  # inputs of prompt_toolkit without a terminal have no file descriptor, or a closed one
            return
        if sys.platform != "win32" and os.isatty(descriptor):
            import termios  # late: not on every system

            clear_typeahead(self.input)
            termios.tcflush(descriptor, termios.TCIFLUSH)


def laid_out(keys: Sequence[KeyChoice], width: int, who: str = "") -> StyleAndTextTuples:
    """Keys with their labels, side by side as far as they fit, without a line break in a label.

    `who` is the name of the server that asks.
    """
    shown: StyleAndTextTuples = [("bold", f"{who}?")] if who else []
    column = len(who) + 1 if who else 0
    for each in keys:
        name = each.key.capitalize() if len(each.key) > 1 else each.key
        size = len(name) + 1 + len(each.words)
        if column and column + 2 + size > width - 1:
            shown.append(("", "\n"))
            column = 0
        elif column:
            shown.append(("", "  "))
            column += 2
        shown += [("bold", name), ("", f" {each.words}")]
        column += size
    return shown
