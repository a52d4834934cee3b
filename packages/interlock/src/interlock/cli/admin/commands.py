"""`interlock admin workers`, `sessions`, `calls`, `suspended`, `end` and `drain`."""

from __future__ import annotations

from typing import Any, Final

import click

from ...server.run.admin import AdminRequest
from ..screen import note, print_json, say, shown
from .servers import LEVELS, AdminServer, admin_server

_FAILED: Final = 1
_server = click.argument("server")
_json = click.option("--json", "machine", is_flag=True, help="Print JSON.")


@click.command("workers")
@_server
@_json
def workers(server: str, machine: bool) -> None:
    """Show the processes of a server: for how long they run, and how many calls they have."""
    _show(server, "workers", machine)


@click.command("sessions")
@_server
@_json
def sessions(server: str, machine: bool) -> None:
    """Show the sessions of a server: whose they are, their age, and the time until they end.

    Of each ID only the beginning is shown: the whole one would let its reader use the session.
    """
    _show(server, "sessions", machine)


@click.command("calls")
@_server
@_json
def calls(server: str, machine: bool) -> None:
    """Show the calls that run, without their arguments."""
    _show(server, "calls", machine)


@click.command("suspended")
@_server
@_json
def suspended(server: str, machine: bool) -> None:
    """Show the calls that wait for an answer of their user, without their arguments."""
    _show(server, "suspended", machine)


@click.command("upstreams")
@_server
@_json
def upstreams(server: str, machine: bool) -> None:
    """Show the servers that the server has mounted: whether they can be used, and if not, why."""
    _show(server, "upstreams", machine)


@click.command("end")
@_server
@click.argument("id")
def end(server: str, id: str) -> None:
    """End the session or the call with this ID. Its client gets an error.

    The exit code is 1 if there is none.
    """
    there = admin_server(server)
    for pid in there.processes():
        response = _asked(there, pid, AdminRequest("end", id))
        if response is not None and response.done:
            say(f"The {response.done} {id} has ended.")
            return
    note(f"Error: there is no session or call {id}.", fg="red")
    click.get_current_context().exit(_FAILED)


@click.command("drain")
@_server
@click.argument("pid", type=int, required=False)
def drain(server: str, pid: int | None) -> None:
    """End the server after its calls; with PID only this worker, which another one replaces.

    Calls have as much time as the server gives them at its end. The command does not wait.
    """
    there = admin_server(server)
    known = there.processes()
    if pid is not None and pid not in known:
        raise click.ClickException(f"The server has no process {pid}.")
    command = "shutdown" if pid is None else "drain"
    for each in known if pid is None else [pid]:
        response = _asked(there, each, AdminRequest(command))
        if response is not None:
            what = "The server" if pid is None else f"The process {pid}"
            say(f"{what} is {response.done}.")
            return
    raise click.ClickException("No process of the server answers.")


@click.command("log-level")
@_server
@click.argument("level", type=click.Choice(LEVELS))
def log_level(server: str, level: str) -> None:
    """Log what is at least as severe as LEVEL, in every process that runs now.

    A process that starts later has the level of its program.
    """
    for pid, response in admin_server(server).ask_all(AdminRequest("log_level", level)).items():
        if response is None:
            note(f"The process {pid} does not answer.", fg="yellow")
        else:
            say(f"The process {pid} is {response.done}.")


def _asked(server: AdminServer, pid: int, request: AdminRequest) -> Any:
    """Ask one process. Returns None if it is gone or does not answer."""
    try:
        return server.ask(pid, request)
    except TimeoutError:
        note(f"The process {pid} does not answer.", fg="yellow")
        return None


def _show(target: str, command: str, machine: bool) -> None:
    """Print the rows of all processes. Workers with one store show the same sessions."""
    rows: dict[str, dict[str, Any]] = {}
    for pid, response in admin_server(target).ask_all(AdminRequest(command)).items():
        if response is None:
            note(f"The process {pid} does not answer.", fg="yellow")
            continue
        for row in response.rows:
            rows[str(row.get("id", row.get("pid")))] = row
    if machine:
        print_json(list(rows.values()))
    elif not rows:
        say("None.")
    else:
        _table(list(rows.values()))


def _table(rows: list[dict[str, Any]]) -> None:
    """Print rows under the names of their columns."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, *([_cell(row.get(name)) for name in columns] for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
    for line in lines:
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else shown(str(value))
