"""Questions of servers to the inspector: elicitation, sampling and roots, and who answers them.

A question is answered by the first rule that fits: with given values, with an answer that a
recording has to the same question, or by a model. Without a rule it waits for the user.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import msgspec
from msgspec import Struct

from interlock import Answers, McpError
from interlock.cli.screen import plain
from interlock.typed.form_fields import BadForm, form_fields
from interlock.typed.form_fields import check as check_form
from interlock.types import (
    USER_REJECTED,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    JSONObject,
    TextContent,
)

from ..fleet import threat_scan
from ..web.app_policy import DECLARED
from .events import InspectorEvent, Publish
from .model_replies import ModelReplies

ELICITATION = "elicitation/create"
SAMPLING = "sampling/createMessage"
MOST_OPEN = 100
"""Questions of one connection that may wait at the same time. Further ones are cancelled."""
MOST_RULES = 100

Method = Literal["", "elicitation/create", "sampling/createMessage"]
RuleAnswer = Literal["accept", "decline", "cancel", "text", "recording", "model"]
FindRecorded = Callable[[str, Any], Any]
"""Finds a recorded answer by the method and the params of a question; None if there is none."""


class AnswerRule(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A rule for questions. An empty condition fits every question.

    Attributes:
        method: The kind of the question.
        tool: The name of the tool whose call asks.
        message: A text that the message of the question contains.
        answer: The answer. "accept" sends `content` and the defaults of the form, "text" answers
            sampling with `text`, "recording" repeats the answer that a tape has to the same
            question, and "model" asks the configured model.
        content: The values of a form.
        text: The text of the model's message.
    """

    answer: RuleAnswer
    method: Method = ""
    tool: str = ""
    message: str = ""
    content: JSONObject = {}
    text: str = ""

    def fits(self, method: str, tool: str, message: str) -> bool:
        """Whether the rule is for such a question."""
        return (
            self.method in ("", method)
            and self.tool in ("", tool)
            and self.message.casefold() in message.casefold()
        )


class GivenAnswer(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The user's answer to one question.

    Attributes:
        action: What to do. "send" accepts a form or a page, or sends `text` as the model's message.
            "recording" and "model" answer as a rule would.
        content: The values of a form.
        text: The text of the model's message.
        unchecked: Whether a form is sent even if its values do not fit.
    """

    action: Literal["send", "decline", "cancel", "recording", "model"]
    content: JSONObject = {}
    text: str = ""
    unchecked: bool = False


class InvalidForm(ValueError):
    """The values of a form do not fit.

    Attributes:
        wrong: What is wrong, by field.
    """

    def __init__(self, wrong: dict[str, str]) -> None:
        self.wrong = wrong
        super().__init__(
            "; ".join(f"{field}: {words}" for field, words in wrong.items())
            or "The values do not fit the form."
        )


class WaitingQuestion:
    """A question that waits for the user.

    Attributes:
        id: Its id in the connection.
        method: "elicitation/create" or "sampling/createMessage".
        params: Its params.
        call: The id of the inspector's call that caused it; "" if that is unknown.
        tool: The name of the called tool; "" if that is unknown.
        at: When it arrived, in seconds of the wall clock.
        problem: Why a rule, a recording or a model could not answer it; "" otherwise.
    """

    def __init__(self, id: str, method: str, params: Any, call: str, tool: str) -> None:
        self.id = id
        self.method = method
        self.params = params
        self.call = call
        self.tool = tool
        self.at = time.time()
        self.problem = ""
        self.answered: asyncio.Future[ElicitResult | CreateMessageResult] = (
            asyncio.get_running_loop().create_future()
        )

    @property
    def message(self) -> str:
        """The text that a rule is compared with."""
        return _message_of(self.params)

    def state(self) -> dict[str, Any]:
        """The question as JSON values, with invisible characters made visible."""
        shown: dict[str, Any] = {
            "id": self.id,
            "method": self.method,
            "call": self.call,
            "tool": self.tool,
            "at": self.at,
            "problem": self.problem,
            "message": threat_scan.visible(self.message),
        }
        params = self.params
        if isinstance(params, CreateMessageRequestParams):
            return {**shown, "kind": "sampling", "request": plain(params)}
        if params.mode == "url":
            host, site, warnings = threat_scan.of_url(params.url or "")
            url = threat_scan.visible(params.url or "")
            found = [msgspec.to_builtins(each) for each in warnings]
            return {
                **shown, "kind": "url", "url": url, "host": host, "site": site, "warnings": found
            }  # fmt: skip
        schema = _schema_of(params)
        try:
            fields = [msgspec.to_builtins(field) for field in form_fields(schema)]
        except BadForm as bad:
            words = f"The form cannot be shown: {bad} Answer with JSON."
            return {**shown, "kind": "form", "fields": [], "schema": schema, "words": words}
        return {**shown, "kind": "form", "fields": fields, "schema": schema, "words": ""}


class ConnectionQuestions:
    """The questions of one connection, the rules for them, and the roots.

    Args:
        connection: The name of the connection.
        publish: Publishes an event to the pages.
        find_recorded: Finds the recorded answer to the same question.
        replies: Answers questions with the configured model.
    """

    def __init__(
        self,
        connection: str,
        publish: Publish,
        find_recorded: FindRecorded = lambda method, params: None,
        replies: ModelReplies | None = None,
    ) -> None:
        self._connection = connection
        self._publish = publish
        self._find_recorded = find_recorded
        self._replies = replies or ModelReplies()
        self._waiting: dict[str, WaitingQuestion] = {}
        self._count = 0
        self.rules: tuple[AnswerRule, ...] = ()
        """The rules, of which the first that fits a question answers it."""
        self.roots: tuple[str, ...] = ()
        """The folders and file:// URIs that the server is given as roots."""

    @property
    def answers(self) -> Answers:
        """The functions that answer the questions of the connection, for a client."""
        return self.answers_for("", "")

    def answers_for(self, call: str, tool: str) -> Answers:
        """The functions that answer the questions of one call.

        Args:
            call: The id of the call.
            tool: The name of the called tool.
        """
        return Answers(
            elicit=partial(self._elicit, call, tool),
            sample=partial(self._sample, call, tool),
            roots=lambda: list(self.roots),
            extensions=DECLARED,
        )

    def state(self) -> list[dict[str, Any]]:
        """The questions that wait for an answer, as JSON values, oldest first."""
        return [question.state() for question in self._waiting.values()]

    def set_rules(self, rules: Sequence[AnswerRule]) -> None:
        """Replace the rules. Waiting questions that a new rule fits stay with the user.

        Raises:
            ValueError: There are too many.
        """
        if len(rules) > MOST_RULES:
            raise ValueError(f"A connection has at most {MOST_RULES} rules.")
        self.rules = tuple(rules)
        self._changed()

    def set_roots(self, roots: Sequence[str]) -> None:
        """Replace the roots.

        Raises:
            ValueError: There are too many, or one is neither a folder nor a file:// URI.
        """
        if len(roots) > MOST_RULES:
            raise ValueError(f"A connection has at most {MOST_RULES} roots.")
        for root in roots:
            if not root.startswith(("/", "~", "file://")):
                raise ValueError(f"{root} is not a folder: give its whole path, or a file:// URI.")
        self.roots = tuple(roots)
        self._changed()

    async def give(self, id: str, given: GivenAnswer) -> None:
        """Answer a waiting question.

        Raises:
            ValueError: The question is not open, or the answer does not fit (InvalidForm).
        """
        question = self._waiting.get(id)
        if question is None:
            raise ValueError("This question is no longer open.")
        try:
            answer = await self._given(question, given)
        except McpError as refusal:
            _refuse(question, refusal)
        else:
            if not question.answered.done():
                question.answered.set_result(answer)

    def cancel(self) -> None:
        """Cancel the waiting questions, because the connection ends."""
        for question in list(self._waiting.values()):
            _refuse(question, McpError(USER_REJECTED, "The connection ends"))

    # -- answering ---------------------------------------------------------------------------------

    async def _elicit(self, call: str, tool: str, params: ElicitRequestParams) -> ElicitResult:
        answer = await self._answer(ELICITATION, params, call, tool)
        assert isinstance(answer, ElicitResult)
        return answer

    async def _sample(
        self, call: str, tool: str, params: CreateMessageRequestParams
    ) -> CreateMessageResult:
        answer = await self._answer(SAMPLING, params, call, tool)
        assert isinstance(answer, CreateMessageResult)
        return answer

    async def _answer(
        self, method: str, params: Any, call: str, tool: str
    ) -> ElicitResult | CreateMessageResult:
        self._count += 1
        question = WaitingQuestion(f"q{self._count}", method, params, call, tool)
        rule = next(
            (rule for rule in self.rules if rule.fits(method, tool, question.message)), None
        )
        if rule is not None:
            try:
                return await self._by_rule(question, rule)
            except ValueError as bad:
                question.problem = f"The rule could not answer: {bad}"
        if len(self._waiting) >= MOST_OPEN:
            return self._no(question, "cancel")
        self._waiting[question.id] = question
        self._changed()
        try:
            return await question.answered
        finally:
            del self._waiting[question.id]
            self._changed()

    async def _by_rule(
        self, question: WaitingQuestion, rule: AnswerRule
    ) -> ElicitResult | CreateMessageResult:
        """The answer of a rule. Raises ValueError if it has none for this question."""
        if rule.answer in ("decline", "cancel"):
            return self._no(question, rule.answer)
        if rule.answer == "recording":
            return self._recorded(question)
        if rule.answer == "model":
            return await self._replies.reply(question.params)
        if rule.answer == "text":
            return self._text(question, rule.text)
        return self._accepted(question, rule.content, unchecked=False)

    async def _given(
        self, question: WaitingQuestion, given: GivenAnswer
    ) -> ElicitResult | CreateMessageResult:
        """The user's answer. Raises ValueError if it does not fit."""
        if given.action in ("decline", "cancel"):
            return self._no(question, given.action)
        if given.action == "recording":
            return self._recorded(question)
        if given.action == "model":
            return await self._replies.reply(question.params)
        if question.method == SAMPLING:
            return self._text(question, given.text)
        return self._accepted(question, given.content, unchecked=given.unchecked)

    def _accepted(
        self, question: WaitingQuestion, content: JSONObject, *, unchecked: bool
    ) -> ElicitResult:
        params = question.params
        if not isinstance(params, ElicitRequestParams):
            raise ValueError("Values answer a form only. Answer sampling with a text.")
        if params.mode == "url":
            return ElicitResult(action="accept")
        schema = _schema_of(params)
        whole = content if unchecked else {**_defaults(schema), **content}
        if not unchecked and (wrong := _wrong(schema, whole)):
            raise InvalidForm(wrong)
        return ElicitResult(action="accept", content=whole)

    def _text(self, question: WaitingQuestion, text: str) -> CreateMessageResult:
        if question.method != SAMPLING:
            raise ValueError("A text answers sampling only. Give the values of the form.")
        return CreateMessageResult(
            role="assistant",
            content=TextContent(text),
            model="interlock-inspector",
            stop_reason="endTurn",
        )

    def _recorded(self, question: WaitingQuestion) -> ElicitResult | CreateMessageResult:
        found = self._find_recorded(question.method, question.params)
        if found is None:
            raise ValueError("No tape has an answer to this question.")
        try:
            if question.method == SAMPLING:
                return msgspec.convert(found, CreateMessageResult)
            return msgspec.convert(found, ElicitResult)
        except msgspec.ValidationError as bad:
            raise ValueError(f"The recorded answer cannot be used: {bad}") from None

    def _no(self, question: WaitingQuestion, action: Literal["decline", "cancel"]) -> ElicitResult:
        """Refuse an elicitation. Raises McpError for sampling, which is refused by an error."""
        if question.method == SAMPLING:
            raise McpError(USER_REJECTED, "User rejected sampling request")  # `SAM-07`
        return ElicitResult(action=action)

    def _changed(self) -> None:
        self._publish(InspectorEvent("questions", self._connection, changes_state=True))


def _message_of(params: Any) -> str:
    """The message of an elicitation, or the last text of a sampling request."""
    if isinstance(params, ElicitRequestParams):
        return params.message
    for message in reversed(params.messages):
        blocks = message.content if isinstance(message.content, list) else [message.content]
        for block in reversed(blocks):
            if isinstance(block, TextContent):
                return block.text
    return ""


def _schema_of(params: ElicitRequestParams) -> JSONObject:
    return params.requested_schema or {"type": "object", "properties": {}}


def _defaults(schema: JSONObject) -> JSONObject:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {
        name: node["default"]
        for name, node in properties.items()
        if isinstance(node, dict) and "default" in node
    }


def _wrong(schema: JSONObject, content: JSONObject) -> dict[str, str]:
    """What is wrong with the values of a form, by field; "" for a schema that is no form."""
    try:
        return check_form(schema, content)
    except BadForm as bad:
        return {"": str(bad)}


def _refuse(question: WaitingQuestion, refusal: McpError) -> None:
    """Answer a question with an error, unless it has an answer."""
    if not question.answered.done():
        question.answered.set_exception(refusal)
