"""`interlock tasks`: list, show, cancel and await the tasks of a server."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

import click

from ... import Client
from ...types.tasks import Task
from .. import exits
from ..screen import plain, print_json, say
from ..targets.trailing_command import TargetCommand
from .calling import finished, show_task
from .connection import ConnectionSettings
from .options import exactly, target_command


class _TasksCommand(TargetCommand):
    """`interlock tasks`, whose first word may be `run` in place of a target."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the command line."""
        if args[:1] != ["run"]:
            return super().make_context(info_name, args, parent, **extra)
        from ..run.task_worker import run_tasks  # late: only for workers

        return run_tasks.make_context(f"{info_name} run", args[1:], parent, **extra)


@target_command("tasks", "[list | get ID | cancel ID | wait ID]", kind=_TasksCommand)
def tasks(connection: ConnectionSettings, words: Sequence[str]) -> None:
    """Show the tasks of a server: calls that it finishes later.

    `interlock call TARGET TOOL --task` starts one and prints its ID. `wait` answers the questions
    of a task and shows its result. Only servers of 2025-11-25 have a `list`.

    `interlock tasks run FILE` runs the tasks of a server as one worker of a fleet; see
    `interlock tasks run --help`.

    \b
    interlock tasks https://lab.example/mcp wait 786512e2-9e0d-44bd-8f29-789f320fe840
    interlock tasks http://127.0.0.1:8000/mcp cancel 786512e2-9e0d-44bd-8f29-789f320fe840
    interlock tasks http://127.0.0.1:8000/mcp list --revision 2025-11-25 --json
    interlock tasks run reports.py
    """
    action, *ids = words or ("list",)
    if action == "list":
        exactly(ids)
        connection.run(lambda client: _list(client, connection.machine))
        return
    run = _ACTIONS.get(action)
    if run is None:
        raise click.UsageError(f"Unknown action {action!r}: use list, get, cancel or wait.")
    (id,) = exactly(ids, "ID")
    connection.run(lambda client: run(client, id, connection.machine))


async def _list(client: Client, machine: bool) -> int:
    states = [handle.state for handle in await client.tasks() if handle.state is not None]
    if machine:
        print_json({"tasks": [plain(state) for state in states]})
        return exits.OK
    for state in states:
        show_task(state)
    if not states:
        say("The server has no tasks of yours.")
    return exits.OK


async def _get(client: Client, id: str, machine: bool) -> int:
    _show(await client.task(id).refresh(), machine)
    return exits.OK


async def _cancel(client: Client, id: str, machine: bool) -> int:
    handle = client.task(id)
    await handle.cancel()
    _show(await handle.refresh(), machine)
    return exits.OK


async def _wait(client: Client, id: str, machine: bool) -> int:
    return await finished(client.task(id), machine)


_ACTIONS: Final[dict[str, Callable[[Client, str, bool], Coroutine[Any, Any, int]]]] = {
    "get": _get,
    "cancel": _cancel,
    "wait": _wait,
}


def _show(state: Task, machine: bool) -> None:
    if machine:
        print_json(plain(state))
    else:
        show_task(state)
