"""`interlock inspect`: the MCP inspector, a page on loopback about servers and tapes."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlock import REVISIONS, ClientTransport
from interlock.cli import exits
from interlock.cli.targets.reach import (
    Environment,
    Reach,
    environment_of,
    reach_command,
    reach_target,
    web_options,
)
from interlock.cli.targets.trailing_command import COMMAND, TargetCommand
from interlock.cli.user_folder import user_folder
from interlock.redaction import shown_arguments, url_without_secrets
from interlock.tape import RecordedConnection, RecordedFetch, Recorder, TapeError

from ..inspector.session import Inspector
from ..inspector.targets import AUTO, InspectorTarget, OpenTransport
from .need_web import need_web

if TYPE_CHECKING:
    from ..inspector.site import InspectorSite

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


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
    environment = environment_of(variables, inherit_env)
    web = web_options(headers, legacy_sse, account)
    made: list[InspectorTarget] = []
    names: set[str] = set()

    def add(
        name: str,
        shown: str,
        words: Sequence[str],
        reach: Reach,
        asked: str | None,
        fetch: RecordedFetch | None = None,
        url: str = "",
    ) -> None:
        made.append(
            InspectorTarget(
                name=_unique(name, names),
                shown=shown,
                words=tuple(words),
                transport=_recorded(reach, fetch),
                revision=revision if revision != AUTO else asked or AUTO,
                url=url,
            )
        )

    for target in targets:
        if _is_tape(target):
            path = Path(target)
            made.append(InspectorTarget(_unique(path.name, names), target, tape=path))
        else:
            shown = url_without_secrets(target) if "://" in target else target
            is_http = target.startswith(("http://", "https://"))
            fetch = RecordedFetch() if is_http else None
            reach = reach_target(
                target,
                {**web, "fetch": fetch} if is_http else {},
                Environment() if "://" in target else environment,
            )
            add(_short(target), shown, [shown], reach, None, fetch, target if is_http else "")
    if config is not None or servers:
        for server in servers or (None,):
            reach, asked = _configured(config, server, web, environment, trust)
            words = [*(["--config", str(config)] if config else []), "--server", server or ""]
            name = server or (config.stem if config is not None else "server")
            add(name, name, words if server else words[:-2], reach, asked)
    command: list[str] = click.get_current_context().meta.get(COMMAND, [])
    if command:
        shown_words = shown_arguments(command)
        add(
            Path(command[0]).name,
            " ".join(shown_words),
            ["--", *shown_words],
            reach_command(command, environment),
            None,
        )
    if not made:
        raise click.UsageError(
            "Missing TARGET: a script, an address, a tape, or -- COMMAND at the end."
        )
    run_inspector(made, save=save, port=port, opens=opens)


def run_inspector(
    targets: Sequence[InspectorTarget], *, save: Path | None, port: int, opens: bool
) -> None:
    """Serve an inspector until Ctrl-C, and exit: with code 0, or with an error message if it could
    not start.
    """
    from ..inspector.site import serve  # optional extra `inspector`

    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="interlock-inspect-"))
        try:
            recorder = stack.enter_context(Recorder(save or Path(folder) / "live.tape"))
            calls = user_folder() / "inspector.json"
            inspector = Inspector(targets, recorder, calls=calls)
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
        tap = recorded if fetch is None else fetch.record(recorded)
        return reach(tap, lambda line: recorded.stderr(f"{line}\n"))

    return transport


def _configured(
    config: Path | None,
    server: str | None,
    web: Mapping[str, Any],
    environment: Environment,
    trust: bool,
) -> tuple[Reach, str | None]:
    # imported late: only needed for a configuration file
    from interlock.cli.targets.configured import reach_config

    return reach_config(config, server, web, environment, trust=trust)


def _is_tape(target: str) -> bool:
    return "://" not in target and Path(target).suffix == ".tape"


def _short(target: str) -> str:
    """A short name for a target: the host of a URL, or the name of a file."""
    if "://" in target:
        return url_without_secrets(target).partition("://")[2].partition("/")[0] or target
    return Path(target).name


def _unique(name: str, names: set[str]) -> str:
    """A name that no other target has, which is added to the names."""
    number = 1
    unique = name
    while unique in names:
        number += 1
        unique = f"{name} ({number})"
    names.add(unique)
    return unique
