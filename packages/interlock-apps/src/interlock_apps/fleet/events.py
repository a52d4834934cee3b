"""The events of a host, as records: user interfaces show them, and the log keeps most of them."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import Struct

from interlock import CallToolResult
from interlock.models.interface import Usage
from interlock.types import CreateMessageResult, JSONObject, SamplingMessage, ToolResultContent

from .questions import Answer, AnyQuestion, Warned


class Event(
    Struct, frozen=True, kw_only=True, tag_field="type", rename="camel", omit_defaults=True
):
    """Something that happened; `session` is the conversation that it belongs to, empty for the host
    itself.
    """

    kept: ClassVar[bool] = True  # whether the log keeps it
    session: str = ""


class LogEntry(Struct, frozen=True, kw_only=True, rename="camel"):
    """An event with its place in the log (0 where the log does not keep it) and its time, in
    seconds of the wall clock.
    """

    seq: int
    at: float
    event: AnyEvent


# -- a conversation --------------------------------------------------------------------------------


class Attached(Struct, frozen=True, kw_only=True, rename="camel"):
    """A resource that the person put beside what they said."""

    server: str
    uri: str
    title: str = ""


class SessionBegan(Event, frozen=True, kw_only=True, tag="sessionBegan"):
    """A conversation began; `remark` is the model's, to be shown, `by` the version that
    wrote this.
    """

    title: str
    model: str
    remark: str = ""
    by: str = ""


class SessionResumed(Event, frozen=True, kw_only=True, tag="sessionResumed"):
    """An earlier conversation goes on."""

    model: str
    remark: str = ""


class PersonSaid(Event, frozen=True, kw_only=True, tag="personSaid"):
    """The person said something: typed, or chosen as a prompt of a server (then `server` and
    `prompt` name it).
    """

    messages: tuple[SamplingMessage, ...]
    attached: tuple[Attached, ...] = ()
    server: str = ""
    prompt: str = ""
    arguments: dict[str, str] = {}


class ModelAsked(Event, frozen=True, kw_only=True, tag="modelAsked"):
    """The model is asked; `step` counts from 1 in each turn, `tokens` is an estimate of what goes
    in.
    """

    model: str
    step: int
    messages: int
    tools: int
    tokens: int


class ModelSays(Event, frozen=True, kw_only=True, tag="modelSays"):
    """A piece of what the model is saying; see `Delta`."""

    kept: ClassVar[bool] = False
    kind: Literal["text", "thought", "call", "note"]
    text: str
    call: str = ""


class ModelSaid(Event, frozen=True, kw_only=True, tag="modelSaid"):
    """All that the model said in one step."""

    model: str
    step: int
    result: CreateMessageResult
    usage: Usage = Usage()


class ModelFailed(Event, frozen=True, kw_only=True, tag="modelFailed"):
    """The model gave no answer; `kind` as ModelFailure has it."""

    model: str
    step: int
    kind: str
    words: str


class Trimmed(Event, frozen=True, kw_only=True, tag="trimmed"):
    """Something was left out of what the model gets to see: by which rule, in words, and about how
    many tokens.
    """

    rule: str
    words: str
    tokens: int


class TurnEnded(Event, frozen=True, kw_only=True, tag="turnEnded"):
    """The turn is over, and why; `usage` is that of the whole turn."""

    reason: Literal["done", "cancelled", "steps", "tokens", "seconds", "failed", "refused"]
    words: str = ""
    usage: Usage = Usage()


# -- calls of tools --------------------------------------------------------------------------------


class CallProposed(Event, frozen=True, kw_only=True, tag="callProposed"):
    """A tool is to be called.

    `name` is what the model calls it; `server` and `tool` are empty for a name that is none.
    """

    call: str
    name: str
    server: str = ""
    tool: str = ""
    title: str = ""
    arguments: JSONObject = {}
    by: Literal["model", "app", "person"] = "model"


class CallDecided(Event, frozen=True, kw_only=True, tag="callDecided"):
    """Whether it may be, who decided and why; `arguments` where they were edited.

    `by` is "rule", "person", "pin", "budget", "host", "nobody", or "stopped" where the tool's
    server is stopped.
    """

    call: str
    allow: bool
    by: str
    why: str = ""
    arguments: JSONObject | None = None


class CallProgress(Event, frozen=True, kw_only=True, tag="callProgress"):
    """How far a call has come."""

    kept: ClassVar[bool] = False
    call: str
    progress: float
    total: float | None = None
    message: str = ""


class CallEnded(Event, frozen=True, kw_only=True, tag="callEnded"):
    """A call has ended, with a result, or with the reason in `error`.

    `seconds` is its duration, without the time spent on questions to the person. `warnings` are the
    findings of the threat scan: instructions to the model that the result seems to contain.
    """

    call: str
    server: str = ""
    tool: str = ""
    result: CallToolResult | None = None
    error: str = ""
    seconds: float = 0.0
    warnings: tuple[Warned, ...] = ()


class ResultsGiven(Event, frozen=True, kw_only=True, tag="resultsGiven"):
    """What the model got for the tools that it wanted in one step, in the order in which it wanted
    them.
    """

    results: tuple[ToolResultContent, ...]


# -- the person ------------------------------------------------------------------------------------


class QuestionAsked(Event, frozen=True, kw_only=True, tag="asked"):
    """The person is asked something."""

    question: AnyQuestion


class QuestionAnswered(Event, frozen=True, kw_only=True, tag="answered"):
    """A question is over: the answer, and who gave it ("person", "rule", "nobody")."""

    question: str
    answer: Answer
    by: str = "person"


class SampleEnded(Event, frozen=True, kw_only=True, tag="sampleEnded"):
    """A model was asked for a server: which, and what it took; `error` where it gave no answer."""

    server: str
    question: str
    model: str
    usage: Usage = Usage()
    error: str = ""


class ResourceRead(Event, frozen=True, kw_only=True, tag="resourceRead"):
    """A resource was read, by whom, and its size in bytes; `error` where it could not be."""

    server: str
    uri: str
    by: Literal["person", "model", "app"] = "person"
    size: int = 0
    error: str = ""


class PromptFetched(Event, frozen=True, kw_only=True, tag="promptGot"):
    """A prompt was got."""

    server: str
    prompt: str
    arguments: dict[str, str] = {}
    error: str = ""


# -- the servers -----------------------------------------------------------------------------------


class ServerState(Event, frozen=True, kw_only=True, tag="serverState"):
    """A server is in another state:

    "waiting" (for the person), "starting", "up", "down" (tried again later), "off", "refused".
    """

    server: str
    state: Literal["waiting", "starting", "up", "down", "off", "refused"]
    words: str = ""
    revision: str = ""
    tools: int = 0
    resources: int = 0
    prompts: int = 0


class ServerLogLine(Event, frozen=True, kw_only=True, tag="serverSaid"):
    """A log message of a server, or a line that it wrote to stderr."""

    kept: ClassVar[bool] = False
    server: str
    level: str
    text: str
    logger: str = ""


class FeaturesChanged(Event, frozen=True, kw_only=True, tag="featuresChanged"):
    """What servers offer is not as it was; who shows it looks anew."""

    kept: ClassVar[bool] = False
    server: str


class ResourceUpdated(Event, frozen=True, kw_only=True, tag="resourceUpdated"):
    """What stands behind a watched URI is not as it was."""

    kept: ClassVar[bool] = False
    server: str
    uri: str


class Pinned(Event, frozen=True, kw_only=True, tag="pinned"):
    """A feature was approved ("first" when first seen, "approved" by the person), "blocked" because
    it changed, or refused ("refused").
    """

    server: str
    kind: str
    name: str
    how: Literal["first", "approved", "blocked", "refused"]
    digest: str = ""


class RootsChanged(Event, frozen=True, kw_only=True, tag="rootsChanged"):
    """The folders that servers may be told of; `folders` by server id, "" for all servers."""

    folders: dict[str, tuple[str, ...]]


class RuleRemembered(Event, frozen=True, kw_only=True, tag="ruleRemembered"):
    """The person's answer is to hold for longer; the rule as data."""

    rule: Any
    remember: Literal["session", "always"]


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """Something that the person should know."""

    level: Literal["info", "warning", "error"]
    words: str
    server: str = ""


AnyEvent = (
    SessionBegan
    | SessionResumed
    | PersonSaid
    | ModelAsked
    | ModelSays
    | ModelSaid
    | ModelFailed
    | Trimmed
    | TurnEnded
    | CallProposed
    | CallDecided
    | CallProgress
    | CallEnded
    | ResultsGiven
    | QuestionAsked
    | QuestionAnswered
    | SampleEnded
    | ResourceRead
    | PromptFetched
    | ServerState
    | ServerLogLine
    | FeaturesChanged
    | ResourceUpdated
    | Pinned
    | RootsChanged
    | RuleRemembered
    | Notice
)
