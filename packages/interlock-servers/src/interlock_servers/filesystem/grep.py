"""Looks for a pattern in what is sent to it, in a process of its own: a pattern that takes for ever is ended with the process.

It is run by itself, with nothing but the standard library. First comes a line of JSON with `pattern`, `ignore_case`, `most` and
`seconds`; the answer is a line of JSON, null or what is wrong with the pattern. Then comes for each file its size in eight bytes and its
bytes. For each it answers with a line of JSON: the numbers of the lines that hold the pattern.

The time that a pattern may take grows with what is searched and not with how it can be matched: `seconds` of processor time, and one more
for each 4 MiB. A pattern that backtracks without end, such as `(a+)+$`, is over after that, by a signal that ends the process.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from typing import BinaryIO

BYTES_A_SECOND = 4 * 1024 * 1024  # what any honest pattern does several times over


def answer(data: bytes, pattern: re.Pattern[str], most: int) -> list[int]:
    """The numbers of the lines that hold a pattern, from 1; none where this is no text."""
    if b"\0" in data[:4096]:
        return []
    found = []
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if pattern.search(line.removesuffix("\r")):
            found.append(number)
            if len(found) >= most:
                break
    return found


def main(given: BinaryIO, told: BinaryIO) -> None:
    """Answer until there is no more."""

    def say(value: object) -> None:
        told.write(json.dumps(value).encode() + b"\n")
        told.flush()

    head = json.loads(given.readline())
    try:
        pattern = re.compile(head["pattern"], re.IGNORECASE if head["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as bad:
        say(str(bad))
        return
    say(None)
    searched = 0
    while size := given.read(8):
        data = given.read(int.from_bytes(size, "big"))
        searched += len(data)
        allow(head["seconds"] + searched / BYTES_A_SECOND)
        say(answer(data, pattern, head["most"]))


def allow(seconds: float) -> None:
    """Have the process ended, by a signal, once it has used so many seconds of processor time in all."""
    if hasattr(signal, "setitimer"):  # not on Windows
        left = max(seconds - time.process_time(), 0.01)
        signal.setitimer(signal.ITIMER_PROF, left)


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
