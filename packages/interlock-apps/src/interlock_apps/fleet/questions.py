"""Questions to the person, their answers, and the interface to whoever shows them."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from msgspec import Struct

from interlock import CallToolResult, ToolAnnotations
from interlock.types import CreateMessageRequestParams, CreateMessageResult, JSONObject


class Warned(Struct, frozen=True, kw_only=True, rename="camel"):
    """Something to know before answering:

    `kind` is a short stable word, `words` a sentence, `where` the place that it is about.
    """

    kind: str
    words: str
    where: str = ""


class Question(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel"):
    """A question to the person.

    `server` is the id, as configured, of the server because of which it is asked; empty for the
    host itself.

    `session` and `call` name the conversation and the tool call in which it came up, where there is
    one.
    """

    id: str
    server: str = ""
    session: str = ""
    call: str = ""
    warnings: tuple[Warned, ...] = ()


class StartQuestion(Question, frozen=True, kw_only=True, tag="start"):
    """May this server be started, or reached?

    `command` is all of it, untruncated (2026-07-28, security best practices; `SEC-17`).

    `trusted` and `roots` are what its configuration wants beside: that its word is believed, and
    folders that it is told of.
    """

    command: str
    source: str = ""
    variables: tuple[str, ...] = ()
    trusted: bool = False
    roots: tuple[str, ...] = ()
    runs_code: bool = True


class FeatureChange(Struct, frozen=True, kw_only=True, rename="camel"):
    """A feature that is not what was approved.

    Attributes:
        kind: What it is.
        name: Its name; empty for the instructions, the URI for a skill.
        was: Its JSON as it was approved, lines of text; empty for a feature that is new.
        now: Its JSON as it is now; empty for one that has gone.
        warnings: What the threat scan says of it as it is now.
    """

    kind: Literal["tool", "prompt", "instructions", "skill"]
    name: str
    was: str
    now: str
    warnings: tuple[Warned, ...] = ()


class PinQuestion(Question, frozen=True, kw_only=True, tag="pin"):
    """Features of a server are not what was approved: all of them in one question, the flagged ones
    first.

    The answer approves all, none, or some (`Decision.only`). What is not approved stays blocked.
    A skill is asked about by itself, each time a conversation wants to load it and it is not
    approved as it is; `session` and `call` say which one.
    """

    changes: tuple[FeatureChange, ...] = ()


class CallQuestion(Question, frozen=True, kw_only=True, tag="call"):
    """May this tool be called with these arguments?

    `why` says which rule asks, `may_remember` whether an answer may hold for longer. A tool is
    `flagged` where the threat scan warns of it: then no is the answer that is advised.
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


class ResultQuestion(Question, frozen=True, kw_only=True, tag="result"):
    """May this result go to the model?"""

    tool: str
    title: str
    result: CallToolResult


class SampleQuestion(Question, frozen=True, kw_only=True, tag="sample"):
    """A server wants to ask a model.

    `model` is the one that was chosen for it, `models` those that could be, with their remarks.
    """

    request: CreateMessageRequestParams
    model: str
    models: dict[str, str] = {}
    left: int | None = None


class SampledQuestion(Question, frozen=True, kw_only=True, tag="sampled"):
    """May the server have what the model said?"""

    model: str
    result: CreateMessageResult


class FormQuestion(Question, frozen=True, kw_only=True, tag="form"):
    """A server asks for information.

    `fields` are what the form has, in order, as `interlock.typed.form_fields` reads them out of the
    schema.
    """

    message: str
    fields: tuple[Any, ...] = ()
    requested_schema: JSONObject = {}


class UrlQuestion(Question, frozen=True, kw_only=True, tag="url"):
    """A server wants the person to visit a page, which is never opened unasked.

    `host` is where the address leads; `site` is the end of it that somebody has registered, which
    says who is behind the page.
    """

    message: str
    url: str
    host: str
    site: str = ""


class NotAnswered(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel", tag="none"):
    """Nobody answered: the question became moot, nobody is there, or the time was over.

    `words` say which.
    """

    words: str = ""


class Decision(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel", tag="decision"):
    """Yes or no, to any question but a form or a page.

    `remember`: "once" for this one, "session" for the rest of this conversation, "always" from now
        on (calls only). The rest replaces what was asked about, where the person edited it:
        `arguments` of a call, the `result` of one, the `request` or the `sampled` result of
        sampling, the `model` that is to be asked. `only` are the places, from 0, of the changes of
        a PinQuestion that are approved; None approves all. `reason` goes to the model, or to the
        server, where the answer is no.
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


class Filled(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel", tag="filled"):
    """The answer to a form or a page: accepted (a form with its content), declined, or
    cancelled.
    """

    action: Literal["accept", "decline", "cancel"]
    content: JSONObject | None = None


AnyQuestion = (
    StartQuestion
    | PinQuestion
    | CallQuestion
    | ResultQuestion
    | SampleQuestion
    | SampledQuestion
    | FormQuestion
    | UrlQuestion
)
Answer = Decision | Filled | NotAnswered


class UserInterface(Protocol):
    """Whoever answers: a face of the host, with a person behind it."""

    async def answer(self, question: AnyQuestion) -> Answer:
        """The person's answer.

        Several questions may be open at once; cancelled where a question became moot.

        A Filled for a form or a page, a Decision for all others, or NotAnswered. What does not fit
        is taken for a no.
        """
        ...


class NoUser:
    """Nobody is there: every question remains unanswered, which is a no."""

    async def answer(self, question: AnyQuestion) -> Answer:
        """See Person."""
        return NotAnswered(words="No person can be asked.")
