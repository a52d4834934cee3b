"""Servers that can ask only under an older revision:

the host starts them again under it, and repeats nothing unasked that may do harm.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.configs import Entry
from interlock.models.scripted import call
from interlock_apps.fleet.hub import KnownRevisions
from interlock_apps.fleet.questions import CallQuestion, Decision, NotAnswered
from tests.fleet.hub.keeping import kept
from tests.host.scene import ALLOW, Sitting, given, scene
from tests.transport.programs import UNAVAILABLE, asking_server, count

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="watches processes through /proc, which only Linux has"
)


def asker(folder: Path, *, trusted: bool = False, **program: Any) -> Entry:
    return Entry(id="asker", command=tuple(asking_server(folder, **program)), trusted=trusted)


DECISIONS: dict[str, tuple[str, bool, Any, bool]] = {
    # the tool, whether its server is trusted, what the person says (None: is not asked), whether it
    # runs a second time
    "a trusted tool that only reads": ("look", True, None, True),
    "a tool that says so, but is not trusted, and yes": ("look", False, Decision(allow=True), True),
    "a tool that says so, but is not trusted, and no": (
        "look",
        False,
        Decision(allow=False),
        False,
    ),
    "a trusted tool that says nothing, and yes": ("order", True, Decision(allow=True), True),
    "a tool that says nothing, and no": ("order", False, Decision(allow=False), False),
    "a tool that says nothing, and nobody": ("order", False, NotAnswered(words="away"), False),
}


@pytest.mark.parametrize("tool, trusted, says, again", DECISIONS.values(), ids=DECISIONS)
@pytest.mark.parametrize("in_result", [False, True], ids=["error", "result"])
async def test_a_call_that_ended_at_its_question_is_made_again(
    tool: str, trusted: bool, says: Any, again: bool, in_result: bool, tmp_path: Path
) -> None:
    """Its server is used under the older revision from then on, whatever is decided, and the person
    is told.
    """
    asked: list[CallQuestion] = []

    def decide(question: CallQuestion) -> Any:
        asked.append(question)
        return says

    sitting = Sitting(call=decide)
    entry = asker(tmp_path, trusted=trusted, words=UNAVAILABLE, in_result=in_result)
    async with scene(
        {"asker": entry}, call(f"asker__{tool}"), "done", person=sitting, policy=ALLOW
    ) as one:
        await one.host.session().say("Please.")
        link = one.host.hub.servers["asker"]
        assert (link.state, link.revision) == ("up", "2025-11-25")
        assert len(asked) == (0 if says is None else 1)
        for question in asked:
            assert question.warnings[0].kind == "again"
            assert "second time" in question.warnings[0].words
            assert not question.may_remember
        assert len(sitting.of("form")) == (1 if again else 0)
        assert count(tmp_path, "runs") == (2 if again else 1)
        assert (UNAVAILABLE in given(one.model.requests[-1])) is not again
        assert [words for words in one.notices() if "only under 2025-11-25" in words]


async def test_what_the_person_edits_is_what_is_called(tmp_path: Path) -> None:
    """As with every other call."""
    arguments: list[Any] = []

    def decide(question: CallQuestion) -> Decision:
        arguments.append(question.arguments)
        return Decision(allow=True, arguments={"more": 2})

    sitting = Sitting(call=decide)
    async with scene(
        {"asker": asker(tmp_path)},
        call("asker__order", more=1),
        "done",
        person=sitting,
        policy=ALLOW,
    ) as one:
        await one.host.session().say("Please.")
        assert arguments == [{"more": 1}]
        assert count(tmp_path, "runs") == 2


async def test_a_resource_is_read_again_unasked(tmp_path: Path) -> None:
    """Reading does no harm."""
    sitting = Sitting()
    async with scene({"asker": asker(tmp_path)}, person=sitting, policy=ALLOW) as one:
        await one.host.read("asker", "a:b")
        assert sitting.of("form")
        assert one.host.hub.servers["asker"].revision == "2025-11-25"
        assert not sitting.of("call")


async def test_the_next_host_starts_it_under_the_older_revision(tmp_path: Path) -> None:
    """It is remembered like a server that the probe breaks (`ERA-14`)."""
    entry = asker(tmp_path, trusted=True)
    path = tmp_path / "revisions.json"
    hub = {"revisions": KnownRevisions(path)}
    async with scene(
        {"asker": entry}, call("asker__look"), "done", person=Sitting(), policy=ALLOW, hub=hub
    ) as one:
        await one.host.session().say("Please.")
    found = KnownRevisions(path).of(entry)
    assert found is not None
    assert (found.why, found.revision, found.server) == ("questions", "2025-11-25", "asker 1")
    starts = count(tmp_path, "starts")
    async with kept(entry, revisions=KnownRevisions(path)) as again:
        assert again["asker"].revision == "2025-11-25"
    assert count(tmp_path, "starts") == starts + 1


async def test_a_server_whose_entry_names_the_revision_is_left_there(tmp_path: Path) -> None:
    """The person has decided; the call fails."""
    entry = Entry(
        id="asker", command=tuple(asking_server(tmp_path)), revision="2026-07-28", trusted=True
    )
    async with scene(
        {"asker": entry}, call("asker__look"), "done", person=Sitting(), policy=ALLOW
    ) as one:
        await one.host.session().say("Please.")
        assert one.host.hub.servers["asker"].revision == "2026-07-28"
        assert (count(tmp_path, "runs"), count(tmp_path, "starts")) == (1, 1)
