"""Playback of one side of a tape to a real peer, with a report of every deviation."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Unpack

import msgspec

from ..client.app import Client
from ..client.options import ClientOptions
from ..server.app import Server
from ..wire.jsonrpc import Frame
from .blanks import Blanks
from .conversation import Tape, differences
from .format import Line, Sender

PATIENCE = 5.0


class Playback:
    """A channel that plays one side of a tape and checks the messages of the other side.

    Args:
        tape: The tape.
        part: The side that it plays, "client" or "server".
        patience: Seconds to wait for each message of the other side.
    """

    def __init__(self, tape: Tape, part: Sender, *, patience: float = PATIENCE) -> None:
        self.tape = tape
        self.part = part
        self.patience = patience
        self.troubles: list[str] = []
        self._next = 0
        self._matched: set[int] = set()  # lines that arrived early, as notifications may
        self._blanks = Blanks(
            inventing=part == "server"
        )  # a client accepts any value that a server invents
        self._received: deque[Frame] = deque()  # messages of the peer that arrived early
        self._stirred = asyncio.Event()
        self._closed = False

    async def receive(self) -> list[Frame]:
        """The next messages of the tape. An empty list after the peer has closed, or has been
        silent for too long.
        """
        while not self._closed:
            frames: list[Frame] = []
            while (line := self._line()) is not None and line.sender == self.part:
                frames.append(self._filled(line))
                self._next += 1
            if frames:
                self._compare()
                return frames
            if line is None and self.part == "client":
                for _ in range(10):  # also records messages of the server after the end of the tape
                    await asyncio.sleep(0)
                return []
            await self._listen(line)
        return []

    def send(self, frames: list[Frame]) -> None:
        """Receive messages of the peer."""
        self._received.extend(bytes(frame) for frame in frames)
        self._compare()
        self._stirred.set()

    async def drain(self) -> None:
        """Return at once: this channel has no queue."""

    async def aclose(self) -> None:
        """Close the channel."""
        self._closed = True
        self._stirred.set()

    @property
    def queued(self) -> int:
        """Always 0: this channel has no queue."""
        return 0

    @property
    def lost(self) -> str:
        """Always empty: no frames are lost here."""
        return ""

    def check(self) -> None:
        """Raise AssertionError if the peer deviated from the tape, or the tape was not played to
        its end.
        """
        troubles = [
            *self.troubles,
            *(
                f"beyond the end of the tape the peer sent {_text(frame)}"
                for frame in self._received
            ),
        ]
        left = [
            line
            for at, line in enumerate(self.tape.lines)
            if at >= self._next and at not in self._matched
        ]
        if left and not self.troubles:
            troubles.append(
                f"{len(left)} messages of the tape were not played, the first of them:\n  {left[0]}"
            )
        if troubles:
            title = self.tape.about.get("title", "the tape")
            raise AssertionError(
                f"{title}: the {self._peer} does not do as the tape has it:\n" + "\n".join(troubles)
            )

    @property
    def _peer(self) -> Sender:
        return "server" if self.part == "client" else "client"

    def _line(self) -> Line | None:
        return self.tape.lines[self._next] if self._next < len(self.tape.lines) else None

    def _filled(self, line: Line) -> Frame:
        if b"${" not in line.frame or line.message is None:
            return line.frame
        return msgspec.json.encode(self._blanks.fill(line.message))

    def _compare(self) -> None:
        while self._received and (line := self._line()) is not None and line.sender == self._peer:
            frame = self._received.popleft()
            at = self._place_of(Line(self._peer, frame))
            line = self.tape.lines[at]
            self._matched.add(at)
            while self._next in self._matched:
                self._next += 1
            found = differences(self._blanks, line.frame, frame)
            self.troubles += [f"message {at + 1}{difference}" for difference in found]
            if found:
                self.troubles.append(
                    f"  expected {line.frame.decode('utf-8', 'replace')}\n  got      {_text(frame)}"
                )

    def _place_of(self, received: Line) -> int:
        """The index of the line that this message corresponds to: the next line, or the next one of
        its kind, because notifications may arrive at other times.
        """
        for at in range(self._next, len(self.tape.lines)):
            line = self.tape.lines[at]
            if line.sender != self._peer:
                break
            if at not in self._matched and line.is_notice == received.is_notice:
                return at
        return self._next

    async def _listen(self, line: Line | None) -> None:
        """Wait until the peer sends a message or closes; without a limit after the end of the
        tape.
        """
        self._stirred.clear()
        try:
            async with asyncio.timeout(self.patience if line is not None else None):
                await self._stirred.wait()
        except TimeoutError:
            self.troubles.append(
                f"message {self._next + 1} did not come within {self.patience:g} seconds:\n  {line}"
            )
            self._closed = True


async def replay_to_server(tape: Tape, server: Server, *, patience: float = PATIENCE) -> None:
    """Play the client's side of a tape to a server.

    Args:
        tape: The tape.
        server: The server.
        patience: Seconds to wait for each message of the server.

    Raises:
        AssertionError: The server's messages differ from the tape.
    """
    playback = Playback(tape, "client", patience=patience)
    await server.serve(playback)
    playback.check()


@asynccontextmanager
async def replay_to_client(
    tape: Tape, *, patience: float = PATIENCE, **options: Unpack[ClientOptions]
) -> AsyncIterator[Client]:
    """A client that receives the server's side of a tape, while the block makes the calls.

    Args:
        tape: The tape.
        patience: Seconds to wait for each message of the client.
        options: Those of Client.

    Raises:
        AssertionError: At the end of the block, the client's messages differ from the tape. An
            error of the block itself takes precedence, unless the tape explains it.
    """
    playback = Playback(tape, "server", patience=patience)
    try:
        async with Client(playback, **options) as client:
            yield client
    except Exception as bad:
        if playback.troubles:
            try:
                playback.check()
            except AssertionError as better:
                raise better from bad
        raise
    playback.check()


def _text(frame: Frame) -> str:
    return frame.decode("utf-8", "backslashreplace")
