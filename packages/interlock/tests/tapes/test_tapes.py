"""Every tape is replayed: its client's part to a server, its server's part to a client."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.protocol.events import RequestReceived, SessionListen
from interlock.protocol.handshake.server import ServerConnection
from interlock.tape import Tape, replay_to_client, replay_to_server
from interlock.wire.revisions import HANDSHAKE_REVISIONS
from tests.tapes import by_hand
from tests.tapes.record import path_of, record
from tests.tapes.scenarios import SCENARIOS, Scenario

HERE = Path(__file__).parent
RECORDED = [
    (scenario, revision) for scenario in SCENARIOS.values() for revision in scenario.revisions
]


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
    async with replay_to_client(
        Tape.load(path_of(scenario, revision)), **scenario.client_options(revision)
    ) as client:
        await scenario.drive(client)


BY_HAND = [(path, revision) for path in by_hand.TAPES for revision in by_hand.revisions_of(path)]


@pytest.mark.parametrize(
    "path, revision", BY_HAND, ids=lambda value: value.stem if isinstance(value, Path) else value
)
async def test_the_server_takes_whatever_comes(path: Path, revision: str):
    """What no client of ours would send: each message is answered as the tape has it, or not at
    all, and the next one is heard."""
    await replay_to_server(by_hand.load(path, revision), by_hand.server_of(path))


PURE = [
    (HERE / revision / f"{name}.jsonl", revision)
    for name in ("life", "probe")
    for revision in HANDSHAKE_REVISIONS
]
PURE += [
    (path, revision)
    for path, revision in BY_HAND
    if path.stem in ("malformed-handshake", "negotiation", "batch-refused")
]


@pytest.mark.parametrize(
    "path, revision", PURE, ids=lambda value: value.stem if isinstance(value, Path) else value
)
def test_the_connection_alone_does_as_the_tape_has_it(path: Path, revision: str):
    """What needs no decision is answered by the pure connection, without a loop, a task or a
    handler (`LIF-03`, `PNG-01`, `RPC-16`)."""
    tape = by_hand.load(path, revision)
    said = Tape()
    scenario = SCENARIOS.get(path.stem)
    server = scenario.make_server(revision) if scenario is not None else by_hand.server_of(path)
    connection = ServerConnection(server.identity)
    for line in tape:
        if line.sender == "client":
            said.record("client", line.frame)
            for event in connection.receive(line.frame):
                assert isinstance(event, RequestReceived)
                assert isinstance(
                    event.id, SessionListen
                )  # what the connection listens to on the peer's behalf
            for _, frame in connection.outgoing():
                said.record("server", frame)
    assert tape.differences(said) == []


async def test_both_together_say_what_the_tape_has():
    """The recorder makes of one scenario what was committed."""
    scenario = SCENARIOS["life"]
    for revision in scenario.revisions:
        assert (
            Tape.load(path_of(scenario, revision)).differences(await record(scenario, revision))
            == []
        )


def test_no_tape_is_left_over():
    """Every tape of a revision belongs to a scenario."""
    known = {path_of(scenario, revision) for scenario, revision in RECORDED}
    assert set(HERE.glob("20*/*.jsonl")) == known
    assert set(HERE.rglob("*.jsonl")) == known | set(by_hand.TAPES)
