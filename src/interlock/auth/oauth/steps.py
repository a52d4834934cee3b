"""What the procedures of authorization want done: each yields one of these and receives what came of it."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, TypeVar

from msgspec import Struct

from ...fetch import Request

T = TypeVar("T")


class Send(Struct, frozen=True):
    """Please send this request, and give back Got; Unreachable is raised into the procedure where there is no answer.

    `step` names what it is for. Every address in it was chosen by a peer, so that it goes through the fetcher which takes no private ones,
    unless the server that we talk to is such itself.
    """

    request: Request
    step: str


class Got(Struct, frozen=True):
    """The answer to Send: the names of `headers` in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Visit(Struct, frozen=True):
    """Please let the person visit `url`, and give back the query string with which the browser came to `redirect_uri`."""

    url: str
    redirect_uri: str


class ShowCode(Struct, frozen=True):
    """Please show the person a code to be entered at an address (RFC 8628, 3.3); gives back nothing. `seconds` is how long it holds."""

    user_code: str
    verification_uri: str
    complete: str | None
    seconds: float


class Rest(Struct, frozen=True):
    """Please wait for so many seconds; gives back nothing."""

    seconds: float


class Note(Struct, frozen=True):
    """Something was found out, for who wants to follow (`interlock auth explain`); gives back nothing."""

    step: str
    words: str
    document: str = ""


Step = Send | Visit | ShowCode | Rest | Note
Procedure = Generator[Step, Any, T]
