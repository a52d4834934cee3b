"""Tapes: recorded messages of a conversation, as lines of JSON that people can read and compare."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..transport.channel import Barriers, Channel, Pushing, Tap
from ..wire.jsonrpc import READ_ERRORS, Frame
from .blanking import VOLATILE, Blanking
from .blanks import Blanks
from .format import Line, Sender, TapeError, TapeHeader, decode_line, encode_frame

_json = msgspec.json.Decoder().decode


class Tape:
    """A recorded or expected conversation. `record` adds a message, and is a tap for
    `Server.transport`, `Stdio` and `Socket`.

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

    def record(self, sender: str, frame: Frame) -> None:
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
        """The tape with blanks (see `interlock.tape.blanks`) for members with these names and
        for error references.
        """
        blanking = Blanking(names)
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
            line + b"\n"
            for line in [
                *head,
                *(
                    encode_frame(line.sender, line.frame, line.at if times else None)
                    for line in self.lines
                ),
            ]
        )

    @classmethod
    def load(cls, path: str | Path) -> Tape:
        """Read a tape that was saved or written by hand.

        Raises TapeError for an invalid line.
        """
        return cls.from_bytes(Path(path).read_bytes(), str(path))

    @classmethod
    def from_bytes(cls, text: bytes, name: str = "the tape") -> Tape:
        """Read a tape in the format of `to_bytes`, or one that was recorded: its messages of all
        connections.

        Empty lines are ignored, and so are a `remark`, stderr and HTTP heads.
        """
        tape = cls()
        is_recorded = False
        lines = text.split(b"\n")
        for number, line in enumerate(lines, 1):
            try:
                found = decode_line(line)
            except TapeError as bad:
                if is_recorded and number == len(lines):
                    break  # the recorder was killed while it wrote this line
                raise TapeError(f"{name}, line {number}: {bad}") from None
            if isinstance(found, Line):
                tape.lines.append(found)
            elif isinstance(found, TapeHeader):
                tape.about.update(found.about)
                is_recorded = is_recorded or found.version > 0
        return tape


class Taped:
    """A channel that records its messages on a tape.

    Args:
        channel: The channel.
        tap: Called with each message, such as the `record` of a tape.
        here: The side that the channel belongs to.
    """

    def __init__(self, channel: Channel, tap: Tap, here: Sender = "client") -> None:
        self.channel = channel
        self.tap = tap
        self._here = here
        self._there: Sender = "server" if here == "client" else "client"

    async def receive(self) -> list[Frame]:
        """The next frames; an empty list at the end."""
        frames = await self.channel.receive()
        for frame in frames:
            self.tap(self._there, frame)
        return frames

    def send(self, frames: list[Frame]) -> None:
        """Queue frames to be written."""
        for frame in frames:
            self.tap(self._here, frame)
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


class TapedStream(Taped):
    """A channel with push delivery and write barriers, such as a pipe, that records its
    messages.
    """

    channel: Any

    def push(
        self, take: Callable[[list[Frame]], None], ended: Callable[[], None], *, patient: bool
    ) -> None:
        """Deliver frames by callback instead of `receive`."""

        def recorded(frames: list[Frame]) -> None:
            for frame in frames:
                self.tap(self._there, frame)
            take(frames)

        self.channel.push(recorded, ended, patient=patient)

    def barrier(self) -> None:
        """Hold back all later frames until the peer has read the earlier ones."""
        self.channel.barrier()


def taped(channel: Channel, tap: Tap, here: Sender) -> Taped:
    """Return a channel that records its messages, and can do what the channel can do."""
    if isinstance(channel, Pushing) and isinstance(channel, Barriers):
        return TapedStream(channel, tap, here)
    return Taped(channel, tap, here)


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
