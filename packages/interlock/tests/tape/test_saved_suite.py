"""Saved suites: a recording becomes a suite in TOML that the recorded server passes, and another
one does not.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Context, Duplex, Server
from interlock.cli.tapes.suite import Outcome, Suite, run_suite
from interlock.tape import Line, Tape, suite_text
from interlock.testing import ScriptedAnswers, channel_pair
from interlock.wire.revisions import NEWEST
from tests.tape.test_replay import RECORDED, named, record
from tests.tapes.scenarios import Scenario

# The client of a suite can always be asked.
ASKABLE = [each for each in RECORDED if each[0].name != "unanswerable"]


async def run(text: str, folder: Path, make: Any) -> list[Outcome]:
    """Run a suite against servers in this process, one for each test."""
    path = folder / "suite.toml"
    path.write_text(text, encoding="utf-8")

    def connect(revision: str, answers: ScriptedAnswers) -> Client:
        return Client(make(revision), revision=revision, answers=answers)

    return await run_suite(Suite.load(path), connect, folder=folder)


@pytest.mark.parametrize("scenario, revision", ASKABLE, ids=named)
async def test_the_recorded_server_passes(
    scenario: Scenario, revision: str, tmp_path: Path
) -> None:
    """Steps that a suite cannot express are left out, with a comment; all others pass."""
    text = suite_text({"all": await record(scenario, revision)})
    if "[[test]]" not in text:
        assert "has no steps" in text
        return
    outcomes = await run(text, tmp_path, scenario.make_server)
    assert [problem for outcome in outcomes for problem in outcome.problems] == [], text


def make_shop(price: str = "1.50") -> Server:
    server = Server("shop", "1")

    @server.tool
    async def order(item: str, ctx: Context) -> dict[str, str]:
        count = await ctx.elicit(f"How many {item}?", int)
        return {"count": str(count), "price": price}

    return server


async def shop_tape(revision: str) -> Tape:
    ours, theirs = channel_pair()
    tape = Tape()
    serving = asyncio.create_task(make_shop().serve(theirs))
    answers = ScriptedAnswers(elicit={"How many": {"value": 2}})
    client = Client(Duplex(ours, tap=tape.record), revision=revision, answers=answers)
    async with client:
        await client.call_tool("order", {"item": "tea"})
    await serving
    return tape


@pytest.mark.parametrize("revision", ["2025-11-25", NEWEST])
async def test_a_changed_answer_fails(revision: str, tmp_path: Path) -> None:
    """Answers to questions are part of the suite, in both eras."""
    text = suite_text({"order": await shop_tape(revision)})
    assert f'revisions = ["{revision}"]' in text
    assert 'answers = { "How many tea?" = { value = 2 } }' in text
    assert [each.problems for each in await run(text, tmp_path, lambda _: make_shop())] == [()]
    (changed,) = await run(text, tmp_path, lambda _: make_shop("1.60"))
    assert '/structuredContent/price: expected "1.50", got "1.60"' in "\n".join(changed.problems)


async def test_paths_that_are_not_compared(tmp_path: Path) -> None:
    text = suite_text(
        {"order": await shop_tape(NEWEST)},
        ignore=["/result/structuredContent/price", "/result/content/0/text"],
    )
    assert [each.problems for each in await run(text, tmp_path, lambda _: make_shop("2"))] == [()]


def lines(*messages: tuple[str, dict[str, Any]]) -> Tape:
    return Tape(
        Line("client" if sender == "client" else "server", json.dumps(message).encode())
        for sender, message in messages
    )


def call(id: int, name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    params = {"name": name, "arguments": arguments}
    return "client", {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def answer(id: int, **result: Any) -> tuple[str, dict[str, Any]]:
    return "server", {"jsonrpc": "2.0", "id": id, "result": result}


def test_what_a_suite_cannot_express_is_a_comment() -> None:
    """A dismissed question, a question by another method, a task, and a value from nowhere."""
    ask = {"jsonrpc": "2.0", "id": 7, "method": "elicitation/create", "params": {"message": "Go?"}}
    model = {"jsonrpc": "2.0", "id": 8, "method": "sampling/createMessage", "params": {}}
    text = suite_text(
        {
            "odd": lines(
                call(1, "a"),
                ("server", ask),
                ("client", {"jsonrpc": "2.0", "id": 7, "result": {"action": "cancel"}}),
                answer(1, content=[]),
                call(2, "b"),
                ("server", model),
                answer(2, content=[]),
                call(3, "c"),
                answer(3, task={"taskId": "4711"}),
                call(4, "d", text="${odd}"),
                answer(4, content=[]),
                call(5, "never answered"),
            )
        }
    )
    assert [line for line in text.splitlines() if line.startswith("# Left out")] == [
        "# Left out: call a, because its question was dismissed.",
        "# Left out: call b, because the server asks by sampling/createMessage.",
        "# Left out: call c, because it became a task.",
        "# Left out: call d, because it sends a value that no recorded result has.",
    ]
    assert "[[test" not in text


async def test_any_text_and_null_survive(tmp_path: Path) -> None:
    """TOML has no null, and its strings are not quite those of JSON."""
    texts = ["é \U0001f600", 'a "quoted" \\ back\nslash\t\x7f\x1f', "${_} ${x}", "# no comment"]
    server = Server("echo", "1")

    @server.tool
    def echo(value: dict[str, Any]) -> dict[str, Any]:
        return {"value": value}

    ours, theirs = channel_pair()
    tape = Tape()
    serving = asyncio.create_task(server.serve(theirs))
    async with Client(Duplex(ours, tap=tape.record), revision=NEWEST) as client:
        for number, text in enumerate(texts):
            if "${" not in text:
                value = {"text": text, "a key": [None, number, 0.5, True, {}], "large": 2**60}
                await client.call_tool("echo", {"value": value})
    await serving
    outcomes = await run(suite_text({"texts": tape}), tmp_path, lambda _: server)
    assert [outcome.problems for outcome in outcomes] == [()]
