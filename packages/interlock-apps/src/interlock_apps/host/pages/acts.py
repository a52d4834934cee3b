"""Acts: what a page may ask of the host. One record each, decoded strictly from JSON."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from interlock.types import ContentBlock, PromptReference, ResourceTemplateReference

from ...fleet.events import Attached
from ...fleet.questions import Answer


class Act(
    Struct, frozen=True, kw_only=True, tag_field="act", rename="camel", forbid_unknown_fields=True
):
    """Something that the person wants done."""


class SayAct(Act, frozen=True, kw_only=True, tag="say"):
    """Say something in a conversation, with resources beside it."""

    session: str
    text: str
    attach: tuple[Attached, ...] = ()


class SayPromptAct(Act, frozen=True, kw_only=True, tag="prompt"):
    """Say what a server's prompt says."""

    session: str
    server: str
    name: str
    arguments: dict[str, str] = {}
    attach: tuple[Attached, ...] = ()


class RetryAct(Act, frozen=True, kw_only=True, tag="retry"):
    """Ask the model again where the last turn failed."""

    session: str


class CancelAct(Act, frozen=True, kw_only=True, tag="cancel"):
    """End the turn under way."""

    session: str


class NewSessionAct(Act, frozen=True, kw_only=True, tag="newSession"):
    """Begin a conversation."""

    model: str = ""
    title: str = ""


class OpenSessionAct(Act, frozen=True, kw_only=True, tag="openSession"):
    """The events of a conversation, also of one of long ago."""

    session: str
    after: int = 0


class ResumeAct(Act, frozen=True, kw_only=True, tag="resume"):
    """Go on with a conversation of long ago."""

    session: str


class GiveAnswerAct(Act, frozen=True, kw_only=True, tag="answer"):
    """Answer a question."""

    question: str
    answer: Answer


class PreviewPromptAct(Act, frozen=True, kw_only=True, tag="getPrompt"):
    """What a prompt would say."""

    server: str
    name: str
    arguments: dict[str, str] = {}


class CompleteAct(Act, frozen=True, kw_only=True, tag="complete"):
    """Suggestions for an argument of a prompt or a template."""

    server: str
    ref: PromptReference | ResourceTemplateReference
    argument: str
    value: str = ""
    arguments: dict[str, str] = {}


class ReadAct(Act, frozen=True, kw_only=True, tag="read"):
    """Read a resource."""

    server: str
    uri: str


class ExpandAct(Act, frozen=True, kw_only=True, tag="expand"):
    """The URI that a template makes of values."""

    template: str
    values: dict[str, str] = {}


class GrantAct(Act, frozen=True, kw_only=True, tag="grant"):
    """Let servers be told of a folder."""

    folder: str
    server: str = ""


class RevokeAct(Act, frozen=True, kw_only=True, tag="revoke"):
    """Take a folder back."""

    folder: str
    server: str = ""


class ServerAct(Act, frozen=True, kw_only=True, tag="server"):
    """Start, end or begin a server again."""

    server: str
    what: Literal["start", "stop", "restart"]


class ServerLogAct(Act, frozen=True, kw_only=True, tag="serverLog"):
    """What a server has logged and written to stderr."""

    server: str


class ForgetAct(Act, frozen=True, kw_only=True, tag="forget"):
    """Forget a remembered rule, by its id in the state's list."""

    rule: str


class SearchLogAct(Act, frozen=True, kw_only=True, tag="searchLog"):
    """Search the log."""

    words: str = ""
    session: str | None = None
    server: str | None = None
    kinds: tuple[str, ...] = ()
    before: int | None = None
    limit: int = 50


class ReadStructuredAct(Act, frozen=True, kw_only=True, tag="readStructured"):
    """A page of a call's structured content, as JSON text; the first one is 0."""

    session: str
    call: str
    page: int = 0


class WatchAct(Act, frozen=True, kw_only=True, tag="watch"):
    """Be told when a resource changes."""

    server: str
    uri: str


class UnwatchAct(Act, frozen=True, kw_only=True, tag="unwatch"):
    """Be told no more."""

    server: str
    uri: str


class CallToolAct(Act, frozen=True, kw_only=True, tag="callTool"):
    """Call a tool, as the person or for an open app (`app`, its name); what comes of it is told as
    events of the call.
    """

    session: str
    server: str
    tool: str
    arguments: dict[str, Any] = {}
    app: str = ""


class AppResourceAct(Act, frozen=True, kw_only=True, tag="appResource"):
    """Open an app: its page, and the name by which it is known from then on.

    `session` is the conversation that shows it.
    """

    server: str
    uri: str
    session: str = ""


class AppReadAct(Act, frozen=True, kw_only=True, tag="appRead"):
    """Read a resource of an app's own server, for the app."""

    app: str
    uri: str


class AppLinkAct(Act, frozen=True, kw_only=True, tag="appLink"):
    """Ask the person whether a page may be opened that an app wants to open.

    `call` is the one that shows the app.
    """

    app: str
    url: str
    call: str = ""


class AppContextAct(Act, frozen=True, kw_only=True, tag="appContext"):
    """What an app wants the model to know when the person speaks next."""

    app: str
    content: tuple[ContentBlock, ...] = ()
    structured_content: dict[str, Any] | None = None


class CloseAppAct(Act, frozen=True, kw_only=True, tag="closeApp"):
    """An app is no longer shown."""

    app: str


AnyAct = (
    SayAct
    | SayPromptAct
    | RetryAct
    | CancelAct
    | NewSessionAct
    | OpenSessionAct
    | ResumeAct
    | GiveAnswerAct
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
    | WatchAct
    | UnwatchAct
    | CallToolAct
    | AppResourceAct
    | AppReadAct
    | AppLinkAct
    | AppContextAct
    | CloseAppAct
)
read_act = msgspec.json.Decoder(AnyAct).decode
