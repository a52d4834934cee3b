"""Error responses of the issuer: an error code of OAuth, a description and a status (RFC 6749,
5.2).
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.responses import Response

from .responses import NO_STORE, json_response


class OAuthError(Exception):
    """A request is refused with an error code of OAuth.

    `words` are for a developer; they quote nothing that is secret.
    """

    def __init__(
        self, error: str, words: str, *, status: int = 400, headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        super().__init__(f"{error}: {words}")
        self.error = error
        self.words = words
        self.status = status
        self.headers = tuple(headers)

    @property
    def description(self) -> str:
        """The words in plain ASCII, without quotes and backslashes (RFC 6749, 4.1.2.1)."""
        return "".join(c if " " <= c <= "~" and c not in '"\\' else "?" for c in self.words)[:400]

    def response(self) -> Response:
        """Return the error as the JSON response of an endpoint."""
        return json_response(
            {"error": self.error, "error_description": self.description},
            self.status,
            (NO_STORE, *self.headers),
        )


def invalid_client(words: str) -> OAuthError:
    """Return the error for a client that has not authenticated."""
    challenge = ("www-authenticate", 'Basic realm="clients"')
    return OAuthError("invalid_client", words, status=401, headers=[challenge])


def invalid_grant(words: str) -> OAuthError:
    """Return the error for a code, a token or an assertion that is not valid."""
    return OAuthError("invalid_grant", words)


def unavailable(words: str) -> OAuthError:
    """Return the error for a question that cannot be answered now (503)."""
    return OAuthError("temporarily_unavailable", words, status=503, headers=[("retry-after", "30")])


def too_many_requests(words: str, seconds: int = 60) -> OAuthError:
    """Return the error for too many requests (429)."""
    return OAuthError(
        "temporarily_unavailable", words, status=429, headers=[("retry-after", str(seconds))]
    )
