"""What the page may ask of the host: one record for each act, read strictly."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from interlock.types import ContentBlock, PromptReference, ResourceTemplateReference

from ..events import Attached
from ..questions import Answer


class Act(
    Struct, frozen=True, kw_only=True, tag_field="act", rename="camel", forbid_unknown_fields=True
):
    """Something that the person wants done."""


class Say(Act, frozen=True, kw_only=True, tag="say"):
    """Say something in a conversation, with resources beside it."""

    session: str
    text: str
    attach: tuple[Attached, ...] = ()


class SayPrompt(Act, frozen=True, kw_only=True, tag="prompt"):
    """Say what a server's prompt says."""

    session: str
    server: str
    name: str
    arguments: dict[str, str] = {}
    attach: tuple[Attached, ...] = ()


class Retry(Act, frozen=True, kw_only=True, tag="retry"):
    """Ask the model again where the last turn failed."""

    session: str


class Cancel(Act, frozen=True, kw_only=True, tag="cancel"):
    """End the turn under way."""

    session: str


class NewSession(Act, frozen=True, kw_only=True, tag="newSession"):
    """Begin a conversation."""

    model: str = ""
    title: str = ""


class OpenSession(Act, frozen=True, kw_only=True, tag="openSession"):
    """The events of a conversation, also of one of long ago."""

    session: str
    after: int = 0


class Resume(Act, frozen=True, kw_only=True, tag="resume"):
    """Go on with a conversation of long ago."""

    session: str


class GiveAnswer(Act, frozen=True, kw_only=True, tag="answer"):
    """Answer a question."""

    question: str
    answer: Answer


class PreviewPrompt(Act, frozen=True, kw_only=True, tag="getPrompt"):
    """What a prompt would say."""

    server: str
    name: str
    arguments: dict[str, str] = {}


class Complete(Act, frozen=True, kw_only=True, tag="complete"):
    """Suggestions for an argument of a prompt or a template."""

    server: str
    ref: PromptReference | ResourceTemplateReference
    argument: str
    value: str = ""
    arguments: dict[str, str] = {}


class Read(Act, frozen=True, kw_only=True, tag="read"):
    """Read a resource."""

    server: str
    uri: str


class Expand(Act, frozen=True, kw_only=True, tag="expand"):
    """The URI that a template makes of values."""

    template: str
    values: dict[str, str] = {}


class Grant(Act, frozen=True, kw_only=True, tag="grant"):
    """Let servers be told of a folder."""

    folder: str
    server: str = ""


class Revoke(Act, frozen=True, kw_only=True, tag="revoke"):
    """Take a folder back."""

    folder: str
    server: str = ""


class Server(Act, frozen=True, kw_only=True, tag="server"):
    """Start, end or begin a server again."""

    server: str
    what: Literal["start", "stop", "restart"]


class ServerLog(Act, frozen=True, kw_only=True, tag="serverLog"):
    """What a server has logged and written to stderr."""

    server: str


class Forget(Act, frozen=True, kw_only=True, tag="forget"):
    """Let go of a remembered rule, by its place in the state's list."""

    rule: int


class SearchLog(Act, frozen=True, kw_only=True, tag="searchLog"):
    """Search the log."""

    words: str = ""
    session: str | None = None
    server: str | None = None
    kinds: tuple[str, ...] = ()
    before: int | None = None
    limit: int = 50


class ReadStructured(Act, frozen=True, kw_only=True, tag="readStructured"):
    """A page of a call's structured content, as JSON text; the first one is 0."""

    session: str
    call: str
    page: int = 0


class Watch(Act, frozen=True, kw_only=True, tag="watch"):
    """Be told when a resource changes."""

    server: str
    uri: str


class Unwatch(Act, frozen=True, kw_only=True, tag="unwatch"):
    """Be told no more."""

    server: str
    uri: str


class CallTool(Act, frozen=True, kw_only=True, tag="callTool"):
    """Call a tool, as the person or for an open app (`app`, its name); what comes of it is told as events of the call."""

    session: str
    server: str
    tool: str
    arguments: dict[str, Any] = {}
    app: str = ""


class AppResource(Act, frozen=True, kw_only=True, tag="appResource"):
    """Open an app: its page, and the name by which it is known from then on. `session` is the conversation that shows it."""

    server: str
    uri: str
    session: str = ""


class AppRead(Act, frozen=True, kw_only=True, tag="appRead"):
    """Read a resource of an app's own server, for the app."""

    app: str
    uri: str


class AppLink(Act, frozen=True, kw_only=True, tag="appLink"):
    """Ask the person whether a page may be opened that an app wants to open. `call` is the one that shows the app."""

    app: str
    url: str
    call: str = ""


class AppContext(Act, frozen=True, kw_only=True, tag="appContext"):
    """What an app wants the model to know when the person speaks next."""

    app: str
    content: tuple[ContentBlock, ...] = ()
    structured_content: dict[str, Any] | None = None


class CloseApp(Act, frozen=True, kw_only=True, tag="closeApp"):
    """An app is no longer shown."""

    app: str


AnyAct = (
    Say
    | SayPrompt
    | Retry
    | Cancel
    | NewSession
    | OpenSession
    | Resume
    | GiveAnswer
    | PreviewPrompt
    | Complete
    | Read
    | Expand
    | Grant
    | Revoke
    | Server
    | ServerLog
    | Forget
    | SearchLog
    | ReadStructured
    | Watch
    | Unwatch
    | CallTool
    | AppResource
    | AppRead
    | AppLink
    | AppContext
    | CloseApp
)
read_act = msgspec.json.Decoder(AnyAct).decode
