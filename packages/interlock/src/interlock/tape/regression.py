"""Regression tests with a recording: send a server what the client sent, and compare its answers.

Responses and questions of the server are compared by value. Values that differ in each run (states,
cursors, task ids, UUIDs, times, the server's version) are mapped: the server's new value takes the
place of the recorded one wherever the client sends it back. So do the names that the server gives
the questions of an `input_required` result. Responses may come in any order, and notifications
before or after them. Progress and log messages are not compared, because their number depends on
the speed of the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET

from ..http11.fetch import Authorizer
from ..transport.channel import Channel
from ..transport.pipes import open_pipe_channel
from ..types.base import RequestId
from ..wire.jsonrpc import (
    Envelope,
    Frame,
    Malformed,
    encode_json,
    is_batch,
    open_batch,
    open_envelope,
)
from ..wire.lines import DEFAULT_LIMIT
from .blanking import RECORDED_VOLATILE, RecordedBlanking
from .blanks import Blanks
from .conversation import Tape
from .format import Line

PATIENCE = 10.0
"""Seconds to wait for each message of the server."""

_NOT_COMPARED = ("notifications/progress", "notifications/message")
_END_PATIENCE = 5.0  # seconds in which a server ends after its stdin has ended


async def replay_recording(
    tape: Tape,
    channel: Channel,
    *,
    patience: float = PATIENCE,
    volatile: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> list[str]:
    """Send a server the client's messages of one recorded connection, and compare its answers.

    Args:
        tape: The messages of one connection.
        channel: The connection to the server. It is closed at the end.
        patience: Seconds to wait for each message of the server.
        volatile: More members whose values differ in each run.
        ignore: Paths that are not compared, such as `/result/structuredContent/took`. They apply to
            every message.

    Returns:
        The differences, one line each, the first one first; empty if there are none.
    """
    regression = _Regression(tape, channel, patience, volatile, ignore)
    receiving = asyncio.create_task(regression.receive())
    try:
        return await regression.run()
    finally:
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
        await channel.aclose()


@contextlib.asynccontextmanager
async def server_process(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str | Path | None = None
) -> AsyncIterator[Channel]:
    """Start a server, and yield the channel to it; at the end of the block the server is ended. Its
    stderr is that of this process.

    Args:
        command: The command, run without a shell.
        env: The whole environment; that of this process by default.
        cwd: The working directory.

    Raises:
        OSError: The server cannot be started.
    """
    process = await asyncio.to_thread(
        subprocess.Popen,
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
        cwd=cwd,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    ends = (os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno()))
    process.stdin.close()
    process.stdout.close()
    channel = open_pipe_channel(*ends, limit=DEFAULT_LIMIT)
    try:
        yield channel
    finally:
        await channel.aclose()
        for end in (process.terminate, process.kill):
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, _END_PATIENCE)
                break
            end()
        await asyncio.to_thread(process.wait)


@contextlib.asynccontextmanager
async def server_at(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    auth: Authorizer | None = None,
) -> AsyncIterator[Channel]:
    """Yield a channel to a server at a URL. Each message is sent as it is written.

    Args:
        url: `https://host/path` or `http://`, `unix:///path` or `tcp://host:port`.
        headers: Headers of every HTTP request.
        auth: Authorizes each HTTP request, such as `interlock.auth.OAuth`.

    Raises:
        InterlockError: The server cannot be reached, or refuses access. Over HTTP the block ends
            first, because each message is a request of its own.
        ValueError: The URL has none of these forms.
    """
    parts = urlsplit(url)
    if parts.scheme in ("http", "https"):
        from .http_replay import HttpReplayChannel  # late: a server of a command needs no HTTP

        posting = HttpReplayChannel(url, headers=headers, auth=auth)
        try:
            yield posting
        finally:
            await posting.aclose()
        if posting.error is not None:
            raise posting.error
        return
    from ..transport.sockets import connect  # late: as above

    if parts.scheme == "unix" and parts.netloc + parts.path:
        channel = await connect(parts.netloc + parts.path)
    elif parts.scheme == "tcp" and parts.hostname and parts.port:
        channel = await connect((parts.hostname, parts.port))
    else:
        raise ValueError(
            f"{url} is not an address; use https://host/path, unix:///path or tcp://host:port"
        )
    try:
        yield channel
    finally:
        await channel.aclose()


class _Regression:
    def __init__(
        self,
        tape: Tape,
        channel: Channel,
        patience: float,
        volatile: Sequence[str],
        ignore: Sequence[str],
    ) -> None:
        blanking = RecordedBlanking((*RECORDED_VOLATILE, *volatile))
        self._lines = [
            part
            for line in tape.lines
            for part in _messages_of(msgspec.structs.replace(line, frame=blanking.frame(line)))
        ]
        self._blanks = Blanks()
        self._blanks.values.update(blanking.literals)
        self._channel = channel
        self._patience = patience
        self._ignore = tuple(ignore)
        self._differences: list[str] = []
        self._methods: dict[RequestId, str] = {}  # of the client's requests, for messages
        self._questions: dict[RequestId, RequestId] = {}  # recorded id of the server -> its id now
        self._keys: dict[str, str] = {}  # recorded name of a question in a result -> its name now
        self._responses: dict[RequestId, Frame] = {}
        self._asked: list[tuple[Envelope, Frame]] = []
        self._notifications: deque[tuple[str, Frame]] = deque()
        self._has_ended = False
        self._stirred = asyncio.Event()

    async def receive(self) -> None:
        """Sort the server's messages by kind until the connection ends."""
        while frames := await self._channel.receive():
            for frame in frames:
                self._sort(frame)
            self._stirred.set()
        self._has_ended = True
        self._stirred.set()

    def _sort(self, frame: Frame) -> None:
        try:
            for each in open_batch(frame) if is_batch(frame) else [frame]:
                self._sort_one(each)
        except Malformed as bad:
            self._differences.append(f"the server sent what is not JSON-RPC: {bad}")

    def _sort_one(self, frame: Frame) -> None:
        envelope = open_envelope(frame)
        if envelope.method is UNSET:
            if isinstance(envelope.id, int | str):
                self._responses[envelope.id] = frame
        elif envelope.id is UNSET:
            self._notifications.append((envelope.method, frame))
        else:
            self._asked.append((envelope, frame))

    async def run(self) -> list[str]:
        """Walk through the tape."""
        for number, line in enumerate(self._lines, 1):
            if line.sender == "client":
                self._send(line, number)
            elif not await self._compare(line, number):
                break
        return self._differences

    # -- the client's messages ---------------------------------------------------------------------

    def _send(self, line: Line, number: int) -> None:
        message = line.message
        if not isinstance(message, dict):
            for each in message if isinstance(message, list) else ():
                if isinstance(each, dict) and isinstance(each.get("id"), int | str):
                    self._methods[each["id"]] = _title(each) if "method" in each else "a batch"
            self._channel.send([line.frame])
            return
        try:
            message = self._blanks.fill(message)
        except ValueError as bad:
            self._differences.append(f"message {number} of the client: {bad}")
            return
        id = message.get("id")
        if "method" in message:
            if isinstance(id, int | str):
                self._methods[id] = _title(message)
            self._rename_answers(message)
        elif isinstance(id, int | str):
            message["id"] = self._questions.get(id, id)
        self._channel.send([encode_json(message)])

    # -- the server's messages ---------------------------------------------------------------------

    async def _compare(self, line: Line, number: int) -> bool:
        """Wait for the counterpart of a recorded message, and compare. Returns whether it makes
        sense to go on.
        """
        message = line.message
        if not isinstance(message, dict):
            return True  # the recorded server wrote something else than messages to its stdout
        method = message.get("method")
        id = message.get("id")
        if method in _NOT_COMPARED:
            return True
        where = f"message {number} of the server, {method}"
        if not isinstance(method, str):
            if not isinstance(id, int | str):
                return True  # an error for a message whose id could not be read
            answered = self._methods.get(id, "an unknown request")
            where = f"message {number} of the server, the answer to {answered}"
            return await self._meet(lambda: self._responses.pop(id, None), message, where)
        if isinstance(id, int | str):
            return await self._meet(lambda: self._take_question(method, id), message, where)
        return await self._meet(lambda: self._take_notification(method), message, where)

    def _take_notification(self, method: str) -> Frame | None:
        for found in self._notifications:
            if found[0] == method:
                self._notifications.remove(found)
                return found[1]
        return None

    def _take_question(self, method: str, recorded: RequestId) -> Frame | None:
        for found in self._asked:
            envelope, frame = found
            if envelope.method == method and isinstance(envelope.id, int | str):
                self._asked.remove(found)
                self._questions[recorded] = envelope.id
                return frame
        return None

    async def _meet(
        self, take: Callable[[], Frame | None], message: dict[str, Any], where: str
    ) -> bool:
        frame = await self._await(take)
        if frame is None:
            ended = "the server closed the connection" if self._has_ended else "it did not come"
            limit = "" if self._has_ended else f" within {self._patience:g} seconds"
            self._differences.append(f"{where}: {ended}{limit}")
            return False
        got = msgspec.json.decode(frame)
        expected = {**message}
        if "method" in message:  # the ids of its questions are the server's own
            expected.pop("id", None)
            got.pop("id", None)
        self._rename_questions(expected, got)
        self._differences += [
            f"{where}, {difference}"
            for difference in self._blanks.differences(expected, got)
            if not self._is_ignored(difference)
        ]
        return True

    # -- questions in results ----------------------------------------------------------------------

    def _rename_questions(self, expected: dict[str, Any], got: dict[str, Any]) -> None:
        """Give the questions of an `input_required` result the recorded names, in order. The names
        are the server's own, and may differ in each run.
        """
        recorded = _questions_of(expected)
        now = _questions_of(got)
        if len(recorded) != len(now) or recorded.keys() == now.keys():
            return
        self._keys.update(zip(recorded, now, strict=True))
        got["result"]["inputRequests"] = dict(zip(recorded, now.values(), strict=True))

    def _rename_answers(self, message: dict[str, Any]) -> None:
        """Give the answers to such questions the names that the server has used."""
        params = message.get("params")
        if not isinstance(params, dict):
            return
        answers = params.get("inputResponses")
        if isinstance(answers, dict):
            params["inputResponses"] = {
                self._keys.get(name, name): answer for name, answer in answers.items()
            }

    def _is_ignored(self, difference: str) -> bool:
        path = difference.partition(": ")[0]
        return any(path == each or path.startswith(f"{each}/") for each in self._ignore)

    async def _await(self, take: Callable[[], Frame | None]) -> Frame | None:
        try:
            async with asyncio.timeout(self._patience):
                while (frame := take()) is None and not self._has_ended:
                    self._stirred.clear()
                    await self._stirred.wait()
        except TimeoutError:
            return take()
        return frame if frame is not None else take()


def _title(message: Mapping[str, Any]) -> str:
    params = message.get("params")
    name = params.get("name") or params.get("uri") if isinstance(params, dict) else None
    return f"{message['method']} {name}" if isinstance(name, str) else str(message["method"])


def _questions_of(message: Mapping[str, Any]) -> dict[str, Any]:
    """The questions of an `input_required` result, by name."""
    result = message.get("result")
    questions = result.get("inputRequests") if isinstance(result, dict) else None
    return questions if isinstance(questions, dict) else {}


def _messages_of(line: Line) -> list[Line]:
    """The messages of a batch of the server, whose order and grouping are its own; any other line
    as it is.
    """
    message = line.message
    if line.sender == "client" or not isinstance(message, list):
        return [line]
    return [msgspec.structs.replace(line, frame=encode_json(each)) for each in message]
