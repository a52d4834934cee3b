"""`interlock inspect`: the MCP inspector, a page on loopback about servers and tapes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlock import REVISIONS, ClientTransport, Http
from interlock.cli import exits
from interlock.cli.targets.reach import (
    SANDBOX_OPTIONS,
    Environment,
    Reach,
    environment_of,
    reach_command,
    reach_target,
    sandbox_of,
    web_options,
)
from interlock.cli.targets.trailing_command import COMMAND, TargetCommand
from interlock.cli.user_folder import user_folder
from interlock.redaction import (
    secrets_in,
    secrets_in_url,
    shown_arguments,
    url_without_secrets,
)
from interlock.tape import (
    RecordedConnection,
    RecordedFetch,
    Recorder,
    TapeError,
    secrets_of_process,
)

from ..inspector.session import Inspector
from ..inspector.targets import AUTO, InspectorTarget, OpenTransport
from .need_web import need_web

if TYPE_CHECKING:
    from ..inspector.site import InspectorSite

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _with_sandbox_options(command: Any) -> Any:
    """Add the options of a sandbox to a command."""
    for option in reversed(SANDBOX_OPTIONS):
        command = option(command)
    return command


@click.command("inspect", cls=TargetCommand)
@click.argument("targets", nargs=-1, metavar="[TARGET]...")
@click.option("--config", type=_FILE, help="The configuration file of a client or project.")
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="NAME",
    help="A server in the configuration; can be repeated.",
)
@click.option(
    "--trust", is_flag=True, help="Start the servers of a configuration once, without asking."
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="An environment variable for the servers; without VALUE, your own value.",
)
@click.option(
    "--inherit-env",
    is_flag=True,
    help="Give the servers all your environment variables, including secrets.",
)
@_with_sandbox_options
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="https: a header for each request; $NAME is filled in.",
)
@click.option(
    "--account",
    default="",
    metavar="NAME",
    help="https: the account, if you logged in with several (`interlock auth`).",
)
@click.option("--legacy-sse", is_flag=True, help="https: use the HTTP+SSE transport of 2024-11-05.")
@click.option(
    "--revision",
    type=click.Choice([AUTO, *REVISIONS]),
    default=AUTO,
    show_default=True,
    help="The revision to ask for at first. The page can change it for each connection.",
)
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep the recording in this file. If it exists, the recording is appended.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port; a free one by default."
)
@click.option(
    "--open",
    "opens",
    is_flag=True,
    help=(
        "Open the address in your browser. Other users of this machine may see it in the list "
        "of processes."
    ),
)
def inspect(
    targets: tuple[str, ...],
    config: Path | None,
    servers: tuple[str, ...],
    trust: bool,
    variables: tuple[str, ...],
    inherit_env: bool,
    sandbox: bool | None,
    sandbox_allow: tuple[str, ...],
    headers: tuple[str, ...],
    account: str,
    legacy_sse: bool,
    revision: str,
    save: Path | None,
    port: int,
    opens: bool,
) -> None:
    """Look into servers, in the browser: every message, and everything that they offer.

    A TARGET is a Python or JavaScript file, FILE:OBJECT, https://host/path, unix:///path,
    tcp://host:port, or a tape (FILE.tape), which opens offline. Give several to compare them. A
    command to start is written after --, at the end; a server of a configuration is named by
    --config and --server.

    Prints one address, which works once and only on this machine. The page starts nothing but what
    this command line names. Ctrl-C ends the page and every server that it started.

    \b
    interlock inspect server.py
    interlock inspect https://mcp.example.com/mcp --save session.tape
    interlock inspect session.tape
    interlock inspect -- uvx mcp-server-git --repository .
    """
    need_web("inspector", "inspector")
    found = _TargetList(
        environment_of(variables, inherit_env, sandbox_of(sandbox, sandbox_allow)),
        web_options(headers, legacy_sse, account),
        revision,
        sandbox_words=_sandbox_words(sandbox, sandbox_allow),
    )
    for target in targets:
        found.add_word(target)
    if config is not None or servers:
        for server in servers or (None,):
            found.add_server(config, server, trust)
    command: list[str] = click.get_current_context().meta.get(COMMAND, [])
    if command:
        found.add_command(command)
    if not found.targets:
        raise click.UsageError(
            "Missing TARGET: a script, an address, a tape, or -- COMMAND at the end."
        )
    _run_inspector(found, save=save, port=port, opens=opens)


def _sandbox_words(sandbox: bool | None, allowed: Sequence[str]) -> list[str]:
    """Return the options of a sandbox as words, for the equivalent commands of the page."""
    words = [] if sandbox is None else ["--sandbox" if sandbox else "--no-sandbox"]
    return [*words, *(f"--sandbox-allow={word}" for word in allowed)]


class _TargetList:
    """The targets of the command line.

    Args:
        environment: The variables for servers that are started.
        web: The options for servers at URLs.
        revision: The revision that was asked for.
        sandbox_words: The options of the sandbox of servers that are started, as words.
    """

    def __init__(
        self,
        environment: Environment,
        web: Mapping[str, Any],
        revision: str,
        *,
        sandbox_words: Sequence[str] = (),
    ) -> None:
        self.targets: list[InspectorTarget] = []
        self.secrets: set[str] = set(secrets_of_process((), {**os.environ, **environment.named}))
        """What must not be on the tape."""
        self.fetches: list[RecordedFetch] = []
        """The HTTP clients of the targets."""
        self._environment = environment
        self._web = web
        self._revision = revision
        self._sandbox_words = list(sandbox_words)
        self._names: set[str] = set()
        for name, value in web.get("headers", {}).items():
            self.secrets |= secrets_in(name, value)

    def add_word(self, target: str) -> None:
        """Add a script, an address or a tape. Raises click.UsageError."""
        if "://" not in target and Path(target).suffix == ".tape":
            if not Path(target).is_file():
                raise click.UsageError(f"There is no file {target}.")
            name = self._unique(Path(target).name)
            self.targets.append(InspectorTarget(name, target, tape=Path(target)))
            return
        is_http = target.startswith(("http://", "https://"))
        fetch = self._fetch() if is_http else None
        reach = reach_target(
            target,
            {**self._web, "fetch": fetch} if is_http else {},
            Environment() if "://" in target else self._environment,
        )
        shown = target
        words = [target, *self._sandbox_words]
        if "://" in target:
            self.secrets |= secrets_in_url(target)
            shown = url_without_secrets(target)
            words = [shown]
        self._add(_short(shown), shown, words, reach, fetch=fetch, url=target if is_http else "")

    def add_server(self, config: Path | None, server: str | None, trust: bool) -> None:
        """Add a server of a configuration; None for its only one. Raises click.ClickException."""
        # imported late: only needed for a configuration file
        from interlock.cli.targets.configured import reach_config

        fetch = self._fetch()  # used if the server has a URL
        web = {**self._web, "fetch": fetch}
        reach, asked = reach_config(config, server, web, self._environment, trust=trust)
        words = ["--config", str(config)] if config is not None else []
        words += ["--server", server] if server is not None else []
        words += self._sandbox_words
        name = server or (config.stem if config is not None else "server")
        made = reach(None, None)
        url = made.url if isinstance(made, Http) else ""
        self.secrets |= secrets_in_url(url)
        self._add(name, name, words, reach, fetch=fetch, revision=asked, url=url)

    def add_command(self, command: Sequence[str]) -> None:
        """Add a server that a command starts."""
        self.secrets |= secrets_of_process(command, {})
        shown = shown_arguments(command)
        reach = reach_command(command, self._environment)
        words = [*self._sandbox_words, "--", *shown]
        self._add(Path(command[0]).name, " ".join(shown), words, reach)

    def _add(
        self,
        name: str,
        shown: str,
        words: Sequence[str],
        reach: Reach,
        *,
        fetch: RecordedFetch | None = None,
        revision: str | None = None,
        url: str = "",
    ) -> None:
        self.targets.append(
            InspectorTarget(
                name=self._unique(name),
                shown=shown,
                words=tuple(words),
                transport=_recorded(reach, fetch),
                revision=self._revision if self._revision != AUTO else revision or AUTO,
                url=url,
                account=self._web.get("account", ""),
            )
        )

    def _fetch(self) -> RecordedFetch:
        made = RecordedFetch()
        self.fetches.append(made)
        return made

    def _unique(self, name: str) -> str:
        """A name that no other target has."""
        number = 1
        unique = name
        while unique in self._names:
            number += 1
            unique = f"{name} ({number})"
        self._names.add(unique)
        return unique


def _run_inspector(found: _TargetList, *, save: Path | None, port: int, opens: bool) -> None:
    """Serve an inspector until Ctrl-C, and exit: with code 0, or with an error message if it could
    not start.
    """
    from ..inspector.site import serve  # optional extra `inspector`

    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="interlock-inspect-"))
        try:
            recorder = stack.enter_context(
                Recorder(save or Path(folder) / "live.tape", secrets=found.secrets)
            )
            calls = user_folder() / "inspector.json"
            inspector = Inspector(found.targets, recorder, calls=calls)
        except TapeError as bad:
            raise click.ClickException(str(bad)) from None
        except OSError as bad:
            raise click.ClickException(f"{bad.filename or save}: {bad.strerror or bad}") from None
        if save is not None and recorder.path != save:
            click.echo(f"Another recorder writes {save}. Recording to {recorder.path}.", err=True)

        def on_ready(site: InspectorSite) -> None:
            click.echo(f"Open {click.style(site.entry, bold=True)}")
            click.echo("The address works once, on this machine only. Ctrl-C ends everything.")
            if opens:
                webbrowser.open(site.entry)
            listening.set()

        async def run() -> None:
            serving = asyncio.create_task(serve(inspector, port=port, on_ready=on_ready))
            following = asyncio.create_task(inspector.follow())
            opening = asyncio.create_task(open_when_listening())
            try:
                await serving
            finally:
                for task in (serving, opening, following):
                    task.cancel()
                await asyncio.wait({serving, opening, following})
                await inspector.aclose()
                await asyncio.gather(*(fetch.aclose() for fetch in found.fetches))

        async def open_when_listening() -> None:
            await listening.wait()
            await inspector.open()

        listening = asyncio.Event()
        try:
            asyncio.run(run())
        except (OSError, ImportError) as bad:
            raise click.ClickException(str(bad)) from None
        except (KeyboardInterrupt, asyncio.CancelledError):
            click.get_current_context().exit(exits.OK)
    click.echo("Ended.")


def _recorded(reach: Reach, fetch: RecordedFetch | None) -> OpenTransport:
    """The function that makes the transport to a target, with all that it sends on the tape."""

    def transport(recorded: RecordedConnection) -> ClientTransport:
        # A server of a configuration may be a command: then nothing is fetched.
        is_http = fetch is not None and isinstance(reach(None, None), Http)
        tap = fetch.record(recorded) if fetch is not None and is_http else recorded
        return reach(tap, lambda line: recorded.stderr(f"{line}\n"))

    return transport


def _short(target: str) -> str:
    """A short name for a target: the host of a URL, or the name of a file."""
    if "://" in target:
        return url_without_secrets(target).partition("://")[2].partition("/")[0] or target
    return Path(target).name
