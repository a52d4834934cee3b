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
    """Send this request; the result is Got.

    Unreachable is raised into the procedure if there is no response. A peer chose the URL, so the
    request goes through the fetcher that blocks private addresses, except for hosts that the user
    named.

    Attributes:
        request: The request.
        step: The step of the flow that it belongs to.
    """

    request: Request
    step: str


class Got(SecretRecord, frozen=True):
    """The response to `SendRequest`; the names of `headers` are in lower case."""

    shows: ClassVar[tuple[str, ...]] = ("status",)

    status: int
    headers: Mapping[str, str]
    body: bytes


class Listen(Struct, frozen=True):
    """Prepare for the redirect of a browser from an authorization server; the result is the
    redirect URI.

    A URI at which the client is registered is preferred.
    """

    issuer: str


class Visit(Struct, frozen=True):
    """Send the user to `url`; the result is the query string of the redirect to `redirect_uri`."""

    url: str
    redirect_uri: str


class ShowCode(Struct, frozen=True):
    """Show the user a code and the address where it is entered (RFC 8628, 3.3). There is no result.

    `seconds` is the lifetime of the code.
    """

    user_code: str
    verification_uri: str
    complete: str | None
    seconds: float


class Wait(Struct, frozen=True):
    """Wait for this number of seconds. There is no result."""

    seconds: float


class CallFunction(Struct, frozen=True):
    """Call this function; the result is its return value, which is awaited if it is awaitable."""

    function: Callable[[], Awaitable[str] | str]


class Note(Struct, frozen=True):
    """Report progress (`interlock auth explain` shows it). There is no result."""

    step: str
    words: str
    document: str = ""


class LoadRegistration(Struct, frozen=True):
    """Load the registration at an authorization server; the result is a Member or None."""

    issuer: str


class SaveRegistration(Struct, frozen=True):
    """Store a registration. Without `member`, delete the one of the issuer. There is no result."""

    issuer: str
    member: Member | None


Step = (
    SendRequest
    | Listen
    | Visit
    | ShowCode
    | Wait
    | CallFunction
    | Note
    | LoadRegistration
    | SaveRegistration
)
Procedure = Generator[Step, Any, T]
