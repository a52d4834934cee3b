"""Every tape is replayed: its client's part to a server, its server's part to a client."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.testing import Tape, replay_to_client, replay_to_server

from .record import path_of, record
from .scenarios import SCENARIOS, Scenario

HERE = Path(__file__).parent
RECORDED = [(scenario, revision) for scenario in SCENARIOS.values() for revision in scenario.revisions]


def named(value: object) -> str:
    """The name of a parameter."""
    return value.name if isinstance(value, Scenario) else str(value)


@pytest.mark.parametrize("scenario, revision", RECORDED, ids=named)
async def test_the_server_does_as_the_tape_has_it(scenario: Scenario, revision: str):
    """The same words for the same words."""
    await replay_to_server(Tape.load(path_of(scenario, revision)), scenario.make_server(revision))


@pytest.mark.parametrize("scenario, revision", RECORDED, ids=named)
async def test_the_client_does_as_the_tape_has_it(scenario: Scenario, revision: str):
    """The same words, whoever plays the server."""
    async with replay_to_client(Tape.load(path_of(scenario, revision)), **scenario.client_options(revision)) as client:
        await scenario.drive(client)


async def test_both_together_say_what_the_tape_has():
    """The recorder makes of one scenario what was committed."""
    scenario = SCENARIOS["life"]
    for revision in scenario.revisions:
        assert Tape.load(path_of(scenario, revision)).differences(await record(scenario, revision)) == []


def test_no_tape_is_left_over():
    """Every tape of a revision belongs to a scenario or was written by hand."""
    known = {path_of(scenario, revision) for scenario, revision in RECORDED}
    assert {path for path in HERE.glob("20*/*.jsonl") if not path.name.startswith("by-hand-")} == known
