"""Looks for a pattern in what is sent to it, in a process of its own: a pattern that takes for ever is ended with the process.

It is run by itself, with nothing but the standard library. First comes a line of JSON with `pattern`, `ignore_case` and `most`; the answer
is a line of JSON, null or what is wrong with the pattern. Then comes for each file its size in eight bytes and its bytes. For each it
answers with a line of JSON: the numbers of the lines that hold the pattern.
"""

from __future__ import annotations

import json
import re
import sys
from typing import BinaryIO


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
    while size := given.read(8):
        say(answer(given.read(int.from_bytes(size, "big")), pattern, head["most"]))


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
