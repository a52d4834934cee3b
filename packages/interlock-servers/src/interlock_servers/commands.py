"""`interlock serve` and `interlock tour`: the bundled servers, and a walk through the protocol."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import click

from interlock import Server
from interlock.cli.run.running import chosen_transport, run_server, with_transport_options


@click.command(
    "serve", context_settings={"ignore_unknown_options": True}
)  # a server may have its own options
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1)
@with_transport_options
@click.option("--list", "listing", is_flag=True, help="List the available servers.")
def serve(name: str | None, arguments: tuple[str, ...], listing: bool, **given: Any) -> None:
    """Run one of the servers that come with Interlock; without a NAME, list them.

    Some take ARGUMENTS, such as folders.

    \b
    interlock serve weather
    interlock serve filesystem ~/notes ~/photos
    interlock serve everything --http :8000
    interlock serve git ~/projects/one ~/projects/two
    interlock serve database shop.db --write=shop
    interlock call get_forecast latitude=37.8 longitude=-122.4 -- interlock serve weather
    """
    servers = servers_here()
    if listing or name is None:
        for known, words in servers.items():
            click.echo(f"{click.style(known, fg='cyan')}  {words}")
        if not servers:
            click.echo("No servers are installed.", err=True)
        return
    if name.startswith("-"):
        raise click.NoSuchOption(name, ctx=click.get_current_context())
    if name not in servers:
        near = difflib.get_close_matches(name, servers, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"There is {', '.join(servers) or 'none'}."
        raise click.UsageError(f"No server called {name} comes with Interlock. {hint}")
    transport, options = chosen_transport(given)
    run_server(_made(name, arguments), transport, options)


def _made(name: str, arguments: tuple[str, ...]) -> Server:
    """The server of a module: its `server`, or the result of its `server_of(*arguments)`.

    Raises click.ClickException.
    """
    module = import_module(f"interlock_servers.{name}")
    maker = getattr(module, "server_of", None)
    if maker is None and arguments:
        raise click.UsageError(f"{name} takes no arguments.")
    try:
        server: Any = module.server if maker is None else maker(*arguments)
    except (
        OSError,
        ValueError,
    ) as bad:  # a folder that is missing or of the wrong kind
        raise click.ClickException(str(bad)) from None
    if not isinstance(server, Server):
        raise click.ClickException(f"interlock_servers.{name} has no server object.")
    return server


def servers_here() -> Mapping[str, str]:
    """The bundled servers with their descriptions, read from the first line of each file without an
    import.
    """
    try:
        folder = Path(str(resources.files("interlock_servers")))
    except ModuleNotFoundError:
        return {}
    found = {}
    for path in sorted(folder.iterdir()):
        file = path / "__init__.py" if path.is_dir() else path
        if file.suffix == ".py" and file.is_file() and not path.name.startswith("_"):
            tree = ast.parse(file.read_bytes())
            if _makes_a_server(tree):
                found[path.stem] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def _makes_a_server(tree: ast.Module) -> bool:
    """Whether a module defines a `server`, and is not part of another server."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            targets = []
        if any(isinstance(target, ast.Name) and target.id == "server" for target in targets):
            return True
        if isinstance(node, ast.ImportFrom) and any(
            (alias.asname or alias.name) == "server" for alias in node.names
        ):
            return True
    return False


@click.command("tour")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False),
    default=".",
    help="The folder to show; it is not changed.",
)
@click.option("--interactive", is_flag=True, help="Answer the servers' questions yourself.")
def tour(folder: str, interactive: bool) -> None:
    """Watch the protocol at work: a client talks to three servers, and every message is shown."""
    code = import_module("interlock_servers.tour").main(
        ["--folder", folder, *(["--interactive"] if interactive else [])]
    )
    click.get_current_context().exit(code if isinstance(code, int) else 0)
