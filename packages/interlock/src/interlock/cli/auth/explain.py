"""`interlock auth explain`: diagnose the authorization of a server, and say who can fix it."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import Any, Final

import click
import msgspec

from ...auth.diagnose import Finding, Report, Who, diagnose
from ...auth.oauth.registration import check_document
from .. import exits
from ..screen import print_json, shown
from .outcomes import address, carry_out

WHO: Final = {
    "server": "the operator of the server",
    "authorization server": "the operator of the authorization server",
    "client": "you, with options of this command",
    "person": "you",
    "network": "the operator of the network or proxy in between",
}
_COLOURS: Final = {"ok": "green", "remark": "yellow", "wrong": "red"}
_MARGIN: Final = 11  # the columns before the text of a finding
_LABELS: Final = 10  # the columns of the label of a detail


@click.command("explain")
@click.argument("url", callback=address)
@click.option(
    "--client-id", metavar="ID", help="The client id under which the client is registered."
)
@click.option("--issuer", metavar="URL", help="The authorization server where it is registered.")
@click.option("--document", metavar="URL", help="The URL of the client's metadata document.")
@click.option("--dpop", is_flag=True, help="Check for tokens that are bound to a key (DPoP).")
@click.option(
    "--private-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Allow this host of the authorization server to have a private address.",
)
@click.option("--json", "machine", is_flag=True, help="Write JSON for programs.")
def explain(
    url: str,
    client_id: str | None,
    issuer: str | None,
    document: str | None,
    dpop: bool,
    hosts: tuple[str, ...],
    machine: bool,
) -> None:
    """Check each step of a login to the server at URL, without logging in, and report problems.

    Each line is ok, a remark (could be better, but blocks nobody) or wrong. For a problem it says
    what was expected and who has to fix it. The check continues after a problem where it can.
    Nothing is registered, requested or stored.

    The exit code is 0 if nothing is wrong, 1 if something is.

    \b
    interlock auth explain https://shop.example/mcp
    interlock auth explain https://shop.example/mcp --json
    """
    if document is not None:
        try:
            check_document(document)
        except ValueError as bad:
            raise click.UsageError(f"--document: {bad}.") from None
    who = Who(client_id=client_id, document=document, dpop=dpop)
    carry_out(lambda: _explain(url, who, issuer, hosts, machine))


async def _explain(
    url: str, who: Who, issuer: str | None, hosts: tuple[str, ...], machine: bool
) -> int:
    page = None if machine else Page(url)
    report = Report(None if page is None else page.show)
    await diagnose(url, report, who=who, issuer=issuer, hosts=hosts)
    if page is None:
        print_json(as_data(url, report))
    else:
        page.conclude(report)
    return 1 if report.wrong else exits.OK


def as_data(url: str, report: Report) -> dict[str, Any]:
    """A report for programs."""
    return {
        "server": url,
        "wrong": len(report.wrong),
        "culprits": list(dict.fromkeys(finding.culprit for finding in report.wrong)),
        "findings": [msgspec.to_builtins(finding) for finding in report.findings],
    }


class Page:
    """The report for people, written as the findings arrive."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._parts: list[str] = []
        self._width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        click.secho(shown(f"The authorization of {url}"), bold=True)

    def show(self, finding: Finding) -> None:
        """Write a finding, and the heading of its part before the first one."""
        if not self._parts or finding.part != self._parts[-1]:
            self._parts.append(finding.part)
            click.echo()
            click.secho(shown(f"{len(self._parts)}  {finding.part}"), bold=True)
        level = finding.level if finding.level in _COLOURS else ""
        mark = f"   {level:6}  "
        colour = _COLOURS.get(finding.level)
        self._write(
            finding.words, click.style(mark, fg=colour) if colour else mark, _MARGIN, dim=not level
        )
        if finding.level not in ("remark", "wrong"):
            return
        if finding.document and finding.document not in finding.words:
            self._detail("at", finding.document)
        if finding.expected:
            self._detail("expected", finding.expected)
        if finding.culprit is not None and finding.level == "wrong":
            self._detail("to repair", f"by {WHO[finding.culprit]}")
        if finding.advice:
            self._detail("", finding.advice)

    def conclude(self, report: Report) -> None:
        """Write the summary."""
        click.echo()
        wrong = report.wrong
        if not wrong:
            needed = any(finding.part == "What a log-in would do" for finding in report.findings)
            words = (
                f"Nothing prevents: interlock auth login {self._url}"
                if needed
                else "No log-in is needed."
            )
            click.secho(shown(words), fg="green", bold=True)
            return
        click.secho(
            "One thing is wrong." if len(wrong) == 1 else f"{len(wrong)} things are wrong.",
            fg="red",
            bold=True,
        )
        for culprit in dict.fromkeys(finding.culprit for finding in wrong):
            if culprit is not None:
                self._write(f"For {WHO[culprit]}:", "   ", 3)
                for finding in wrong:
                    if finding.culprit == culprit:
                        self._write(finding.words, "     - ", 7)

    def _detail(self, label: str, words: str) -> None:
        self._write(
            words,
            " " * _MARGIN + click.style(f"{label:{_LABELS}} ", dim=True),
            _MARGIN + _LABELS + 1,
        )

    def _write(self, words: str, start: str, margin: int, *, dim: bool = False) -> None:
        lines = [shown(words)]
        if self._width is not None and self._width - margin >= 20:
            lines = textwrap.wrap(
                lines[0], self._width - margin, break_long_words=False, break_on_hyphens=False
            )
        for number, line in enumerate(lines):
            click.echo(
                (start if number == 0 else " " * margin)
                + (click.style(line, dim=True) if dim else line)
            )
