"""Contract check of a store's topics, as a part of `check_store`."""

from __future__ import annotations

import asyncio
import threading

from ...store.interface import Store
from .promises import RecordingListener, require


async def _everyone_hears_in_order(one: Store, other: Store) -> None:
    """all who listen hear all notes in one order, their own too, and what another board has not at
    all
    """
    ears = [
        RecordingListener(one.changes),
        RecordingListener(one.changes),
        RecordingListener(other.changes),
    ]
    quiet = RecordingListener(other.notes)
    for n in range(50):
        (one, other)[n % 2].changes.publish(b"%d" % n)
    for ear in ears:
        heard = await ear.hear(50)
        require(
            sorted(heard) == sorted(b"%d" % n for n in range(50)),
            f"50 notes were posted, and {len(heard)} heard: {heard}",
        )
        require(
            ear.heard == ears[0].heard,
            "two who listen heard the same notes in two orders, or at other positions",
        )
        for mine in (0, 1):
            own = [note for note in heard if int(note) % 2 == mine]
            require(
                own == sorted(own, key=int),
                f"a worker posted in order, and what was heard is {own}",
            )
        require(
            ear.positions == [position for _, position in ear.heard],
            "`position` is not that of the note which is being heard",
        )
    other.notes.publish(b"note")
    require(
        await quiet.hear(1) == [b"note"],
        f"one note was posted on this board, and {quiet.notes} heard",
    )


async def _confirms_what_it_has(one: Store, other: Store) -> None:
    """a note is there for every worker once its publication is confirmed"""
    begin = one.notes.position
    await one.notes.publish_confirmed(b"1")
    found = await other.notes.replay(begin)
    require(
        found is not None and [note for note, _ in found] == [b"1"],
        f"a note was confirmed, and another worker found {found}",
    )


async def _who_stopped_hears_no_more(one: Store, other: Store) -> None:
    """who has stopped listening hears nothing more, and the others still do"""
    gone = RecordingListener(one.notes)
    there = RecordingListener(one.notes)
    gone.stop()
    gone.stop()
    other.notes.publish(b"1")
    require(await there.hear(1) == [b"1"], f"one note was posted, and {there.notes} heard")
    require(gone.notes == [], f"{gone.notes} was heard by one who had stopped")
    there.stop()
    other.notes.publish(b"2")  # there is no listener
    late = RecordingListener(one.notes)
    position = one.notes.position
    other.notes.publish(b"3")
    heard = await late.hear(1)
    # a message that another worker published just before may count as earlier or later
    while heard[-1] != b"3":
        heard = await late.hear(len(heard) + 1)
    require(
        heard in ([b"3"], [b"2", b"3"]),
        f"one who began to listen before the third note heard {heard}",
    )
    require(
        position not in [place for _, place in late.heard],
        "a note was heard that `position` had said was heard before",
    )


async def _any_thread_may_post(one: Store, other: Store) -> None:
    """any thread may post, and who listens is called in their own loop"""
    ears = [RecordingListener(one.notes), RecordingListener(other.notes)]

    def post() -> None:
        for n in range(20):
            one.notes.publish(b"%d" % n)

    await asyncio.to_thread(post)
    for ear in ears:
        heard = await ear.hear(20)
        require(
            heard == [b"%d" % n for n in range(20)],
            f"another thread posted 20 notes, and what was heard is {heard}",
        )
        require(
            ear.threads == {threading.get_ident()},
            "a listener was called in another thread than that of its loop",
        )


async def _a_loop_of_its_own_hears(one: Store, other: Store) -> None:
    """one who listens in another loop than the store's is called there"""
    here = asyncio.get_running_loop()
    begun = asyncio.Event()
    over = asyncio.Event()
    heard: list[tuple[bytes, int]] = []

    async def listen() -> None:
        ear = RecordingListener(one.changes)
        here.call_soon_threadsafe(begun.set)
        await ear.hear(2)
        heard.extend((note, ident) for note in ear.notes for ident in ear.threads)
        ear.stop()
        here.call_soon_threadsafe(over.set)

    thread = threading.Thread(target=lambda: asyncio.run(listen()), daemon=True)
    thread.start()
    await begun.wait()
    other.changes.publish(b"1")
    one.changes.publish(b"2")
    await over.wait()
    thread.join()
    ident = thread.ident or 0
    require(
        sorted(heard) == [(b"1", ident), (b"2", ident)],
        f"two notes were posted, and another loop heard {heard}",
    )


async def _tells_what_came_since(one: Store, other: Store) -> None:
    """the notes after a position are there for every worker, also at the position of the last, and
    also before anything is posted
    """
    begin = one.changes.position
    require(
        await one.changes.replay(begin) == [], "there were notes although nothing had been posted"
    )
    ears = [RecordingListener(one.changes), RecordingListener(other.changes)]
    for n in range(10):
        one.changes.publish(bytes([n]) * (1 + 1000 * n))
    for ear in ears:
        await ear.hear(10)
    for store in (one, other):
        require(
            await store.changes.replay(begin) == ears[0].heard,
            "since the beginning there is not what was heard",
        )
        for n, (_, position) in enumerate(ears[0].heard):
            require(
                await store.changes.replay(position) == ears[0].heard[n + 1 :],
                "since a note there are not those that were heard after it",
            )
        require(
            store.changes.position == ears[0].heard[-1][1],
            "`position` is not that of the last note that was heard",
        )
    require(
        all(place and place.isascii() and place.isprintable() for _, place in ears[0].heard),
        "a position is no plain text",
    )


async def _admits_what_it_does_not_know(one: Store, other: Store) -> None:
    """there is None since a position that never was"""
    one.notes.publish(b"1")
    begin = one.notes.position
    for position in (
        "",
        "nonsense",
        "-1",
        "0",
        "1",
        "9" * 18,
        "9" * 5000,
        "٣",
        begin + "0",
        f" {begin}",
        "1;DROP",
        "\0",
    ):
        found = await one.notes.replay(position)
        require(
            found is None,
            f"since {position[:40]!r}, which never was a position, there were {found}",
        )


async def _admits_what_it_has_forgotten(one: Store, other: Store) -> None:
    """old notes go first, and there is None since a position some of whose followers are gone"""
    begin = one.changes.position
    for n in range(12_000):
        one.changes.publish(b"%d" % n)
        if n % 1000 == 999:
            await one.changes.replay(
                one.changes.position
            )  # so that the store's queue does not grow too long
    ear = RecordingListener(one.changes)
    one.changes.publish(b"mark")
    one.changes.publish(b"last")
    heard = await ear.hear(1)
    while heard[-1] != b"last":
        heard = await ear.hear(len(heard) + 1)
    require(
        await one.changes.replay(begin) is None,
        "12,000 notes were kept, or given with some of them missing",
    )
    marked = next(place for note, place in ear.heard if note == b"mark")
    require(
        [note for note, _ in await one.changes.replay(marked) or []] == [b"last"],
        "the newest notes are not kept",
    )


STEPS = (
    _everyone_hears_in_order,
    _confirms_what_it_has,
    _who_stopped_hears_no_more,
    _any_thread_may_post,
    _a_loop_of_its_own_hears,
    _tells_what_came_since,
    _admits_what_it_does_not_know,
    _admits_what_it_has_forgotten,
)
"""Ordered: each step relies on those before it."""
