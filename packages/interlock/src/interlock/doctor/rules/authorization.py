"""Rules about the authorization of a server; the findings are those of `interlock auth explain`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...auth.diagnose import Finding
from ..diagnostics import RuleFinding, rule
from ..facts import AuthorizationFacts


@rule(
    "authorization-error",
    "error",
    "A client cannot log in",
    advice="`interlock auth explain URL` shows each step.",
)
def authorization_error(facts: AuthorizationFacts) -> Iterator[RuleFinding]:
    """A step of the login would fail, or is not safe."""
    yield from (_found(finding) for finding in facts.findings if finding.level == "wrong")


@rule(
    "authorization-remark",
    "warning",
    "The authorization could be better",
    advice="`interlock auth explain URL` shows each step.",
)
def authorization_remark(facts: AuthorizationFacts) -> Iterator[RuleFinding]:
    """Something that does not stop a login."""
    yield from (_found(finding) for finding in facts.findings if finding.level == "remark")


@rule(
    "login-needed",
    "note",
    "A login is needed",
    advice="Log in with `interlock auth login URL`, then run the command again.",
    stops=True,
)
def login_needed(facts: AuthorizationFacts) -> Iterator[RuleFinding]:
    """The server refuses requests without a token, and there is none."""
    if not facts.has_credentials:
        yield RuleFinding(f"{facts.url} refuses requests without a token")


@rule(
    "credentials-refused",
    "error",
    "The token is refused",
    advice="Log in again with `interlock auth login URL`, or correct the Authorization header.",
    stops=True,
)
def credentials_refused(facts: AuthorizationFacts) -> Iterator[RuleFinding]:
    """The server refuses requests with the token that there is."""
    if facts.has_credentials:
        yield RuleFinding(f"{facts.url} refuses the token of the request")


def _found(finding: Finding) -> RuleFinding:
    expected = f"Expected: {finding.expected}." if finding.expected else ""
    return RuleFinding(
        finding.words, finding.document, " ".join(filter(None, (expected, finding.advice)))
    )


RULES: Final = (authorization_error, authorization_remark, login_needed, credentials_refused)
