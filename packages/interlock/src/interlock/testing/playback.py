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
from .tape import Line, Sender, Tape, differences

PATIENCE = 5.0


class Playback:
    """A channel behind which a tape plays one part and checks what the other part says.

    Args:
        tape: The tape.
        part: The part that it plays, "client" or "server".
        patience: Seconds to wait for each message of the other part.
    """

    def __init__(self, tape: Tape, part: Sender, *, patience: float = PATIENCE) -> None:
        self.tape = tape
        self.part = part
        self.patience = patience
        self.troubles: list[str] = []
        self._next = 0
        self._matched: set[int] = set()  # lines that came before their turn, as notices may
        self._blanks = Blanks(
            inventing=part == "server"
        )  # what a server makes up, a client takes as it is
        self._heard: deque[Frame] = deque()  # what the peer said before it was its turn
        self._stirred = asyncio.Event()
        self._closed = False

    async def receive(self) -> list[Frame]:
        """What the tape says next; an empty list once the peer has left, or has kept silent for too
        long.
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
                for _ in range(10):  # what the server says beyond the end is noted too
                    await asyncio.sleep(0)
                return []
            await self._listen(line)
        return []

    def send(self, frames: list[Frame]) -> None:
        """Hear what the peer says."""
        self._heard.extend(bytes(frame) for frame in frames)
        self._compare()
        self._stirred.set()

    async def drain(self) -> None:
        """Nothing is queued here."""

    async def aclose(self) -> None:
        """The peer leaves."""
        self._closed = True
        self._stirred.set()

    @property
    def queued(self) -> int:
        """Nothing is queued here."""
        return 0

    @property
    def lost(self) -> str:
        """Nothing is lost here."""
        return ""

    def check(self) -> None:
        """Raise AssertionError where the peer did not do as the tape has it, or the tape was not
        played to its end.
        """
        troubles = [
            *self.troubles,
            *(f"beyond the end of the tape the peer sent {_text(frame)}" for frame in self._heard),
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
        while self._heard and (line := self._line()) is not None and line.sender == self._peer:
            frame = self._heard.popleft()
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

    def _place_of(self, heard: Line) -> int:
        """Which of the lines that may come now this is: the next one, or the next of its sort, for
        notices have a time of their own.
        """
        for at in range(self._next, len(self.tape.lines)):
            line = self.tape.lines[at]
            if line.sender != self._peer:
                break
            if at not in self._matched and line.is_notice == heard.is_notice:
                return at
        return self._next

    async def _listen(self, line: Line | None) -> None:
        """Wait until the peer says something or leaves; once the tape has ended, for as long as
        that takes.
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
    """Play the client's part of a tape to a server.

    Args:
        tape: The tape.
        server: The server.
        patience: Seconds to wait for each message of the server.

    Raises:
        AssertionError: The server does not answer as the tape has it.
    """
    playback = Playback(tape, "client", patience=patience)
    await server.serve(playback)
    playback.check()


@asynccontextmanager
async def replay_to_client(
    tape: Tape, *, patience: float = PATIENCE, **options: Unpack[ClientOptions]
) -> AsyncIterator[Client]:
    """A client to which a tape plays the server's part while the block makes the calls.

    Args:
        tape: The tape.
        patience: Seconds to wait for each message of the client.
        options: Those of Client.

    Raises:
        AssertionError: The client did not say what the tape has, at the end of the block. An error
            of the block itself comes first, unless the tape explains it.
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
