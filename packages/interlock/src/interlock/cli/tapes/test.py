"""`interlock test`: run a test suite in TOML, or a tape, against a server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import click

from ... import Answers, Client
from ...tape import TapeError, TapeFile, replay_recording
from ...types import InterlockError
from .. import exits
from ..screen import ERROR, say
from ..targets.reach import Environment, reach_command, reach_target, web_options
from ..targets.trailing_command import COMMAND, TargetCommand
from .replay_target import replay_target, with_url_options
from .suite import Outcome, Suite, SuiteError, run_suite


@click.command("test", cls=TargetCommand)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("target", required=False)
@with_url_options
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write JUnit XML.")
@click.option("--update", is_flag=True, help="Save the snapshots instead of comparing with them.")
def test(
    file: Path,
    target: str | None,
    headers: tuple[str, ...],
    account: str,
    junit: Path | None,
    update: bool,
) -> None:
    """Test a server with a suite in TOML, or with a recording.

    A suite names its target; a TARGET or a COMMAND after -- replaces it. A recording is replayed to
    the TARGET or the COMMAND, and each connection is a test. TARGET is a file, https://host/path,
    unix:///path or tcp://host:port. The exit code is 0 if all tests pass, 3 if one fails, and 4 if
    a server at a URL cannot be used.

    \b
    interlock test suite.toml
    interlock test suite.toml --junit report.xml -- python server.py
    interlock test session.tape -- python server.py
    interlock test session.tape https://staging.example.com/mcp --junit report.xml
    """
    command: list[str] = click.get_current_context().meta.get(COMMAND, [])
    if command and target is not None:
        raise click.UsageError("Name one server: a TARGET, or a command after --.")
    try:
        outcomes = (
            _run_suite(file, target, command, headers, account, update)
            if file.suffix == ".toml"
            else _run_tape(file, target, command, headers, account)
        )
    except InterlockError as bad:
        click.echo(f"{ERROR}{bad}", err=True)
        click.get_current_context().exit(exits.UNREACHABLE)
    if junit is not None:
        try:
            junit.write_bytes(junit_xml(file.name, outcomes))
        except OSError as bad:
            raise click.ClickException(f"{junit} cannot be written: {bad.strerror}.") from None
    failed = sum(bool(outcome.problems) for outcome in outcomes)
    say(f"{len(outcomes) - failed} passed, {failed} failed.")
    if failed:
        click.get_current_context().exit(exits.REFUSED)


def _run_suite(
    file: Path,
    target: str | None,
    command: Sequence[str],
    headers: Sequence[str],
    account: str,
    update: bool,
) -> list[Outcome]:
    try:
        suite = Suite.load(file)
    except SuiteError as bad:
        raise click.UsageError(str(bad)) from None
    if target is None and not command and not suite.target:
        raise click.UsageError(
            f"{file} names no target: name one, or write the server's command after --."
        )
    where = target or _located(suite.target, file.parent)
    web = web_options(headers, False, account)
    everything = Environment() if "://" in where else Environment(whole=True)
    reach = (
        reach_command(command, Environment(whole=True))
        if command
        else reach_target(where, web, everything)
    )

    def connect(revision: str, answers: Answers) -> Client:
        return Client(reach(None, None), revision=revision, answers=answers)

    return asyncio.run(
        run_suite(suite, connect, folder=file.parent, update=update, on_outcome=_show)
    )


def _located(target: str, folder: Path) -> str:
    """A target whose file is relative to the suite."""
    return str(folder / target) if "://" not in target else target


def _run_tape(
    file: Path,
    target: str | None,
    command: Sequence[str],
    headers: Sequence[str],
    account: str,
) -> list[Outcome]:
    if target is None and not command:
        raise click.UsageError("Name a TARGET, or write the server's command after --.")
    server = replay_target(target, command, headers, account)
    try:
        with TapeFile(file) as tape:
            names = list(dict.fromkeys(row.connection for row in tape.rows if row.sender))
            conversations = {name: tape.conversation(name) for name in names}
    except TapeError as bad:
        raise click.ClickException(str(bad)) from None

    async def run() -> list[Outcome]:
        outcomes = []
        for name, conversation in conversations.items():
            began = time.perf_counter()
            async with server.connect() as channel:
                problems = await replay_recording(conversation, channel)
            outcome = Outcome(f"connection {name}", tuple(problems), time.perf_counter() - began)
            outcomes.append(outcome)
            _show(outcome)
        return outcomes

    try:
        return asyncio.run(run())
    except OSError as bad:
        raise click.ClickException(f"{server.name}: {bad.strerror}") from None


def _show(outcome: Outcome) -> None:
    say(f"{'failed' if outcome.problems else 'passed'}  {outcome.name}")
    for problem in outcome.problems:
        say(f"        {problem}")


def junit_xml(name: str, outcomes: Sequence[Outcome]) -> bytes:
    """The outcomes in the format of JUnit."""
    suite = ElementTree.Element(
        "testsuite",
        name=name,
        tests=str(len(outcomes)),
        failures=str(sum(bool(outcome.problems) for outcome in outcomes)),
        time=f"{sum(outcome.seconds for outcome in outcomes):.3f}",
    )
    for outcome in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname=name, name=outcome.name, time=f"{outcome.seconds:.3f}"
        )
        if outcome.problems:
            failure = ElementTree.SubElement(
                case, "failure", message=_xml_text(outcome.problems[0])
            )
            failure.text = _xml_text("\n".join(outcome.problems))
    text: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return text


def _xml_text(text: str) -> str:
    """Text without the characters that XML 1.0 cannot contain."""
    return "".join(sign if sign >= " " or sign in "\t\n" else "\ufffd" for sign in text)
