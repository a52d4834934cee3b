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

from interlock.tape import TapeFile, replay_recording, {reach}

HERE = Path(__file__).parent
TAPE = HERE / {tape!r}
{target}


async def replay() -> list[str]:
    """Send the server what the client sent, and return the differences of its answers."""
    with TapeFile(TAPE) as tape:
        recorded = [tape.conversation(name) for name in {connections}]
    found = []
    for conversation in recorded:
        async with {reached} as channel:
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
    url: str,
    connection: str | None,
    volatile: Sequence[str],
    ignore: Sequence[str],
) -> None:
    """Write a test that replays a tape to a server: the process of a command, or one at a URL.

    Args:
        path: The file of the test. It must not exist.
        tape: The tape, which the test refers to by its path relative to the test.
        command: The command of the server, run in the folder that is current now; empty for one at
            a URL.
        url: The URL of the server, which is written into the test; empty for a command.
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
        reach="server_at" if url else "server_process",
        target=f"URL = {url!r}" if url else f"COMMAND = [{', '.join(words)}]",
        reached="server_at(URL)"
        if url
        else f"server_process(COMMAND, cwd=HERE / {os.path.relpath(Path.cwd(), here)!r})",
        connections="tape.connections" if connection is None else [connection],
        volatile=list(volatile),
        ignore=list(ignore),
        name=name,
    )
    if "sys.executable" not in words:
        text = text.replace("import sys\n", "", 1)
    with open(path, "x", encoding="utf-8") as file:
        file.write(text)
