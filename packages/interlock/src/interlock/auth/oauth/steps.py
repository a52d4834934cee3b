"""Steps that OAuth procedures yield, and what they receive for each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, ClassVar, TypeVar

from msgspec import Struct

from ...http11.fetch import Request
from ...redaction.records import SecretRecord
from .members import Member

T = TypeVar("T")


class SendRequest(Struct, frozen=True):
    """Please send this request, and give back Got.

    Unreachable is raised into the procedure where there is no answer.

    `step` names what it is for. Every address in it was chosen by a peer, so that it goes through
    the fetcher which takes no private ones, unless the server that we talk to is such itself.
    """

    request: Request
    step: str


class Got(SecretRecord, frozen=True):
    """The answer to `SendRequest`: the names of `headers` in lower case."""

    shows: ClassVar[tuple[str, ...]] = ("status",)

    status: int
    headers: Mapping[str, str]
    body: bytes


class Listen(Struct, frozen=True):
    """Please be ready for a browser to come back from an authorization server, where one can.

    Gives back the redirect URI.

    An address at which the client is registered there already is the best one.
    """

    issuer: str


class Visit(Struct, frozen=True):
    """Please let the person visit `url`, and give back the query string with which the browser came
    to `redirect_uri`.
    """

    url: str
    redirect_uri: str


class ShowCode(Struct, frozen=True):
    """Please show the person a code to be entered at an address (RFC 8628, 3.3).

    Gives back nothing. `seconds` is how long it holds.
    """

    user_code: str
    verification_uri: str
    complete: str | None
    seconds: float


class Wait(Struct, frozen=True):
    """Please wait for so many seconds; gives back nothing."""

    seconds: float


class CallFunction(Struct, frozen=True):
    """Please call this function, and give back what it returns,
    or what comes of what it returns."""

    function: Callable[[], Awaitable[str] | str]


class Note(Struct, frozen=True):
    """Something was found out, for who wants to follow (`interlock auth explain`).

    Gives back nothing.
    """

    step: str
    words: str
    document: str = ""


class Recall(Struct, frozen=True):
    """Please look up what was registered at an authorization server; gives back Member or None."""

    issuer: str


class Remember(Struct, frozen=True):
    """Please keep what was registered.

    Or forget what is kept for its issuer, where there is no `member`. Gives back nothing.
    """

    issuer: str
    member: Member | None


Step = SendRequest | Listen | Visit | ShowCode | Wait | CallFunction | Note | Recall | Remember
Procedure = Generator[Step, Any, T]
