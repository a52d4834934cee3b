"""How an endpoint of the issuer says no: an error code of OAuth, words, and the status that belongs to them (RFC 6749, 5.2)."""

from __future__ import annotations

from collections.abc import Iterable

from .web import NO_STORE, Reply, json


class Refusal(Exception):
    """A request that is refused; `error` is a code of OAuth, `words` are for a developer and quote nothing that is secret."""

    def __init__(
        self, error: str, words: str, *, status: int = 400, headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        super().__init__(f"{error}: {words}")
        self.error, self.words, self.status, self.headers = error, words, status, tuple(headers)

    @property
    def description(self) -> str:
        """The words as a parameter may say them (RFC 6749, 4.1.2.1): plain ASCII, no quotes, no backslash."""
        return "".join(c if " " <= c <= "~" and c not in '"\\' else "?" for c in self.words)[:400]

    def reply(self) -> Reply:
        """As an answer of an endpoint that programs call."""
        return json(
            {"error": self.error, "error_description": self.description},
            self.status,
            (NO_STORE, *self.headers),
        )


def unproven(words: str) -> Refusal:
    """The refusal of a client that has not shown that it is the one it says."""
    return Refusal(
        "invalid_client", words, status=401, headers=[("www-authenticate", 'Basic realm="clients"')]
    )


def spent(words: str) -> Refusal:
    """The refusal of a code, token or assertion."""
    return Refusal("invalid_grant", words)


def away(words: str) -> Refusal:
    """The refusal where it cannot be found out now what to say."""
    return Refusal("temporarily_unavailable", words, status=503, headers=[("retry-after", "30")])


def crowded(words: str, seconds: int = 60) -> Refusal:
    """The refusal of one too many."""
    return Refusal(
        "temporarily_unavailable", words, status=429, headers=[("retry-after", str(seconds))]
    )
