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
    """Something that happened.

    `session` is the conversation that the event belongs to; empty for the host itself.
    """

    kept: ClassVar[bool] = True  # whether the log keeps it
    session: str = ""


class LogEntry(Struct, frozen=True, kw_only=True, rename="camel"):
    """An event with its number in the log (0: the log does not keep it) and its time.

    The time is in seconds of the wall clock.
    """

    seq: int
    at: float
    event: AnyEvent


# -- a conversation --------------------------------------------------------------------------------


class Attached(Struct, frozen=True, kw_only=True, rename="camel"):
    """A resource that the person attached to a message."""

    server: str
    uri: str
    title: str = ""


class SessionBegan(Event, frozen=True, kw_only=True, tag="sessionBegan"):
    """A conversation began.

    `remark` is a remark of the model to display; `by` is the version that wrote the event.
    `project` is the name of the project that the conversation belongs to.
    """

    title: str
    model: str
    remark: str = ""
    by: str = ""
    project: str = ""


class SessionResumed(Event, frozen=True, kw_only=True, tag="sessionResumed"):
    """An earlier conversation was resumed."""

    model: str
    remark: str = ""


class ModelChosen(Event, frozen=True, kw_only=True, tag="modelChosen"):
    """The model of a conversation, or the effort of its reasoning, was changed.

    `effort` is "" for the provider's default.
    """

    model: str
    effort: str = ""
    remark: str = ""


class ToolOfferChosen(Event, frozen=True, kw_only=True, tag="toolOfferChosen"):
    """The person chose how a conversation offers tools to its model.

    "auto": all of them, or a tool search if they would take too much of the context window.
    """

    offer: Literal["auto", "all", "search"]


class SessionChanged(Event, frozen=True, kw_only=True, tag="sessionChanged"):
    """The person renamed a conversation, or pinned it to the top of the list; None: as before."""

    title: str | None = None
    pinned: bool | None = None


class SessionDeleted(Event, frozen=True, kw_only=True, tag="sessionDeleted"):
    """The person deleted a conversation: the log has erased the content of its entries.

    The event belongs to the host, because it stays. `entries` counts the erased entries. `links` is
    a digest for `verify`, if the conversation was written by a version that could not erase.
    """

    conversation: str
    entries: int
    links: str = ""


class BranchChosen(Event, frozen=True, kw_only=True, tag="branchChosen"):
    """The conversation goes on after another of its entries.

    `after` is the number of that entry. What followed it stays in the log, as another branch.
    """

    after: int


class PersonSaid(Event, frozen=True, kw_only=True, tag="personSaid"):
    """The person sent a message.

    It was typed, or it is a prompt of a server; then `server` and `prompt` name the prompt.
    `queued` is the id of the message in the queue that it waited in, if any.
    """

    messages: tuple[SamplingMessage, ...]
    attached: tuple[Attached, ...] = ()
    queued: str = ""
    server: str = ""
    prompt: str = ""
    arguments: dict[str, str] = {}


class MessageQueued(Event, frozen=True, kw_only=True, tag="messageQueued"):
    """A message was put into the queue of a conversation whose turn runs, or edited there.

    `id` names it in the queue. With `when` "step" the model gets it at the next step of the running
    turn, with "turn" after the turn. `PersonSaid` follows when the model gets it.
    """

    id: str
    message: SamplingMessage
    when: Literal["step", "turn"] = "step"
    attached: tuple[Attached, ...] = ()


class MessageUnqueued(Event, frozen=True, kw_only=True, tag="messageUnqueued"):
    """The person removed a message from the queue."""

    id: str


class ModelAsked(Event, frozen=True, kw_only=True, tag="modelAsked"):
    """The model is asked.

    `step` counts from 1 in each turn. `tokens` is an estimate of the input; `own` is the part of it
    for the system prompt and the tools. `window` is the model's context window, and `answer` the
    part of it that is kept free for the answer, in tokens. `search` says whether the model got a
    tool search instead of all tools.
    """

    model: str
    step: int
    messages: int
    tools: int
    tokens: int
    own: int = 0
    window: int = 0
    answer: int = 0
    search: bool = False


class ModelSays(Event, frozen=True, kw_only=True, tag="modelSays"):
    """A piece of the model's message; see `Delta`."""

    kept: ClassVar[bool] = False
    kind: Literal["text", "thought", "call", "note"]
    text: str
    call: str = ""


class ModelSaid(Event, frozen=True, kw_only=True, tag="modelSaid"):
    """The model's whole message of one step.

    `thought` is its visible reasoning. `price` is in US dollars; None if the model has no prices.
    """

    model: str
    step: int
    result: CreateMessageResult
    usage: Usage = Usage()
    thought: str = ""
    price: float | None = None


class ModelFailed(Event, frozen=True, kw_only=True, tag="modelFailed"):
    """The model gave no answer; `kind` is that of ModelFailure."""

    model: str
    step: int
    kind: str
    words: str


class Trimmed(Event, frozen=True, kw_only=True, tag="trimmed"):
    """Something was left out of the model's input: by which rule, and about how many tokens."""

    rule: str
    words: str
    tokens: int


class TurnEnded(Event, frozen=True, kw_only=True, tag="turnEnded"):
    """The turn ended, and why; `usage` is that of the whole turn.

    `price` is in US dollars; None if an answer of the turn has no price.
    """

    reason: Literal["done", "cancelled", "steps", "tokens", "seconds", "failed", "refused"]
    words: str = ""
    usage: Usage = Usage()
    price: float | None = None


# -- calls of tools --------------------------------------------------------------------------------


class CallProposed(Event, frozen=True, kw_only=True, tag="callProposed"):
    """A tool call was requested.

    `name` is the tool's name for the model. `server` and `tool` are empty if there is no such tool.
    """

    call: str
    name: str
    server: str = ""
    tool: str = ""
    title: str = ""
    arguments: JSONObject = {}
    by: Literal["model", "app", "person"] = "model"


class CallDecided(Event, frozen=True, kw_only=True, tag="callDecided"):
    """Whether a call may be made, who decided, and why; `arguments` if they were edited.

    `by` is "rule", "person", "plan", "bounds", "pin", "budget", "host", "nobody", or "stopped" if
    the tool's server is stopped.
    """

    call: str
    allow: bool
    by: str
    why: str = ""
    arguments: JSONObject | None = None


class CallProgress(Event, frozen=True, kw_only=True, tag="callProgress"):
    """The progress of a call."""

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


class TaskBegan(Event, frozen=True, kw_only=True, tag="taskBegan"):
    """A call goes on as a task, after the turn that made it.

    `task` is the task's id at its server, `arguments` are those that were sent.
    """

    call: str
    name: str
    server: str
    tool: str
    task: str
    arguments: JSONObject = {}
    by: Literal["model", "app", "person"] = "model"


class TaskEnded(Event, frozen=True, kw_only=True, tag="taskEnded"):
    """The task of a call has ended, with a result, or with the reason in `error`."""

    call: str
    server: str = ""
    tool: str = ""
    result: CallToolResult | None = None
    error: str = ""
    warnings: tuple[Warned, ...] = ()


class TaskGiven(Event, frozen=True, kw_only=True, tag="taskGiven"):
    """The messages by which the conversation got the outcome of a task."""

    call: str
    messages: tuple[SamplingMessage, ...]


class ResultsGiven(Event, frozen=True, kw_only=True, tag="resultsGiven"):
    """The results that the model got for the tool calls of one step, in the order of the calls."""

    results: tuple[ToolResultContent, ...]


# -- the person ------------------------------------------------------------------------------------


class QuestionAsked(Event, frozen=True, kw_only=True, tag="asked"):
    """The person is asked a question."""

    question: AnyQuestion


class QuestionAnswered(Event, frozen=True, kw_only=True, tag="answered"):
    """A question is closed: the answer, and who gave it ("person", "rule", "nobody")."""

    question: str
    answer: Answer
    by: str = "person"


class SampleEnded(Event, frozen=True, kw_only=True, tag="sampleEnded"):
    """A sampling request ended: the model and its usage; `error` if the model gave no answer.

    `price` is in US dollars; None if the model has no prices.
    """

    server: str
    question: str
    model: str
    usage: Usage = Usage()
    error: str = ""
    price: float | None = None


class ResourceRead(Event, frozen=True, kw_only=True, tag="resourceRead"):
    """A resource was read: by whom, and its size in bytes; `error` if the read failed."""

    server: str
    uri: str
    by: Literal["person", "model", "app"] = "person"
    size: int = 0
    error: str = ""


class PromptFetched(Event, frozen=True, kw_only=True, tag="promptGot"):
    """A prompt was fetched."""

    server: str
    prompt: str
    arguments: dict[str, str] = {}
    error: str = ""


# -- the servers -----------------------------------------------------------------------------------


class ServerState(Event, frozen=True, kw_only=True, tag="serverState"):
    """A server entered a state.

    The states are "waiting" (for the person), "starting", "up", "down" (a retry follows), "off",
    "refused" and "login" (nothing is retried until the person has logged in).
    """

    server: str
    state: Literal["waiting", "starting", "up", "down", "off", "refused", "login"]
    words: str = ""
    revision: str = ""
    tools: int = 0
    resources: int = 0
    prompts: int = 0


class ServerLogLine(Event, frozen=True, kw_only=True, tag="serverSaid"):
    """A log message of a server, or a line of its stderr."""

    kept: ClassVar[bool] = False
    server: str
    level: str
    text: str
    logger: str = ""


class FeaturesChanged(Event, frozen=True, kw_only=True, tag="featuresChanged"):
    """The features of servers have changed; a user interface reads them again."""

    kept: ClassVar[bool] = False
    server: str


class ResourceUpdated(Event, frozen=True, kw_only=True, tag="resourceUpdated"):
    """A watched resource has changed."""

    kept: ClassVar[bool] = False
    server: str
    uri: str


class Pinned(Event, frozen=True, kw_only=True, tag="pinned"):
    """A feature was approved, blocked or refused.

    "first": approved when first seen. "approved": by the person. "blocked": it has changed.
    "refused": by the person.
    """

    server: str
    kind: str
    name: str
    how: Literal["first", "approved", "blocked", "refused"]
    digest: str = ""


class RootsChanged(Event, frozen=True, kw_only=True, tag="rootsChanged"):
    """The roots have changed; `folders` by server id, "" for all servers."""

    folders: dict[str, tuple[str, ...]]


class ProjectsChanged(Event, frozen=True, kw_only=True, tag="projectsChanged"):
    """The projects have changed; a user interface reads them again."""

    kept: ClassVar[bool] = False


class RuleRemembered(Event, frozen=True, kw_only=True, tag="ruleRemembered"):
    """An answer of the person was remembered as a rule; the rule is plain data."""

    rule: Any
    remember: Literal["session", "always"]


class PolicyEdited(Event, frozen=True, kw_only=True, tag="policyEdited"):
    """The policy file was changed on request; `lines` are the difference to the text before."""

    path: str
    lines: tuple[str, ...]


class ModeChanged(Event, frozen=True, kw_only=True, tag="modeChanged"):
    """The person chose which calls of a conversation run without a question.

    `bounds` are those of the mode "bounds", as plain data.
    """

    mode: str
    bounds: Any = None


class Tainted(Event, frozen=True, kw_only=True, tag="tainted"):
    """The model got a result with orders to it: calls that write are asked about from now on."""

    call: str
    server: str
    tool: str


class TaintCleared(Event, frozen=True, kw_only=True, tag="taintCleared"):
    """The person let the rules decide again about calls that write."""


class SamplingAllowed(Event, frozen=True, kw_only=True, tag="samplingAllowed"):
    """A server may ask models in a conversation without a question, within these bounds.

    Both are 0 if the permission has ended or was revoked.
    """

    server: str
    requests: int
    tokens: int


class FilesChanged(Event, frozen=True, kw_only=True, tag="filesChanged"):
    """Files that a call named have changed, were created, or are gone, as plain data."""

    call: str
    server: str
    tool: str
    files: tuple[Any, ...]


class FileRestored(Event, frozen=True, kw_only=True, tag="fileRestored"):
    """A file was restored to its state before a call."""

    call: str
    path: str


class ConsentChanged(Event, frozen=True, kw_only=True, tag="consentChanged"):
    """The mode, the bounds or the taint of a conversation, as plain data; see `Session.mode`."""

    kept: ClassVar[bool] = False
    consent: Any


class SettingsChanged(Event, frozen=True, kw_only=True, tag="settingsChanged"):
    """The person has changed a server or a model in a configuration file."""

    what: Literal["server", "model"]
    name: str
    how: Literal["added", "changed", "removed"]
    file: str


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """A notice for the person."""

    level: Literal["info", "warning", "error"]
    words: str
    server: str = ""


AnyEvent = (
    SessionBegan
    | SessionResumed
    | ModelChosen
    | ToolOfferChosen
    | SessionChanged
    | SessionDeleted
    | BranchChosen
    | PersonSaid
    | MessageQueued
    | MessageUnqueued
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
    | TaskBegan
    | TaskEnded
    | TaskGiven
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
    | ProjectsChanged
    | RuleRemembered
    | PolicyEdited
    | ModeChanged
    | Tainted
    | TaintCleared
    | SamplingAllowed
    | FilesChanged
    | FileRestored
    | ConsentChanged
    | SettingsChanged
    | Notice
)
