"""`interlock install`: add a server to the configuration of a client, or remove it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import click

from ...configs import (
    PRODUCTS,
    ConfigFile,
    Editor,
    Product,
    RawEntry,
    Uneditable,
    difference,
    this_machine,
)
from ..targets.target_syntax import header_lines, split_target
from ..targets.trailing_command import COMMAND, TargetCommand

_OURS = re.compile(r"\binterlock\b[\"',\s]")
_RUNNERS = {"uvx", "npx", "uv", "bunx", "pipx", "python", "python3", "node", "deno", "bun"}
_NOTHING = "Name what to install: a FILE, a URL, or -- COMMAND at the end."
_TELLS_NOTHING = {"server", "main", "app", "mcp", "__init__", "__main__"}


@click.command("install", cls=TargetCommand)
@click.argument("target", metavar="[FILE[:OBJECT]|URL]", required=False)
@click.option(
    "--client",
    "-c",
    "clients",
    multiple=True,
    type=click.Choice(list(PRODUCTS)),
    help="The client to configure; repeat it for several.",
)
@click.option(
    "--name",
    "-n",
    help="The name of the server in the client.  [default: the name of the file or the host]",
)
@click.option(
    "--env",
    "-e",
    "variables",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="An environment variable for the server; without VALUE, your own value.",
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="URL: a header that the client sends with each request.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration file, if not the default one.",
)
@click.option("--no-check", is_flag=True, help="Do not start the server once to test it.")
@click.option("--dry-run", is_flag=True, help="Show the changes, and write nothing.")
@click.option("--remove", is_flag=True, help="Remove the server.")
@click.option(
    "--force", is_flag=True, help="Replace a server of that name that Interlock did not write."
)
def install(
    target: str | None,
    clients: tuple[str, ...],
    name: str | None,
    variables: tuple[str, ...],
    headers: tuple[str, ...],
    config: Path | None,
    no_check: bool,
    dry_run: bool,
    remove: bool,
    force: bool,
) -> None:
    """Add a server to the configuration of a client.

    The server is a Python FILE, which the client starts with `interlock run`, or a URL, or any
    COMMAND after `--`. Words after `--` behind a FILE are its arguments. The server is first
    started once, with the variables that the client gives it: HOME, PATH and the like, and those
    of --env. If it does not answer, nothing is changed and the exit code is 4; --no-check skips
    this test.

    Only the entry is written: every other byte of the file stays, comments too. A backup is kept
    beside the file, and the new file replaces it in one step. A file that cannot be edited
    safely is not changed, and the exit code is 1. A second run changes nothing more;
    --remove undoes it. Codex and Goose need `pip install 'interlock[install]'`.

    \b
    interlock install weather.py --client claude-desktop --client cursor
    interlock install weather.py --client codex --name weather --env API_KEY=secret
    interlock install weather.py --client cursor -- --units metric
    interlock install --client cursor --name git -- uvx mcp-server-git --repository /home/me/code
    interlock install weather.py --client vscode --config .vscode/mcp.json --dry-run
    interlock install https://shop.example/mcp --client cursor --header 'Authorization: Bearer ...'
    """
    if not clients:
        raise click.UsageError(f"Name a client with --client: {', '.join(PRODUCTS)}.")
    if config is not None and len(clients) > 1:
        raise click.UsageError("--config is for one client.")
    rest: list[str] = click.get_current_context().meta.get(COMMAND, [])
    if target is not None and "://" in target:
        usual, entry_for = _remote(target, headers, variables, rest)
    else:
        if headers:
            raise click.UsageError("--header is for URLs; give a program variables with --env.")
        env = _variables(variables)
        started = _started(target, rest, must_be=not remove)
        usual = started.name
        entry_for = partial(started.entry, env)
        if not (no_check or dry_run or remove):
            _check(started.command, env)
    name = name or usual
    failed = False
    for key in clients:
        product = PRODUCTS[key]
        file = ConfigFile(config or product.path(this_machine()))
        try:
            entry = entry_for(product, name)
            edit = (
                _Removal(product, file, name, entry, force)
                if remove
                else _Addition(product, name, entry, force)
            )
            _carry_out(product, file, edit, dry_run)
        except (Uneditable, OSError) as bad:
            click.secho(f"{product.title}: {file.path} was not changed: {bad}", fg="red", err=True)
            failed = True
    if failed:
        click.get_current_context().exit(1)


class _Addition:
    """The change that adds an entry to a text."""

    def __init__(self, product: Product, name: str, entry: RawEntry, force: bool) -> None:
        self._editor = product.editor
        self._name = name
        self._entry = entry
        self._force = force
        self.words = f"has {name}"
        url = _url_of(entry)
        self.detail = (
            f"\n  it will connect to: {url}"
            if url
            else f"\n  it will run: {shlex.join(_command_of(entry))}"
        )

    def __call__(self, text: str | None) -> str | None:
        there = None if text is None else self._editor.source(text, self._name)
        after = self._editor.add(text or "", self._name, self._entry)
        if there is not None and after != text and not self._force:
            _check_that_it_is_ours(there, self._name, self._entry)
        return after


class _Removal:
    """The change that removes an entry, and restores the text from before the entry was added."""

    def __init__(
        self, product: Product, file: ConfigFile, name: str, entry: RawEntry, force: bool
    ) -> None:
        self._editor = product.editor
        self._file = file
        self._name = name
        self._entry = entry
        self._force = force
        self.words = f"no longer has {name}"
        self.detail = ""

    def __call__(self, text: str | None) -> str | None:
        there = None if text is None else self._editor.source(text, self._name)
        if text is None or there is None:
            return text
        if not self._force:
            _check_that_it_is_ours(there, self._name, self._entry)
        left = self._editor.remove(text, self._name)
        backups = self._file.backups()
        for backup in backups:
            if _without(self._editor, backup, self._name) == left:
                return backup
        return None if not backups and _without(self._editor, "", self._name) == left else left


def _check_that_it_is_ours(source: str, name: str, entry: RawEntry) -> None:
    url = _url_of(entry)
    if url is None:
        same = all(json.dumps(word)[1:-1] in source for word in _command_of(entry))
    else:
        same = url in source
    if not same and not _OURS.search(source):
        raise Uneditable(
            f"Interlock did not write the server {name} in it; "
            "choose another --name, or replace it with --force"
        )


def _without(editor: Editor, text: str, name: str) -> str | None:
    """Return a text after an entry was added and removed; None if the entry cannot be added.

    If the result equals the rest of the present text, this text was the state before the entry was
    added.
    """
    try:
        if editor.source(text, name) is not None:
            return None
        return editor.remove(editor.add(text, name, {"command": "x", "args": []}), name)
    except Uneditable:
        return None


def _carry_out(
    product: Product, target: ConfigFile, edit: _Addition | _Removal, dry_run: bool
) -> None:
    if dry_run:
        before, after = target.planned(edit)
        click.echo(difference(target.path, before, after), nl=False)
        if before == after:
            click.secho(f"{product.title}: nothing would change in {target.path}", err=True)
        return
    changed, backup = target.make(edit)
    if not changed:
        click.echo(f"{product.title}: nothing to do, {target.path} {edit.words} already")
        return
    click.secho(f"{product.title} {edit.words}", fg="green")
    kept = f"\n  backup: {backup}" if backup is not None else ""
    click.echo(f"  in: {target.path}{kept}{edit.detail}")


def _url_of(entry: RawEntry) -> str | None:
    keys = ("url", "httpUrl", "serverUrl", "uri")
    return next((str(entry[key]) for key in keys if key in entry), None)


def _command_of(entry: RawEntry) -> list[str]:
    command = entry.get("command") or entry["cmd"]
    return command if isinstance(command, list) else [command, *entry["args"]]


def _variables(words: Sequence[str]) -> dict[str, str]:
    from ..targets.reach import environment_of  # imported late: help and --remove need no client

    return environment_of(words, whole=False).named if words else {}


def _check(command: Sequence[str], env: dict[str, str]) -> None:
    """Check that the server starts, and report its name. Raises NotStarted."""
    from ..screen import note  # imported late: help and --remove need no client
    from .check import check  # imported late: as above

    note("Starting the server once to test it (--no-check skips this) ...", dim=True)
    note(check(command, env), fg="green")


class _Started(NamedTuple):
    """A server that a client starts: its usual name, and its command."""

    name: str
    command: list[str]

    def entry(self, env: dict[str, str], product: Product, name: str) -> RawEntry:
        """Its entry in a client's configuration."""
        return product.local(self.command[0], self.command[1:], env, name)


def _started(target: str | None, rest: Sequence[str], *, must_be: bool) -> _Started:
    """The server in a file, with arguments, or of a command. Raises click.UsageError."""
    if target is None:
        program = shutil.which(rest[0]) if rest else None
        if program is None and must_be:
            raise click.UsageError(f"There is no program {rest[0]}." if rest else _NOTHING)
        # Absolute: a client that was not started from a shell may have another PATH.
        return _Started(_command_name(rest), [os.path.abspath(program or rest[0]), *rest[1:]])
    path, attribute = split_target(target)
    if must_be and not path.is_file():
        raise click.UsageError(
            f"There is no file {path}."
            if path.suffix
            else f"There is no file {path}. Write a command after --: -- {target}"
        )
    command = _command(path, attribute)
    return _Started(_usual_name(path), [*command, "--", *rest] if rest else command)


def _command_name(words: Sequence[str]) -> str:
    """The name of a server by its command: the package of `uvx` and `npx`, or the script."""
    named = [word for word in words[1:] if not word.startswith("-")]
    if Path(words[0]).stem not in _RUNNERS or not named:
        return Path(words[0]).stem
    if named[0] == "run" and len(named) > 1:  # uv run
        named = named[1:]
    if named[0].endswith((".py", ".js", ".mjs")):
        return _usual_name(Path(named[0]))
    return re.split(r"(?<=.)@|[=\[<>~!]", named[0])[0].rpartition("/")[2] or Path(words[0]).stem


def _remote(
    url: str, headers: tuple[str, ...], variables: tuple[str, ...], rest: Sequence[str]
) -> tuple[str, Callable[[Product, str], RawEntry]]:
    """The usual name of the server at a URL, and a function that makes its entry. Variables in
    headers are left for the client to fill in.
    """
    if variables:
        raise click.UsageError("--env is for servers that are started; use --header for a URL.")
    if rest:
        raise click.UsageError(
            "Arguments after -- are for a server that is started, not for a URL."
        )
    from ... import Http  # imported late: only needed for servers at URLs

    given = header_lines(headers)
    try:
        Http(url, headers=given)  # raises ValueError for invalid headers
    except ValueError as bad:
        raise click.UsageError(str(bad)) from None

    def entry(product: Product, name: str) -> RawEntry:
        return product.remote_entry(url, given, name)

    return (urlsplit(url).hostname or "").removeprefix("www.").partition(".")[0], entry


def _usual_name(path: Path) -> str:
    """The name of a server by its file: the file's name, or the folder's if the file's name is
    generic.
    """
    path = path.resolve()
    return path.parent.name if path.stem in _TELLS_NOTHING and path.parent.name else path.stem


def _command(path: Path, attribute: str | None) -> list[str]:
    """The command that a client starts. Its paths are absolute, because clients have other working
    folders and another PATH.
    """
    file = f"{path.resolve()}:{attribute}" if attribute else str(path.resolve())
    script = Path(sys.executable).with_name(
        "interlock.exe" if sys.platform == "win32" else "interlock"
    )
    if script.is_file():
        return [str(script), "run", file]
    return [sys.executable, "-P", "-m", "interlock", "run", file]
