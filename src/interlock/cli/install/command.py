"""`interlock install`: put a server into a client's configuration, or take it out again."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import click

from ..location import header_lines, split_target
from .clients import CLIENTS, Client, Config, Entry, this_place
from .files import ConfigFile, difference
from .text import Uneditable

_OURS = re.compile(r"\binterlock\b[\"',\s]")
_TELLS_NOTHING = {"server", "main", "app", "mcp", "__init__", "__main__"}


@click.command("install")
@click.argument("target", metavar="FILE[:OBJECT]|URL")
@click.option(
    "--client",
    "-c",
    "clients",
    multiple=True,
    type=click.Choice(list(CLIENTS)),
    help="The client; several times for several.",
)
@click.option(
    "--name",
    "-n",
    help="What the client calls the server.  [default: the name of the file or the host]",
)
@click.option(
    "--env",
    "-e",
    "variables",
    multiple=True,
    metavar="KEY=VALUE",
    help="A variable that the server is started with.",
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="URL: the client sends this with each request.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration file, where it is not the usual one.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--remove", is_flag=True, help="Take the server out again.")
@click.option(
    "--force", is_flag=True, help="Replace a server of that name which Interlock did not put there."
)
def install(
    target: str,
    clients: tuple[str, ...],
    name: str | None,
    variables: tuple[str, ...],
    headers: tuple[str, ...],
    config: Path | None,
    dry_run: bool,
    remove: bool,
    force: bool,
) -> None:
    """Put a server into the configuration of a client: the one in FILE, which it will start by `interlock run`, or the one at a URL.

    Only the entry is written: every other byte of the file stays as it was, comments too. A copy of the old file is kept beside
    it, and the new one takes its place in one step. A file that cannot be read with certainty is left alone, and the exit
    code is 1. Doing it twice changes nothing more; --remove undoes it.

    \b
    interlock install weather.py --client claude-desktop --client cursor
    interlock install weather.py --client codex --name weather --env API_KEY=secret
    interlock install weather.py --client vscode --config .vscode/mcp.json --dry-run
    interlock install https://shop.example/mcp --client cursor --name shop --header 'Authorization: Bearer ...'
    """
    if not clients:
        raise click.UsageError(f"Say by --client for whom: {', '.join(CLIENTS)}.")
    if config is not None and len(clients) > 1:
        raise click.UsageError("--config is for one client.")
    usual, entry_for = (
        _remote(target, headers, variables)
        if "://" in target
        else _local(target, headers, variables, must_be=not remove)
    )
    name = name or usual
    failed = False
    for key in clients:
        client = CLIENTS[key]
        file = ConfigFile(config or client.path(this_place()))
        try:
            entry = entry_for(client, name)
            edit = (
                _Removal(client, file, name, entry, force)
                if remove
                else _Addition(client, name, entry, force)
            )
            _carry_out(client, file, edit, dry_run)
        except (Uneditable, OSError) as bad:
            click.secho(f"{client.title}: {file.path} was left as it is: {bad}", fg="red", err=True)
            failed = True
    if failed:
        click.get_current_context().exit(1)


class _Addition:
    """The change that puts an entry into a text."""

    def __init__(self, client: Client, name: str, entry: Entry, force: bool) -> None:
        self._config, self._name, self._entry, self._force = client.config, name, entry, force
        self.words = f"has {name}"
        url = _url_of(entry)
        self.detail = (
            f"\n  it will ask: {url}"
            if url
            else f"\n  it will run: {shlex.join([entry.get('command') or entry['cmd'], *entry['args']])}"
        )

    def __call__(self, text: str | None) -> str | None:
        there = None if text is None else self._config.source(text, self._name)
        after = self._config.add(text or "", self._name, self._entry)
        if there is not None and after != text and not self._force:
            _make_sure_it_is_ours(there, self._name, self._entry)
        return after


class _Removal:
    """The change that takes an entry out of a text, and leaves it as it was before the entry came."""

    def __init__(
        self, client: Client, file: ConfigFile, name: str, entry: Entry, force: bool
    ) -> None:
        self._config, self._file, self._name, self._entry, self._force = (
            client.config,
            file,
            name,
            entry,
            force,
        )
        self.words, self.detail = f"no longer has {name}", ""

    def __call__(self, text: str | None) -> str | None:
        there = None if text is None else self._config.source(text, self._name)
        if text is None or there is None:
            return text
        if not self._force:
            _make_sure_it_is_ours(there, self._name, self._entry)
        left = self._config.drop(text, self._name)
        backups = self._file.backups()
        for backup in backups:
            if _without(self._config, backup, self._name) == left:
                return backup
        return None if not backups and _without(self._config, "", self._name) == left else left


def _make_sure_it_is_ours(source: str, name: str, entry: Entry) -> None:
    url = _url_of(entry)
    if not _OURS.search(source) and (url is None or url not in source):
        raise Uneditable(
            f"{name} there is a server that Interlock did not put there; take another --name, or --force it"
        )


def _without(config: Config, text: str, name: str) -> str | None:
    """What a text is once an entry was put in and taken out again; None where it had the entry already, or cannot have it.

    Where this is what is left of the present text, then that text was the state before the entry came.
    """
    try:
        if config.source(text, name) is not None:
            return None
        return config.drop(config.add(text, name, {"command": "x", "args": []}), name)
    except Uneditable:
        return None


def _carry_out(
    client: Client, target: ConfigFile, edit: _Addition | _Removal, dry_run: bool
) -> None:
    if dry_run:
        before, after = target.planned(edit)
        click.echo(difference(target.path, before, after), nl=False)
        if before == after:
            click.secho(f"{client.title}: nothing would change in {target.path}", err=True)
        return
    changed, backup = target.make(edit)
    if not changed:
        click.echo(f"{client.title}: nothing to do, {target.path} {edit.words} already")
        return
    click.secho(f"{client.title} {edit.words}", fg="green")
    click.echo(
        f"  in: {target.path}"
        + (f"\n  as it was: {backup}" if backup is not None else "")
        + edit.detail
    )


def _url_of(entry: Entry) -> str | None:
    return next(
        (str(entry[key]) for key in ("url", "httpUrl", "serverUrl", "uri") if key in entry), None
    )


def _local(
    target: str, headers: tuple[str, ...], variables: tuple[str, ...], *, must_be: bool
) -> tuple[str, Callable[[Client, str], Entry]]:
    """The usual name of the server in a file, and how its entry is made."""
    if headers:
        raise click.UsageError(
            "--header is for URLs; a server that is started is given variables by --env."
        )
    path, attribute = split_target(target)
    if must_be and not path.is_file():
        raise click.UsageError(f"There is no file {path}.")
    command, args = _command(path, attribute)
    env = _variables(variables)
    return _usual_name(path), lambda client, name: client.entry(command, args, env, name)


def _remote(
    url: str, headers: tuple[str, ...], variables: tuple[str, ...]
) -> tuple[str, Callable[[Client, str], Entry]]:
    """The usual name of the server at a URL, and how its entry is made; what stands in headers is left for the client to fill in."""
    if variables:
        raise click.UsageError(
            "--env is for servers that are started; one at a URL is sent --header."
        )
    from ... import Http  # late: only for servers on the web

    given = header_lines(headers)
    try:
        Http(url, headers=given)  # says what is wrong with them
    except ValueError as bad:
        raise click.UsageError(str(bad)) from None

    def entry(client: Client, name: str) -> Entry:
        if client.remote is None:
            raise Uneditable(
                f"{client.title} takes servers at a URL in its settings only, not in this file"
            )
        return client.remote(url, given, name)

    return (urlsplit(url).hostname or "").removeprefix("www.").partition(".")[0], entry


def _usual_name(path: Path) -> str:
    """What to call a server by its file: the file's name, or the folder's where that tells nothing."""
    path = path.resolve()
    return path.parent.name if path.stem in _TELLS_NOTHING and path.parent.name else path.stem


def _command(path: Path, attribute: str | None) -> tuple[str, list[str]]:
    """The command that a client starts: absolute, for clients have working folders and paths of their own."""
    file = f"{path.resolve()}:{attribute}" if attribute else str(path.resolve())
    script = Path(sys.executable).with_name(
        "interlock.exe" if sys.platform == "win32" else "interlock"
    )
    if script.is_file():
        return str(script), ["run", file]
    return sys.executable, ["-P", "-m", "interlock", "run", file]


def _variables(given: tuple[str, ...]) -> dict[str, str]:
    variables = {}
    for word in given:
        key, sign, value = word.partition("=")
        if not sign or not key:
            raise click.UsageError(f"--env takes KEY=VALUE, not {word!r}.")
        variables[key] = value
    return variables
