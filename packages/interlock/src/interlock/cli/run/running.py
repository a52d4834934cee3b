"""`interlock run`: serve the server object of a Python file, with `--reload` its newest version."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from msgspec.structs import replace

from ... import Server
from ... import types as t
from ...observe.options import Observe
from ...server.run.program import LOG_VARIABLE
from ...store.errors import StoreError
from .. import exits
from ..screen import ERROR, WARNING
from ..targets.reach import SANDBOX_OPTIONS, sandbox_of
from ..targets.target_syntax import split_target
from .loading import TargetError, load_server, wire_kept_clear
from .mainblock import advice

if TYPE_CHECKING:
    from ...sandbox import Sandbox

_LOOPBACK = "127.0.0.1"
TRANSPORT_OPTIONS = (
    click.option(
        "--transport",
        "-t",
        type=click.Choice(["stdio", "http", "unix", "tcp"]),
        show_default="stdio",
        help="How clients reach the server.",
    ),
    click.option("--path", "socket_path", type=click.Path(), help="unix: the path of the socket."),
    click.option(
        "--host",
        show_default="127.0.0.1",
        help="http, tcp: the address to listen on. There is no authentication.",
    ),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        help="http, tcp: the port; 0 takes any that is free.  [http: 8000]",
    ),
    click.option(
        "--http",
        "http",
        metavar="[HOST]:PORT",
        help="The same as --transport http with --host and --port.",
    ),
    click.option("--workers", type=click.IntRange(1), help="http: the number of processes."),
    click.option(
        "--store",
        metavar="URL",
        help="http: where sessions are stored: memory:, sqlite:///path or redis://host.",
    ),
    click.option(
        "--admin",
        type=click.Path(file_okay=False),
        help="http: the folder of the sockets for `interlock admin`.",
    ),
    click.option(
        "--admin-path",
        metavar="PATH",
        help="http: a path for `interlock top URL`, such as /admin. It needs --admin, and a secret"
        " in INTERLOCK_ADMIN_SECRET.",
    ),
    click.option(
        "--metrics",
        metavar="[HOST]:PORT",
        help="Serve metrics for Prometheus at this address, on a listener of its own.",
    ),
    click.option(
        "--allow-host",
        "hosts",
        multiple=True,
        metavar="NAME",
        help="http: a public name of the server.",
    ),
    click.option(
        "--cors",
        "cors",
        multiple=True,
        metavar="ORIGIN",
        help="http: an origin whose web pages may use the server; * for all.",
    ),
    click.option(
        "--serve-legacy-sse",
        is_flag=True,
        help="http: serve the HTTP+SSE transport of 2024-11-05 too, at /sse and /messages.",
    ),
)


def with_sandbox_options(command: Any) -> Any:
    """Add the options of a sandbox to a command."""
    for option in reversed(SANDBOX_OPTIONS):
        command = option(command)
    return command


def with_transport_options(command: Any) -> Any:
    """Add the options for the transport to a command."""
    for option in reversed(TRANSPORT_OPTIONS):
        command = option(command)
    return command


def chosen_transport(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The transport and its options for `Server.run`, from the command line. Raises
    click.UsageError for missing or conflicting options.
    """
    transport, options = _chosen(given)
    if given["metrics"] is not None:
        host, port = http_address(given["metrics"], "--metrics")
        options["metrics"] = f"{host}:{port}"
    return transport, options


def _chosen(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    transport = given["transport"]
    socket_path = given["socket_path"]
    host = given["host"]
    port = given["port"]
    if given["http"] is not None:
        if transport not in (None, "http") or host is not None or port is not None:
            raise click.UsageError(
                "--http is short for --transport http with --host and --port: use either form."
            )
        host, port = http_address(given["http"])
        transport = "http"
    web = {
        "workers": given["workers"],
        "store": given["store"],
        "admin": given["admin"],
        "admin_path": given["admin_path"],
        "hosts": given["hosts"],
        "cors": given["cors"],
        "legacy_sse": given["serve_legacy_sse"],
    }
    web = {name: value for name, value in web.items() if value}
    if transport == "http":
        if socket_path is not None:
            raise click.UsageError("--path is for --transport unix.")
        if given["store"] is not None:
            _check_store(given["store"])
        if given["admin_path"] is not None:
            _check_admin_path(given["admin_path"], given["admin"])
        return "http", {
            "host": host or _LOOPBACK,
            "port": 8000 if port is None else port,
            "on_ready": _serving,
            **web,
        }
    if web:
        raise click.UsageError(
            "--workers, --store, --admin, --admin-path, --allow-host, --cors and"
            " --serve-legacy-sse are for --http."
        )
    return transport or "stdio", _socket_options(transport or "stdio", socket_path, host, port)


def _check_store(url: str) -> None:
    """Check that the URL names a store, without opening it. Raises click.ClickException."""
    from ...store import open_store  # imported late: only needed for servers with a store

    try:
        open_store(url)
    except ValueError as bad:
        raise click.UsageError(f"--store: {bad}.") from None
    except StoreError as bad:
        raise click.ClickException(str(bad)) from None


def _check_admin_path(path: str, folder: str | None) -> None:
    """Check that there is a folder and a secret for the admin path. Raises click.UsageError."""
    from ...server.run.admin_path import admin_route  # late: only needed for this option

    if folder is None:
        raise click.UsageError("--admin-path needs --admin, the folder of the admin sockets.")
    try:
        admin_route(path, folder, None)
    except ValueError as bad:
        raise click.UsageError(f"--admin-path: {bad}.") from None


def http_address(text: str, option: str = "--http") -> tuple[str, int]:
    """The host and the port of `[HOST]:PORT`; loopback if no host is given."""
    host, colon, port = text.rpartition(":")
    if not colon or "/" in host or not port.isdecimal() or int(port) > 65535:
        raise click.UsageError(
            f"{option} takes [HOST]:PORT, such as :8000 or 0.0.0.0:8000, not {text}."
        )
    return host.strip("[]") or _LOOPBACK, int(port)


def _serving(address: Any) -> None:
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    click.echo(f"Serving at http://{host}:{address[1]}/mcp", err=True)


def _measuring(url: str) -> None:
    click.echo(f"Metrics at {url}", err=True)


def _socket_options(
    transport: str, socket_path: str | None, host: str | None, port: int | None
) -> dict[str, Any]:
    if transport == "unix":
        if socket_path is None:
            raise click.UsageError("--transport unix needs --path.")
        if host is not None or port is not None:
            raise click.UsageError("--host and --port are for --transport tcp and --http.")
        return {"path": socket_path, "on_ready": _listening}
    if transport == "tcp":
        if port is None:
            raise click.UsageError("--transport tcp needs --port.")
        if socket_path is not None:
            raise click.UsageError("--path is for --transport unix.")
        return {"host": host or _LOOPBACK, "port": port, "on_ready": _listening}
    if socket_path is not None or host is not None or port is not None:
        raise click.UsageError(
            "--path is for --transport unix, --host and --port are for --transport tcp and --http."
        )
    return {}


def _listening(address: Any) -> None:
    where = (
        f"tcp://{address[0]}:{address[1]}"
        if isinstance(address, tuple)
        else f"unix://{Path(address).resolve()}"
    )
    click.echo(f"Listening at {where}", err=True)


@click.command("run")
@click.argument("file", metavar="FILE[:OBJECT]")
@click.argument("arguments", nargs=-1, metavar="[-- ARGUMENTS...]")
@with_transport_options
@click.option(
    "--dev",
    is_flag=True,
    help="Development mode: failing tools show the error and where it happened; over stdio "
    "also reloads.",
)
@click.option(
    "--reload/--no-reload",
    default=None,
    help="Restart the server when a file changes; the connection stays open.",
)
@click.option(
    "--reload-dir",
    "folders",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    help="Watch this folder too.",
)
@with_sandbox_options
@click.option(
    "--log",
    type=click.Choice(["text", "json", "off"]),
    show_default="text over stdio, off otherwise",
    help="The request log on stderr: a line for each request, without its contents.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=10.0,
    show_default=True,
    help="Seconds that running calls may take before a reload.",
)
@click.option(
    "--held",
    is_flag=True,
    hidden=True,
    help="Load the file only after one byte from stdin; end without it at the end of stdin.",
)
def run(
    file: str,
    arguments: tuple[str, ...],
    dev: bool,
    reload: bool | None,
    folders: tuple[str, ...],
    log: str | None,
    grace: float,
    held: bool,
    sandbox: bool | None,
    sandbox_allow: tuple[str, ...],
    **given: Any,
) -> None:
    """Run the server in a Python FILE, over stdio by default.

    OBJECT is the name of the server in the file. The default is the only server in the file, or the
    one called server, mcp or app. A function of that name is called for the server. The file's
    folder is on sys.path; code under `if __name__ == "__main__":` is not run. The file gets
    ARGUMENTS in sys.argv.

    With --reload the pipe stays open: the server runs as a child, and when a .py or .html file in
    the file's folder changes, a new child takes over between two calls. The session goes on,
    subscriptions too, and the client is told that the lists have changed. While the file has an
    error, requests are answered with it; the next save repairs it.

    With --dev, and with --reload, a tool that fails says why: type, message and place of the error.
    Otherwise callers see only a reference, and the error is in the log. Over stdio --dev reloads as
    --reload does (--no-reload: it does not). Over HTTP and sockets everybody who can reach the
    server sees the errors of a --dev server, with whatever secrets are in them.

    With --sandbox the server can reach public addresses, its working folder and its own code, and
    nothing else of this machine (over stdio only). What was refused is on stderr.

    The exit code is 0 once the client has gone, 1 where the file cannot be run, 2 where it holds no
    server.

    \b
    interlock run weather.py
    interlock run weather.py:mcp --dev
    interlock run weather.py --http :8000 --workers 4 --store redis://localhost
    interlock run weather.py --transport tcp --port 8765
    """
    if held and not os.read(0, 1):
        return
    path, name = split_target(file)
    transport, options = chosen_transport(given)
    if log is not None:
        os.environ[LOG_VARIABLE] = log  # the child of --reload gets it too
    if policy := sandbox_of(sandbox, sandbox_allow):
        if transport != "stdio":
            raise click.UsageError("--sandbox is for --transport stdio.")
        _run_in_sandbox(policy, path, _without_sandbox(sys.argv[1:]))
    if reload is None:
        reload = dev and transport == "stdio"
    if reload:
        if transport != "stdio":
            raise click.UsageError("--reload is for --transport stdio.")
        if not path.is_file():
            raise click.UsageError(f"There is no file {path}.")
        from ..reload.supervisor import (
            run_reloading,  # imported late: not needed without reloading
        )

        watched = [Path(folder) for folder in folders]
        sys.exit(run_reloading(path, name, arguments, watched, grace))
    try:
        server = load_file(path, name, arguments)
    except TargetError as bad:
        if not dev:
            raise
        click.echo(f"{ERROR}{bad.message}", err=True)
        sys.exit(bad.exit_code)
    if dev:
        _enter_development(server, path)
    run_server(server, transport, options, path)


def _run_in_sandbox(policy: Sandbox, path: Path, words: Sequence[str]) -> NoReturn:
    """Run this command again in a sandbox, and exit with its exit code."""
    # imported late: few servers are confined by themselves
    from ...sandbox import run_confined
    from ...transport.stdio import inherited_environment

    if not path.is_file():
        raise TargetError(f"There is no file {path}.")
    confined = run_confined(
        replace(policy, read=(*policy.read, str(path.resolve().parent))),
        [sys.executable, "-m", "interlock", *words],
        env=inherited_environment(),
        report=lambda refused: click.echo(f"sandbox: {refused}.", err=True),
    )
    try:
        sys.exit(asyncio.run(confined))
    except (OSError, t.Unreachable) as bad:
        raise click.ClickException(str(bad)) from None


def _without_sandbox(words: Sequence[str]) -> list[str]:
    """The words of a command line without the options of the sandbox."""
    own = list(words[: words.index("--")] if "--" in words else words)
    kept: list[str] = []
    while own:
        word = own.pop(0)
        if word == "--sandbox-allow":
            del own[:1]
        elif word not in ("--sandbox", "--no-sandbox") and not word.startswith("--sandbox-allow="):
            kept.append(word)
    return [*kept, *(words[words.index("--") :] if "--" in words else ())]


def load_file(path: Path, name: str | None, arguments: Sequence[str]) -> Server:
    """Return the server in a file. An error of the file is shown, and ends the program.

    Raises:
        TargetError: There is no server, or more than one.
    """
    try:
        with wire_kept_clear():
            return load_server(path, name, arguments)
    except click.ClickException:
        raise
    except Exception as bad:
        # Only the frames of the file: how it was imported does not help its author.
        traceback.print_exception(bad.with_traceback(_own_frames(bad, path)))
        sys.exit(exits.TOOL_FAILED)


def _enter_development(server: Server, path: Path) -> None:
    """Enable development mode: error messages are sent in full, and mistakes that can be detected
    at the start are reported.
    """
    from ...server.calls.development import warnings_of  # imported late: not needed in production

    server.dev = True
    for words in filter(None, [*warnings_of(server), advice(path)]):
        click.echo(f"{WARNING}{words}", err=True)


def run_server(
    server: Server, transport: str, options: dict[str, Any], path: Path | None = None
) -> None:
    """Run a server, from the file at `path`. An error that prevents this becomes a message. Raises
    click.ClickException.

    `options` are those of `Server.run`, and the address of the `metrics`.
    """
    metrics = options.pop("metrics", None)
    if metrics is not None:
        server.observe = Observe(metrics=metrics, on_ready=_measuring)
    try:
        server.run(transport, **options)
    except Exception as bad:
        if path is not None and _comes_from(bad, path):
            traceback.print_exception(bad.with_traceback(_own_frames(bad, path)))
            if not server.dev and (words := advice(path)):  # otherwise it was reported at the start
                click.echo(words, err=True)
            sys.exit(exits.TOOL_FAILED)
        if transport == "stdio" or not isinstance(bad, ImportError | OSError | StoreError):
            raise
        raise click.ClickException((isinstance(bad, OSError) and bad.strerror) or str(bad)) from bad


def _comes_from(bad: Exception, path: Path) -> bool:
    """Whether a traceback contains the file: then its author needs the traceback."""
    return any(
        frame.filename == str(path.resolve()) for frame in traceback.extract_tb(bad.__traceback__)
    )


def _own_frames(bad: BaseException, path: Path) -> Any:
    """The part of a traceback that begins in the file; the whole traceback if the file is not in it
    (a syntax error).
    """
    trace = bad.__traceback__
    wanted = str(path.resolve())
    while trace is not None and trace.tb_frame.f_code.co_filename != wanted:
        trace = trace.tb_next
    return trace
