"""`interlock record`: record what a host and a server send each other, in a tape."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from ...http11.client import HttpFetch
from ...redaction import secrets_in_url, shown_arguments, url_without_secrets
from ...tape import Recorder, TapeError
from ...tape.frame_redaction import secrets_of_process
from ...tape.http import RecordedApp, ReverseProxy
from ...tape.process import end_like, record_process
from ...transport.http.server.serve import listening_socket, serve_http
from .. import exits
from ..run.running import http_address
from ..targets.trailing_command import COMMAND, TargetCommand
from .saved_tests import save_test, saved_test_path

_GRACE = 1.0  # seconds in which running requests may finish at the end


@click.command("record", cls=TargetCommand)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The tape. If it exists, the recording is appended to it.",
)
@click.option(
    "--http",
    "listen",
    metavar="[HOST]:PORT",
    help="Record a server at a URL: serve at this address, and pass every request on.",
)
@click.option(
    "--save-test",
    "saved",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=saved_test_path,
    metavar="FILE",
    help="At the end, write a test that repeats the recording: FILE.py for pytest, FILE.toml for "
    "`interlock test`.",
)
@click.argument("url", required=False)
def record(output: Path, listen: str | None, saved: Path | None, url: str | None) -> None:
    """Record the conversation of a host with a server.

    Put this command in the host's configuration, in place of the server's own command. The host and
    the server see no difference: all bytes pass unchanged, stderr too, and signals and the exit
    status are passed on.

    For a server at a URL, --http makes this command a reverse proxy: give the host the address of
    the proxy in place of the server's. Whoever reaches the proxy reaches the server.

    The tape holds messages, stderr and times. Secrets are redacted before they are written: values
    from the environment and the arguments whose names say that they are secret, keys by their
    shape, and members such as "password". Everything else that passes is on the tape: treat it
    like the data of the server.

    \b
    interlock record -o files.tape -- uvx mcp-server-git --repository .
    interlock record -o files.tape --http :9000 https://mcp.example.com/mcp
    interlock replay files.tape --as client -- uvx mcp-server-git --repository .
    """
    command: list[str] = click.get_current_context().meta.get(COMMAND, [])
    if listen is not None or url is not None:
        if command or listen is None or url is None:
            raise click.UsageError("--http takes an address and a URL, and no command.")
        recorded = _record_http(output, listen, url)
        if saved is not None:
            save_test(saved, recorded, url=url)
        return
    if not command:
        raise click.UsageError("Write the command that starts the server after --.")
    about = {"command": list(shown_arguments(command)), "folder": os.getcwd()}
    with _recorder(output, about, secrets_of_process(command, os.environ)) as recorder:
        try:
            code = record_process(command, recorder)
        except OSError as bad:
            click.echo(f"{shutil.which(command[0]) or command[0]}: {bad.strerror}", err=True)
            code = exits.UNREACHABLE
    if saved is not None:
        save_test(saved, recorder.path, command=command)
    end_like(code)


def _record_http(output: Path, listen: str, url: str) -> Path:
    """Record until the end of the program, and return the tape."""
    if not url.startswith(("http://", "https://")):
        raise click.UsageError(f"{url} is no URL of a server over HTTP.")
    host, port = http_address(listen)
    about = {"url": url_without_secrets(url)}
    with (
        _recorder(output, about, secrets_in_url(url)) as recorder,
        contextlib.suppress(KeyboardInterrupt),
    ):
        asyncio.run(_proxy(recorder, host, port, url))
    return recorder.path


async def _proxy(recorder: Recorder, host: str, port: int, url: str) -> None:
    path = urlsplit(url).path

    def ready(address: tuple[str, int]) -> None:
        shown = f"[{address[0]}]" if ":" in address[0] else address[0]
        click.echo(f"Recording {url} at http://{shown}:{address[1]}{path}", err=True)

    try:
        listening = listening_socket(host, port)
    except OSError as bad:
        raise click.ClickException(bad.strerror or str(bad)) from None
    fetch = HttpFetch()
    try:
        proxy = RecordedApp(ReverseProxy(url, fetch), recorder)
        await serve_http(proxy, listening, grace=_GRACE, on_ready=ready)
    except ImportError as bad:
        raise click.ClickException(str(bad)) from None
    finally:
        await fetch.aclose()


def _recorder(path: Path, about: Mapping[str, Any], secrets: Iterable[str]) -> Recorder:
    try:
        recorder = Recorder(path, about=about, secrets=secrets)
    except TapeError as bad:
        raise click.ClickException(str(bad)) from None
    except OSError as bad:
        raise click.ClickException(f"{path} cannot be written: {bad.strerror or bad}.") from None
    if recorder.path != path:
        click.echo(f"Another recorder writes {path}. Recording to {recorder.path}.", err=True)
    return recorder
