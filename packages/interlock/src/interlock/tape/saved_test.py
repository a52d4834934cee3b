"""Saved tests: a pytest file that replays a tape to a server and compares."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

_TEXT = '''"""Regression test: the server answers as it did when {tape} was recorded."""

import asyncio
import sys
from pathlib import Path

from interlock.tape import TapeFile, replay_recording, server_process

HERE = Path(__file__).parent
TAPE = HERE / {tape!r}
COMMAND = [{command}]


async def replay() -> list[str]:
    """Send the server what the client sent, and return the differences of its answers."""
    with TapeFile(TAPE) as tape:
        recorded = [tape.conversation(name) for name in {connections}]
    found = []
    for conversation in recorded:
        async with server_process(COMMAND, cwd=HERE / {folder!r}) as channel:
            found += await replay_recording(
                conversation, channel, volatile={volatile!r}, ignore={ignore!r}
            )
    return found


def test_{name}() -> None:
    """Nothing differs but ids, states, times and other values that differ in each run."""
    assert asyncio.run(replay()) == []
'''


def write_test(
    path: Path,
    tape: Path,
    command: Sequence[str],
    connection: str | None,
    volatile: Sequence[str],
    ignore: Sequence[str],
) -> None:
    """Write a test that starts a command and replays a tape to it.

    Args:
        path: The file of the test. It must not exist.
        tape: The tape, which the test refers to by its path relative to the test.
        command: The command of the server, run in the folder that is current now.
        connection: The connection of the tape; None for all.
        volatile: More members whose values differ in each run.
        ignore: Paths that are not compared.

    Raises:
        OSError: The file exists, or cannot be written.
    """
    here = path.resolve().parent
    name = "".join(sign if sign.isalnum() else "_" for sign in tape.stem)
    words = [
        "sys.executable"
        if os.path.realpath(word) == os.path.realpath(sys.executable)
        else repr(word)
        for word in command
    ]
    text = _TEXT.format(
        tape=os.path.relpath(tape, here),
        command=", ".join(words),
        connections="tape.connections" if connection is None else [connection],
        folder=os.path.relpath(Path.cwd(), here),
        volatile=list(volatile),
        ignore=list(ignore),
        name=name,
    )
    if "sys.executable" not in words:
        text = text.replace("import sys\n", "", 1)
    with open(path, "x", encoding="utf-8") as file:
        file.write(text)
