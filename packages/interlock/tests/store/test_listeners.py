"""Those who listen to a topic in memory: one order for all, whoever posts and from wherever, and
whatever one of them does.
"""

from __future__ import annotations

import asyncio
import threading

from interlock.store import MemoryStore
from interlock.testing.contracts.promises import RecordingListener


async def test_a_listener_that_fails_harms_no_other(caplog):
    """The others hear the note, the one who failed hears the next,
    and the log has the traceback."""
    topic = MemoryStore().changes
    calls = []

    def fail(note: bytes, position: str) -> None:
        calls.append(note)
        raise LookupError("no such thing")

    topic.subscribe(fail)
    listener = RecordingListener(topic)
    topic.publish(b"1")
    topic.publish(b"2")
    assert listener.notes == calls == [b"1", b"2"]
    assert caplog.text.count("LookupError: no such thing") == 2


async def test_a_note_that_is_posted_while_another_is_heard_waits_its_turn():
    """Who listens later in the row hears both in the order in which they were posted."""
    topic = MemoryStore().notes
    topic.subscribe(
        lambda note, position: topic.publish(b"answer") if note == b"question" else None
    )
    listener = RecordingListener(topic)
    topic.publish(b"question")
    assert listener.notes == [b"question", b"answer"]
    assert listener.positions == [position for _, position in listener.received]


async def test_who_stops_another_stops_it_at_once():
    """One who was told to stop within the same note does not hear it."""
    topic = MemoryStore().notes
    stops = []
    topic.subscribe(lambda note, position: stops.pop()() if stops else None)
    listener = RecordingListener(topic)
    stops.append(listener.stop)
    topic.publish(b"1")
    topic.publish(b"2")
    assert listener.notes == []


async def test_threads_and_the_loop_make_one_order():
    """What a thread has posted before the loop posts is heard before, though the loop's own notes
    need no turn of it.
    """
    topic = MemoryStore().notes
    listeners = [RecordingListener(topic), RecordingListener(topic)]
    thread = threading.Thread(target=topic.publish, args=(b"thread",))
    thread.start()
    thread.join()
    position = topic.position
    late = RecordingListener(topic)
    topic.publish(b"loop")
    for listener in listeners:
        assert listener.notes == [b"thread", b"loop"]
    assert [
        place for _, place in late.received if int(place) <= int(position)
    ] == []  # `position` was told before the thread's note was heard
    assert late.notes == [b"thread", b"loop"]
    assert await topic.replay(position) == late.received


async def test_a_loop_that_has_ended_is_forgotten():
    """Who listened there and never stopped is no burden to those who post."""
    topic = MemoryStore().changes

    def listen() -> None:
        async def briefly() -> None:
            topic.subscribe(lambda note, position: None)

        asyncio.run(briefly())

    await asyncio.to_thread(listen)
    listener = RecordingListener(topic)
    topic.publish(b"1")
    assert listener.notes == [b"1"]
    assert set(topic._listeners._loops) == {asyncio.get_running_loop()}
