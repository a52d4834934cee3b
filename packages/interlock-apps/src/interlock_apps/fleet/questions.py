"""Questions to the person, their answers, and the interface of a user interface."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from msgspec import Struct

from interlock import CallToolResult, ToolAnnotations
from interlock.types import CreateMessageRequestParams, CreateMessageResult, JSONObject


class Warned(Struct, frozen=True, kw_only=True, rename="camel"):
    """A warning above a question.

    `kind` is a short stable word, `words` a sentence, `where` the place that it refers to.
    """

    kind: str
    words: str
    where: str = ""


class Question(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel"):
    """A question to the person.

    `server` is the configured id of the server that caused the question; empty for the host itself.
    `session` and `call` are the conversation and the tool call that caused it, if any.
    """

    id: str
    server: str = ""
    session: str = ""
    call: str = ""
    warnings: tuple[Warned, ...] = ()


class StartQuestion(Question, frozen=True, kw_only=True, tag="start"):
    """May this server be started, or contacted?

    `command` is the whole command, untruncated (2026-07-28, security best practices; `SEC-17`).
    `trusted` and `roots` are further wishes of its configuration: that its annotations are
    believed, and the folders it gets as roots. `confinement` is what its sandbox allows; empty if
    it runs with the rights of the user.
    """

    command: str
    source: str = ""
    variables: tuple[str, ...] = ()
    trusted: bool = False
    roots: tuple[str, ...] = ()
    runs_code: bool = True
    confinement: str = ""


class FeatureChange(Struct, frozen=True, kw_only=True, rename="camel"):
    """A feature that differs from its approved form.

    Attributes:
        kind: The kind of feature.
        name: Its name; empty for the instructions, the URI for a skill.
        was: Its approved form as lines of JSON; empty for a new feature.
        now: Its current form as lines of JSON; empty for a feature that is gone.
        warnings: The threat scan's warnings about its current form.
    """

    kind: Literal["tool", "prompt", "instructions", "skill"]
    name: str
    was: str
    now: str
    warnings: tuple[Warned, ...] = ()


class PinQuestion(Question, frozen=True, kw_only=True, tag="pin"):
    """Features of a server have changed: all changes in one question, flagged ones first.

    The answer approves all, none, or some (`Decision.only`). Unapproved features stay blocked. A
    skill gets its own question each time a conversation wants to load it and its current form is
    not approved; `session` and `call` say which one.
    """

    changes: tuple[FeatureChange, ...] = ()


class AnswerScope(Struct, frozen=True, kw_only=True, rename="camel"):
    """Other calls that an answer may cover: in words, and as a rule of a policy file."""

    words: str
    toml: str


class CallQuestion(Question, frozen=True, kw_only=True, tag="call"):
    """May this tool be called with these arguments?

    `why` names the rule that asks; `may_remember` says whether an answer may be remembered. A tool
    is `flagged` if the threat scan warns about it, and a call is a `risk` for the stated reason;
    then the advised answer is no. Questions with the same `group` are about calls of one step of
    the model, and can be answered together. `scopes` are further calls that the answer may cover
    (`Decision.scope`). `bounded` says that a bound of the conversation is reached, which the answer
    may renew (`Decision.renew`).
    """

    tool: str
    title: str
    description: str = ""
    arguments: JSONObject = {}
    input_schema: JSONObject = {}
    annotations: ToolAnnotations | None = None
    trusted: bool = False
    by: Literal["model", "app", "person"] = "model"
    why: str = ""
    may_remember: bool = True
    flagged: bool = False
    risk: str = ""
    group: str = ""
    scopes: tuple[AnswerScope, ...] = ()
    bounded: bool = False


class PlanStep(Struct, frozen=True, kw_only=True, rename="camel"):
    """A call that a model plans.

    Attributes:
        name: The tool's name for the model.
        server: The server's id.
        tool: The name of the tool at its server.
        arguments: The planned arguments.
        open: The names of arguments whose values are not known yet. Any value fits.
        times: How many such calls are planned.
        why: What the call is for, in the model's words.
        title: The title of the tool.
        warnings: The threat scan's warnings about the tool.
    """

    name: str
    server: str
    tool: str
    arguments: JSONObject = {}
    open: tuple[str, ...] = ()
    times: int = 1
    why: str = ""
    title: str = ""
    warnings: tuple[Warned, ...] = ()


class PlanQuestion(Question, frozen=True, kw_only=True, tag="plan"):
    """May the model make the calls of its plan?

    The answer approves all steps, none, or some (`Decision.only`). A call that is an approved step
    runs without a question. Steps with warnings are never approved without `only`.
    """

    steps: tuple[PlanStep, ...]


class ResultQuestion(Question, frozen=True, kw_only=True, tag="result"):
    """May this result go to the model?"""

    tool: str
    title: str
    result: CallToolResult


class SampleQuestion(Question, frozen=True, kw_only=True, tag="sample"):
    """A server wants to ask a model.

    `model` is the chosen model; `models` are the possible ones, with remarks.
    """

    request: CreateMessageRequestParams
    model: str
    models: dict[str, str] = {}
    left: int | None = None


class SampledQuestion(Question, frozen=True, kw_only=True, tag="sampled"):
    """May the server have the model's answer?"""

    model: str
    result: CreateMessageResult


class FormQuestion(Question, frozen=True, kw_only=True, tag="form"):
    """A server asks for information.

    `fields` are the fields of the form in order, read from the schema by
    `interlock.typed.form_fields`.
    """

    message: str
    fields: tuple[Any, ...] = ()
    requested_schema: JSONObject = {}


class UrlQuestion(Question, frozen=True, kw_only=True, tag="url"):
    """A server wants the person to visit a page. The page is never opened without asking.

    `host` is the address's host. `site` is its registrable domain, which shows who operates the
    page.
    """

    message: str
    url: str
    host: str
    site: str = ""


class NotAnswered(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel", tag="none"):
    """The question has no answer: it became moot, no person is available, or the time was over.

    `words` say which.
    """

    words: str = ""


class Decision(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel", tag="decision"):
    """Yes or no, to any question except a form or a page.

    `remember`: "once" for this question, "session" for the rest of this conversation, "always" from
    now on (calls only). The other fields replace what the person edited: `arguments` of a call, its
    `result`, the sampling `request`, the `sampled` result, or the `model` to ask. `only` are the
    indexes of the approved changes of a PinQuestion, or steps of a PlanQuestion; None approves all.
    `reason` goes to the model, or to the server, if the answer is no.

    `scope` is the index of one of the `scopes` of a CallQuestion: the answer covers all those
    calls, for as long as `remember` says; "always" writes the rule to the policy file. `renew`
    counts the bounds of the conversation from zero again. `requests` and `tokens` are the bounds of
    a sampling permission for the rest of a conversation.
    """

    allow: bool
    remember: Literal["once", "session", "always"] = "once"
    reason: str = ""
    arguments: JSONObject | None = None
    result: CallToolResult | None = None
    request: CreateMessageRequestParams | None = None
    model: str = ""
    sampled: CreateMessageResult | None = None
    only: tuple[int, ...] | None = None
    scope: int | None = None
    renew: bool = False
    requests: int | None = None
    tokens: int | None = None


class Filled(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel", tag="filled"):
    """The answer to a form or a page: accepted (a form with content), declined, or cancelled."""

    action: Literal["accept", "decline", "cancel"]
    content: JSONObject | None = None


AnyQuestion = (
    StartQuestion
    | PinQuestion
    | CallQuestion
    | PlanQuestion
    | ResultQuestion
    | SampleQuestion
    | SampledQuestion
    | FormQuestion
    | UrlQuestion
)
Answer = Decision | Filled | NotAnswered


class UserInterface(Protocol):
    """A user interface of the host, which brings questions to a person."""

    async def answer(self, question: AnyQuestion) -> Answer:
        """Return the person's answer.

        Several questions may be open at once; a question that becomes moot is cancelled.

        The answer is a Filled for a form or a page, a Decision for all others, or NotAnswered. Any
        other answer counts as no.
        """
        ...


class NoUser:
    """No person is available: every question stays unanswered, which counts as no."""

    async def answer(self, question: AnyQuestion) -> Answer:
        """See UserInterface."""
        return NotAnswered(words="No user can be asked.")
