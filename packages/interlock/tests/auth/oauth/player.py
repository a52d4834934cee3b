"""Plays a procedure of authorization against a world that is written down: documents by address,
and a person who comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from interlock import types as t
from interlock.auth.oauth.flow import GrantFlow, LogIn, authorize
from interlock.auth.oauth.grants import Means
from interlock.auth.oauth.members import Grant, Member
from interlock.auth.oauth.registration import ClientIdentity
from interlock.auth.oauth.steps import (
    CallFunction,
    Got,
    Listen,
    LoadRegistration,
    Note,
    Procedure,
    SaveRegistration,
    SendRequest,
    ShowCode,
    Step,
    Visit,
    Wait,
)
from interlock.http11.fetch import Request

SERVER = "https://mcp.example/mcp"
ISSUER = "https://as.example"
PROTECTED = "https://mcp.example/.well-known/oauth-protected-resource/mcp"
ROOT = "https://mcp.example/.well-known/oauth-protected-resource"
METADATA = "https://as.example/.well-known/oauth-authorization-server"
BACK = "http://127.0.0.1:4711/callback"

Answer = Any
"""A JSON value with the status 200; (status, value), (status, value, headers); bytes; an exception.

Or a list of such, one each time.
"""


def resource(**changes: Any) -> dict[str, Any]:
    """The metadata of the server."""
    return {"resource": SERVER, "authorization_servers": [ISSUER], **changes}


def metadata(**changes: Any) -> dict[str, Any]:
    """The metadata of the authorization server; what is changed to None is left out."""
    whole = {
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/authorize",
        "token_endpoint": f"{ISSUER}/token",
        "registration_endpoint": f"{ISSUER}/register",
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not None}


def token(**changes: Any) -> dict[str, Any]:
    """What the token endpoint gives."""
    return {
        "access_token": "secret-access",
        "token_type": "Bearer",
        "expires_in": 3600,
        "refresh_token": "secret-refresh",
        **changes,
    }


def world(**changes: Answer) -> dict[str, Answer]:
    """A world in which a log-in goes well.

    The names are those of the parts; what is changed to None is not there.
    """
    parts = {
        PROTECTED: changes.pop("protected", resource()),
        METADATA: changes.pop("metadata", metadata()),
        f"{ISSUER}/register": changes.pop("register", (201, {"client_id": "dynamic"})),
        f"{ISSUER}/token": changes.pop("token", token()),
        **changes,
    }
    return {address: answer for address, answer in parts.items() if answer is not None}


def elsewhere(issuer: str) -> dict[str, Answer]:
    """The documents of a world in which the server's authorization server is another one."""
    place = f"{issuer}/.well-known/oauth-authorization-server"
    return {PROTECTED: resource(authorization_servers=[issuer]), place: metadata(issuer=issuer)}


@dataclass
class Player:
    """Carries out what a procedure wants, writes down what it was, and knows nothing else."""

    answers: Mapping[str, Answer]
    kept: dict[str, Member] = field(default_factory=dict)
    back: Callable[[dict[str, str]], str] | str | BaseException = "code=secret-code&state={state}"
    redirect_uri: str = BACK
    now: float = 1_000_000.0
    steps: list[Step] = field(default_factory=list)
    proofs: list[tuple[str, str, str | None]] = field(default_factory=list)
    key: bool = False
    dpop: bool = False
    _randoms: int = 0
    _counts: dict[str, int] = field(default_factory=dict)

    @property
    def means(self) -> Means:
        """The clock, chance and keys of this world."""
        return Means(
            now=lambda: self.now,
            random=self._random,
            assertion=(lambda audience: f"secret-assertion for {audience}") if self.key else None,
            proof=self._proof if self.dpop else None,
            thumbprint="thumb" if self.dpop else None,
            key={"kty": "EC", "d": "secret-key"} if self.dpop else None,
        )

    def play(self, procedure: Procedure[Any]) -> Any:
        """Carry a procedure out; what it returns. Raises what it raises."""
        try:
            step = next(procedure)
            while True:
                self.steps.append(step)
                try:
                    came = self._carry(step)
                except t.Unreachable as bad:
                    step = procedure.throw(bad)
                else:
                    step = procedure.send(came)
        except StopIteration as done:
            return done.value

    def log_in(self, way: GrantFlow | None = None, **options: Any) -> Grant:
        """The whole dance."""
        server = options.pop("server", SERVER)
        return self.play(
            authorize(
                server,
                LogIn(identity=ClientIdentity()) if way is None else way,
                self.means,
                **options,
            )
        )

    # -- what was done -----------------------------------------------------------------------------

    @property
    def requests(self) -> list[Request]:
        """What was sent, in its order."""
        return [step.request for step in self.steps if isinstance(step, SendRequest)]

    @property
    def asked(self) -> list[str]:
        """The addresses of the documents that were asked for."""
        return [request.url for request in self.requests if request.method == "GET"]

    def forms(self, url: str = f"{ISSUER}/token") -> list[dict[str, str]]:
        """The forms that were posted to an address."""
        return [
            dict(parse_qsl(r.body.decode(), keep_blank_values=True))
            for r in self.requests
            if r.method == "POST" and r.url == url
        ]

    @property
    def registrations(self) -> list[dict[str, Any]]:
        """What was sent to register."""
        return [
            msgspec.json.decode(r.body)
            for r in self.requests
            if dict(r.headers).get("Content-Type") == "application/json"
        ]

    @property
    def visited(self) -> dict[str, str]:
        """The parameters of the last address that the person visited."""
        return visited([step.url for step in self.steps if isinstance(step, Visit)][-1])

    @property
    def notes(self) -> list[str]:
        """What was told on the way."""
        return [step.words for step in self.steps if isinstance(step, Note)]

    # -- how it is done ----------------------------------------------------------------------------

    def _carry(self, step: Step) -> Any:
        match step:
            case SendRequest():
                return self._answer(step.request.url)
            case Listen():
                return self.redirect_uri
            case Visit():
                return self._come_back(step.url)
            case LoadRegistration():
                return self.kept.get(step.issuer)
            case SaveRegistration():
                if step.member is None:
                    self.kept.pop(step.issuer, None)
                else:
                    self.kept[step.issuer] = step.member
            case Wait():
                self.now += step.seconds
            case CallFunction():
                return step.function()
            case Note() | ShowCode():
                pass
        return None

    def _answer(self, url: str) -> Got:
        answer = self.answers.get(url, (404, {"error": "not_found"}))
        if isinstance(answer, list):
            count = self._counts[url] = self._counts.get(url, -1) + 1
            answer = answer[min(count, len(answer) - 1)]
        if isinstance(answer, BaseException):
            raise answer
        status, value, headers = (
            (*answer, {})[:3] if isinstance(answer, tuple) else (200, answer, {})
        )
        return Got(
            status, headers, value if isinstance(value, bytes) else msgspec.json.encode(value)
        )

    def _come_back(self, url: str) -> str:
        if isinstance(self.back, BaseException):
            raise self.back
        asked = visited(url)
        return (
            self.back(asked)
            if callable(self.back)
            else self.back.replace("{state}", asked["state"])
        )

    def _random(self) -> str:
        self._randoms += 1
        return f"random-{self._randoms:036}"

    def _proof(self, method: str, url: str, nonce: str | None) -> str:
        self.proofs.append((method, url, nonce))
        return f"proof {len(self.proofs)}"


def visited(url: str) -> dict[str, str]:
    """The parameters of an address, each of which must be there once."""
    pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True)
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def query(**fields: str) -> str:
    """A query string."""
    return urlencode(fields)
