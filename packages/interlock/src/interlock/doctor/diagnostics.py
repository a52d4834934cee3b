"""Diagnostics: what a rule is, what it finds, and the report of an examination."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

Severity = Literal["error", "warning", "note"]
"""`error`: the server, or a part of it, cannot be used or is not safe. `warning`: it fails with
some clients, models or networks. `note`: it could be better.
"""


class RuleFinding(NamedTuple):
    """One finding of a rule.

    Attributes:
        words: What is wrong.
        where: The part that is wrong, such as the name of a tool.
        advice: What to do, if that is more specific than the advice of the rule.
    """

    words: str
    where: str = ""
    advice: str = ""


Check = Callable[[Any], Iterable[RuleFinding]]
"""Yields the findings in the facts of one part. It does no I/O."""


class DiagnosticRule(Struct, frozen=True, kw_only=True):
    """A rule of the table.

    Attributes:
        id: Its stable name.
        title: What it reports, as a phrase.
        severity: How bad it is.
        advice: What to do about it.
        check: Yields its findings in the facts of its part.
        stops: Whether the parts that come later cannot be checked.
    """

    id: str
    title: str
    severity: Severity
    advice: str
    check: Check
    stops: bool = False


def rule(
    id: str, severity: Severity, title: str, *, advice: str, stops: bool = False
) -> Callable[[Check], DiagnosticRule]:
    """Make a check function a rule; see `DiagnosticRule`."""

    def decorate(check: Check) -> DiagnosticRule:
        return DiagnosticRule(
            id=id, title=title, severity=severity, advice=advice, check=check, stops=stops
        )

    return decorate


class Diagnostic(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A finding in a report.

    Attributes:
        rule: The id of the rule.
        severity: How bad it is.
        words: What is wrong, without secrets.
        where: The part that is wrong.
        advice: What to do.
    """

    rule: str
    severity: Severity
    words: str
    where: str = ""
    advice: str = ""


class CheckedPart(Struct, kw_only=True, omit_defaults=True):
    """A part of an examination.

    Attributes:
        part: Its name in the table of rules, such as "command".
        facts: What was seen, in words.
        diagnostics: The findings.
        skipped: Why it was not checked; empty if it was.
    """

    part: str
    facts: list[str] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    skipped: str = ""


class DiagnosticReport(Struct, kw_only=True, omit_defaults=True):
    """The result of an examination. `msgspec.to_builtins` makes it plain data.

    Attributes:
        target: What was examined, without secrets.
        parts: The parts, in the order in which they were checked.
        servers: For a host, the reports of its servers.
    """

    target: str
    parts: list[CheckedPart] = field(default_factory=list)
    servers: list[DiagnosticReport] = field(default_factory=list)

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """All findings, those of the servers of a host too."""
        return list(self._all())

    @property
    def errors(self) -> list[Diagnostic]:
        """The findings that are errors."""
        return [found for found in self._all() if found.severity == "error"]

    @property
    def warnings(self) -> list[Diagnostic]:
        """The findings that are warnings."""
        return [found for found in self._all() if found.severity == "warning"]

    def _all(self) -> Iterator[Diagnostic]:
        for part in self.parts:
            yield from part.diagnostics
        for server in self.servers:
            yield from server._all()
