"""A guard for tests: it believes whoever says who he is, what he may do and until when, and writes
challenges as the real one does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from interlock.exchange import Principal

WHO = b"x-who"
SCOPES = b"x-scopes"
UNTIL = b"x-until"


class Doorman:
    """Lets in whoever names himself; `strangers` are let in too, unnamed."""

    def __init__(self, *, strangers: bool = False) -> None:
        self.strangers = strangers
        self.learned: tuple[str, Callable[[], Iterable[str]]] | None = None
        self.seen: list[str] = []  # the types of what came by
        self.closed = 0
        self.path = ""

    def learn(self, path: str, scopes: Callable[[], Iterable[str]]) -> None:
        """Be told what he stands before."""
        self.learned = path, scopes

    async def aclose(self) -> None:
        """Go home."""
        self.closed += 1

    def __call__(self, app: Any) -> Any:
        """Stand before an app."""
        self.path = app.path

        async def guarded(scope: Any, receive: Any, send: Any) -> None:
            self.seen.append(scope["type"])
            headers = dict(scope.get("headers", ()))
            if scope.get("path") == "/everybody":
                await send(
                    {
                        "type": "http.response.start",
                        "status": 200,
                        "headers": [(b"access-control-allow-origin", b"*")],
                    }
                )
                await send({"type": "http.response.body", "body": b""})
            elif (
                scope["type"] != "http"
                or scope["path"] == "/health"
                or scope["method"] == "OPTIONS"
            ):
                await app(scope, receive, send)
            elif WHO in headers:
                until = float(headers[UNTIL]) if UNTIL in headers else None
                scopes = frozenset(headers.get(SCOPES, b"").decode().split())
                principal = Principal(subject=headers[WHO].decode(), scopes=scopes, expires=until)
                await app(
                    {**scope, "interlock.principal": principal, "interlock.challenge": challenge},
                    receive,
                    send,
                )
            elif self.strangers:
                await app(scope, receive, send)
            else:
                await send(
                    {
                        "type": "http.response.start",
                        "status": 401,
                        "headers": [(b"www-authenticate", b"Bearer")],
                    }
                )
                await send({"type": "http.response.body", "body": b""})

        return guarded


def challenge(scopes: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """The headers of a 403."""
    return [
        (
            b"www-authenticate",
            f'Bearer error="insufficient_scope", scope="{" ".join(scopes)}"'.encode(),
        )
    ]


def asks_for(header: str) -> set[str]:
    """The scopes that a challenge asks for."""
    start = 'Bearer error="insufficient_scope", scope="'
    assert header.startswith(start), header
    return set(header[len(start) :].rstrip('"').split())


def named(who: str, *scopes: str, until: float | None = None) -> dict[str, str | None]:
    """What somebody says of himself, as arguments of `offered`."""
    return {
        "x_who": who,
        "x_scopes": " ".join(scopes),
        "x_until": None if until is None else repr(until),
    }
