"""Connects to a server of a configuration file, once the user allowed it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ... import Stdio
from ...configs import (
    PROJECT_FILES,
    BadRecord,
    Config,
    Entry,
    Input,
    StartRequest,
    TrustRecord,
    approval_of,
    confinement_of,
    is_own_file,
    load_config,
    start_facts,
    start_request,
)
from ...sandbox import Sandbox
from ...transport.channel import Tap
from .. import exits
from ..screen import note, shown
from ..user_folder import trust_record_path
from .reach import Environment, OnLine, Reach, reach_address


class NotAllowed(click.ClickException):
    """The user has not allowed a server to be started or contacted."""

    exit_code = exits.USAGE


def reach_config(
    config: Path | None,
    name: str | None,
    web: Mapping[str, Any],
    environment: Environment,
    *,
    trust: bool,
) -> tuple[Reach, str | None]:
    """Return the connection to a server of a configuration file.

    A file of a project may come from anyone, and a command in it runs with the rights of the user.
    So the user is asked first, as the host asks, and the answer is kept in the same record. The
    configurations of the user's own clients need no question, because these clients start the
    servers anyway.

    Args:
        config: The file; None: the first of a project's usual files that exists here.
        name: The name of the server; None: the only one.
        web: Options for `Http`, as they were typed.
        environment: Variables for the server in addition to those of its entry.
        trust: Whether it may be started or contacted this time without a question.

    Returns:
        The connection, and the revision that the entry names; None if it names none.

    Raises:
        click.UsageError: There is no such server.
        NotAllowed: The user refused, or could not be asked.
    """
    entry = allowed_entry(config, name, trust=trust)
    if entry.command:
        command = list(entry.command)
        sandbox = _sandbox(entry, environment)

        def start(tap: Tap | None, on_stderr: OnLine | None) -> Stdio:
            return Stdio(
                command,
                env={**entry.env, **environment.named},
                inherit_env=environment.whole,
                cwd=entry.cwd,
                on_stderr=on_stderr,
                tap=tap,
                sandbox=sandbox,
            )

        return start, entry.revision or None
    if environment != Environment():
        raise click.UsageError(
            "--env, --inherit-env and --sandbox are for servers that are started, not for a URL."
        )
    headers = {**entry.headers, **web.get("headers", {})}
    older = {"legacy_sse": True} if entry.legacy_sse else {}
    given = {**older, **web, **({"headers": headers} if headers else {})}
    return reach_address(entry.url, given), entry.revision or None


def _sandbox(entry: Entry, environment: Environment) -> Sandbox | None:
    """Return the sandbox of the command line, or that of the entry. Raises click.UsageError."""
    if environment.sandbox is not None:
        return environment.sandbox or None
    sandbox = confinement_of(entry).sandbox
    if sandbox is not None and environment.whole:
        raise click.UsageError(
            f"The server {entry.id} runs in a sandbox, which passes named variables only: name "
            "them by --env in place of --inherit-env, or add --no-sandbox if you trust it."
        )
    return sandbox


def allowed_entry(config: Path | None, name: str | None, *, trust: bool) -> Entry:
    """Return a server of a configuration file, once the user allowed it.

    Args:
        config: The file; None: the first of a project's usual files that exists here.
        name: The name of the server; None: the only one.
        trust: Whether it may be started or contacted this time without a question.

    Raises:
        click.UsageError: There is no such server.
        NotAllowed: The user refused, or could not be asked.
    """
    path = config or next((p for p in map(Path, PROJECT_FILES) if p.is_file()), None)
    if path is None:
        raise click.UsageError(
            f"Name the file of the server {name} with --config; this folder has none of "
            f"{', '.join(PROJECT_FILES)}."
        )
    entry = _entry(path, name)
    if not trust and not is_own_file(path):
        _allow(path, entry)
    elif entry.url:
        _warn(start_request(entry))
    return entry


def asked(input: Input) -> str:
    """Ask the user at the terminal for an input of a configuration."""
    words = shown(input.description or input.id)
    if input.options:
        return str(
            click.prompt(
                words, type=click.Choice(list(input.options)), default=input.default or None
            )
        )
    return str(
        click.prompt(
            words,
            default=input.default or None,
            hide_input=input.password,
            show_default=not input.password,
        )
    )


# -- which server ----------------------------------------------------------------------------------


def _entry(path: Path, name: str | None) -> Entry:
    config = load_config(path)
    wanted = name or _only(path, config)
    found = _named(config, wanted)
    if found is None and sys.stdin.isatty() and any(p.id == wanted for p in config.problems):
        found = _named(load_config(path, ask=asked), wanted)  # only an answer may be missing
    if found is not None:
        for problem in config.problems:
            if problem.id == wanted and problem.level == "note":
                note(f"The server {wanted}: {problem.words}.", fg="yellow")
        return found
    for problem in config.problems:
        if problem.id == wanted:
            raise click.UsageError(
                f"The server {wanted} in {path} cannot be used: "
                f"{problem.words.removeprefix('left out: ')}."
            )
    raise click.UsageError(f"{path} has no server {wanted}; it has {_listed(_ids(config))}.")


def _named(config: Config, name: str) -> Entry | None:
    return next((entry for entry in config.entries if entry.id == name), None)


def _only(path: Path, config: Config) -> str:
    """The name of the only server, usable or not. Raises click.UsageError."""
    ids = _ids(config)
    if len(ids) == 1:
        return ids[0]
    whole = [problem.words for problem in config.problems if not problem.id]
    if not ids and whole:
        raise click.UsageError(f"{path} cannot be used: {'; '.join(whole)}.")
    raise click.UsageError(
        f"{path} has {len(ids)} servers; choose one with --server: {_listed(ids)}"
    )


def _ids(config: Config) -> list[str]:
    broken = [problem.id for problem in config.problems if problem.id]
    return list(dict.fromkeys([*(entry.id for entry in config.entries), *broken]))


def _listed(ids: list[str]) -> str:
    return ", ".join(ids) or "none"


# -- may it be started? ----------------------------------------------------------------------------


def _allow(path: Path, entry: Entry) -> None:
    """Check that the user allowed a server, or ask now. Raises NotAllowed."""
    try:
        record = TrustRecord(trust_record_path())
        confinement = confinement_of(entry)
        approval = approval_of(entry, unconfined=bool(confinement.problem))
        if record.allows(path, entry.id, approval):
            return
        request = start_request(
            entry, confinement=confinement.words, unconfined=confinement.problem
        )
        doing = "start" if request.runs_code else "connect to"
        note(f"You have not allowed Interlock to {doing} the server {entry.id} yet.", bold=True)
        _show(request)
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise NotAllowed(
                "Nobody can be asked, since this is not a terminal. Run the command in a terminal "
                "and say yes once, allow the server in `interlock host` or `interlock chat`, or "
                "add --trust if you know what it does."
            )
        words = "Start it?" if request.runs_code else "Connect to it?"
        if not click.confirm(words, default=False, err=True):
            raise NotAllowed("Nothing was started." if request.runs_code else "Nothing was sent.")
        record.allow(path, entry.id, approval)
    except BadRecord as bad:
        raise click.UsageError(str(bad)) from None


def _show(request: StartRequest) -> None:
    """Write what the user must know before the decision to stderr."""
    note(f"  {'command' if request.runs_code else 'address'}: {request.command}")
    for fact in start_facts(request):
        note(f"  {fact}")
    _warn(request)


def _warn(request: StartRequest) -> None:
    for warning in request.warnings:
        where = f"{warning.where}: " if warning.where else ""
        note(f"  ! {where}{warning.words}", fg="yellow")
