"""Those who listen to a board in memory: one order for all, whoever posts and from wherever, and
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
    board = MemoryStore().changes
    calls = []

    def fail(note: bytes, position: str) -> None:
        calls.append(note)
        raise LookupError("no such thing")

    board.subscribe(fail)
    ear = RecordingListener(board)
    board.publish(b"1")
    board.publish(b"2")
    assert ear.notes == calls == [b"1", b"2"]
    assert caplog.text.count("LookupError: no such thing") == 2


async def test_a_note_that_is_posted_while_another_is_heard_waits_its_turn():
    """Who listens later in the row hears both in the order in which they were posted."""
    board = MemoryStore().notes
    board.subscribe(
        lambda note, position: board.publish(b"answer") if note == b"question" else None
    )
    ear = RecordingListener(board)
    board.publish(b"question")
    assert ear.notes == [b"question", b"answer"]
    assert ear.positions == [position for _, position in ear.heard]


async def test_who_stops_another_stops_it_at_once():
    """One who was told to stop within the same note does not hear it."""
    board = MemoryStore().notes
    stops = []
    board.subscribe(lambda note, position: stops.pop()() if stops else None)
    ear = RecordingListener(board)
    stops.append(ear.stop)
    board.publish(b"1")
    board.publish(b"2")
    assert ear.notes == []


async def test_threads_and_the_loop_make_one_order():
    """What a thread has posted before the loop posts is heard before, though the loop's own notes
    need no turn of it.
    """
    board = MemoryStore().notes
    ears = [RecordingListener(board), RecordingListener(board)]
    thread = threading.Thread(target=board.publish, args=(b"thread",))
    thread.start()
    thread.join()
    position = board.position
    late = RecordingListener(board)
    board.publish(b"loop")
    for ear in ears:
        assert ear.notes == [b"thread", b"loop"]
    assert [
        place for _, place in late.heard if int(place) <= int(position)
    ] == []  # `position` was told before the thread's note was heard
    assert late.notes == [b"thread", b"loop"]
    assert await board.replay(position) == late.heard


async def test_a_loop_that_has_ended_is_forgotten():
    """Who listened there and never stopped is no burden to those who post."""
    board = MemoryStore().changes

    def listen() -> None:
        async def briefly() -> None:
            board.subscribe(lambda note, position: None)

        asyncio.run(briefly())

    await asyncio.to_thread(listen)
    ear = RecordingListener(board)
    board.publish(b"1")
    assert ear.notes == [b"1"]
    assert set(board._listeners._rooms) == {asyncio.get_running_loop()}
