"""The documents that this project was started from, where they lie beside it: all that they print
is accepted and answered as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.seeds import fragments
from tests.seeds.play import play
from tests.seeds.printed import Printed, printed, sessions

HERE = Path(__file__).parent
SEEDS = HERE.parents[4] / "shared" / "seeds"
OWN = HERE / "texts"

if not SEEDS.is_dir():
    pytest.skip(
        "the documents of the beginning are not beside this repository (../shared/seeds)",
        allow_module_level=True,
    )

TEXTS = {path.name[:3]: printed(path) for path in sorted(SEEDS.glob("*.txt"))}
SESSIONS = [
    pytest.param(session, id=session[0].where)
    for items in TEXTS.values()
    for session in sessions(items)
]
FRAGMENTS = [
    pytest.param(items, number, id=f"{item.where} {item.kind}")
    for items in TEXTS.values()
    for number, item in enumerate(items)
    if item.kind != "message"
]


@pytest.mark.parametrize("session", SESSIONS)
async def test_every_conversation_goes_as_printed(session: list[Printed]) -> None:
    """Requests, answers and notifications of both sides (`LIF-01`, `TOL-02`, `RES-06`, `PRM-02`,
    `SAM-01`, `ROO-01`).

    Each message is sent or compared: only answers are not counted on their own,
    and a request whose answer is not printed.
    """
    requests = [item.value for item in session if "method" in item.value]
    answered = {item.value["id"] for item in session if "result" in item.value}
    assert await play(session) == sum(
        1 for request in requests if request.get("id") in answered or "id" not in request
    )


@pytest.mark.parametrize("items, number", FRAGMENTS)
async def test_every_part_works_where_it_belongs(items: list[Printed], number: int) -> None:
    """Tools, templates, prompts, roots, sampling, elicitation, configuration: put to work,
    and out as they went in."""
    await fragments.check(items, number)


def test_no_message_was_passed_over() -> None:
    """A second, simpler way to count: every `"jsonrpc"` in quotes,
    and every method that is a literal, was read."""
    for name, items in TEXTS.items():
        (path,) = SEEDS.glob(f"{name}*")
        text = path.read_text(encoding="utf-8")
        assert text.count('"jsonrpc"') == sum(item.kind == "message" for item in items), name
        methods = re.findall(r'"?method"?: "([a-zA-Z/_]+)"', text)
        assert methods == [item.value["method"] for item in items if "method" in item.value], name
    assert sum(map(len, TEXTS.values())) == 84
    assert len(SESSIONS) == 3


def test_our_own_texts_leave_no_shape_out() -> None:
    """What is shown with the documents is shown without them too: every method and every kind of
    part stands in a text of our own."""

    def shapes(texts: list[list[Printed]]) -> set[str]:
        return {item.value.get("method", item.kind) for items in texts for item in items}

    assert shapes(list(TEXTS.values())) <= shapes([printed(path) for path in OWN.glob("*.txt")])
