"""`python -m benchmarks.finding`: what it takes to find tools among 2,000, and entries in a log of 100,000."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from interlock.host.events import CallEnded
from interlock.host.log import SqliteLog
from interlock.host.toolbox import Toolbox
from tests.host.catalogue import catalogue
from tests.host.test_finding import WANTED

ENTRIES = 100_000
ROUNDS = 5


def main() -> None:
    """Print the figures, in milliseconds; those of the toolbox are of the processor, which others may be using as well."""
    built, changed, asked = [], [], []
    for _ in range(ROUNDS):
        box = Toolbox()
        built.append(_took(lambda box=box: _fill(box)))
        tools = catalogue()["github"]
        changed.append(_took(lambda box=box, tools=tools: (box.put("github", tools[1:]), box.search("x"))))
        asked += [_took(lambda box=box, words=words: box.search(words)) for words in WANTED]
    print(f"index of 2,000 tools {_figures(built)}")
    print(f"one tool less        {_figures(changed)}")
    print(f"search for a tool    {_figures(asked)}")
    asyncio.run(_log())


def _fill(box: Toolbox) -> None:
    for server, tools in catalogue().items():
        box.put(server, tools)
    box.search("x")


async def _log() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = SqliteLog(Path(folder) / "log.db")
        await log.open()
        began = time.perf_counter()
        for number in range(ENTRIES):
            log.note(CallEnded(session=f"s{number % 100}", server="a", call=str(number), given=f"answer {number} needle{number % 1000}"))
            if number % 1000 == 0:
                await log.flush()
        await log.flush()
        print(f"writing {ENTRIES:,} entries  {(time.perf_counter() - began) * 1000:.0f} ms")
        for words, where in (
            ("needle7", {}),
            ("answer", {}),
            ("answer", {"session": "s7"}),
            ("", {"session": "s7"}),
            ("answer needle99", {}),
        ):
            times = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                await log.search(words, **where)
                times.append((time.perf_counter() - began) * 1000)
            print(f"search for {words!r:18} {where or ''!s:18} {_figures(times)}")
        await log.aclose()


def _took(work: object) -> float:
    assert callable(work)
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1000


def _figures(times: Sequence[float]) -> str:
    return f"median {statistics.median(times):8.2f} ms   most {max(times):8.2f} ms"


if __name__ == "__main__":
    main()
