"""The connection of a command: to a script, a command line, or an address."""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

import click
from msgspec import Struct
from msgspec.structs import replace

from ... import Stdio
from ...transport.channel import Tap
from ...transport.spawn import release
from ...transport.stdio import inherited_environment
from ..head_start import run_command
from .target_syntax import header_lines, split_target

if TYPE_CHECKING:
    from ... import ClientTransport, Http
    from ...sandbox import Sandbox

OnLine = Callable[[str], None]
Reach = Callable[[Tap | None, OnLine | None], "ClientTransport"]
"""Makes the transport to a target. The first argument gets every frame, the second each line that a
child writes to stderr.
"""

_VARIABLE: Final = re.compile(r"\$\{?([A-Za-z_]\w*)")


def command_to_run(path: Path, name: str | None, arguments: Sequence[str] = ()) -> list[str]:
    """The command that serves the server object of a file over stdio, in development mode."""
    command = run_command(f"{path}:{name}" if name else str(path))
    return [*command, "--", *arguments] if arguments else command


class Environment(Struct, frozen=True):
    """The variables of a child server: a few harmless ones, the named ones, or all; and its
    sandbox.

    Attributes:
        named: The variables of `--env`, with their values.
        whole: Whether it gets all variables of this process (`--inherit-env`).
        sandbox: What confines it; False for nothing; None if the command line does not say.
    """

    named: dict[str, str] = {}
    whole: bool = False
    sandbox: Sandbox | Literal[False] | None = None

    @property
    def withheld(self) -> frozenset[str]:
        """The names of the variables of this process that the child does not get."""
        if self.whole:
            return frozenset()
        return frozenset(os.environ.keys() - inherited_environment().keys() - self.named.keys())


def environment_of(
    words: Sequence[str], whole: bool, sandbox: Sandbox | Literal[False] | None = None
) -> Environment:
    """The environment for `--env NAME` and `--env NAME=VALUE`. Raises click.UsageError."""
    if whole and sandbox:
        raise click.UsageError(
            "A sandbox passes named variables only: name them by --env in place of --inherit-env."
        )
    named: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name:
            raise click.UsageError(f"--env takes NAME or NAME=VALUE, not {word!r}.")
        if not equals and name not in os.environ:
            raise click.UsageError(f"--env {name}: there is no such variable here; give its value.")
        named[name] = value if equals else os.environ[name]
    return Environment(named, whole, sandbox)


SANDBOX_OPTIONS: Final = (
    click.option(
        "--sandbox/--no-sandbox",
        default=None,
        help="Confine the server to public addresses, its working folder and named variables. "
        "[default: servers of a project's file]",
    ),
    click.option(
        "--sandbox-allow",
        "sandbox_allow",
        multiple=True,
        metavar="KEY=VALUE",
        help="Confine it, and allow read=PATH, write=PATH, host=NAME (none, public, all), "
        "env=NAME, or limit memory=1G, cpu=SECONDS, processes=N.",
    ),
)
"""The options that confine a server which is started."""


def sandbox_of(sandbox: bool | None, allowed: Sequence[str]) -> Sandbox | Literal[False] | None:
    """The sandbox of `--sandbox` and `--sandbox-allow`; False for `--no-sandbox`; None without
    them. Raises click.UsageError.
    """
    if not allowed and not sandbox:
        return None if sandbox is None else False
    if sandbox is False:
        raise click.UsageError("--sandbox-allow confines the server: leave out --no-sandbox.")
    from ...sandbox import Sandbox  # late: few commands confine a server

    lists: dict[str, list[str]] = {"read": [], "write": [], "env": [], "host": []}
    limits: dict[str, Any] = {}
    for word in allowed:
        key, equals, value = word.partition("=")
        if not equals or not value or key not in (*lists, "memory", "cpu", "processes"):
            raise click.UsageError(
                f"--sandbox-allow takes read=, write=, host=, env=, memory=, cpu= or processes=, "
                f"not {word!r}."
            )
        if key in lists:
            lists[key].append(value)
        elif key == "memory":
            limits["memory"] = value
        elif value.isdecimal():
            limits["seconds_cpu" if key == "cpu" else key] = int(value)
        else:
            raise click.UsageError(f"--sandbox-allow {key}= takes a whole number, not {value!r}.")
    hosts = lists.pop("host")
    chosen: Any = hosts or "public"
    if len(hosts) == 1 and hosts[0] in ("none", "public", "all"):
        chosen = () if hosts[0] == "none" else hosts[0]
    try:
        return Sandbox(hosts=chosen, **{**lists, **limits})
    except ValueError as bad:
        raise click.UsageError(f"--sandbox-allow: {bad}.") from None


def reach_command(command: Sequence[str], environment: Environment) -> Reach:
    """Start a command. It is usually another author's program, so it gets only the variables that
    were named.
    """
    return lambda tap, on_stderr: Stdio(
        list(command),
        env=environment.named,
        inherit_env=environment.whole,
        on_stderr=on_stderr,
        tap=tap,
        sandbox=environment.sandbox or None,
    )


def reach_file(command: Sequence[str], environment: Environment) -> Reach:
    """Start a script that the user named. It is usually the user's own code, so it gets all
    variables, as in a shell, unless it is confined.
    """
    if environment.sandbox:
        return reach_command(command, environment)
    return reach_command(command, Environment(environment.named, whole=True))


def expanded(text: str, what: str) -> str:
    """A text with the values of the variables in it, such as `$TOKEN`: command lines are visible to
    other programs. Raises click.UsageError for a variable that is not set.
    """
    value = os.path.expandvars(text)
    if missing := _VARIABLE.search(value):
        raise click.UsageError(f"{what} needs the variable {missing[1]}, which is not set.")
    return value


def web_options(headers: Sequence[str], legacy_sse: bool, account: str = "") -> dict[str, Any]:
    """The options for servers at URLs, from the command line. Raises click.UsageError for an
    invalid header.
    """
    given = {
        name: expanded(value, f"The header {name}") for name, value in header_lines(headers).items()
    }
    options = {"headers": given, "legacy_sse": legacy_sse, "account": account}
    return {name: value for name, value in options.items() if value}


def reach_target(text: str, web: Mapping[str, Any], environment: Environment) -> Reach:
    """A script, `FILE:object`, `https://host/path`, `unix:///path`, `tcp://host:port`, or a command
    in quotes.

    `web` has the options of `Http`, and an `account` whose stored login is used. Raises
    click.UsageError.
    """
    if "://" in text and not _is_command_line(text):
        if environment != Environment():
            raise click.UsageError(
                "--env, --inherit-env and --sandbox are for servers that are started, not for a "
                "URL."
            )
        return reach_address(text, web)
    command, is_own = local_command(text)
    if is_own and not environment.named and not environment.sandbox:
        release(command, os.environ)
    if environment.sandbox and is_own:  # it may be outside of the working folder
        folder = str(split_target(text)[0].resolve().parent)
        sandbox = replace(environment.sandbox, read=(*environment.sandbox.read, folder))
        environment = replace(environment, sandbox=sandbox)
    return (reach_file if is_own else reach_command)(command, environment)


def local_command(text: str) -> tuple[list[str], bool]:
    """The command that starts a file, and whether the file is usually the user's own code.

    Raises:
        click.UsageError: There is no such file, or it cannot be started.
    """
    path, name = split_target(text)
    if _is_command_line(text):
        raise click.UsageError(f"To start a command, write it after -- at the end: -- {text}")
    if path.suffix in (".py", ".js", ".mjs", ".cjs"):
        if not path.is_file():
            raise click.UsageError(f"There is no file {path}.")
        if path.suffix != ".py":
            return ["node", text], True
        if name or uses_interlock(path):
            return command_to_run(path, name), True
        return [sys.executable, str(path)], True
    if path.suffix in (".json", ".toml") and path.is_file():
        raise click.UsageError(
            f"To use a server of a configuration, write --config {text} [--server NAME]."
        )
    if path.is_file() and os.access(path, os.X_OK):
        return [str(path.resolve())], False
    raise click.UsageError(
        f"{text}: no such file. Give a Python file, a URL, or a command after --. For a server of "
        "a configuration use --config FILE --server NAME."
    )


def _is_command_line(text: str) -> bool:
    """Whether a target is a whole command line, in quotes."""
    words = text.split()
    return len(words) > 1 and not Path(text).exists() and shutil.which(words[0]) is not None


def reach_address(text: str, web: Mapping[str, Any]) -> Reach:
    """The connection to an address; `web` is as in `reach_target`. Raises click.UsageError."""
    from ... import Http, Socket  # late: a script needs no HTTP client

    try:
        parts = urlsplit(text)
        if parts.scheme in ("http", "https"):
            return _tapped(Http(text, **authorized_options(web)))
        if web.keys() - {"fetch"}:  # which no option gives
            raise click.UsageError(
                "--header, --account and --legacy-sse are for http:// and https:// addresses."
            )
        if parts.scheme == "unix" and (path := parts.netloc + parts.path):
            return lambda tap, on_stderr: Socket(path, tap=tap)
        if parts.scheme == "tcp" and parts.hostname and parts.port:
            host = parts.hostname
            port = parts.port
            return lambda tap, on_stderr: Socket((host, port), tap=tap)
    except ValueError as bad:
        raise click.UsageError(str(bad)) from None
    raise click.UsageError(
        f"{text} is not an address; use https://host/path, unix:///path or tcp://host:port."
    )


def authorized_options(web: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `Http` with the stored login, unless there is an Authorization header."""
    options = dict(web)
    account = options.pop("account", "")
    if any(name.lower() == "authorization" for name in options.get("headers", ())):
        return options
    from ..auth.saved_logins import KeptTokens  # imported late: only needed for servers at URLs

    return {**options, "auth": KeptTokens(account)}


def _tapped(http: Http) -> Reach:
    """Return the existing transport, whose options have been checked."""

    def reach(tap: Tap | None, on_stderr: OnLine | None) -> ClientTransport:
        http.tap = tap
        return http

    return reach


def uses_interlock(path: Path) -> bool:
    """Whether a script imports interlock. Then its server object can be run even if the script does
    not run it.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return b"interlock" in path.read_bytes()  # the child reports the error
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        if any(name.partition(".")[0] == "interlock" for name in names):
            return True
    return False
