"""`interlock gateway`: one endpoint for many servers, and the commands of a running gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec
from msgspec import UNSET, Struct

from interlock import InterlockError
from interlock.cli import exits
from interlock.cli.screen import ERROR, note, print_json, say
from interlock.store import AuditLog, StoreError
from interlock.untrusted.invisible import visible_line

from ..fleet.policy import Requester
from ..gateway.control import (
    ControlRequest,
    ControlResponse,
    NotRunning,
    ask_processes,
    control_folder,
)
from ..gateway.identity import LOCAL
from ..gateway.settings import (
    BadSettings,
    Settings,
    check_exposure,
    read_settings,
    settings_from_config,
    with_options,
)
from ..gateway.state import UpstreamState

if TYPE_CHECKING:
    from ..gateway.page.site import GatewaySite
    from ..gateway.protections import Protections

_SERVE: Final = "serve"
_DEFAULTS = (Path("gateway.toml"), Path(".mcp.json"))
_FILE = click.Path(dir_okay=False, path_type=Path)
_file = click.argument("file", required=False, type=_FILE)
_config = click.option(
    "--config",
    type=_FILE,
    metavar="FILE",
    help="The servers, in the format of any client, in place of gateway.toml.",
)
_json = click.option("--json", "machine", is_flag=True, help="Print JSON.")


class GatewaySource(Struct, frozen=True):
    """Where the settings of a gateway come from.

    Attributes:
        file: The file.
        is_config: Whether it is the configuration of a client.
    """

    file: Path
    is_config: bool

    def read(self) -> Settings:
        """Read the settings. Raises BadSettings."""
        return settings_from_config(self.file) if self.is_config else read_settings(self.file)


def source_of(file: Path | None, config: Path | None) -> GatewaySource:
    """Return where the settings come from. Raises click.UsageError."""
    if file is not None and config is not None:
        raise click.UsageError("Give FILE or --config, not both.")
    if config is not None:
        return GatewaySource(config.absolute(), True)
    if file is not None:
        return GatewaySource(file.absolute(), False)
    for number, path in enumerate(_DEFAULTS):
        if path.is_file():
            return GatewaySource(path.absolute(), number > 0)
    raise click.UsageError(
        "There is no gateway.toml here. Name a file, or the servers of a client:"
        " interlock gateway --config .mcp.json"
    )


class GatewayGroup(click.Group):
    """A group whose arguments are those of `serve` if the first one is not a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a line."""
        if args and args[0] in self.commands:
            return super().resolve_command(ctx, args)
        return super().resolve_command(ctx, [_SERVE, *args])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leave all options but --help to the command."""
        if args not in (["--help"], ["-h"]) and not (args and args[0] in self.commands):
            args = [_SERVE, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of this file."""
        return list(self.commands)


@click.group("gateway", cls=GatewayGroup)
def gateway() -> None:
    """Serve many servers at one endpoint, with identities, policy, limits and an audit.

    Without a command, the gateway is served: interlock gateway [FILE]. FILE is gateway.toml by
    default.

    \b
    interlock gateway --config .mcp.json
    interlock gateway gateway.toml --http :8080 --workers 4 --store redis://127.0.0.1
    interlock gateway status
    """


@gateway.command(_SERVE)
@_file
@_config
@click.option(
    "--http", metavar="[HOST]:PORT", help="The address; loopback without a HOST.  [:8080]"
)
@click.option("--stdio", is_flag=True, help="Serve the default view over stdin and stdout.")
@click.option("--workers", type=click.IntRange(1, 256), help="The number of processes.  [1]")
@click.option("--store", metavar="URL", help="Shared state: memory:, sqlite:///path or redis://.")
def serve(
    file: Path | None,
    config: Path | None,
    http: str | None,
    stdio: bool,
    workers: int | None,
    store: str | None,
) -> None:
    """Serve the gateway. This is what `interlock gateway [FILE]` does."""
    source = source_of(file, config)

    def read() -> Settings:
        return with_options(
            source.read(),
            http=UNSET if http is None else http,
            workers=UNSET if workers is None else workers,
            store=UNSET if store is None else store,
        )

    # late: the other commands start faster
    from ..gateway.page.site import page_of
    from ..gateway.program import Gateway, run_gateway
    from ..gateway.protections import protections_of

    pages: list[GatewaySite] = []

    def page(gateway: Gateway) -> GatewaySite:
        pages.append(page_of(gateway))
        return pages[0]

    try:
        settings = read()
        _note_problems(settings)
        run_gateway(
            settings,
            read=read,
            protections=protections_of,
            page=page,
            control=control_folder(source.file),
            stdio=stdio,
            on_ready=partial(_serving, settings, pages),
        )
    except (BadSettings, StoreError, InterlockError, OSError, ImportError, ValueError) as bad:
        _fail(str(bad))


def _note_problems(settings: Settings) -> None:
    for problem in settings.problems:
        note(str(problem))


def _serving(settings: Settings, pages: Sequence[GatewaySite], address: Any) -> None:
    if isinstance(address, tuple):
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        base = f"http://{host}:{address[1]}"
    else:
        base = f"unix:{address}"
    for name in settings.views:
        click.echo(f"Serving at {base}{settings.path_of(name)}", err=True)
    for page in pages:
        click.echo(f"Its page, for one browser: {page.entry}", err=True)


def _fail(words: str, code: int = exits.USAGE) -> None:
    click.echo(f"{ERROR}{words}", err=True)
    click.get_current_context().exit(code)


# -- check and explain -----------------------------------------------------------------------------


@gateway.command("check")
@_file
@_config
@click.option("--connect", is_flag=True, help="Also open each server once and count its tools.")
def check(file: Path | None, config: Path | None, connect: bool) -> None:
    """Check the settings, and show the servers and views that they describe.

    The exit code is 2 if they cannot be used, and 4 if --connect cannot reach a server.
    """
    source = source_of(file, config)
    try:
        settings = source.read()
        check_exposure(settings)
        _protections(settings)
    except ValueError as bad:
        _fail(str(bad))
        return
    _note_problems(settings)
    states = asyncio.run(_connected(settings)) if connect else {}
    for name, entry in settings.entries.items():
        server = settings.servers[name]
        whose = "one for each user" if server.is_personal else "shared"
        state = states.get(name)
        found = "" if state is None else f"  {_outcome(state)}"
        say(f"server {name}  {entry.shown}  identity {server.identity}, {whose}{found}")
    for name in settings.views:
        servers = ", ".join(settings.servers_of(name)) or "no servers"
        say(f"view {name or 'default'}  {settings.public_url}{settings.path_of(name)}  {servers}")
    if any(state.condition != "up" for state in states.values()):
        click.get_current_context().exit(exits.UNREACHABLE)


def _outcome(state: UpstreamState) -> str:
    return f"{state.tools} tools" if state.condition == "up" else f"{state.condition} {state.words}"


def _protections(settings: Settings) -> Protections:
    """Return the protections of settings. Raises ValueError if a file of them cannot be used."""
    from ..gateway.protections import protections_of  # late: few commands need them

    return protections_of(settings)


async def _connected(settings: Settings) -> dict[str, UpstreamState]:
    from ..gateway.program import Gateway  # late: only to try servers out

    made = Gateway(settings)
    async with made.lifespan(made.server):
        await asyncio.gather(*(made.upstream(name, LOCAL).ensure() for name in settings.entries))
        return {state.name: state for state in made.upstreams()}


@gateway.command("explain")
@click.argument("tool")
@_file
@_config
@click.option("--view", default="", metavar="NAME", help="The view; the default view without it.")
@click.option("--principal", default="", metavar="NAME", help="The subject who calls.")
@click.option("--scope", multiple=True, metavar="SCOPE", help="A scope that the caller has.")
@click.option("--client", default="", metavar="NAME", help="The client that calls.")
@click.option("--arguments", metavar="JSON", help="The arguments of the call.")
def explain(
    tool: str,
    file: Path | None,
    config: Path | None,
    view: str,
    principal: str,
    scope: tuple[str, ...],
    client: str,
    arguments: str | None,
) -> None:
    """Say which server, view, settings and rule apply to a call of a TOOL, as clients name it.

    The server of the tool is started for this. The exit code is 1 if the view has no such tool.
    """
    requester = Requester(principal=principal, scopes=frozenset(scope), view=view, client=client)
    try:
        given = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
        settings = source_of(file, config).read()
        found, words = asyncio.run(_explained(settings, view, tool, requester, given))
    except msgspec.MsgspecError as bad:
        _fail(f"--arguments is not a JSON object: {bad}")
        return
    except ValueError as bad:
        _fail(str(bad))
        return
    for line in words:
        say(line)
    if not found:
        click.get_current_context().exit(exits.TOOL_FAILED)


async def _explained(
    settings: Settings,
    view: str,
    tool: str,
    requester: Requester,
    arguments: Mapping[str, Any],
) -> tuple[bool, list[str]]:
    from ..gateway.program import Gateway  # late: only to try servers out

    if view not in settings.views:
        known = ", ".join(name for name in settings.views if name) or "none but the default"
        return False, [f"There is no view {view!r}; there are: {known}."]
    shown = view or "default"
    words = [f"The view {shown} is at {settings.public_url}{settings.path_of(view)}."]
    made = Gateway(settings)
    async with made.lifespan(made.server):
        for name in settings.entries:
            server = settings.servers[name]
            prefix = server.prefix_of(name)
            own = tool if prefix is None else tool.removeprefix(f"{prefix}__")
            if prefix is not None and own == tool:
                continue
            upstream = made.upstream(name, LOCAL)
            await upstream.ensure()
            if upstream.offered is None:
                words.append(f"The server {name} cannot be asked: {upstream.problem}")
                continue
            listed = next((one for one in upstream.offered.tools if one.name == own), None)
            if listed is None:
                continue
            words.append(f"{tool} is the tool {own} of the server {name}.")
            if not _in_view(settings, view, name, tool, own, words):
                return False, words
            found = _protections(settings).explain(name, listed, arguments, requester)
            words.append(_SHALL[found.decision].format(found.why))
            if not found.visible:
                words.append("So this caller does not see the tool.")
            return found.visible, words
    words.append(f"No server has a tool {tool}.")
    return False, words


_SHALL: Final = {
    "allow": "The call is allowed. {}",
    "ask": "The caller is asked first. {}",
    "deny": "The call is denied. {}",
}


def _in_view(
    settings: Settings,
    view: str,
    name: str,
    tool: str,
    own: str,
    words: list[str],
) -> bool:
    """Add what applies to a tool in a view. Returns whether the view has the tool."""
    from ..gateway.views import includes_tool  # late: as above

    chosen = settings.views[view]
    server = settings.servers[name]
    if name not in settings.servers_of(view):
        words.append(
            f"The view leaves the server {name} out: servers = {list(chosen.servers or ())}."
        )
        return False
    entry = settings.entries[name]
    reason = includes_tool(chosen, entry, tool, own)
    if reason:
        words.append(f"The view leaves it out: {reason}.")
        return False
    if chosen.scopes:
        words.append(f"Callers of the view need the scopes {', '.join(chosen.scopes)}.")
    whose = {
        "none": "No credentials go to the server.",
        "service": "The server gets the credentials of its entry, or of your stored login.",
        "user": "The server gets the account that each user connects.",
    }
    words.append(whose[server.identity])
    if server.is_personal:
        words.append(
            f"Each user has a connection of their own, closed after {server.idle} without use;"
            f" {server.most} at most."
        )
    else:
        words.append("All users share one connection.")
    if chosen.search != "never":
        words.append(
            "If the view has many tools, the list has search_tools and call_tool in their place."
            if chosen.search == "auto"
            else "The list of the view has search_tools and call_tool in place of the tools."
        )
    return True


# -- a running gateway -----------------------------------------------------------------------------


def _asked(
    file: Path | None, config: Path | None, request: ControlRequest
) -> list[tuple[int, ControlResponse]]:
    """Ask every process of the running gateway; exit with an error if there is none."""
    source = source_of(file, config)
    try:
        return list(ask_processes(control_folder(source.file), request))
    except NotRunning as bad:
        _fail(str(bad), exits.UNREACHABLE)
        return []


@gateway.command("status")
@_file
@_config
@_json
def status(file: Path | None, config: Path | None, machine: bool) -> None:
    """Show the servers and views of the running gateway, for each process."""
    responses = _asked(file, config, ControlRequest(command="status"))
    if machine:
        print_json(msgspec.to_builtins([response for _, response in responses]))
        return
    for pid, response in responses:
        if response.error:
            say(f"process {pid}: {response.error}")
            continue
        minutes = (time.time() - response.started) / 60
        say(f"process {pid}, for {minutes:.0f} min")
        for state in response.upstreams:
            words = f"  {state.words}" if state.words else ""
            say(
                f"  server {state.name}  {state.condition}  {state.tools} tools,"
                f" {state.calls} calls, {state.connections} connections{words}"
            )
        for view in response.views:
            say(f"  view {view.name or 'default'}  {view.path}  {', '.join(view.servers)}")
            for left_out in view.left_out:
                say(f"    left out: {left_out}")
        for pending in response.approvals:
            say(f"  withheld {pending.id}  {pending.server} {pending.name}  {pending.why}")


@gateway.command("reload")
@_file
@_config
def reload(file: Path | None, config: Path | None) -> None:
    """Let the running gateway use the changed settings, without dropping a call.

    The settings are checked whole first. If they cannot be used, the exit code is 2, and the old
    ones stay in use.
    """
    source = source_of(file, config)
    try:
        settings = source.read()
        check_exposure(settings)
        _protections(settings)
    except ValueError as bad:
        _fail(str(bad))
    _report(_asked(file, config, ControlRequest(command="reload")))


@gateway.command("approve")
@click.argument("ids", nargs=-1, required=True)
@click.option("--file", type=_FILE, help="The settings of the gateway.  [gateway.toml]")
@_config
def approve(ids: tuple[str, ...], file: Path | None, config: Path | None) -> None:
    """Approve features that are withheld because they have changed; `status` shows their IDS."""
    _report(_asked(file, config, ControlRequest(command="approve", ids=ids)))


def _report(responses: list[tuple[int, ControlResponse]]) -> None:
    failed = False
    for pid, response in responses:
        failed = failed or bool(response.error)
        for words in (response.error,) if response.error else response.done:
            say(f"process {pid}: {words}")
    if failed:
        click.get_current_context().exit(exits.REFUSED)


# -- the audit -------------------------------------------------------------------------------------


@gateway.command("audit")
@_file
@_config
@click.option(
    "--export", "kind", type=click.Choice(["jsonl"]), help="Print the entries as they are."
)
@click.option("--after", default="", metavar="TIME", help="Only entries from this time on (ISO).")
@click.option("--server", default="", metavar="NAME", help="Only entries about this server.")
@click.option("--verify", is_flag=True, help="Check the chain of hashes, and print the last one.")
def audit(
    file: Path | None,
    config: Path | None,
    kind: str | None,
    after: str,
    server: str,
    verify: bool,
) -> None:
    """Show or export the audit: who asked for what, the decision and how it ended.

    With --verify the exit code is 1 if a line was changed, inserted or removed. Keep the last hash
    elsewhere: a shortened file shows only to those who know it.
    """
    from ..gateway.audit import read_entries  # late: only this command reads the audit
    from ..gateway.protections import audit_path

    try:
        path = audit_path(source_of(file, config).read())
        if path is None:
            _fail("The audit is off: [audit] file is off.")
            return
        if verify:
            _verify(path)
            return
        for line in read_entries(path, after=after, server=server):
            text = line.decode("utf-8", "replace").rstrip("\n")
            click.echo(text if kind else _shown(text))
    except FileNotFoundError:
        _fail("There is no audit yet.", exits.UNREACHABLE)
    except (ValueError, OSError) as bad:
        _fail(str(bad))


def _verify(path: Path) -> None:
    found = AuditLog(path).check()
    if found.broken is not None:
        _fail(f"The chain is broken at line {found.broken} of {path}.", exits.TOOL_FAILED)
        return
    say(f"The chain of {found.entries} entries is whole. Last hash: {found.last}")


def _shown(line: str) -> str:
    """Return an entry in words."""
    try:
        entry = msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.MsgspecError:
        return visible_line(line)
    who = entry.get("subject") or entry.get("client") or ""
    parts = (
        entry.get("time", ""),
        entry.get("event", ""),
        f"{entry.get('server', '')} {entry.get('name', '')}".strip(),
        f"by {who}" if who else "",
        entry.get("outcome", ""),
        f"{entry['ms']} ms" if "ms" in entry else "",
        entry.get("why", "") if entry.get("decision") != "allow" else "",
    )
    return visible_line("  ".join(str(part) for part in parts if part))
