"""Authorization errors: the step, the document, what was expected, and who can fix it."""

from __future__ import annotations

from typing import Literal

from ... import types as t

_LONGEST = 4096  # characters of an error message

Culprit = Literal["server", "authorization server", "client", "person", "network"]

# The advice if there is none more specific; the dictionary has an entry for each culprit.
_REPAIR: dict[Culprit, str] = {
    "server": "The operator of the server must fix it.",
    "authorization server": "The operator of the authorization server must fix it.",
    "client": "Check how this client is configured.",
    "person": "Log in again.",
    "network": "Try again. If it happens again, check the network and the proxies between this "
    "machine and the server.",
}


def plain(words: str) -> str:
    """Untrusted text, shortened, without characters that control a terminal or break a log line."""
    shown = "".join(c if c.isprintable() else "?" for c in words[:_LONGEST])
    return shown if len(words) <= _LONGEST else f"{shown}..."


class Unauthorized(t.Unreachable):
    """A server cannot be used, because the client could not get an authorization.

    Attributes:
        step: What the client was doing: "discovery", "registration", "log-in", "token", "refresh",
            "request" or another step.
        what: The problem.
        document: The URL that was read or asked.
        expected: What was expected instead.
        advice: What to do. Without it, the message has general advice for the culprit.
        culprit: Who can fix it.
        code: The OAuth error code, if there is one.
    """

    def __init__(
        self,
        step: str,
        what: str,
        *,
        document: str = "",
        expected: str = "",
        advice: str = "",
        culprit: Culprit = "server",
        code: str = "",
        status: int = 401,
    ) -> None:
        at = f" at {document}" if document else ""
        words = [f"Authorization failed ({step}{at}): {what.rstrip('.')}."]
        words += [f"Expected: {expected.rstrip('.')}."] if expected else []
        words += [advice or _REPAIR[culprit]]
        super().__init__(plain(" ".join(words)), status=status)
        self.step = step
        self.what = what
        self.document = document
        self.expected = expected
        self.advice = advice
        self.culprit: Culprit = culprit
        self.code = code


class Denied(Unauthorized):
    """The person refused, or the authorization server refused on their behalf."""
