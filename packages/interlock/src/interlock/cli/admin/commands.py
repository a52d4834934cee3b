"""`interlock admin workers`, `sessions`, `calls`, `suspended`, `end` and `drain`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from ...server.run.admin import AdminRequest
from ..screen import note, print_json, say, shown
from .sockets import ask, processes

_FAILED: Final = 1
_folder = click.argument("folder", type=click.Path(path_type=Path))
_json = click.option("--json", "machine", is_flag=True, help="Print JSON.")


@click.command("workers")
@_folder
@_json
def workers(folder: Path, machine: bool) -> None:
    """Show the processes of a server: for how long they run, and how many calls they have."""
    _show(folder, "workers", machine)


@click.command("sessions")
@_folder
@_json
def sessions(folder: Path, machine: bool) -> None:
    """Show the sessions of a server: whose they are, their age, and the time until they end.

    Of each ID only the beginning is shown: the whole one would let its reader use the session.
    """
    _show(folder, "sessions", machine)


@click.command("calls")
@_folder
@_json
def calls(folder: Path, machine: bool) -> None:
    """Show the calls that run, without their arguments."""
    _show(folder, "calls", machine)


@click.command("suspended")
@_folder
@_json
def suspended(folder: Path, machine: bool) -> None:
    """Show the calls that wait for an answer of their user, without their arguments."""
    _show(folder, "suspended", machine)


@click.command("end")
@_folder
@click.argument("id")
def end(folder: Path, id: str) -> None:
    """End the session or the call with this ID. Its client gets an error.

    The exit code is 1 if there is none.
    """
    for path in processes(folder).values():
        response = _asked(path, AdminRequest("end", id))
        if response is not None and response.done:
            say(f"The {response.done} {id} has ended.")
            return
    note(f"Error: there is no session or call {id}.", fg="red")
    click.get_current_context().exit(_FAILED)


@click.command("drain")
@_folder
@click.argument("pid", type=int, required=False)
def drain(folder: Path, pid: int | None) -> None:
    """End the server after its calls; with PID only this worker, which another one replaces.

    Calls have as much time as the server gives them at its end. The command does not wait.
    """
    there = processes(folder)
    if pid is not None and pid not in there:
        raise click.ClickException(f"The server has no process {pid}.")
    command = "shutdown" if pid is None else "drain"
    for path in there.values() if pid is None else [there[pid]]:
        response = _asked(path, AdminRequest(command))
        if response is not None:
            what = "The server" if pid is None else f"The process {pid}"
            say(f"{what} is {response.done}.")
            return
    raise click.ClickException("No process of the server answers.")


def _asked(path: Path, request: AdminRequest) -> Any:
    """Ask one process. Returns None if it is gone or does not answer."""
    try:
        return ask(path, request)
    except TimeoutError:
        note(f"The process {path.stem} does not answer.", fg="yellow")
        return None


def _show(folder: Path, command: str, machine: bool) -> None:
    """Print the rows of all processes. Workers with one store show the same sessions."""
    rows: dict[str, dict[str, Any]] = {}
    for path in processes(folder).values():
        response = _asked(path, AdminRequest(command))
        for row in [] if response is None else response.rows:
            rows[str(row.get("id", row.get("pid")))] = row
    if machine:
        print_json(list(rows.values()))
    elif not rows:
        say("None.")
    else:
        _table(list(rows.values()))


def _table(rows: list[dict[str, Any]]) -> None:
    """Print rows under the names of their columns."""
    columns = list(rows[0])
    lines = [columns, *([_cell(row.get(name)) for name in columns] for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(columns))]
    for line in lines:
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else shown(str(value))
