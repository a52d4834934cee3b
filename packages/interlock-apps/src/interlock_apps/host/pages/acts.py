"""Acts: the requests of a page to the host. One record each, decoded strictly from JSON."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from interlock.types import ContentBlock, PromptReference, ResourceTemplateReference

from ...fleet.events import Attached
from ...fleet.policy import Choice, Rule
from ...fleet.questions import Answer
from ..consent import Bounds, Mode


class HostAct(
    Struct, frozen=True, kw_only=True, tag_field="act", rename="camel", forbid_unknown_fields=True
):
    """A request of the person."""


class SayAct(HostAct, frozen=True, kw_only=True, tag="say"):
    """Send a message in a conversation, with resources, and uploaded files by their ids."""

    session: str
    text: str
    attach: tuple[Attached, ...] = ()
    files: tuple[str, ...] = ()


class SayPromptAct(HostAct, frozen=True, kw_only=True, tag="prompt"):
    """Send the messages of a server's prompt."""

    session: str
    server: str
    name: str
    arguments: dict[str, str] = {}
    attach: tuple[Attached, ...] = ()


class RetryAct(HostAct, frozen=True, kw_only=True, tag="retry"):
    """Ask the model again: after the last turn failed, or for a message, by its number."""

    session: str
    message: int = 0


class EditMessageAct(HostAct, frozen=True, kw_only=True, tag="editMessage"):
    """Replace the text of a message of the person, and send it, in a new branch."""

    session: str
    message: int
    text: str


class BranchAct(HostAct, frozen=True, kw_only=True, tag="branchAfter"):
    """Go on after an earlier message, in a new branch."""

    session: str
    message: int


class SwitchBranchAct(HostAct, frozen=True, kw_only=True, tag="switchBranch"):
    """Go on after the last entry of another branch."""

    session: str
    end: int


class ShowMessageAct(HostAct, frozen=True, kw_only=True, tag="showMessage"):
    """Choose the branch that has a message."""

    session: str
    message: int


class FindMessagesAct(HostAct, frozen=True, kw_only=True, tag="findMessages"):
    """Search what was said in all conversations."""

    words: str
    limit: int = 50


class ChangeSessionAct(HostAct, frozen=True, kw_only=True, tag="changeSession"):
    """Rename a conversation, pin it to the top of the list, or unpin it; None: as before."""

    session: str
    title: str | None = None
    pinned: bool | None = None


class DeleteSessionAct(HostAct, frozen=True, kw_only=True, tag="deleteSession"):
    """Erase a conversation from the log."""

    session: str


class CancelAct(HostAct, frozen=True, kw_only=True, tag="cancel"):
    """Cancel the running turn."""

    session: str


class SteerAct(HostAct, frozen=True, kw_only=True, tag="steer"):
    """Queue a message while a turn runs: for its next step, or for the next turn.

    If the turn has just ended, the message is sent like any other.
    """

    session: str
    text: str
    when: Literal["step", "turn"] = "step"
    attach: tuple[Attached, ...] = ()
    files: tuple[str, ...] = ()


class RemoveFileAct(HostAct, frozen=True, kw_only=True, tag="removeFile"):
    """Forget an uploaded file that is not sent."""

    file: str


class ChangeQueuedAct(HostAct, frozen=True, kw_only=True, tag="changeQueued"):
    """Edit a queued message."""

    session: str
    id: str
    text: str | None = None
    when: Literal["step", "turn"] | None = None


class RemoveQueuedAct(HostAct, frozen=True, kw_only=True, tag="removeQueued"):
    """Remove a queued message."""

    session: str
    id: str


class SendQueuedAct(HostAct, frozen=True, kw_only=True, tag="sendQueued"):
    """Send the messages that still wait after a turn was stopped."""

    session: str


class NewSessionAct(HostAct, frozen=True, kw_only=True, tag="newSession"):
    """Start a conversation."""

    model: str = ""
    effort: str = ""
    title: str = ""
    project: str | None = None


class ReadProjectAct(HostAct, frozen=True, kw_only=True, tag="readProject"):
    """Return the text of a project's file, and the part of it with the rules."""

    name: str


class SaveProjectAct(HostAct, frozen=True, kw_only=True, tag="saveProject"):
    """Write a project to its file, or to a new one.

    `was` is the name that it had; "" for a new one. `servers`: None for all.
    """

    name: str
    was: str = ""
    instructions: str = ""
    servers: tuple[str, ...] | None = None
    folders: tuple[str, ...] = ()
    rules: str = ""


class RemoveProjectAct(HostAct, frozen=True, kw_only=True, tag="removeProject"):
    """Remove the file of a project."""

    name: str


class ChooseModelAct(HostAct, frozen=True, kw_only=True, tag="chooseModel"):
    """Change the model of a conversation, or the effort of its reasoning."""

    session: str
    model: str = ""
    effort: str | None = None


class OfferToolsAct(HostAct, frozen=True, kw_only=True, tag="offerTools"):
    """Choose how a conversation offers tools to its model."""

    session: str
    offer: Literal["auto", "all", "search"]


class ContextAct(HostAct, frozen=True, kw_only=True, tag="context"):
    """Return how a conversation uses the context window of its model."""

    session: str


class OpenSessionAct(HostAct, frozen=True, kw_only=True, tag="openSession"):
    """Return the events of a conversation, also of an earlier one.

    Either all events after a number, or the last `turns` before the event with the number `before`
    (0: the very last ones). Then large results are left out; `readResult` returns them.
    """

    session: str
    after: int = 0
    turns: int = 0
    before: int = 0


class SpendingAct(HostAct, frozen=True, kw_only=True, tag="spending"):
    """Return what a conversation took so far."""

    session: str


class ReadResultAct(HostAct, frozen=True, kw_only=True, tag="readResult"):
    """Return the whole result of a call."""

    session: str
    call: str


class ResumeAct(HostAct, frozen=True, kw_only=True, tag="resume"):
    """Resume an earlier conversation."""

    session: str


class GiveAnswerAct(HostAct, frozen=True, kw_only=True, tag="answer"):
    """Answer a question."""

    question: str
    answer: Answer


class GiveAnswersAct(HostAct, frozen=True, kw_only=True, tag="answers"):
    """Answer several questions at once, each by its id; those that are closed are left out."""

    answers: dict[str, Answer]


class ModeAct(HostAct, frozen=True, kw_only=True, tag="mode"):
    """Choose which calls of a conversation run without a question."""

    session: str
    mode: Mode
    bounds: Bounds | None = None


class ClearTaintAct(HostAct, frozen=True, kw_only=True, tag="clearTaint"):
    """Let the rules decide again after a result with orders to the model."""

    session: str


class RevokeSamplingAct(HostAct, frozen=True, kw_only=True, tag="revokeSampling"):
    """Ask again about the sampling of a server in a conversation."""

    session: str
    server: str


class DoneCallsAct(HostAct, frozen=True, kw_only=True, tag="doneCalls"):
    """Return the calls of a conversation that ran, and the files that they changed."""

    session: str


class RestoreFileAct(HostAct, frozen=True, kw_only=True, tag="restoreFile"):
    """Restore a file to its state before a call."""

    session: str
    call: str
    path: str


class PolicyAct(HostAct, frozen=True, kw_only=True, tag="policy"):
    """Return the policy, with its rules as sentences."""


class ChangePolicyAct(HostAct, frozen=True, kw_only=True, tag="changePolicy"):
    """Prepare a change of the policy file, and write it with `save`.

    `digest` is that of the text that the page has seen. `at` is the number of a rule, from 0.
    """

    what: Literal["add", "replace", "remove", "move", "default", "trustedReadOnly"]
    digest: str
    table: Literal["rules", "review"] = "rules"
    at: int | None = None
    to: int | None = None
    rule: Rule | None = None
    value: Choice | None = None
    save: bool = False


class ExplainAct(HostAct, frozen=True, kw_only=True, tag="explain"):
    """Return what would happen to a call."""

    server: str
    tool: str
    arguments: dict[str, Any] = {}
    session: str = ""


class PreviewPromptAct(HostAct, frozen=True, kw_only=True, tag="getPrompt"):
    """Return the messages of a prompt."""

    server: str
    name: str
    arguments: dict[str, str] = {}


class CompleteAct(HostAct, frozen=True, kw_only=True, tag="complete"):
    """Return suggestions for an argument of a prompt or a template."""

    server: str
    ref: PromptReference | ResourceTemplateReference
    argument: str
    value: str = ""
    arguments: dict[str, str] = {}


class ReadAct(HostAct, frozen=True, kw_only=True, tag="read"):
    """Read a resource."""

    server: str
    uri: str


class ExpandAct(HostAct, frozen=True, kw_only=True, tag="expand"):
    """Expand a URI template."""

    template: str
    values: dict[str, str] = {}


class GrantAct(HostAct, frozen=True, kw_only=True, tag="grant"):
    """Add a folder to the roots of servers."""

    folder: str
    server: str = ""


class RevokeAct(HostAct, frozen=True, kw_only=True, tag="revoke"):
    """Remove a folder from the roots."""

    folder: str
    server: str = ""


class ServerAct(HostAct, frozen=True, kw_only=True, tag="server"):
    """Start, stop or restart a server."""

    server: str
    what: Literal["start", "stop", "restart"]


class ServerLogAct(HostAct, frozen=True, kw_only=True, tag="serverLog"):
    """Return a server's log messages and lines of stderr."""

    server: str


class ForgetAct(HostAct, frozen=True, kw_only=True, tag="forget"):
    """Remove a remembered rule, by its id in the state's list."""

    rule: str


class SearchLogAct(HostAct, frozen=True, kw_only=True, tag="searchLog"):
    """Search the log."""

    words: str = ""
    session: str | None = None
    server: str | None = None
    kinds: tuple[str, ...] = ()
    before: int | None = None
    limit: int = 50


class ReadStructuredAct(HostAct, frozen=True, kw_only=True, tag="readStructured"):
    """Return a page of a call's structured content as JSON text; the first page is 0."""

    session: str
    call: str
    page: int = 0


class RunsAct(HostAct, frozen=True, kw_only=True, tag="runs"):
    """Return the conversations that are open in this host, with what they are doing."""


class TimelineAct(HostAct, frozen=True, kw_only=True, tag="timeline"):
    """Return the timeline of a conversation, from the entry of the log with a number on."""

    session: str
    after: int = 0


class CallMessagesAct(HostAct, frozen=True, kw_only=True, tag="callMessages"):
    """Return the protocol's messages of a call, as rows."""

    call: str
    server: str


class CallMessageAct(HostAct, frozen=True, kw_only=True, tag="callMessage"):
    """Return one message of a call in detail, by the number of its row."""

    call: str
    server: str
    row: int


class WatchAct(HostAct, frozen=True, kw_only=True, tag="watch"):
    """Subscribe to changes of a resource."""

    server: str
    uri: str


class UnwatchAct(HostAct, frozen=True, kw_only=True, tag="unwatch"):
    """End the subscription to a resource."""

    server: str
    uri: str


class CallToolAct(HostAct, frozen=True, kw_only=True, tag="callTool"):
    """Call a tool, as the person or for an open app (`app`, its id).

    The outcome arrives as events of the call.
    """

    session: str
    server: str
    tool: str
    arguments: dict[str, Any] = {}
    app: str = ""


class CancelTaskAct(HostAct, frozen=True, kw_only=True, tag="cancelTask"):
    """Cancel the task of a call at its server."""

    call: str


class AppResourceAct(HostAct, frozen=True, kw_only=True, tag="appResource"):
    """Open an app: return its page and its id.

    `session` is the conversation that shows it.
    """

    server: str
    uri: str
    session: str = ""


class AppReadAct(HostAct, frozen=True, kw_only=True, tag="appRead"):
    """Read a resource of an app's own server, for the app."""

    app: str
    uri: str


class AppLinkAct(HostAct, frozen=True, kw_only=True, tag="appLink"):
    """Ask the person whether a page that an app wants to open may be opened.

    `call` is the call that shows the app.
    """

    app: str
    url: str
    call: str = ""


class AppContextAct(HostAct, frozen=True, kw_only=True, tag="appContext"):
    """Content that an app gives to the model together with the person's next message."""

    app: str
    content: tuple[ContentBlock, ...] = ()
    structured_content: dict[str, Any] | None = None


class CloseAppAct(HostAct, frozen=True, kw_only=True, tag="closeApp"):
    """Close an app that is no longer shown."""

    app: str


AnyAct = (
    SayAct
    | SayPromptAct
    | RetryAct
    | EditMessageAct
    | BranchAct
    | SwitchBranchAct
    | ShowMessageAct
    | FindMessagesAct
    | ChangeSessionAct
    | DeleteSessionAct
    | CancelAct
    | SteerAct
    | RemoveFileAct
    | ChangeQueuedAct
    | RemoveQueuedAct
    | SendQueuedAct
    | NewSessionAct
    | ChooseModelAct
    | OfferToolsAct
    | ContextAct
    | ReadProjectAct
    | SaveProjectAct
    | RemoveProjectAct
    | OpenSessionAct
    | SpendingAct
    | ResumeAct
    | GiveAnswerAct
    | GiveAnswersAct
    | ModeAct
    | ClearTaintAct
    | RevokeSamplingAct
    | DoneCallsAct
    | RestoreFileAct
    | PolicyAct
    | ChangePolicyAct
    | ExplainAct
    | PreviewPromptAct
    | CompleteAct
    | ReadAct
    | ExpandAct
    | GrantAct
    | RevokeAct
    | ServerAct
    | ServerLogAct
    | ForgetAct
    | SearchLogAct
    | ReadStructuredAct
    | ReadResultAct
    | RunsAct
    | TimelineAct
    | CallMessagesAct
    | CallMessageAct
    | WatchAct
    | UnwatchAct
    | CallToolAct
    | CancelTaskAct
    | AppResourceAct
    | AppReadAct
    | AppLinkAct
    | AppContextAct
    | CloseAppAct
)
