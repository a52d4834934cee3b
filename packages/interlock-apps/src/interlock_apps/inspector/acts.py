"""The table of acts: every request that the inspector's page can make.

No act starts a command: the targets are those of the command line, and an act names one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from interlock import REVISIONS, McpError
from interlock.tape import TapeRow
from interlock.testing import Catalogue, read_catalogue, take_catalogue
from interlock.types import JSONObject

from ..web.page_site import ActError
from ..web.tape_view.details import message_state, request_of
from ..web.tape_view.rows import row_state
from .act import Act, ActParams
from .comparison import comparison_state
from .equivalents import equivalent_command
from .feature_acts import FEATURE_ACTS
from .recordings import LIVE, Recording
from .saved_calls import SavedCall
from .session import Connection, Inspector
from .suite_export import call_suite, connection_suite
from .targets import AUTO
from .timeline import MOST_ROWS

MOST_NAME = 120
"""Characters of the name of a saved call."""


class ConnectParams(ActParams, frozen=True):
    """Connect, or connect again, to a target. `revision` is "auto" or a revision."""

    connection: str
    revision: str = ""


class ConnectionParams(ActParams, frozen=True):
    """An act on one connection."""

    connection: str


class RowsParams(ActParams, frozen=True):
    """Rows of a timeline, from one position on. `connections` is empty for all."""

    recording: str
    start: int = 0
    count: int = 100
    filter: str = ""
    connections: tuple[str, ...] = ()


class PlaceParams(ActParams, frozen=True):
    """The position of a row in a timeline."""

    recording: str
    row: int
    filter: str = ""
    connections: tuple[str, ...] = ()


class RowParams(ActParams, frozen=True):
    """One row of a recording."""

    recording: str
    row: int


class SendParams(ActParams, frozen=True):
    """A request as it was typed. `params` is JSON text."""

    connection: str
    method: str
    params: str = "{}"


class SaveCallParams(ActParams, frozen=True):
    """A request to save under a name. `params` is JSON text."""

    name: str
    connection: str
    method: str
    params: str = "{}"


class SavedCallParams(ActParams, frozen=True):
    """A saved call. `connection` sends it over another connection than the one it was saved for."""

    name: str
    connection: str = ""


class CompareParams(ActParams, frozen=True):
    """Two connections whose catalogues are compared."""

    one: str
    other: str


# -- connections -----------------------------------------------------------------------------------


async def _connect(inspector: Inspector, params: ConnectParams) -> None:
    if params.revision not in ("", AUTO, *REVISIONS):
        raise ActError(f"Unknown revision {params.revision!r}.")
    await _live(inspector, params.connection).open(params.revision or None)


async def _disconnect(inspector: Inspector, params: ConnectionParams) -> None:
    await _live(inspector, params.connection).close()


async def _duplicate(inspector: Inspector, params: ConnectionParams) -> str:
    """Connect once more to the target of a connection, for a comparison of revisions."""
    return inspector.duplicate(_live(inspector, params.connection)).name


def _live(inspector: Inspector, name: str) -> Connection:
    found = inspector.connections.get(name)
    if found is None or found.target.transport is None:
        raise ActError(f"{name} is not a server that the command line named.")
    return found


# -- the timeline ----------------------------------------------------------------------------------


async def _rows(inspector: Inspector, params: RowsParams) -> JSONObject:
    inspector.refresh()
    recording = _recording(inspector, params.recording)
    timeline = inspector.timelines.get(recording, params.filter, params.connections)
    await timeline.extend()
    start = max(0, params.start)
    numbers = timeline.numbers[start : start + min(params.count, MOST_ROWS)]
    return {
        "total": len(timeline.numbers),
        "start": start,
        "rows": [row_state(recording, recording.rows[number]) for number in numbers],
        "complete": recording.is_complete,
        "problems": recording.file.problems[:10],
    }


async def _place(inspector: Inspector, params: PlaceParams) -> int:
    recording = _recording(inspector, params.recording)
    timeline = inspector.timelines.get(recording, params.filter, params.connections)
    await timeline.extend()
    return timeline.place(params.row)


async def _message(inspector: Inspector, params: RowParams) -> JSONObject:
    inspector.refresh()
    recording = _recording(inspector, params.recording)
    row = _row(recording, params.row)
    shown = message_state(recording, row)
    request = row if row.kind == "request" or row.partner < 0 else recording.rows[row.partner]
    given = request_of(recording, request)
    connection = inspector.connections.get(recording.connections.get(row.connection, ""))
    if given is not None and request.sender == "client" and connection is not None:
        shown["request"] = {
            **given,
            "command": _command(connection, given["method"], given["params"]),
        }
    return shown


def _recording(inspector: Inspector, name: str) -> Recording:
    found = inspector.recordings.get(name)
    if found is None:
        raise ActError(f"There is no recording {name}.")
    return found


def _row(recording: Recording, number: int) -> TapeRow:
    if not 0 <= number < len(recording.rows):
        raise ActError(f"The recording has no line {number} yet.")
    return recording.rows[number]


# -- requests --------------------------------------------------------------------------------------


async def _send(inspector: Inspector, params: SendParams) -> JSONObject:
    """Send a request as it was typed. Returns the row of the request, once it is on the tape."""
    if not params.method.strip():
        raise ActError("The request needs a method.")
    _read_params(params.params)
    connection = inspector.connected(params.connection)
    return await _sent(inspector, connection, params.method.strip(), params.params.encode())


async def _sent(
    inspector: Inspector, connection: Connection, method: str, params: bytes
) -> JSONObject:
    client = inspector.connected(connection.name).client
    assert client is not None
    inspector.refresh()
    before = len(inspector.tape.rows)
    work = connection.spawn(client.request_raw(method, params))
    while True:
        await asyncio.wait({work}, timeout=_LOOK)
        inspector.refresh()
        for row in inspector.tape.rows[before:]:
            name = inspector.tape.connections.get(row.connection)
            if (row.kind, row.sender, row.method) == ("request", "client", method) and (
                name == connection.name
            ):
                return {"recording": LIVE, "row": row.number}
        if work.done():
            break
    if work.cancelled():
        raise ActError("The connection was closed.")
    error = work.exception()
    if error is not None and not isinstance(error, McpError):
        raise ActError(str(error))
    raise ActError("The request was sent, but it is not on the tape.")


def _read_params(text: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as bad:
        raise ActError(f"The params are not JSON: {bad}.") from None
    if not isinstance(found, dict):
        raise ActError("The params must be a JSON object.")
    return found


def _command(connection: Connection, method: str, params: str) -> str:
    return equivalent_command(
        connection.target.words, method, _read_params(params), connection.asked
    )


# -- saved calls -----------------------------------------------------------------------------------


async def _save_call(inspector: Inspector, params: SaveCallParams) -> None:
    name = params.name.strip()
    if not name:
        raise ActError("A saved call needs a name.")
    if len(name) > MOST_NAME:
        raise ActError(f"The name has more than {MOST_NAME} characters.")
    _read_params(params.params)
    raw = Raw(msgspec.json.format(params.params.encode(), indent=0))
    inspector.saved.save(SavedCall(name, params.connection, params.method, raw))
    inspector.saved_changed()


async def _delete_call(inspector: Inspector, params: SavedCallParams) -> None:
    inspector.saved.delete(params.name)
    inspector.saved_changed()


async def _run_call(inspector: Inspector, params: SavedCallParams) -> JSONObject:
    call = _saved(inspector, params.name)
    connection = inspector.connected(params.connection or call.connection)
    return await _sent(inspector, connection, call.method, bytes(call.params))


async def _call_command(inspector: Inspector, params: SavedCallParams) -> str:
    """The command for a shell that sends a saved call; "" if there is none."""
    call = _saved(inspector, params.name)
    connection = inspector.connections.get(params.connection or call.connection)
    if connection is None:
        return ""
    return _command(connection, call.method, bytes(call.params).decode())


async def _call_test(inspector: Inspector, params: SavedCallParams) -> str:
    """Run a saved call, and return a test suite that expects the result that it has now."""
    call = _saved(inspector, params.name)
    connection = inspector.connected(params.connection or call.connection)
    sent = await _sent(inspector, connection, call.method, bytes(call.params))
    await connection.settled()
    inspector.refresh()
    return await _row_test(inspector, RowParams(sent["recording"], sent["row"]))


async def _row_test(inspector: Inspector, params: RowParams) -> str:
    """A test suite that repeats a recorded call."""
    recording = _recording(inspector, params.recording)
    row = _row(recording, params.row)
    return call_suite(recording, row, _home(inspector, recording, row).target)


async def _connection_test(inspector: Inspector, params: ConnectionParams) -> str:
    """A test suite that repeats what was sent over a connection."""
    inspector.refresh()
    connection = inspector.connections.get(params.connection)
    if connection is None:
        raise ActError(f"There is no connection {params.connection}.")
    recording = _recording(inspector, connection.recording)
    return connection_suite(recording, connection.name, connection.target)


def _home(inspector: Inspector, recording: Recording, row: TapeRow) -> Connection:
    """The connection of a row."""
    found = inspector.connections.get(recording.connections.get(row.connection, ""))
    if found is None:
        raise ActError("The connection of this line is not listed.")
    return found


def _saved(inspector: Inspector, name: str) -> SavedCall:
    found = inspector.saved.all().get(name)
    if found is None:
        raise ActError(f"There is no saved call {name!r}.")
    return found


# -- comparison ------------------------------------------------------------------------------------


async def _compare(inspector: Inspector, params: CompareParams) -> JSONObject:
    one = await _catalogue(inspector, params.one)
    return comparison_state(one, await _catalogue(inspector, params.other))


async def _catalogue(inspector: Inspector, name: str) -> Catalogue:
    """What a server offers; of a tape, what it has last listed."""
    connection = inspector.connections.get(name)
    if connection is not None and connection.target.tape is not None:
        return read_catalogue(connection.target.tape)
    client = inspector.connected(name).client
    assert client is not None
    return await take_catalogue(client)


_LOOK = 0.02  # seconds between two looks at the tape for a request that was sent

ACTS: Mapping[str, Act] = {
    "connect": Act(ConnectParams, _connect),
    "disconnect": Act(ConnectionParams, _disconnect),
    "duplicate": Act(ConnectionParams, _duplicate),
    "rows": Act(RowsParams, _rows),
    "place": Act(PlaceParams, _place),
    "message": Act(RowParams, _message),
    "send": Act(SendParams, _send),
    "saveCall": Act(SaveCallParams, _save_call),
    "deleteCall": Act(SavedCallParams, _delete_call),
    "runCall": Act(SavedCallParams, _run_call),
    "callCommand": Act(SavedCallParams, _call_command),
    "callTest": Act(SavedCallParams, _call_test),
    "rowTest": Act(RowParams, _row_test),
    "connectionTest": Act(ConnectionParams, _connection_test),
    "compare": Act(CompareParams, _compare),
    **FEATURE_ACTS,
}
"""The acts by name."""
