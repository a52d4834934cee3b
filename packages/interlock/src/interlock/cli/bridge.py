"""`interlock bridge`: a proxy between transports and revisions, in front of one server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import click

from .. import Client, Server
from ..exchange import AnyResult, Exchange
from ..source import Offered, Source
from ..types import InterlockError
from . import exits
from .client.options import REVISION_OPTION, SERVER_OPTIONS, known_revision
from .run.running import chosen_transport, run_server, with_transport_options
from .screen import ERROR
from .targets.reach import (
    environment_of,
    reach_command,
    reach_target,
    sandbox_of,
    web_options,
)
from .targets.trailing_command import COMMAND, TargetCommand


def _server_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed((*SERVER_OPTIONS, REVISION_OPTION)):
        command = option(command)
    return command


@click.command("bridge", cls=TargetCommand, epilog=exits.WORDS)
@click.argument("target", required=False)
@_server_options
@with_transport_options
def bridge(
    target: str | None,
    variables: tuple[str, ...],
    inherit_env: bool,
    sandbox: bool | None,
    sandbox_allow: tuple[str, ...],
    headers: tuple[str, ...],
    account: str,
    legacy_sse: bool,
    revision: str | None,
    **given: Any,
) -> None:
    """Serve what another server offers: over stdio by default, under every revision.

    TARGET is the server behind the bridge: https://host/path, unix:///path, tcp://host:port, or a
    file. A command follows --. Questions, progress, log messages, cancellation and changes pass
    through. --revision is that of the server behind; --host, --http and so on are about the bridge.

    Log in once with `interlock auth login URL`; the bridge uses and renews that login. Over HTTP a
    bridge has no authentication of its own, and every caller acts with your login.

    \b
    interlock bridge https://shop.example/mcp
    interlock bridge --http :8000 -- uvx some-server
    interlock bridge https://old.example/sse --legacy-sse --http :8000
    """
    command: list[str] = click.get_current_context().meta.get(COMMAND, [])
    if bool(command) == (target is not None):
        raise click.UsageError("Name one server: a TARGET, or a command after --.")
    transport, options = chosen_transport(given)
    web = web_options(headers, legacy_sse, account)
    environment = environment_of(variables, inherit_env, sandbox_of(sandbox, sandbox_allow))
    if target is not None:
        reach = reach_target(target, web, environment)
    elif web:
        raise click.UsageError("--header, --account and --legacy-sse are for URLs.")
    else:
        reach = reach_command(command, environment)
    client = Client(reach(None, _show_stderr), revision=known_revision(revision))
    server = Server("bridge")
    # A bridge has no instructions beside those of the server behind: they need no label.
    server.mount(BridgedClient(client, server), instructions=False)
    try:
        run_server(server, transport, options)
    except (InterlockError, ImportError) as bad:
        click.echo(f"{ERROR}{bad}", err=True)
        click.get_current_context().exit(exits.UNREACHABLE)


def _show_stderr(line: str) -> None:
    click.echo(line, err=True)


class BridgedClient:
    """The client of the server behind a bridge, as the source of the server in front.

    A server that cannot be reached ends the bridge: whoever started it should learn why.

    Args:
        client: The client.
        server: The server in front. It gets the instructions of the server behind.
    """

    def __init__(self, client: Client, server: Server) -> None:
        self._client = client
        self._server = server
        self._source: Source = client.as_source()

    @property
    def name(self) -> str:
        """The target of the client."""
        return self._source.name

    @property
    def offered(self) -> Offered | None:
        """What the server behind offers."""
        return self._source.offered

    async def open(self) -> None:
        """Connect, and read the lists.

        Raises:
            InterlockError: The server cannot be reached, or needs a login.
        """
        await self._client.open()
        self._server.identity.instructions = self._client.instructions
        await self._source.open()

    async def aclose(self) -> None:
        """Disconnect."""
        await self._source.aclose()

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        """Call `changed` when the server behind has changed what it offers."""
        return self._source.listen(changed)

    def handle(self, x: Exchange, /) -> Awaitable[AnyResult]:
        """Forward a request."""
        return self._source.handle(x)
