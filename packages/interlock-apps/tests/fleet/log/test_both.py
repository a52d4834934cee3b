"""What every log does, in memory and in a file."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.redaction import DOTS, Redactor
from interlock.types import CallToolResult, SamplingMessage, TextContent
from interlock_apps.fleet.events import (
    AnyEvent,
    CallEnded,
    LogEntry,
    Notice,
    PersonSaid,
    ServerLogLine,
    SessionBegan,
    SessionChanged,
    SessionDeleted,
)
from interlock_apps.fleet.log import (
    Log,
    LogError,
    MemoryLog,
    SessionRow,
    SqliteLog,
    read_export,
    records,
)
from tests.fleet.log.samples import EVENTS

KEPT = [event for event in EVENTS if event.kept]
SECRET = 'hunter2-"ключ"/+ x'


@pytest.fixture(params=["memory", "file", "file without a table of words"])
async def log(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Log]:
    """A log whose clock begins at 100 and goes on by a second with each event."""
    clock = itertools.count(100.0)
    if request.param == "memory":
        made: Log = MemoryLog(clock=lambda: next(clock), redact=Redactor([SECRET]))
    else:
        made = SqliteLog(tmp_path / "log.db", clock=lambda: next(clock), redact=Redactor([SECRET]))
        if "without" in request.param:
            monkeypatch.setattr("interlock_apps.fleet.log.tables.make_words", lambda db: False)
    await made.open()
    yield made
    await made.aclose()


def notice(words: str, **fields: Any) -> Notice:
    return Notice(level="info", words=words, **fields)


def words_in(notes: list[LogEntry]) -> list[str]:
    return [noted.event.words for noted in notes if isinstance(noted.event, Notice)]


def test_every_kind_has_a_sample() -> None:
    """A kind that is added to the union comes into these tests."""
    assert {type(event) for event in EVENTS} == set(AnyEvent.__args__)


async def test_every_kind_comes_back_as_it_was(log: Log) -> None:
    """`TOL-25`: what is kept is whole; what is not worth it has no number and is not kept."""
    noted = [log.note(event) for event in EVENTS]
    assert [each.event for each in noted] == EVENTS
    kept = [each for each in noted if each.seq]
    assert [each.event for each in kept] == KEPT
    assert [each.seq for each in kept] == list(range(1, len(KEPT) + 1))
    assert [each.at for each in noted] == [100.0 + number for number in range(len(EVENTS))]
    assert await log.read() == kept


@pytest.mark.parametrize(
    "kind", [type(event) for event in {type(event): event for event in EVENTS}.values()]
)
def test_any_text_in_any_field_comes_back(kind: type[Any]) -> None:
    """Whatever characters texts are made of, also within JSON of JSON."""
    sample = next(event for event in EVENTS if type(event) is kind)
    fields = [
        field.name
        for field in msgspec.structs.fields(kind)
        if isinstance(getattr(sample, field.name), str)
    ]

    @given(st.lists(st.text(), min_size=len(fields), max_size=len(fields)))
    def comes_back(texts: list[str]) -> None:
        free = {
            name: text
            for name, text in zip(fields, texts, strict=True)
            if name
            not in ("reason", "state", "how", "level", "remember", "by", "when", "offer", "what")
        }
        if "kind" in free and kind.__name__ != "Pinned":
            del free["kind"]
        noted = LogEntry(seq=7, at=1.5, event=msgspec.structs.replace(sample, **free))
        assert records.decode(records.encode(noted)) == noted

    comes_back()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_any_json_comes_back(value: dict[str, Any]) -> None:
    """Arguments and results hold what servers and models like."""
    event = CallEnded(call="c", result=CallToolResult(content=[], structured_content=value))
    noted = LogEntry(seq=1, at=0.0, event=event)
    assert records.decode(records.encode(noted)) == noted
    assert records.row(records.encode(noted), None).data == records.encode(noted)


@pytest.mark.parametrize(
    "odd",
    [
        "\ud800",
        {"a": ["\udfff"]},
        {"\ud800": 1},
        float("nan"),
        float("inf"),
        object(),
        {1, 2},
        2**80,
        b"\xff",
    ],
)
async def test_what_json_cannot_say_does_not_stop_the_log(log: Log, odd: Any) -> None:
    """`note` never raises, and what comes after is kept as well."""
    log.note(
        CallEnded(
            session="s",
            call="c",
            result=CallToolResult(content=[], structured_content={"odd": odd}),
        )
    )
    log.note(notice("afterwards"))
    first, second = await log.read()
    assert isinstance(first.event, CallEnded)
    assert words_in([second]) == ["afterwards"]


# -- reading ---------------------------------------------------------------------------------------


async def test_reading_in_pages(log: Log) -> None:
    """Of a session, of the host itself, or of all; after any number, oldest first."""
    for number in range(10):
        log.note(notice(str(number), session="ab"[number % 2] if number < 8 else ""))
        log.note(ServerLogLine(server="a", level="info", text="not kept"))
    assert words_in(await log.read()) == [str(number) for number in range(10)]
    assert words_in(await log.read("a")) == ["0", "2", "4", "6"]
    assert words_in(await log.read("")) == ["8", "9"]
    assert words_in(await log.read("a", after=1, limit=2)) == ["2", "4"]
    assert words_in(await log.read("a", after=5)) == ["6"]
    assert words_in(await log.read(after=8)) == ["8", "9"]
    assert await log.read(after=10) == []
    assert await log.read("c") == []
    assert await log.read(limit=0) == []


async def test_conversations(log: Log) -> None:
    """Newest first, with the newest title, the time at which each began, and how often the person
    spoke.
    """
    said = PersonSaid(
        session="b", messages=(SamplingMessage(role="user", content=TextContent(text="x")),)
    )
    log.note(SessionBegan(session="a", title="A", model="m"))
    log.note(SessionBegan(session="b", title="", model="n"))
    log.note(said)
    log.note(SessionBegan(session="b", title="B", model="o"))
    log.note(said)
    log.note(notice("of the host"))
    assert await log.sessions() == [
        SessionRow(id="b", title="B", began=101.0, model="o", turns=2, spoke=104.0),
        SessionRow(id="a", title="A", began=100.0, model="m", turns=0),
    ]
    log.note(SessionChanged(session="a", title="Alpha", pinned=True))
    log.note(SessionChanged(session="a", pinned=False))
    log.note(SessionChanged(session="b", pinned=True))
    b, a = await log.sessions()
    assert (a.title, a.pinned, b.title, b.pinned) == ("Alpha", False, "B", True)


async def test_a_deleted_conversation_is_gone(log: Log) -> None:
    """From all that reads the log; what remains is one entry that says so, and the others."""
    said = PersonSaid(
        session="a", messages=(SamplingMessage(role="user", content=TextContent(text="needle")),)
    )
    log.note(SessionBegan(session="a", title="A", model="m"))
    log.note(SessionBegan(session="b", title="B", model="m"))
    log.note(said)
    log.note(msgspec.structs.replace(said, session="b"))
    deletion = await log.delete("a")
    assert deletion.event == SessionDeleted(conversation="a", entries=2)
    assert [row.id for row in await log.sessions()] == ["b"]
    assert await log.read("a") == []
    assert [noted.event.session for noted in await log.search("needle")] == ["b"]
    assert [noted.event for noted in await log.read()][-1] == deletion.event
    lines: list[bytes] = []
    assert await log.export(lines.append) == 3
    for unknown in ("a", "", "c"):
        with pytest.raises(LogError, match="no conversation"):
            await log.delete(unknown)


# -- searching -------------------------------------------------------------------------------------

THINGS = [
    notice("The cities of Spain are hot", session="a", server="weather"),
    notice("City of London", session="b", server="weather"),
    notice("Ordered: 3 boxes of Café au lait", session="a", server="shop"),
    CallEnded(
        session="a",
        server="shop",
        call="c",
        result=CallToolResult(content=[], structured_content={"wo": "Köln", "type": "hotel"}),
    ),
    notice("旅行计划已经完成", session="b"),
    notice('100% "sure" AND not* (really) OR ^near NEAR/2 -x', session="b"),
]
SEARCHES: list[tuple[str, dict[str, Any], list[int]]] = [
    ("city", {}, [1, 0]),
    ("cit", {}, [1, 0]),
    ("CITIES hot", {}, [0]),
    ("spain london", {}, []),
    ("cafe box", {}, [2]),
    ("koln", {}, [3]),
    ("hotel", {}, [3]),
    ("计划", {}, [4]),
    ("旅行计划", {}, [4]),
    ("计划旅行", {}, []),
    ("notice", {}, []),
    ("100%", {}, [5]),
    ('"sure" AND', {}, [5]),
    ("not* OR", {}, [5]),
    ("NEAR/2", {}, [5]),
    ("-x", {}, [5]),
    ("nothing of the kind", {}, []),
    ("", {}, [5, 4, 3, 2, 1, 0]),
    ("!?", {}, [5, 4, 3, 2, 1, 0]),
    ("", {"limit": 2}, [5, 4]),
    ("", {"before": 3}, [1, 0]),
    ("", {"before": 1}, []),
    ("city", {"before": 2}, [0]),
    ("city", {"limit": 1}, [1]),
    ("city", {"session": "a"}, [0]),
    ("of", {"server": "weather"}, [1, 0]),
    ("", {"server": "shop"}, [3, 2]),
    ("", {"session": ""}, []),
    ("", {"kinds": ["callEnded"]}, [3]),
    ("", {"kinds": ["callEnded", "notice"], "session": "a"}, [3, 2, 0]),
    ("", {"kinds": ["nothing"]}, []),
    ("", {"since": 102.0}, [5, 4, 3, 2]),
    ("", {"until": 102.0}, [1, 0]),
    ("", {"since": 101.0, "until": 103.0, "session": "a"}, [2]),
    (
        "box",
        {
            "session": "a",
            "server": "shop",
            "kinds": ["notice"],
            "since": 102.0,
            "until": 102.5,
            "before": 4,
            "limit": 1,
        },
        [2],
    ),
]


@pytest.mark.parametrize("words, where, found", SEARCHES)
async def test_searching(log: Log, words: str, where: dict[str, Any], found: list[int]) -> None:
    """By words, session, server, kind and time, newest first; signs that search engines have are no
    more than signs.
    """
    noted = [log.note(event) for event in THINGS]
    assert await log.search(words, **where) == [noted[number] for number in found]


async def test_searching_in_pages(log: Log) -> None:
    """Page after page, nothing twice, nothing left out."""
    for number in range(1201):
        log.note(
            notice(
                f"{'even' if number % 2 == 0 else 'odd'} {number}", session="ab"[number % 3 == 0]
            )
        )
    found: list[str] = []
    before = None
    while page := await log.search("even", session="b", before=before, limit=70):
        found += words_in(page)
        before = page[-1].seq
    assert found == [f"even {number}" for number in range(1200, -1, -1) if number % 6 == 0]


async def test_what_is_long_is_kept_whole_and_found_by_its_beginning(log: Log) -> None:
    """The text that an entry is found by ends somewhere; the entry does not."""
    long = f"alpha {'x ' * 200_000} omega"
    noted = log.note(notice(long))
    assert await log.search("alpha") == [noted]
    assert await log.search("omega") == []


# -- export ----------------------------------------------------------------------------------------


async def test_an_export_is_read_back(log: Log) -> None:
    """Lines of JSON, each an entry, as texts or bytes; nothing is lost, and one conversation can be
    had alone.
    """
    noted = [each for event in EVENTS if (each := log.note(event)).seq]
    lines: list[bytes] = []
    assert await log.export(lines.append) == len(noted)
    assert list(read_export(lines)) == noted
    assert list(read_export(b"".join(lines).decode().splitlines())) == noted
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    some: list[bytes] = []
    await log.export(some.append, "s")
    assert list(read_export(some)) == [each for each in noted if each.event.session == "s"]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "null",
        '{"seq": 1, "at": 0}',
        '{"seq": 1, "at": 0, "event": {"type": "fromTheFuture"}}',
        "\ud800",
    ],
)
def test_a_line_that_is_no_entry_is_named(line: str) -> None:
    """Empty lines are passed over, and counted."""
    good = records.encode(LogEntry(seq=1, at=0.0, event=notice("x"))).decode()
    read = read_export([good, "", line])
    assert next(read).event == notice("x")
    with pytest.raises(LogError, match="Line 3 is not a log entry"):
        next(read)


# -- secrets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hidden",
    [
        SECRET,
        f"Bearer {SECRET}!",
        {"deep": [{"er": SECRET}]},
        {SECRET: 1},
        msgspec.json.encode({"key": SECRET}).decode(),
        msgspec.json.encode({"key": msgspec.json.encode([SECRET]).decode()}).decode(),
        '{"key": "' + "".join(f"\\u{ord(c):04x}" for c in SECRET) + '"}',
        "https://x/?key=hunter2-%22%D0%BA%D0%BB%D1%8E%D1%87%22%2F%2B%20x&z",
        "https://x/?key=hunter2-%22%D0%BA%D0%BB%D1%8E%D1%87%22%2F%2B+x&z",
    ],
    ids=str,
)
async def test_secrets_are_not_written(log: Log, hidden: Any) -> None:
    """`SEC`: as they are, as keys, in JSON in a text, escaped in any way, and in URLs; what is told
    live is not changed.
    """
    event = CallEnded(
        session="s",
        call="c",
        result=CallToolResult(content=[], structured_content={"v": hidden}),
        error="kept",
    )
    assert log.note(event).event == event
    (kept,) = await log.read()
    assert isinstance(kept.event, CallEnded)
    assert kept.event.error == "kept"
    text = str(msgspec.to_builtins(kept.event))
    assert DOTS in text
    assert "hunter2" not in text
    assert "u0068" not in text
    assert await log.search("hunter2") == []


async def test_a_secret_in_base64_is_not_found(log: Log) -> None:
    """What is written otherwise than as text, JSON or URL is not seen: said in the documentation,
    and shown here.
    """
    log.note(notice("aHVudGVyMi0="))
    assert words_in(await log.read()) == ["aHVudGVyMi0="]


@pytest.mark.parametrize("value", ["notice", "secret", DOTS, "session"])
async def test_a_secret_that_is_a_word_of_our_own(tmp_path: Path, value: str) -> None:
    """A secret "notice" may not make entries that nobody can read: nothing of such an entry is kept
    but that it was.
    """
    for log in (
        MemoryLog(redact=Redactor([value])),
        SqliteLog(tmp_path / "log.db", redact=Redactor([value])),
    ):
        await log.open()
        log.note(notice(f"my {value} is"))
        log.note(CallEnded(call="c", error=f"x {value} y"))
        notes = await log.read()
        assert len(notes) == 2
        assert f"my {value} is" not in str(notes) or value == DOTS
        await log.aclose()


def test_short_values_are_no_secrets() -> None:
    """They stand everywhere by chance."""
    secrets = Redactor(["", "a", "123", "1234", "123456789"])
    assert secrets("a 123 123456789 1234") == f"a 123 {DOTS} {DOTS}"
    secrets.add("another one")
    assert secrets("another one") == DOTS
    assert Redactor()("as it was") == "as it was"


async def test_a_log_in_memory_keeps_the_newest() -> None:
    """Bounded by number and by bytes; the newest is kept, however large it is."""
    few = MemoryLog(most=3)
    small = MemoryLog(most_bytes=2000)
    for number in range(10):
        few.note(notice(str(number)))
        small.note(notice(f"{number}{'x' * 300}"))
    assert words_in(await few.read()) == ["7", "8", "9"]
    assert [noted.seq for noted in await small.read()] == [9, 10]
    small.note(notice("y" * 5000))
    assert [noted.seq for noted in await small.read()] == [11]


async def test_a_conversation_without_a_title_is_called_after_what_was_said_first(log: Log) -> None:
    """What was typed, or the prompt with its first argument; later words change nothing."""
    typed = (
        SamplingMessage(
            role="user",
            content=[TextContent(text="[[data]]"), TextContent(text="How  is\nit? " * 20)],
        ),
    )
    log.note(SessionBegan(session="a", title="", model="m"))
    log.note(PersonSaid(session="a", messages=typed))
    log.note(
        PersonSaid(
            session="a", messages=(SamplingMessage(role="user", content=TextContent(text="later")),)
        )
    )
    log.note(SessionBegan(session="b", title="", model="m"))
    log.note(
        PersonSaid(
            session="b",
            messages=typed,
            server="s",
            prompt="plan",
            arguments={"to": "Rome", "when": "May"},
        )
    )
    titles = {row.id: row.title for row in await log.sessions()}
    assert titles["b"] == "plan: Rome"
    assert titles["a"].startswith("How is it? How is it?")
    assert len(titles["a"]) == 60
