"""Contract check of a store's topics, as a part of `check_store`."""

from __future__ import annotations

import asyncio
import threading

from ...store.interface import Store
from .promises import RecordingListener, require


async def _delivers_in_order(one: Store, other: Store) -> None:
    """every listener of a topic receives every note of all workers once, in the same order, and
    no notes of other topics
    """
    listeners = [
        RecordingListener(one.changes),
        RecordingListener(one.changes),
        RecordingListener(other.changes),
    ]
    separate = RecordingListener(other.notes)
    for n in range(50):
        (one, other)[n % 2].changes.publish(b"%d" % n)
    for listener in listeners:
        notes = await listener.receive(50)
        require(
            sorted(notes) == sorted(b"%d" % n for n in range(50)),
            f"50 notes were published, and {len(notes)} were received: {notes}",
        )
        require(
            listener.received == listeners[0].received,
            "two listeners received the same notes in different orders or at different positions",
        )
        for mine in (0, 1):
            own = [note for note in notes if int(note) % 2 == mine]
            require(
                own == sorted(own, key=int),
                f"a worker published notes in ascending order, and {own} was received",
            )
        require(
            listener.positions == [position for _, position in listener.received],
            "during a delivery, `position` was not the position of the delivered note",
        )
    other.notes.publish(b"note")
    require(
        await separate.receive(1) == [b"note"],
        f"one note was published to this topic, and {separate.notes} were received",
    )


async def _confirms_publication(one: Store, other: Store) -> None:
    """every worker finds a note once its publication is confirmed"""
    begin = one.notes.position
    await one.notes.publish_confirmed(b"1")
    found = await other.notes.replay(begin)
    require(
        found is not None and [note for note, _ in found] == [b"1"],
        f"the publication of one note was confirmed, and another worker found {found}",
    )


async def _stops_delivery(one: Store, other: Store) -> None:
    """a listener that was stopped receives nothing more, and the other listeners still do"""
    stopped = RecordingListener(one.notes)
    active = RecordingListener(one.notes)
    stopped.stop()
    stopped.stop()
    other.notes.publish(b"1")
    require(
        await active.receive(1) == [b"1"],
        f"one note was published, and {active.notes} were received",
    )
    require(stopped.notes == [], f"a stopped listener received {stopped.notes}")
    active.stop()
    other.notes.publish(b"2")  # there is no listener
    late = RecordingListener(one.notes)
    position = one.notes.position
    other.notes.publish(b"3")
    notes = await late.receive(1)
    # a message that another worker published just before may count as earlier or later
    while notes[-1] != b"3":
        notes = await late.receive(len(notes) + 1)
    require(
        notes in ([b"3"], [b"2", b"3"]),
        f"a listener that started before the third note received {notes}",
    )
    require(
        position not in [place for _, place in late.received],
        "a note was delivered again that `position` had already passed",
    )


async def _accepts_any_thread(one: Store, other: Store) -> None:
    """any thread may publish, and a listener is called in the thread of its own event loop"""
    listeners = [RecordingListener(one.notes), RecordingListener(other.notes)]

    def publish() -> None:
        for n in range(20):
            one.notes.publish(b"%d" % n)

    await asyncio.to_thread(publish)
    for listener in listeners:
        notes = await listener.receive(20)
        require(
            notes == [b"%d" % n for n in range(20)],
            f"another thread published 20 notes in order, and {notes} were received",
        )
        require(
            listener.threads == {threading.get_ident()},
            "a listener was called in another thread than that of its event loop",
        )


async def _delivers_to_other_loops(one: Store, other: Store) -> None:
    """a listener in another event loop than the store's is called in its own loop"""
    here = asyncio.get_running_loop()
    started = asyncio.Event()
    finished = asyncio.Event()
    received: list[tuple[bytes, int]] = []

    async def listen() -> None:
        listener = RecordingListener(one.changes)
        here.call_soon_threadsafe(started.set)
        await listener.receive(2)
        received.extend((note, ident) for note in listener.notes for ident in listener.threads)
        listener.stop()
        here.call_soon_threadsafe(finished.set)

    thread = threading.Thread(target=lambda: asyncio.run(listen()), daemon=True)
    thread.start()
    await started.wait()
    other.changes.publish(b"1")
    one.changes.publish(b"2")
    await finished.wait()
    thread.join()
    ident = thread.ident or 0
    require(
        sorted(received) == [(b"1", ident), (b"2", ident)],
        f"two notes were published, and another event loop received {received}",
    )


async def _replays_later_notes(one: Store, other: Store) -> None:
    """`replay` returns the notes after a position on every worker, also after the newest note, and
    also before the first
    """
    begin = one.changes.position
    require(
        await one.changes.replay(begin) == [],
        "`replay` returned notes before anything was published",
    )
    listeners = [RecordingListener(one.changes), RecordingListener(other.changes)]
    for n in range(10):
        one.changes.publish(bytes([n]) * (1 + 1000 * n))
    for listener in listeners:
        await listener.receive(10)
    received = listeners[0].received
    for store in (one, other):
        require(
            await store.changes.replay(begin) == received,
            "`replay` from the start differs from what listeners received",
        )
        for n, (_, position) in enumerate(received):
            require(
                await store.changes.replay(position) == received[n + 1 :],
                "`replay` after a note differs from what listeners received after it",
            )
        require(
            store.changes.position == received[-1][1],
            "`position` is not the position of the last received note",
        )
    require(
        all(place and place.isascii() and place.isprintable() for _, place in received),
        "a position is not printable ASCII text",
    )


async def _rejects_unknown_positions(one: Store, other: Store) -> None:
    """`replay` returns None for a position that never existed"""
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
            f"`replay` returned {found} for {position[:40]!r}, which never was a position",
        )


async def _drops_old_notes(one: Store, other: Store) -> None:
    """the oldest notes are dropped first, and `replay` returns None if a note after the position
    was dropped
    """
    begin = one.changes.position
    for n in range(12_000):
        one.changes.publish(b"%d" % n)
        if n % 1000 == 999:
            await one.changes.replay(
                one.changes.position
            )  # so that the store's queue does not grow too long
    listener = RecordingListener(one.changes)
    one.changes.publish(b"mark")
    one.changes.publish(b"last")
    notes = await listener.receive(1)
    while notes[-1] != b"last":
        notes = await listener.receive(len(notes) + 1)
    require(
        await one.changes.replay(begin) is None,
        "12,000 notes were kept, or `replay` left some of them out",
    )
    marked = next(place for note, place in listener.received if note == b"mark")
    require(
        [note for note, _ in await one.changes.replay(marked) or []] == [b"last"],
        "the newest notes were dropped",
    )


STEPS = (
    _delivers_in_order,
    _confirms_publication,
    _stops_delivery,
    _accepts_any_thread,
    _delivers_to_other_loops,
    _replays_later_notes,
    _rejects_unknown_positions,
    _drops_old_notes,
)
"""Ordered: each step relies on those before it."""
