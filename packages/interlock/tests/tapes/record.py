"""Records the tapes of the scenarios, and the server's part of those by hand: `python -m
tests.tapes.record [NAME ...]`.

A tape is only as correct as the code that recorded it. Each tape was compared with the
specification by hand. After you record tapes again, compare them too: read `git diff
packages/interlock/tests/tapes`.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from interlock import Client, Duplex
from interlock.tape import Tape
from interlock.testing import channel_pair
from tests.tapes.by_hand import TAPES, answer_anew
from tests.tapes.scenarios import SCENARIOS, Scenario

HERE = Path(__file__).parent


async def record(scenario: Scenario, revision: str) -> Tape:
    """The tape of one scenario under one revision."""
    ours, theirs = channel_pair()
    tape = Tape(
        about={"title": f"{scenario.name} ({revision}): {scenario.title}", "revision": revision}
    )
    serving = asyncio.create_task(scenario.make_server(revision).serve(theirs))
    async with Client(Duplex(ours, tap=tape.record), **scenario.client_options(revision)) as client:
        await scenario.drive(client)
    await serving
    return tape.blanked()


def path_of(scenario: Scenario, revision: str) -> Path:
    """Where a tape lies."""
    return HERE / revision / f"{scenario.name}.jsonl"


def main(names: list[str]) -> None:
    """Record the scenarios of these names, or all."""
    for scenario in SCENARIOS.values():
        for revision in scenario.revisions if not names or scenario.name in names else ():
            tape = asyncio.run(record(scenario, revision))
            path = path_of(scenario, revision)
            path.parent.mkdir(exist_ok=True)
            tape.save(path)
            print(f"{path.relative_to(HERE)}: {len(tape)} messages")
    for path in TAPES:
        if not names or path.stem in names:
            answer_anew(path)
            print(f"{path.relative_to(HERE)}: the server's part")


if __name__ == "__main__":
    logging.disable(logging.ERROR)  # the tool that crashes says so, as it should
    main(sys.argv[1:])
