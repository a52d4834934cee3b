"""The server that a tape is replayed to: a command, a file, or a server at a URL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import click
from msgspec import Struct

from ...http11.headers import is_address
from ...tape import server_at, server_process
from ...transport.channel import Channel
from ..targets.reach import authorized_options, local_command, web_options

_URL_OPTIONS: Final = (
    click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="'NAME: VALUE'",
        help="https: a header for each request; $NAME is filled in.",
    ),
    click.option(
        "--account",
        default="",
        metavar="NAME",
        help="https: the account, if you logged in with several (`interlock auth`).",
    ),
)


def with_url_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a server that is reached by its URL to a command."""
    for option in reversed(_URL_OPTIONS):
        command = option(command)
    return command


class ReplayTarget(Struct, frozen=True):
    """The server that a tape is replayed to. Either `command` or `url` is set.

    Attributes:
        command: The command that starts it, for each connection.
        url: Its URL.
        web: The headers and the authorization for HTTP.
    """

    command: tuple[str, ...] = ()
    url: str = ""
    web: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """What the user has named."""
        return self.url or self.command[0]

    def connect(self) -> AbstractAsyncContextManager[Channel]:
        """The connection to the server, as a block.

        Raises:
            OSError: The command cannot be started.
            InterlockError: The server at the URL cannot be used.
        """
        if self.url:
            return server_at(self.url, headers=self.web.get("headers"), auth=self.web.get("auth"))
        return server_process(self.command)


def replay_target(
    target: str | None, command: Sequence[str], headers: Sequence[str], account: str
) -> ReplayTarget:
    """The server that a command line names.

    Args:
        target: A file or a URL; None for a command.
        command: The words after `--`.
        headers: The values of `--header`.
        account: The account of the stored login.

    Raises:
        click.UsageError: The target is neither a file nor a URL of a server.
    """
    web = web_options(headers, False, account)
    if target is None or "://" not in target:
        if web:
            raise click.UsageError("--header and --account are for https:// and http://.")
        return ReplayTarget(tuple(command if target is None else local_command(target)[0]))
    scheme, _, rest = target.partition("://")
    if is_address(target):
        return ReplayTarget(url=target, web=authorized_options(web))
    if scheme not in ("unix", "tcp") or not rest:
        raise click.UsageError(
            f"{target} is not an address; use https://host/path, unix:///path or tcp://host:port."
        )
    if web:
        raise click.UsageError("--header and --account are for https:// and http://.")
    return ReplayTarget(url=target)
