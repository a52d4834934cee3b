"""Tapes: recorded messages of a conversation, as lines of JSON that people can read and compare."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ..transport.channel import Channel
from ..wire.jsonrpc import READ_ERRORS, Frame
from .blanks import Blanks

Sender = Literal["client", "server"]
"""The side that sent a message."""

VOLATILE = ("requestState", "elicitationId")
"""The members that differ in each run, which `blanked` replaces by default."""

_NOTICES = {
    f"notifications/{what}"
    for what in (
        "resources/updated",
        *(f"{s}/list_changed" for s in ("tools", "prompts", "resources")),
    )
}
_REFERENCE = re.compile(r"\(reference [0-9a-f]+\)")
_json = msgspec.json.Decoder().decode


class Line(Struct, frozen=True):
    """One message of a tape.

    Attributes:
        sender: Who sent it.
        frame: Its bytes, without framing.
        at: Seconds since the tape began.
    """

    sender: Sender
    frame: Frame
    at: float = 0.0

    @property
    def message(self) -> Any:
        """The decoded message; None if the bytes are not JSON."""
        try:
            return _json(self.frame)
        except READ_ERRORS:
            return None

    @property
    def is_notice(self) -> bool:
        """Whether it notifies of a change. The order of such notifications and of responses is not
        guaranteed.
        """
        message = self.message
        return isinstance(message, dict) and message.get("method") in _NOTICES

    def __str__(self) -> str:
        arrow = "-->" if self.sender == "client" else "<--"
        return f"{arrow} {self.frame.decode('utf-8', 'backslashreplace')}"


class Tape:
    """A recorded or expected conversation. `hear` records it, as a tap for `Server.transport`,
    `Stdio` and `Socket`.

    Args:
        lines: The messages.
        about: The header of a saved tape.
        now: The clock, in seconds.
    """

    def __init__(
        self,
        lines: Iterable[Line] = (),
        *,
        about: Mapping[str, Any] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lines = list(lines)
        self.about = dict(about or {})
        self._now = now
        self._began = now()

    def hear(self, sender: str, frame: Frame) -> None:
        """Record a message."""
        self.lines.append(
            Line(
                "client" if sender == "client" else "server",
                bytes(frame),
                round(self._now() - self._began, 6),
            )
        )

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __str__(self) -> str:
        return "\n".join(map(str, self.lines))

    def messages(self, sender: Sender | None = None) -> list[Any]:
        """The decoded messages of one side or of both."""
        return [line.message for line in self.lines if sender in (None, line.sender)]

    def methods(self, sender: Sender | None = None) -> list[str]:
        """The methods of requests and notifications, in order."""
        return [m["method"] for m in self.messages(sender) if isinstance(m, dict) and "method" in m]

    def blanked(self, names: Sequence[str] = VOLATILE) -> Tape:
        """The tape with blanks (see `interlock.testing.blanks`) for members with these names and
        for error references.
        """
        blanking = _Blanking(frozenset(names))
        return Tape(
            [replace(line, frame=blanking.frame(line)) for line in self.lines], about=self.about
        )

    def differences(self, actual: Tape, *, ids: bool = True) -> list[str]:
        """The differences of another tape from this one, one line each. Without `ids`, JSON-RPC ids
        may differ.

        Notifications of changes may come before or after adjacent responses.
        """
        blanks = Blanks()
        found = []
        for number, (ours, theirs) in enumerate(
            zip(_settled(self.lines), _settled(actual.lines), strict=False), 1
        ):
            if ours.sender != theirs.sender:
                found.append(
                    f"message {number}: expected one of the {ours.sender}, got one of the"
                    f" {theirs.sender}: {theirs}"
                )
            else:
                found += [
                    f"message {number} of the {ours.sender}{d}"
                    for d in differences(blanks, ours.frame, theirs.frame, ids=ids)
                ]
        found += [
            f"message {n}: expected {line}, got nothing"
            for n, line in _beyond(self.lines, len(actual.lines))
        ]
        found += [
            f"message {n}: expected nothing, got {line}"
            for n, line in _beyond(actual.lines, len(self.lines))
        ]
        return found

    def check(self, path: str | Path, *, update: bool = False, ids: bool = True) -> None:
        """Compare this tape with a saved one.

        Args:
            path: The file of the saved tape.
            update: Whether to save this tape instead, with blanks.
            ids: Whether the ids of requests are compared.

        Raises:
            AssertionError: They differ.
        """
        path = Path(path)
        if update:
            self.blanked().save(path)
            return
        if not path.is_file():
            raise AssertionError(
                f"there is no tape {path} to compare with; run pytest with --interlock-update to"
                " save one"
            )
        if found := Tape.load(path).differences(self, ids=ids):
            raise AssertionError(f"the conversation is not as {path} has it:\n" + "\n".join(found))

    # -- as text -----------------------------------------------------------------------------------

    def save(self, path: str | Path, *, times: bool = False) -> None:
        """Write the tape, with one line of JSON for each message; `times` adds its time."""
        Path(path).write_bytes(self.to_bytes(times=times))

    def to_bytes(self, *, times: bool = False) -> bytes:
        """The tape as `save` writes it."""
        head = [msgspec.json.encode({"about": self.about})] if self.about else []
        return b"".join(
            line + b"\n" for line in [*head, *(_written(line, times) for line in self.lines)]
        )

    @classmethod
    def load(cls, path: str | Path) -> Tape:
        """Read a tape that was saved or written by hand.

        Raises ValueError for an invalid line.
        """
        return cls.from_bytes(Path(path).read_bytes(), str(path))

    @classmethod
    def from_bytes(cls, text: bytes, name: str = "the tape") -> Tape:
        """Read a tape in the format of `to_bytes`. Empty lines are ignored, and so is a
        `remark`.
        """
        tape = cls()
        for number, line in enumerate(text.split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                fields = msgspec.json.decode(line, type=dict[str, Raw])
                _read(fields, tape)
            except (msgspec.DecodeError, ValueError) as bad:
                raise ValueError(f"{name}, line {number}: {bad}") from None
        return tape


class Taped:
    """A channel that records its messages on a tape.

    Args:
        channel: The channel.
        tape: The tape.
        here: The side that the channel belongs to.
    """

    def __init__(self, channel: Channel, tape: Tape, here: Sender = "client") -> None:
        self.channel = channel
        self.tape = tape
        self._here = here
        self._there: Sender = "server" if here == "client" else "client"

    async def receive(self) -> list[Frame]:
        """The next frames; an empty list at the end."""
        frames = await self.channel.receive()
        for frame in frames:
            self.tape.hear(self._there, frame)
        return frames

    def send(self, frames: list[Frame]) -> None:
        """Queue frames to be written."""
        for frame in frames:
            self.tape.hear(self._here, frame)
        self.channel.send(frames)

    async def drain(self) -> None:
        """Wait until the queue is short enough."""
        await self.channel.drain()

    async def aclose(self) -> None:
        """Close the channel."""
        await self.channel.aclose()

    @property
    def queued(self) -> int:
        """Bytes sent and not yet written."""
        return self.channel.queued

    @property
    def lost(self) -> str:
        """Why frames were dropped since the last call."""
        return self.channel.lost


def differences(blanks: Blanks, expected: Frame, actual: Frame, *, ids: bool = True) -> list[str]:
    """The differences of a message from the expected one, one line each, with its path first. They
    are compared as bytes if one of them is not JSON.
    """
    try:
        wanted = _json(expected)
        got = _json(actual)
    except READ_ERRORS:
        return [] if expected == actual else [f": expected {expected!r}, got {actual!r}"]
    if not ids and isinstance(wanted, dict) and isinstance(got, dict):
        wanted = {**wanted}
        got = {**got}
        if wanted.pop("id", None) is not None and got.pop("id", None) is None:
            return [": expected a message with an id"]
    return [f", {d}" for d in blanks.differences(wanted, got)]


def _settled(lines: list[Line]) -> list[Line]:
    """The lines, with the notifications last among consecutive messages of the server."""
    runs = (list(run) for _, run in groupby(lines, key=lambda line: line.sender))
    return [line for run in runs for line in sorted(run, key=lambda line: line.is_notice)]


def _beyond(lines: list[Line], length: int) -> Iterator[tuple[int, Line]]:
    return ((number, line) for number, line in enumerate(lines[length:], length + 1))


def _written(line: Line, times: bool) -> bytes:
    """One line of a tape. Bytes that are not JSON are written as text, or as base64 if they are not
    UTF-8.
    """
    time_ = b'"at":%b,' % msgspec.json.encode(line.at) if times else b""
    if line.message is not None and b"\n" not in line.frame:
        return b'{%b"%b":%b}' % (time_, line.sender.encode(), line.frame)
    try:
        kind = "text"
        text = line.frame.decode()
    except UnicodeDecodeError:
        kind = "base64"
        text = base64.b64encode(line.frame).decode()
    return b'{%b"%b":{"%b":%b}}' % (
        time_,
        f"{line.sender} bytes".encode(),
        kind.encode(),
        msgspec.json.encode(text),
    )


def _read(fields: dict[str, Raw], tape: Tape) -> None:
    at = msgspec.json.decode(fields.pop("at", Raw(b"0")), type=float)
    if "about" in fields:
        tape.about.update(msgspec.json.decode(fields["about"], type=dict[str, Any]))
        return
    if "remark" in fields:
        return
    for sender in ("client", "server"):
        if sender in fields:
            tape.lines.append(
                Line("client" if sender == "client" else "server", bytes(fields[sender]), at)
            )
            return
        if f"{sender} bytes" in fields:
            given = msgspec.json.decode(fields[f"{sender} bytes"], type=dict[str, str])
            frame = (
                base64.b64decode(given["base64"]) if "base64" in given else given["text"].encode()
            )
            tape.lines.append(Line("client" if sender == "client" else "server", frame, at))
            return
    raise ValueError('a line of a tape has a "client", a "server", an "about" or a "remark"')


class _Blanking:
    """Replaces values that differ in each run by blanks. The same value gets the same blank."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._known: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def frame(self, line: Line) -> Frame:
        message = line.message
        if message is None:
            return line.frame
        blanked = self._walk(message)
        return line.frame if blanked == message else msgspec.json.encode(blanked)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                k: self._blank(k, v) if k in self._names and isinstance(v, str) else self._walk(v)
                for k, v in value.items()
            }
        if isinstance(value, list):
            return [self._walk(item) for item in value]
        return _REFERENCE.sub("(reference ${_})", value) if isinstance(value, str) else value

    def _blank(self, name: str, value: str) -> str:
        if value not in self._known:
            self._counts[name] = self._counts.get(name, 0) + 1
            self._known[value] = f"${{{name}-{self._counts[name]}}}"
        return self._known[value]
