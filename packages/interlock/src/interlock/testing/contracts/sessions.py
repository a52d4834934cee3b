"""Contract check of a store's sessions and event log, as a part of `check_store`."""

from __future__ import annotations

import asyncio
import time

import msgspec

from ... import types as t
from ...store.interface import Replay, Session, Store
from .promises import eventually, require

_AGE = 1000.0  # the lifetime of a session, in seconds


def session(id: str, *, created: float | None = None) -> Session:
    """A session with a value in every field."""
    now = time.time() if created is None else created
    return Session(
        id=id,
        revision="2025-11-25",
        capabilities=t.ClientCapabilities(
            experimental={"x": {"städte": ["Ürümqi", None, 1.5, True]}},
            roots=t.RootsCapability(list_changed=True),
            sampling=t.SamplingCapability(tools={}),
            elicitation=t.ElicitationCapability(form={}, url={}),
        ),
        info=t.Implementation(name="client", version="1.0", title="东京"),
        log_level="warning",
        principal="https://issuer.example|somebody",
        subscriptions=("note://1", "note://2"),
        created=now,
        until=now + _AGE,
    )


async def _keeps_sessions(one: Store, other: Store) -> None:
    """every worker finds a session unchanged, and no other session"""
    kept = session("s")
    bare = Session(
        id="bare",
        revision="2025-03-26",
        capabilities=t.ClientCapabilities(),
        created=kept.created,
        until=kept.until,
    )
    now = kept.created
    for each in (kept, bare):
        require(
            await one.sessions.create(each, most=9, now=now),
            "a session was refused below the limit",
        )
    for store in (one, other):
        for each in (kept, bare):
            found = await store.sessions.load(each.id, now=now)
            require(found == each, f"{each} was stored, and {found} was found")
        require(
            await store.sessions.load("other", now=now) is None,
            "a session was found that was never stored",
        )
        count = await store.sessions.count(now=now)
        require(count == 2, f"2 sessions were stored, and {count} were counted")


async def _lists_recent_sessions(one: Store, other: Store) -> None:
    """sessions are listed by their end, latest first, and expired sessions are not listed"""
    now = time.time()
    for number in range(4):
        made = session(f"recent-{number}", created=now + 100.0 * number)
        require(await one.sessions.create(made, most=9, now=now), "a session was refused")
    later = now + _AGE + 50.0  # the first one has ended
    for store in (one, other):
        for most, expected in (
            (9, ["recent-3", "recent-2", "recent-1"]),
            (2, ["recent-3", "recent-2"]),
        ):
            found = [each.id for each in await store.sessions.recent(most=most, now=later)]
            require(
                found == expected, f"{most} recent sessions were requested, and {found} were listed"
            )


async def _keeps_no_more_than_it_may(one: Store, other: Store) -> None:
    """all workers together store at most `most` sessions, and an ended session makes room"""
    now = time.time()
    sessions = [session(f"s{n}", created=now) for n in range(20)]
    made = await asyncio.gather(
        *(
            (one, other)[n % 2].sessions.create(each, most=10, now=now)
            for n, each in enumerate(sessions)
        )
    )
    require(
        sum(made) == 10,
        f"20 sessions were created at once with a limit of 10, and {sum(made)} were accepted",
    )
    for each, kept in zip(sessions, made, strict=True):
        found = await other.sessions.load(each.id, now=now)
        require(
            (found is not None) == kept,
            f"`create` returned {kept} for a session, and `load` found {found}",
        )
    known = next(each for each, kept in zip(sessions, made, strict=True) if kept)
    require(
        await one.sessions.create(known, most=10, now=now),
        "an existing session was refused because the limit was reached",
    )
    require(await one.sessions.end(known.id), "`end` did not find an existing session")
    require(
        await other.sessions.create(session("new", created=now), most=10, now=now),
        "an ended session did not make room",
    )
    require(
        not await one.sessions.create(session("newer", created=now), most=10, now=now),
        "a session was accepted above the limit",
    )


async def _forgets_what_is_over(one: Store, other: Store) -> None:
    """an expired session is gone: it is not found, not counted, takes no room, and cannot be
    restored
    """
    kept = session("s")
    now = kept.created
    later = kept.until + 1.0
    await one.sessions.create(kept, most=1, now=now)
    require(
        await other.sessions.load("s", now=kept.until - 1.0) == kept,
        "a session expired before its end",
    )
    require(
        not await one.sessions.create(session("t"), most=1, now=now),
        "a second session was accepted with a limit of one",
    )
    require(await other.sessions.count(now=later) == 0, "an expired session was counted")
    await one.sessions.create(kept, most=1, now=now)
    require(await other.sessions.load("s", now=later) is None, "an expired session was found")
    await one.sessions.prolong("s", later + _AGE)
    require(
        not await one.sessions.save(kept, was=kept),
        "an expired session was saved",
    )
    require(
        await one.sessions.load("s", now=later) is None,
        "an expired session was found again",
    )
    await one.sessions.create(kept, most=1, now=now)
    require(
        not await one.sessions.create(kept, most=0, now=later),
        "an expired session counted as an existing one",
    )
    await one.sessions.create(kept, most=1, now=now)
    require(
        await other.sessions.create(session("t", created=later), most=1, now=later),
        "an expired session took room",
    )


async def _saves_what_nobody_changed(one: Store, other: Store) -> None:
    """a session is saved only if nothing except its end has changed since it was read, and never
    after it has ended
    """
    first = session("s")
    second = msgspec.structs.replace(first, log_level="debug")
    third = msgspec.structs.replace(first, subscriptions=("note://3",))
    now = first.created
    await one.sessions.create(first, most=9, now=now)
    require(
        await other.sessions.save(second, was=first),
        "an unchanged session could not be saved",
    )
    require(
        await one.sessions.load("s", now=now) == second,
        "a saved session was found with other values",
    )
    require(
        not await one.sessions.save(third, was=first),
        "a save overwrote a change that its writer had not read",
    )
    require(await other.sessions.load("s", now=now) == second, "a refused save changed the session")
    rivals = [msgspec.structs.replace(second, principal=str(n)) for n in range(10)]
    won = await asyncio.gather(
        *((one, other)[n % 2].sessions.save(each, was=second) for n, each in enumerate(rivals))
    )
    require(sum(won) == 1, f"10 calls changed a session at once, and {sum(won)} succeeded")
    found = await other.sessions.load("s", now=now)
    require(
        found == rivals[won.index(True)],
        "the stored change is not the one whose save succeeded",
    )
    await one.sessions.end("s")
    require(
        not await other.sessions.save(first, was=rivals[won.index(True)]),
        "an ended session was saved",
    )
    require(
        await one.sessions.load("s", now=now) is None,
        "a save restored an ended session",
    )


async def _prolongs(one: Store, other: Store) -> None:
    """the end of a session can be moved, no save moves it back, and an ended session stays ended"""
    kept = session("s")
    now = kept.created
    longer = kept.until + _AGE
    await one.sessions.create(kept, most=9, now=now)
    await other.sessions.prolong("s", longer)
    found = await one.sessions.load("s", now=kept.until + 1.0)
    require(
        found == msgspec.structs.replace(kept, until=longer),
        f"the end was moved to {longer}, and the session found is {found}",
    )
    changed = msgspec.structs.replace(kept, log_level="error")
    require(
        await one.sessions.save(changed, was=kept),
        "a session could not be saved after its end was moved",
    )
    found = await other.sessions.load("s", now=now)
    require(
        found == msgspec.structs.replace(changed, until=longer),
        "a save moved the end of a session back",
    )
    await one.sessions.prolong("s", kept.until)
    require(
        await other.sessions.load("s", now=kept.until + 1.0) is None,
        "a session was found after its end was moved forward",
    )
    await one.sessions.prolong("other", longer)
    require(
        await one.sessions.load("other", now=now) is None,
        "moving the end of an unknown session created it",
    )


async def _ends_sessions_with_their_events(one: Store, other: Store) -> None:
    """ending a session deletes it and its events and no others, and a second end finds nothing"""
    now = time.time()
    for id in ("s", "s:1"):
        await one.sessions.create(session(id, created=now), most=9, now=now)
        for stream in ("a", "1:a", "b"):
            one.events.append(id, stream, 0, b"x", last=stream == "b")
            require(
                await one.events.read(id, stream, -1) is not None,
                "a worker did not find the events that it had appended",
            )
    require(await one.sessions.end("s"), "`end` did not find an existing session")
    require(not await other.sessions.end("s"), "a session was ended twice")
    require(await other.sessions.load("s", now=now) is None, "an ended session was found")
    for stream in ("a", "1:a", "b"):
        require(
            await other.events.read("s", stream, -1) is None,
            "events of an ended session were found",
        )
        require(
            await other.events.read("s:1", stream, -1) is not None,
            "ending a session deleted events of another session",
        )
    used = (await other.events.measure()).used
    require(used == 3, f"the events of the other session have 3 bytes, and {used} are counted")


async def _keeps_states(one: Store, other: Store) -> None:
    """a session holds a state of the server's author: written by compare-and-swap, unchanged by
    saves, and deleted with the session
    """
    kept = session("s")
    now = kept.created
    for id in ("s", "t"):
        await one.sessions.create(session(id, created=now), most=9, now=now)
    await one.sessions.create(kept, most=9, now=now)
    require(await one.sessions.load_state("s") == b"", "a new session has a state")
    require(await one.sessions.load_state("u") is None, "an unknown session has a state")
    require(
        not await one.sessions.save_state("u", b"x", was=b""),
        "a state was stored for an unknown session",
    )
    require(await one.sessions.load("u", now=now) is None, "a state created a session")
    state = bytes(range(256)) * 200
    require(await one.sessions.save_state("s", state, was=b""), "a state could not be stored")
    require(await other.sessions.load_state("s") == state, "a state was found with another value")
    require(await other.sessions.load_state("t") == b"", "another session has the state")
    require(
        not await other.sessions.save_state("s", b"late", was=b""),
        "a state overwrote a change that its writer had not read",
    )
    changed = msgspec.structs.replace(kept, log_level="error")
    await other.sessions.save(changed, was=kept)
    await other.sessions.prolong("s", kept.until + _AGE)
    require(
        await one.sessions.load_state("s") == state, "a save, or moving the end, changed a state"
    )
    rivals = [b"%d" % n for n in range(10)]
    won = await asyncio.gather(
        *(
            (one, other)[n % 2].sessions.save_state("s", each, was=state)
            for n, each in enumerate(rivals)
        )
    )
    require(sum(won) == 1, f"10 calls changed a state at once, and {sum(won)} succeeded")
    require(
        await other.sessions.load_state("s") == rivals[won.index(True)],
        "the stored state is not the one whose save succeeded",
    )
    await one.sessions.end("s")
    require(
        await other.sessions.load_state("s") is None,
        "a state was found after its session had ended",
    )
    await one.sessions.create(kept, most=9, now=now)
    require(
        await other.sessions.load_state("s") == b"", "a new session has the state of an ended one"
    )
    await one.sessions.save_state("s", b"x", was=b"")
    await one.sessions.create(kept, most=9, now=now)
    require(await other.sessions.load_state("s") == b"", "a replaced session kept its state")


async def _replays(one: Store, other: Store) -> None:
    """the events after an event are replayed in order and unchanged, with the end of the stream if
    it was appended, and each stream by itself
    """
    data = [b"data: {}\n\n", bytes(range(256)), b"", "东京".encode(), b"y" * 300_000]
    for number, each in enumerate(data):
        one.events.append("s", "t", number, each, last=False)
        one.events.append("s", "u", number, each * 2, last=number == 4)
        one.events.append("r", "t", number, b"", last=False)
    for after in (-1, 0, 3, 4):
        expected = Replay(tuple(enumerate(data))[after + 1 :], False)
        found = await one.events.read("s", "t", after)
        require(
            found == expected,
            f"after event {after} of 5, the worker that appended them found {_brief(found)}",
        )
    await eventually(lambda: other.events.read("s", "u", 4), Replay((), True))
    require(
        await other.events.read("s", "u", 2) == Replay(((3, data[3] * 2), (4, data[4] * 2)), True),
        "another worker found different events",
    )
    for after in (5, 10**30, -5):
        found = await one.events.read("s", "t", after)
        everything = Replay(tuple(enumerate(data)) if after < 0 else (), False)
        require(
            found == everything,
            f"after event {after} of 5, the worker that appended them found {_brief(found)}",
        )
    for id, stream in (("s", "v"), ("q", "t"), ("", "")):
        require(
            await one.events.read(id, stream, -1) is None,
            "a stream was found that was never written",
        )


async def _notes_events_once(one: Store, other: Store) -> None:
    """a repeated event, or one after the end, changes nothing, and an event after a gap hides the
    events before the gap
    """
    for number in (0, 1, 1, 0, 2):
        one.events.append("s", "t", number, b"%d" % number, last=number == 2)
    one.events.append("s", "t", 3, b"3", last=False)
    found = await one.events.read("s", "t", -1)
    require(
        found == Replay(((0, b"0"), (1, b"1"), (2, b"2")), True),
        f"0, 1 and 2 were appended, and {_brief(found)} was found",
    )
    for number in (0, 1, 5, 6):
        one.events.append("s", "u", number, b"%d" % number, last=False)
    require(
        await one.events.read("s", "u", 1) is None,
        "events were replayed although some between them are missing",
    )
    found = await one.events.read("s", "u", 4)
    require(
        found == Replay(((5, b"5"), (6, b"6")), False), f"after the gap {_brief(found)} was found"
    )


async def _bounds_what_a_session_keeps(one: Store, other: Store) -> None:
    """the ended streams that a session keeps are bounded: the oldest streams are dropped first, and
    only as a whole
    """
    block = b"z" * 65_536
    for n in range(256):
        one.events.append("s", f"t{n}", 0, block, last=False)
        one.events.append("s", f"t{n}", 1, block, last=True)
        if n % 32 == 31:
            # so that the store's queue does not grow too long
            await one.events.read("s", f"t{n}", 0)
    kept = [await one.events.read("s", f"t{n}", -1) for n in range(256)]
    whole = Replay(((0, block), (1, block)), True)
    require(kept[-1] == whole, "the stream that ended last was dropped")
    require(kept[0] is None, "one session kept all of 256 ended streams of 128 KiB each")
    first = next(n for n, replay in enumerate(kept) if replay is not None)
    require(
        all(replay == whole for replay in kept[first:]),
        "a stream was dropped before an older one, or only in part",
    )


async def _bounds_what_a_stream_keeps(one: Store, other: Store) -> None:
    """the events that an open stream keeps are bounded: the oldest events are dropped first, and
    reading them returns None
    """
    for number in range(20_000):
        one.events.append("s", "t", number, b"%d" % number, last=False)
        if number % 1000 == 999:
            require(
                await one.events.read("s", "t", number - 1)
                == Replay(((number, b"%d" % number),), False),
                "an event is missing within the limit",
            )
    require(
        await one.events.read("s", "t", -1) is None,
        "20,000 events of a stream were kept, or `read` left some of them out",
    )
    require(
        await one.events.read("s", "t", 19_000) is not None,
        "the last 1,000 events of a stream were dropped",
    )


def _brief(replay: Replay | None) -> str:
    return (
        "nothing"
        if replay is None
        else f"{[(n, data[:20]) for n, data in replay.events]}, ended: {replay.ended}"
    )


STEPS = (
    _keeps_sessions,
    _lists_recent_sessions,
    _keeps_no_more_than_it_may,
    _forgets_what_is_over,
    _saves_what_nobody_changed,
    _prolongs,
    _ends_sessions_with_their_events,
    _keeps_states,
    _replays,
    _notes_events_once,
    _bounds_what_a_session_keeps,
    _bounds_what_a_stream_keeps,
)
"""Ordered: each step relies on those before it."""
