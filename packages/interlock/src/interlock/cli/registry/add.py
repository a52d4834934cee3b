"""`interlock add`: add a server of the MCP registry to a configuration, pinned and in a sandbox."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ...configs import (
    PRODUCTS,
    BadRecord,
    ConfigFile,
    Product,
    RawEntry,
    Uneditable,
    command_warnings,
    this_machine,
)
from ...configs.formats import MCP_SERVERS
from ...registry.client import Registry
from ...registry.command_line import CannotRun, Launch
from ...registry.offers import ChangedOffer, RegistryOffer, RegistryPins, launch_of, offer_of
from ...registry.server_json import RegistryInput, ServerJson
from ...untrusted.invisible import visible_line
from ..screen import note, say
from ..user_folder import REGISTRY_PINS, user_folder
from .answers import address_of, answer, registry_option


def _own_entry(command: str, args: list[str], env: dict[str, str], name: str) -> RawEntry:
    return {
        "command": command,
        "args": args,
        **({"env": env} if env else {}),
    }


def _own_url(url: str, headers: dict[str, str], name: str) -> RawEntry:
    return {"url": url, **({"headers": headers} if headers else {})}


def _own_product() -> Product:
    """The configuration of Interlock's own host: mcp.json in the present folder."""
    return Product(
        title="Interlock",
        path=lambda machine: Path("mcp.json"),
        format=MCP_SERVERS,
        local=_own_entry,
        remote=_own_url,
    )


@click.command("add")
@click.argument("name", metavar="NAME[@VERSION]")
@click.option(
    "--client",
    "-c",
    "client",
    type=click.Choice(list(PRODUCTS)),
    help="The client to configure.  [default: mcp.json in this folder, for interlock host]",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration file, if not the default one.",
)
@click.option("--as", "entry_name", metavar="NAME", help="The name of the entry.")
@click.option(
    "--env",
    "-e",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="A value that the server needs: a variable, a header, or an argument by its name.",
)
@click.option("--remote", is_flag=True, help="Use the server's URL, even if it has a package.")
@click.option("--no-sandbox", is_flag=True, help="Start the server without a sandbox.")
@click.option("--dry-run", is_flag=True, help="Show the entry, and write nothing.")
@click.option("--yes", "-y", is_flag=True, help="Add it without asking.")
@registry_option
def add(
    name: str,
    client: str | None,
    config: Path | None,
    entry_name: str | None,
    given: Sequence[str],
    remote: bool,
    no_sandbox: bool,
    dry_run: bool,
    yes: bool,
    registry: str | None,
) -> None:
    """Add the server NAME of the MCP registry to a configuration.

    First it shows what will run: the command with its exact version, the digest of the server's
    description and of its package, and the environment. Then it asks. The entry is written without
    touching the rest of the file, and Interlock's host starts the program in a sandbox.

    The version and the digest are remembered. If the registry later says something else about the
    same version, `add` refuses.

    Hazard: the registry does not check what a server does. The sandbox of Interlock's host confines
    it; other clients start it with all your permissions.

    \b
    interlock add io.github.ada/weather
    interlock add io.github.ada/weather@1.2.0 --client cursor --env API_KEY=secret
    """
    address = address_of(registry)
    name, _, version = name.partition("@")
    offer = answer(_offer(address, name, version or "latest"))
    server = offer.server
    if offer.status != "active":
        why = f": {offer.status_words}" if offer.status_words else ""
        note(visible_line(f"{server.name} {server.version} is {offer.status}{why}"), fg="yellow")
    product = PRODUCTS[client] if client is not None else _own_product()
    values = _values(given)
    launch = _launch(server, values, remote=remote, asks=sys.stdin.isatty() and not yes)
    entry_name = entry_name or server.name.rpartition("/")[2]
    can_be_confined = bool(launch.command) and not launch.is_container  # Docker needs its socket
    confined = client is None and not no_sandbox and can_be_confined
    try:
        entry = _entry(product, launch, entry_name, client=client, confined=confined)
    except Uneditable as bad:
        raise click.ClickException(f"{bad}.") from None
    pins = RegistryPins(user_folder() / REGISTRY_PINS)
    try:
        pins.check_offer(offer, address)
    except (ChangedOffer, BadRecord) as bad:
        raise click.ClickException(str(bad)) from None
    _show(server, launch, offer.digest, confined=confined, product=product)
    file = ConfigFile(config or product.path(this_machine()))
    if dry_run:
        return
    if not yes:
        click.confirm(f"Add it to {file.path}?", abort=True, err=True)

    def edit(text: str | None) -> str | None:
        if text is not None and product.editor.source(text, entry_name) is not None:
            raise Uneditable(f"it has an entry {entry_name!r} already; choose another name: --as")
        return product.editor.add(text or "", entry_name, entry)

    try:
        _, backup = file.make(edit)
    except (Uneditable, OSError) as bad:
        raise click.ClickException(f"{file.path} was not changed: {bad}.") from None
    try:
        pins.keep(offer, address)
    except (BadRecord, OSError) as bad:
        note(f"The digest of its description is not remembered: {bad}", fg="yellow")
    note(f"{entry_name} is in {file.path}.", fg="green")
    if backup is not None:
        note(f"  backup: {backup}")


async def _offer(address: str, name: str, version: str) -> RegistryOffer:
    return await offer_of(Registry(address), name, version)


def _values(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for words in given:
        name, equals, value = words.partition("=")
        if not name or not equals:
            raise click.UsageError("--env takes NAME=VALUE.")
        found[name] = value
    return found


def _launch(server: ServerJson, values: Mapping[str, str], *, remote: bool, asks: bool) -> Launch:
    """How the server is reached: its first usable package, or else its URL."""

    def ask(label: str, one: RegistryInput) -> str | None:
        if label in values:
            value: str | None = values[label]
        elif one.default is not None:
            value = one.default
        elif not one.is_required:
            return None
        elif not asks:
            raise click.UsageError(visible_line(f"{label} is needed: give --env {label}=VALUE."))
        else:
            words = one.description or one.placeholder
            value = click.prompt(
                visible_line(f"{label}{f' ({words})' if words else ''}"),
                hide_input=one.is_secret,
                err=True,
            )
        if one.choices and value not in one.choices:
            raise click.UsageError(visible_line(f"{label} is one of: {', '.join(one.choices)}."))
        return value

    try:
        return launch_of(server, ask, remote=remote)
    except CannotRun as bad:
        raise click.ClickException(visible_line(f"{bad}.")) from None


def _entry(
    product: Product, launch: Launch, name: str, *, client: str | None, confined: bool
) -> RawEntry:
    if launch.url:
        return product.remote_entry(launch.url, launch.headers, name)
    entry = product.local(launch.command[0], launch.command[1:], launch.env, name)
    if client is None:
        # False is written too: mcp.json is a project's file, whose servers are confined by default.
        entry = {**entry, "sandbox": confined}
    return entry


def _show(
    server: ServerJson, launch: Launch, found: str, *, confined: bool, product: Product
) -> None:
    """Show what will run. All of it comes from the registry."""
    title = f"{server.title or server.name}: {server.name} {server.version}"
    say(launch.shown(title), bold=True)
    say(f"  {launch.shown(server.description)}")
    if server.repository is not None:
        say(f"  source code: {launch.shown(server.repository.url)}")
    if launch.command:
        say(f"  command: {shlex.join(map(launch.shown, launch.command))}")
    else:
        say(f"  URL: {launch.shown(launch.url)}")
    say(f"  digest of the description: sha256:{found}")
    if launch.digest:
        say(f"  digest of the package: sha256:{launch.digest}")
    for label, members in (("environment", launch.env), ("header", launch.headers)):
        for name, value in members.items():
            say(f"  {label}: {name}={launch.shown(value)}")
    if launch.warning:
        note(f"  {launch.warning}", fg="yellow")
    for warning in command_warnings(launch.command):
        note(f"  {warning.words} {launch.shown(warning.where)}".rstrip(), fg="yellow")
    if confined:
        say("  sandbox: yes")
    elif launch.is_container:
        note("  confined by its container only, as far as the options of docker allow", fg="yellow")
    elif launch.command:
        note(f"  {product.title} starts it without a sandbox, with your permissions", fg="yellow")
