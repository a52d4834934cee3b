"""Saved calls: requests that the person named, to send them again. They are kept in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from interlock import InterlockError
from interlock.store import file_lock, write_atomic

MOST_CALLS = 500
_PATIENCE = 5.0  # seconds to wait while another inspector writes


class SavedCall(Struct, frozen=True):
    """A saved request.

    Attributes:
        name: Its name, which the person gave.
        connection: The connection that it was sent over.
        method: Its method.
        params: Its params as they were typed: JSON.
    """

    name: str
    connection: str
    method: str
    params: Raw


class SavedCalls:
    """The saved calls of a user, in one file for all inspectors.

    Args:
        path: The file. It need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def all(self) -> dict[str, SavedCall]:
        """The calls by name, in the order in which they were saved.

        Raises InterlockError if the file cannot be read.
        """
        try:
            data = self._path.read_bytes()
            calls = msgspec.json.decode(data, type=list[SavedCall])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as bad:
            raise InterlockError(f"The saved calls in {self._path} cannot be read: {bad}") from None
        return {call.name: call for call in calls}

    def state(self) -> list[dict[str, Any]]:
        """The calls as JSON values; none if the file cannot be read, which `all` reports."""
        try:
            calls = self.all()
        except InterlockError:
            return []
        return [
            {
                "name": call.name,
                "connection": call.connection,
                "method": call.method,
                "params": bytes(call.params).decode(),
            }
            for call in calls.values()
        ]

    def save(self, call: SavedCall) -> None:
        """Save a call, in place of one with the same name.

        Raises InterlockError if there are too many, OSError if the file cannot be written.
        """
        with self._locked():
            calls = self.all()
            if call.name not in calls and len(calls) >= MOST_CALLS:
                raise InterlockError(f"There are {MOST_CALLS} saved calls. Delete one first.")
            calls[call.name] = call
            self._write(calls)

    def delete(self, name: str) -> None:
        """Delete a call, if there is one of that name. Raises InterlockError, OSError."""
        with self._locked():
            calls = self.all()
            if calls.pop(name, None) is not None:
                self._write(calls)

    def _locked(self) -> Any:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return file_lock(self._path.with_name(f".{self._path.name}.turn"), patience=_PATIENCE)

    def _write(self, calls: dict[str, SavedCall]) -> None:
        lines = ",\n".join(msgspec.json.encode(call).decode() for call in calls.values())
        write_atomic(self._path, f"[\n{lines}\n]\n".encode())
