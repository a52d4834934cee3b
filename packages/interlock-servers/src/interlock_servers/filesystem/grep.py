"""Searches for a regular expression in a separate process, which is killed if it backtracks
forever.

It runs by itself and needs only the standard library. It reads a line of JSON with `pattern`,
`ignore_case`, `most` and `seconds`, and answers with a line of JSON: null, or what is wrong with
the pattern. Then it reads files, each as its size in eight bytes and its bytes, and answers each
with a line of JSON: the numbers of the lines that match.

Catastrophic backtracking, as of `(a+)+$`, is the risk. The processor time is therefore limited:
`seconds`, and one more for each 4 MiB that is searched. Then a signal ends the process.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from typing import BinaryIO

BYTES_A_SECOND = 4 * 1024 * 1024  # any reasonable pattern is several times faster


def answer(data: bytes, pattern: re.Pattern[str], most: int) -> list[int]:
    """The numbers of the lines that match a pattern, from 1; none if the data is not text."""
    if b"\0" in data[:4096]:
        return []
    found = []
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        if pattern.search(line.removesuffix("\r")):
            found.append(number)
            if len(found) >= most:
                break
    return found


def main(given: BinaryIO, output: BinaryIO) -> None:
    """Answer requests until the input ends."""

    def say(value: object) -> None:
        output.write(json.dumps(value).encode() + b"\n")
        output.flush()

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
    """Let a signal end the process after `seconds` of processor time in total."""
    if hasattr(signal, "setitimer"):  # not on Windows
        left = max(seconds - time.process_time(), 0.01)
        signal.setitimer(signal.ITIMER_PROF, left)


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
