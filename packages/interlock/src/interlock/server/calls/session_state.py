"""Session state: JSON values that a server keeps for one client's session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from ... import types as t
from ...exchange import Exchange, SessionStorage
from ...wire.revisions import Era
from .never_awaited import Started, to_be_awaited

DEFAULT_STATE_BYTES = 64 * 1024
_MOST_TRIES = 100  # attempts while other calls change the same state
_read = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_ABSENT = Raw()


class SessionState:
    """JSON values by key that all calls of one session share. They are deleted with the session.

    Over HTTP the state is in the session store, so every worker has it. Over stdio and in memory
    the connection is the session. Values are encoded as JSON: you read a copy, and a dataclass
    comes back as a dict. Calls may run at the same time: use `update` for a value that depends on
    the previous one.
    """

    _path = "ctx.session_state"

    def __init__(self, storage: SessionStorage, most: int, started: Started) -> None:
        self._storage = storage
        self._most = most
        self._started = started

    @to_be_awaited
    async def get(self, key: str, default: Any = None) -> Any:
        """Read a value.

        Args:
            key: The name of the value.
            default: The result if there is no such value.

        Raises:
            NoSession: The session has ended.
        """
        raw = _values(await self._load()).get(key)
        return default if raw is None else _decode(raw)

    @to_be_awaited
    async def set(self, key: str, value: Any) -> None:
        """Store a value.

        Args:
            key: The name of the value.
            value: Any value that can be encoded as JSON.

        Raises:
            NoSession: The session has ended.
            ToolError: The state of the session would be too large.
            TypeError: The value cannot be encoded as JSON.
        """
        encoded = Raw(_encode(value))
        await self._change(key, lambda _: encoded)

    @to_be_awaited
    async def delete(self, key: str) -> None:
        """Remove a value, if it exists.

        Args:
            key: The name of the value.

        Raises:
            NoSession: The session has ended.
        """
        await self._change(key, lambda _: _ABSENT)

    @to_be_awaited
    async def update(self, key: str, change: Callable[[Any], Any], default: Any = None) -> Any:
        """Replace a value by one computed from it, atomically.

        Args:
            key: The name of the value.
            change: A plain function from the old value to the new one. It is called again if
                another call was faster, so it must have no side effects.
            default: The argument of `change` if there is no value.

        Returns:
            The new value.

        Raises:
            NoSession: The session has ended.
            ToolError: The state of the session would be too large.
            TypeError: The value cannot be encoded as JSON.
        """

        def changed(old: Raw | None) -> Raw:
            return Raw(_encode(change(default if old is None else _decode(old))))

        return _decode(await self._change(key, changed))

    async def _load(self) -> bytes:
        state = await self._storage.load()
        if state is None:
            raise t.NoSession("The session has ended.")
        return state

    async def _change(self, key: str, change: Callable[[Raw | None], Raw]) -> Raw:
        for _ in range(_MOST_TRIES):
            was = await self._load()
            values = _values(was)
            new = change(values.get(key))
            if new is _ABSENT:
                values.pop(key, None)
            else:
                values[key] = new
            state = _encode(values) if values else b""
            if len(state) > max(self._most, len(was)):  # a state over the limit may still shrink
                raise t.ToolError(
                    f"There is no room for {key!r} in the session: its state would have"
                    f" {len(state):,} bytes, and may have {self._most:,}."
                )
            if state == was or await self._storage.save(state, was=was):
                return new
        raise t.ToolError("The session's state is changed by too many calls at once. Try again.")


def _values(state: bytes) -> dict[str, Raw]:
    return _read(state) if state else {}


def session_state(x: Exchange, most: int, started: Started) -> SessionState:
    """Return the state of the session that an exchange belongs to, of at most `most` bytes.

    Raises:
        NoSession: The exchange belongs to no session.
    """
    if x.session is not None:
        return SessionState(x.session, most, started)
    lacking = (
        f"MCP {x.caller.revision} has no sessions"
        if x.caller.era is Era.STATELESS
        else "this server keeps no sessions"
    )
    raise t.NoSession(
        f"This needs a session, and {lacking}. The author of the server can keep the state under an"
        " id that a tool returns and that later calls pass as an argument."
    )
