"""Shows reports of the doctor: for people as the parts arrive, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click
import msgspec

from ...doctor import CheckedPart, Diagnostic, DiagnosticReport
from ..screen import print_json, say, shown

WRONG: Final = 1
"""The exit code if there are errors, or warnings with --strict."""

_COLOURS: Final = {"error": "red", "warning": "yellow", "note": "blue"}
_PART: Final = 15  # the columns of the name of a part
_SEVERITY: Final = 9  # the columns of a severity


class ReportPage:
    """A report for people, written while the examination runs."""

    def __init__(self) -> None:
        self._begun = False

    def begin(self, report: DiagnosticReport) -> None:
        """Write the heading of a report."""
        if self._begun:
            say()
        self._begun = True
        say(report.target, bold=True)

    def show(self, checked: CheckedPart) -> None:
        """Write a part: what was seen, then the findings."""
        seen = checked.facts or ["checked"]
        words = [f"not checked: {checked.skipped}"] if checked.skipped else seen
        for number, line in enumerate(words):
            name = checked.part if number == 0 else ""
            click.echo(click.style(f"  {name:{_PART}}", bold=True), nl=False)
            say(line, dim=True)
        for found in checked.diagnostics:
            self._show_diagnostic(found)

    def _show_diagnostic(self, found: Diagnostic) -> None:
        margin = " " * (4 + _SEVERITY)
        click.echo(
            "    "
            + click.style(f"{found.severity:{_SEVERITY}}", fg=_COLOURS[found.severity])
            + click.style(found.rule, bold=True)
            + (f"  {shown(found.where)}" if found.where else "")
        )
        for line in found.words.splitlines():
            say(f"{margin}{line}")
        if found.advice:
            say(f"{margin}{found.advice}", dim=True)


def conclude(reports: Sequence[DiagnosticReport], *, machine: bool, strict: bool) -> int:
    """Write the summary, or the reports for programs. Returns the exit code.

    Args:
        reports: The reports.
        machine: Whether to write JSON.
        strict: Whether warnings count as errors.
    """
    errors = sum(len(report.errors) for report in reports)
    warnings = sum(len(report.warnings) for report in reports)
    wrong = errors + (warnings if strict else 0)
    if machine:
        print_json(as_data(reports, errors, warnings))
    else:
        say()
        counts = [
            f"{count} {name}{'' if count == 1 else 's'}"
            for count, name in ((errors, "error"), (warnings, "warning"))
            if count
        ]
        colour = "red" if wrong else "green"
        say(f"{' and '.join(counts)}." if counts else "Nothing is wrong.", fg=colour, bold=True)
    return WRONG if wrong else 0


def as_data(reports: Sequence[DiagnosticReport], errors: int, warnings: int) -> dict[str, Any]:
    """The reports for programs."""
    return {
        "errors": errors,
        "warnings": warnings,
        "reports": [msgspec.to_builtins(report) for report in reports],
    }
