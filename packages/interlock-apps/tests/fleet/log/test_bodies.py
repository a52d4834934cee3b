"""Large bodies of entries: files beside the log that are dropped by age and space, while no entry
ever is, and `verify` knows each case.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import sqlite3
import stat
import string
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.types import (
    CallToolResult,
    ImageContent,
    SamplingMessage,
    TextContent,
    ToolResultContent,
)
from interlock_apps.fleet.events import (
    AnyEvent,
    CallDecided,
    CallEnded,
    CallProposed,
    Notice,
    PersonSaid,
    ResultsGiven,
)
from interlock_apps.fleet.log import BodyLimits, LogError, SqliteLog, Tampered, read_export

DAY = 86_400.0
LONG = "needle " + "long text " * 10_000
SMALL = BodyLimits(inline=1000)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


async def opened(path: Path, limits: BodyLimits = SMALL, **options: Any) -> SqliteLog:
    """A log that is open."""
    log = SqliteLog(path, bodies=limits, **options)
    await log.open()
    return log


def ended(text: str = LONG, **more: Any) -> CallEnded:
    """The end of a call with a long result."""
    return CallEnded(
        session="s", call="c", result=CallToolResult(content=[TextContent(text=text)], **more)
    )


async def events(log: SqliteLog) -> list[AnyEvent]:
    """All that the log shows."""
    return [noted.event for noted in await log.read()]


def bodies(path: Path) -> list[Path]:
    """The files of bodies."""
    return sorted(path.with_name(f"{path.name}.bodies").glob("*"))


LARGE: dict[str, AnyEvent] = {
    "text of a result": ended(),
    "structured content": ended("x", structured_content={"rows": [[n, "x"] for n in range(5000)]}),
    "many blocks": CallEnded(
        call="c", result=CallToolResult(content=[TextContent(text=f"{n}") for n in range(500)])
    ),
    "picture": CallEnded(
        call="c",
        result=CallToolResult(content=[ImageContent(data="aGk=" * 9000, mime_type="image/png")]),
    ),
    "arguments": CallProposed(
        call="c", name="n", arguments={"a": {"b": list(range(2000))}, "c": LONG}
    ),
    "what was said": PersonSaid(
        messages=(SamplingMessage(role="user", content=TextContent(text=LONG)),)
    ),
    "results for the model": ResultsGiven(
        results=(ToolResultContent(tool_use_id="u", content=[TextContent(text=LONG)]),)
    ),
    "words": Notice(level="info", words=LONG),
    "a key that looks like ours": CallProposed(
        call="c",
        name="n",
        arguments={"bodies": [{"at": ["event"], "sha256": "0" * 64, "size": 3}], "x": LONG},
    ),
}


@pytest.mark.parametrize("event", LARGE.values(), ids=LARGE)
async def test_large_bodies_are_outside_the_entries(tmp_path: Path, event: AnyEvent) -> None:
    """What is read, found and exported is whole; in the log's file there is but the beginning, and
    `verify` looks at both.
    """
    log = await opened(path := tmp_path / "log.db")
    small = CallProposed(call="c", name="n", arguments={"bodies": [1]})
    log.note(small)
    log.note(event)
    assert await events(log) == [small, event]
    lines: list[bytes] = []
    await log.export(lines.append)
    assert [noted.event for noted in read_export(lines)] == [small, event]
    assert await log.verify() == 2
    assert bodies(path)
    await log.aclose()
    with closing(sqlite3.connect(path)) as db:
        assert all(len(data) < 4000 for (data,) in db.execute("SELECT data FROM entries"))
    assert {stat.S_IMODE(file.stat().st_mode) for file in bodies(path)} == {0o600}
    assert stat.S_IMODE(bodies(path)[0].parent.stat().st_mode) == 0o700


@given(st.recursive(st.text(max_size=30) | st.integers(-9, 9) | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["arguments",
        "content", "a", "bodies"]), inner, max_size=4), max_leaves=20))  # fmt: skip
def test_whatever_is_moved_out_comes_back(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    """Any JSON, with a limit so low that most of it becomes bodies."""

    async def run() -> None:
        log = await opened(tmp_path_factory.mktemp("log") / "log.db", BodyLimits(inline=10))
        event = CallProposed(call="c", name="n", arguments={"a": value})
        log.note(event)
        assert await events(log) == [event]
        assert await log.verify() == 1
        await log.aclose()

    asyncio.run(run())


async def test_a_result_of_five_megabytes_leaves_the_log_small(tmp_path: Path) -> None:
    """Neither the file nor the one beside it (WAL) grows with it; the same body is stored once."""
    text = random.Random(1).randbytes(2_500_000).hex()
    log = await opened(path := tmp_path / "log.db", BodyLimits())
    for _ in range(3):
        log.note(ended(text, structured_content={"result": text}))
        await log.flush()
    small = sum(file.stat().st_size for file in tmp_path.glob("log.db*") if file.is_file())
    assert small < 2_000_000
    assert len(bodies(path)) == 1
    assert (await events(log))[0] == ended(text, structured_content={"result": text})
    await log.aclose()


async def test_bodies_are_dropped_by_age(tmp_path: Path) -> None:
    """The entry stays, the log verifies, and what is shown says when and why the body went."""
    clock = Clock()
    log = await opened(path := tmp_path / "log.db", BodyLimits(inline=1000, days=30), clock=clock)
    decided = CallDecided(session="s", call="c", allow=True, by="person")
    log.note(decided)
    log.note(ended())
    await log.flush()
    clock.now += 31 * DAY
    log.note(ended("another " * 1000))
    await log.flush()
    before, old, new = await events(log)
    assert before == decided
    assert new == ended("another " * 1000)
    assert isinstance(old, CallEnded)
    assert old.result is not None
    assert old.result.text.startswith("needle long text")
    assert "dropped on 2023-12-1" in old.result.text
    assert "because of its age" in old.result.text
    assert "100,009 bytes" in old.result.text
    assert await log.verify() == 3
    assert await log.dropped() == {"age": 1}
    assert len(bodies(path)) == 1
    assert [noted.event for noted in await log.search("needle")] == [old]
    log.note(ended())  # the same again: it is there from now on
    assert (await events(log))[1] == ended()
    assert await log.verify() == 4
    await log.aclose()


async def test_the_oldest_bodies_make_room(tmp_path: Path) -> None:
    """Once all together are too many; one that was referred to again is not the oldest."""
    clock = Clock()
    texts = ["".join(random.Random(n).choices(string.printable, k=10_000)) for n in range(6)]
    log = await opened(tmp_path / "log.db", BodyLimits(inline=1000, total=30_000), clock=clock)
    for text in (*texts[:3], texts[0], *texts[3:5]):
        clock.now += 1
        log.note(ended(text))
        await log.flush()
    shown = [
        event.result.text
        for event in await events(log)
        if isinstance(event, CallEnded) and event.result
    ]
    assert [shown[n] == text for n, text in enumerate((*texts[:3], texts[0], *texts[3:5]))] == [
        True,
        False,
        False,
        True,
        True,
        True,
    ]
    assert "to save space" in shown[1]
    assert await log.verify() == 6
    assert await log.dropped() == {"space": 2}
    await log.aclose()


async def test_old_bodies_go_when_the_log_is_opened(tmp_path: Path) -> None:
    """Also if nothing was noted since."""
    clock = Clock()
    log = await opened(path := tmp_path / "log.db", clock=clock)
    log.note(LARGE["structured content"])
    log.note(LARGE["many blocks"])
    await log.aclose()
    clock.now += 400 * DAY
    log = await opened(path, clock=clock)
    assert not bodies(path)
    rows, blocks = await events(log)
    assert isinstance(rows, CallEnded)
    assert rows.result is not None
    assert "age" in (rows.result.structured_content or {})["dropped"]
    assert isinstance(blocks, CallEnded)
    assert blocks.result is not None
    assert "age" in blocks.result.text
    assert await log.verify() == 2
    await log.aclose()


@pytest.mark.parametrize("how", ["altered", "cut", "another", "removed"])
async def test_bodies_that_were_tampered_with_are_found(tmp_path: Path, how: str) -> None:
    """One that was altered is not shown, one that somebody else removed is missing, and both fail
    the verification.
    """
    log = await opened(path := tmp_path / "log.db")
    log.note(ended())
    log.note(ended("another " * 1000))
    assert await log.verify() == 2
    one, other = bodies(path)
    match how:
        case "altered":
            one.write_bytes(one.read_bytes()[:-1] + b"x")
        case "cut":
            one.write_bytes(one.read_bytes()[:20])
        case "another":
            one.write_bytes(other.read_bytes())
        case "removed":
            one.unlink()
    with pytest.raises(Tampered, match="Entry [12] .* has (a body that was changed|lost a body)"):
        await log.verify()
    assert (
        sum("missing" in str(event) or "altered" in str(event) for event in await events(log)) == 1
    )
    await log.aclose()


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM dropped", "UPDATE dropped SET why = 'space'",
        "REPLACE INTO dropped SELECT digest, 0, 'space' FROM dropped"],
)  # fmt: skip
async def test_what_was_dropped_stays_written_down(tmp_path: Path, statement: str) -> None:
    """The file refuses to forget it, and `verify` sees where it no longer refuses."""
    log = await opened(path := tmp_path / "log.db", BodyLimits(inline=1000, total=0))
    log.note(ended())
    await log.aclose()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA recursive_triggers = ON")
        with pytest.raises(sqlite3.IntegrityError, match="only grows"):
            db.execute(statement)
        db.execute("DROP TRIGGER dropped_stay")
        db.commit()
    log = await opened(path)
    with pytest.raises(Tampered, match="no longer rejects changes"):
        await log.verify()
    await log.aclose()


async def test_a_body_that_cannot_be_written_waits_with_its_entry(tmp_path: Path) -> None:
    """No entry refers to a body that is not there."""
    path = tmp_path / "log.db"
    folder = path.with_name("log.db.bodies")
    folder.write_text("in the way")
    log = await opened(path, again=0.01)
    log.note(ended())
    with pytest.raises(LogError, match="large body cannot be written"):
        await log.flush()
    folder.unlink()
    await log.flush()
    assert await events(log) == [ended()]
    await log.aclose()


async def test_a_log_of_version_1_is_taken_over(tmp_path: Path) -> None:
    """A file that the first version wrote: its chain is continued, large entries stay where they
    are, new ones become bodies.
    """
    packed = Path(__file__).with_name("version-1.db.gz").read_bytes()
    path = tmp_path / "log.db"
    path.write_bytes(gzip.decompress(packed))
    log = await opened(path, BodyLimits())
    assert await log.verify() == 4
    assert await log.head() == "e674208e1fa043f7675733b7b7ed595c00daa0d062d76edc67d4fa729df5ec42"
    old = await events(log)
    assert old[1] == Notice(level="info", words="made by version 1")
    assert isinstance(old[3], CallEnded)
    assert old[3].result is not None
    assert old[3].result.text == "old " * 20_000
    assert not bodies(path)
    log.note(ended())
    assert await events(log) == [*old, ended()]
    assert [row.title for row in await log.sessions()] == ["a title"]
    assert await log.verify() == 5
    await log.aclose()
    again = await opened(path)
    assert await again.verify() == 5
    await again.aclose()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (3,)
