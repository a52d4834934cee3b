"""Dialogs at the terminal: each question of the host in a form that fits it."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace
from prompt_toolkit.shortcuts import PromptSession

from interlock import CallToolResult, TextContent
from interlock.schema import SchemaError
from interlock.schema import compile as ready
from interlock.types import CreateMessageRequestParams, CreateMessageResult, SamplingMessage

from ...fleet.questions import (
    Answer,
    AnyQuestion,
    CallQuestion,
    Decision,
    Filled,
    FormQuestion,
    PinQuestion,
    PlanQuestion,
    ResultQuestion,
    SampledQuestion,
    SampleQuestion,
    StartQuestion,
    UrlQuestion,
)
from .editing import EditRejected, edit_data, edit_text
from .filling import fill
from .focus import KeyChoice, QuestionAbandoned, TerminalFocus
from .output import in_line, rendered
from .question_views import (
    address,
    details,
    group_view,
    plan_step,
    question_view,
    request_lines,
    whole_changes,
)
from .results import MediaFiles, blocks, plain, whole

T = TypeVar("T")
MOST_PROBLEMS = 5
ROWS_OF_KEYS = 3  # at the bottom of the screen, below a question
_NO = KeyChoice("n", "no")


class Asker:
    """Asks the person at the terminal. `open_page` opens an address in the browser."""

    def __init__(
        self,
        front: TerminalFocus,
        media: MediaFiles,
        open_page: Callable[[str], object] = webbrowser.open,
    ) -> None:
        self._front = front
        self._media = media
        self._open_page = open_page

    async def ask(self, question: AnyQuestion) -> Answer:
        """The person's answer. Raises QuestionAbandoned at Ctrl-C, and EOFError at Ctrl-D."""
        self._show(question)
        if isinstance(question, FormQuestion):
            return await fill(self._front, question)
        if isinstance(question, UrlQuestion):
            return await self._page(question)
        if isinstance(question, CallQuestion):
            return await self._call(question)
        if isinstance(question, ResultQuestion):
            return await self._result(question)
        if isinstance(question, SampleQuestion):
            return await self._sample(question)
        if isinstance(question, SampledQuestion):
            return await self._sampled(question)
        if isinstance(question, PinQuestion):
            return await self._pins(question)
        if isinstance(question, PlanQuestion):
            return await self._plan(question)
        return await self._start(question)

    def _show(self, question: AnyQuestion) -> None:
        """Print a question; if it is too long for the screen, say that its beginning is hidden."""
        terminal = self._front.terminal
        shown = question_view(question, self._media, terminal.width)
        terminal.print(*shown)
        lines = sum(rendered(each, terminal.width, coloured=False).count("\n") for each in shown)
        if lines > terminal.height - ROWS_OF_KEYS:
            terminal.note(
                f"! These are {lines:,} lines. Scroll up to see those above the screen.",
                "bold yellow",
            )

    # -- plans -------------------------------------------------------------------------------------

    async def _plan(self, question: PlanQuestion) -> Decision:
        """Ask to approve all steps of a plan, none, or some."""
        plain = [at for at, step in enumerate(question.steps) if not step.warnings]
        all_plain = len(plain) == len(question.steps)
        words = "approve all" if all_plain else f"approve the {len(plain)} without warnings"
        keys = [KeyChoice("y", words), _NO]
        if len(question.steps) > 1:
            keys.append(KeyChoice("c", "choose"))
        if not plain:
            keys = keys[1:]
        key = await self._front.key(keys)
        if key == "n":
            return await self._refused()
        if key == "y":
            self._said("approved")
            return Decision(allow=True)
        only = []
        for at, step in enumerate(question.steps):
            self._front.terminal.print(*plan_step(step, at + 1))
            if await self._front.key([KeyChoice("y", "approve"), _NO]) == "y":
                only.append(at)
        self._said(f"approved: {len(only):,} of {len(question.steps):,}")
        return Decision(allow=bool(only), only=tuple(only))

    # -- calls and their results -------------------------------------------------------------------

    async def ask_group(self, questions: Sequence[CallQuestion]) -> Decision | None:
        """Ask once about several calls of one step. None: each is to be asked about on its own."""
        terminal = self._front.terminal
        shown = group_view(questions)
        terminal.print(*shown)
        lines = sum(rendered(each, terminal.width, coloured=False).count("\n") for each in shown)
        if lines > terminal.height - ROWS_OF_KEYS:
            terminal.note(
                f"! These are {lines:,} lines. Scroll up to see those above the screen.",
                "bold yellow",
            )
        keys = [KeyChoice("y", f"all {len(questions)} once")]
        if all(question.may_remember for question in questions):
            keys.append(KeyChoice("s", "for this conversation"))
        keys += [_NO, KeyChoice("c", "one by one")]
        key = await self._front.key(keys)
        if key == "c":
            return None
        if key == "n":
            return await self._refused()
        self._said("allowed once" if key == "y" else "allowed for this conversation")
        return Decision(allow=True, remember="once" if key == "y" else "session")

    async def _scope(self, question: CallQuestion) -> Decision | None:
        """Ask which other calls the answer covers, and show the rule before it holds."""
        terminal = self._front.terminal
        for number, scope in enumerate(question.scopes, 1):
            terminal.note(f"  {number} {scope.words}", "bold")
        session: PromptSession[str] = PromptSession()
        typed = (await self._front.text(session, "Which calls? ")).strip()
        if not (typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(question.scopes)):
            terminal.note("There is no such number.", "bold red")
            return None
        at = int(typed) - 1
        terminal.note("This is the rule:")
        terminal.print(question.scopes[at].toml)
        key = await self._front.key(
            [
                KeyChoice("s", "for this conversation"),
                KeyChoice("a", "always (policy file)"),
                KeyChoice("b", "back"),
            ]
        )
        if key == "b":
            return None
        self._said("allowed by a rule")
        return Decision(allow=True, remember="session" if key == "s" else "always", scope=at)

    async def _call(self, question: CallQuestion) -> Decision:
        if question.flagged:  # not the usual key, so that habit does not approve it
            keys = [_NO, KeyChoice("o", "once, despite the warnings")]
        elif question.may_remember:
            keys = [
                KeyChoice("y", "once"),
                KeyChoice("s", "for this conversation"),
                KeyChoice("a", "always"),
                _NO,
            ]
        else:
            keys = [KeyChoice("y", "once"), _NO]
        if question.risk and not question.flagged:
            keys = [_NO, *(each for each in keys if each is not _NO)]
        if question.bounded:
            keys.append(KeyChoice("r", "once, and count the bounds from zero"))
        if question.scopes and question.may_remember:
            keys.append(KeyChoice("m", "more calls like this"))
        keys += [KeyChoice("e", "edit"), KeyChoice("d", "details")]
        arguments: dict[str, Any] | None = None
        while True:
            key = await self._front.key(keys)
            if key == "d":
                self._front.terminal.print(*details(question))
            elif key == "e":
                given = arguments if arguments is not None else question.arguments
                edited = await edit_data(
                    self._front, given, lambda data: _arguments(question.input_schema, data)
                )
                if edited is not None:
                    arguments = edited
                    changed = msgspec.structs.replace(question, arguments=edited)
                    self._show(changed)
            elif key == "n":
                return await self._refused()
            elif key == "m":
                scoped = await self._scope(question)
                if scoped is not None:
                    return msgspec.structs.replace(scoped, arguments=arguments)
            elif key == "r":
                self._said("allowed; the bounds are counted from zero")
                return Decision(allow=True, renew=True, arguments=arguments)
            else:
                words = {
                    "y": "allowed once",
                    "o": "allowed once",
                    "s": "allowed for this conversation",
                    "a": "allowed always",
                }[key]
                remember: Any = {"s": "session", "a": "always"}.get(key, "once")
                self._said(words)
                return Decision(allow=True, remember=remember, arguments=arguments)

    async def _result(self, question: ResultQuestion) -> Decision:
        result: CallToolResult | None = None
        while True:
            key = await self._front.key(
                [
                    KeyChoice("y", "the model may see it"),
                    KeyChoice("n", "withhold it"),
                    KeyChoice("e", "edit"),
                ]
            )
            if key == "e":
                data = plain(result if result is not None else question.result)
                edited = await edit_data(
                    self._front, data, lambda data: _converted(data, CallToolResult)
                )
                if edited is not None:
                    result = edited
                    self._front.terminal.print(
                        *whole(result, self._media, self._front.terminal.width)
                    )
            elif key == "n":
                return await self._refused()
            else:
                self._said("passed on")
                return Decision(allow=True, result=result)

    # -- sampling ----------------------------------------------------------------------------------

    async def _sample(self, question: SampleQuestion) -> Decision:
        request = question.request
        model = question.model
        keys = [
            KeyChoice("y", "ask the model"),
            KeyChoice("s", "and all later ones without asking"),
            KeyChoice("n", "no"),
            KeyChoice("p", "edit the prompt"),
            KeyChoice("i", "edit the system prompt"),
            KeyChoice("t", "tokens"),
            KeyChoice("e", "edit all"),
        ]
        if len(question.models) > 1:
            keys.append(KeyChoice("m", "another model"))
        while True:
            key = await self._front.key(keys)
            if key == "n":
                return await self._refused()
            if key in "ys":
                self._said("asked" if key == "y" else "asked; later ones are sent without asking")
                edited = request if request is not question.request else None
                return Decision(
                    allow=True,
                    remember="once" if key == "y" else "session",
                    request=edited,
                    model=model,
                )
            if key == "m":
                model = await self._other_model(question.models, model)
            else:
                request = await self._edited_request(request, key)
            self._front.terminal.print(*request_lines(request, model, question.left, self._media))

    async def _edited_request(
        self, request: CreateMessageRequestParams, key: str
    ) -> CreateMessageRequestParams:
        if key == "e":
            return (
                await edit_data(
                    self._front,
                    plain(request),
                    lambda data: _converted(data, CreateMessageRequestParams),
                )
                or request
            )
        if key == "i":
            text = await edit_text(self._front, request.system_prompt or "")
            return request if text is None else replace(request, system_prompt=text or None)
        if key == "t":
            tokens = await edit_data(self._front, request.max_tokens, _tokens)
            return request if tokens is None else replace(request, max_tokens=tokens)
        place = next(
            (
                n
                for n in range(len(request.messages) - 1, -1, -1)
                if _text_of(request.messages[n].content) is not None
            ),
            None,
        )
        if place is None:
            self._front.terminal.note("It has no text. Press e to edit all of it.")
            return request
        message = request.messages[place]
        text = await edit_text(self._front, _text_of(message.content) or "")
        if text is None:
            return request
        messages = list(request.messages)
        messages[place] = SamplingMessage(
            role=message.role, content=_with_text(message.content, text)
        )
        return replace(request, messages=messages)

    async def _other_model(self, models: Mapping[str, str], model: str) -> str:
        names = list(models)
        for number, name in enumerate(names, 1):
            remark = f": {in_line(models[name], 100)}" if models[name] else ""
            self._front.terminal.note(f"  {number} {name}{remark}", "bold" if name == model else "")
        session: PromptSession[str] = PromptSession()
        said = (await self._front.text(session, "Which model? ")).strip()
        if said in models:
            return said
        if said.isascii() and said.isdigit() and 1 <= int(said) <= len(names):
            return names[int(said) - 1]
        self._front.terminal.note(f"There is no model {in_line(said, 60)}.", "bold red")
        return model

    async def _sampled(self, question: SampledQuestion) -> Decision:
        sampled: CreateMessageResult | None = None
        keys = [
            KeyChoice("y", "give it"),
            KeyChoice("s", "and all later ones without asking"),
            KeyChoice("n", "withhold it"),
            KeyChoice("e", "edit"),
        ]
        while True:
            key = await self._front.key(keys)
            if key == "n":
                return await self._refused()
            if key in "ys":
                self._said("given" if key == "y" else "given; later ones are sent without asking")
                return Decision(
                    allow=True, remember="once" if key == "y" else "session", sampled=sampled
                )
            now = sampled if sampled is not None else question.result
            text = _text_of(now.content)
            if text is None:
                edited = await edit_data(
                    self._front, plain(now), lambda data: _converted(data, CreateMessageResult)
                )
            else:
                typed = await edit_text(self._front, text)
                edited = (
                    None if typed is None else replace(now, content=_with_text(now.content, typed))
                )
            if edited is not None:
                sampled = edited
                self._front.terminal.print(*blocks(sampled.content, self._media))

    # -- pages, starts, changes --------------------------------------------------------------------

    async def _page(self, question: UrlQuestion) -> Filled:
        keys = [
            KeyChoice("o", "open in the browser"),
            KeyChoice("y", "yes, I open it myself"),
            KeyChoice("d", "decline"),
            KeyChoice("c", "cancel"),
        ]
        while True:
            key = await self._front.key(keys)
            if key == "o":
                if not question.url.isascii() or not question.url.startswith(
                    ("https://", "http://")
                ):
                    self._front.terminal.note(
                        "! It is not opened, because it is not a plain web address.",
                        "bold red",
                    )
                    continue
                self._front.terminal.print(address(question.url, question.host, question.site))
                if (
                    await self._front.key([KeyChoice("y", "open it now"), KeyChoice("n", "do not")])
                    == "y"
                ):
                    await asyncio.to_thread(self._open_page, question.url)
                    self._said("opened")
                    return Filled(action="accept")
            elif key == "y":
                self._said("agreed")
                return Filled(action="accept")
            else:
                self._said("declined" if key == "d" else "cancelled", "yellow")
                return Filled(action="decline" if key == "d" else "cancel")

    async def _start(self, question: StartQuestion) -> Decision:
        key = await self._front.key(
            [KeyChoice("y", "start it" if question.runs_code else "reach it"), _NO]
        )
        self._said("yes" if key == "y" else "no", "green" if key == "y" else "yellow")
        return Decision(allow=key == "y")

    async def _pins(self, question: PinQuestion) -> Decision:
        """Ask to approve all, none, or some of a server's changes.

        Of several changes, "all" leaves out those with warnings.
        """
        plain = [at for at, change in enumerate(question.changes) if not change.warnings]
        several = len(question.changes) > 1
        flagged = len(question.changes) - len(plain)
        keys = [
            KeyChoice("y", "approve all" if several else "approve"),
            _NO,
            KeyChoice("d", "all of it"),
        ]
        if several:
            keys.insert(2, KeyChoice("c", "choose"))
        if flagged:
            words = f"approve the {len(plain):,} without warnings" if several else "approve"
            keys = [_NO, *([KeyChoice("y", words)] if plain or not several else []), *keys[2:]]
        while True:
            key = await self._front.key(keys)
            if key == "d":
                self._front.terminal.print(*whole_changes(question))
                continue
            if key == "c":
                only = await self._chosen(question)
                self._said(f"approved: {len(only):,} of {len(question.changes):,}")
                return Decision(allow=bool(only), only=tuple(only))
            if key == "n":
                self._said("no", "yellow")
                return Decision(allow=False)
            self._said("yes")
            only = plain if flagged and several else []
            return Decision(allow=True, only=tuple(only) or None)

    async def _chosen(self, question: PinQuestion) -> list[int]:
        """The indexes of the changes that the person approves; each is asked about in turn."""
        chosen: list[int] = []
        for at, change in enumerate(question.changes):
            one = msgspec.structs.replace(question, changes=(change,), warnings=change.warnings)
            self._show(one)
            key = await self._front.key(
                [_NO, KeyChoice("y", "approve"), KeyChoice("q", "deny the rest")]
            )
            if key == "q":
                break
            if key == "y":
                chosen.append(at)
        return chosen

    async def _refused(self) -> Decision:
        """A denial, with the reason if the person types one."""
        session: PromptSession[str] = PromptSession()
        reason = await self._front.text(session, "Why not? (Enter: no reason) ")
        self._said("refused", "yellow")
        return Decision(allow=False, reason=reason.strip())

    def _said(self, words: str, style: str = "green") -> None:
        self._front.terminal.note(f"  → {words}", style)


def _arguments(schema: Mapping[str, Any], data: Any) -> dict[str, Any]:
    """Check arguments against a tool's schema. Raises EditRejected."""
    if not isinstance(data, dict):
        raise EditRejected("The arguments must be a JSON object.")
    try:
        found = ready(dict(schema)).check(data)
    except SchemaError:
        return data  # the schema cannot be used, so the tool checks the arguments itself
    if found:
        raise EditRejected(
            "; ".join(
                f"{wrong.path or 'arguments'}: {wrong.message}" for wrong in found[:MOST_PROBLEMS]
            )
        )
    return data


def _converted(data: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as bad:
        raise EditRejected(str(bad)) from None


def _tokens(data: Any) -> int:
    if not isinstance(data, int) or isinstance(data, bool) or data < 1:
        raise EditRejected("This must be a whole number from 1.")
    return data


def _text_of(content: Any) -> str | None:
    """The text of content that has exactly one text block."""
    listed: Sequence[Any] = content if isinstance(content, list) else [content]
    texts = [block.text for block in listed if isinstance(block, TextContent)]
    return texts[0] if len(texts) == 1 else None


def _with_text(content: Any, text: str) -> Any:
    if not isinstance(content, list):
        return TextContent(text=text)
    return [
        replace(block, text=text) if isinstance(block, TextContent) else block for block in content
    ]


__all__ = ["Asker", "QuestionAbandoned"]
