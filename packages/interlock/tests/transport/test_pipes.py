"""Lines over descriptors, with a peer that does its worst: half lines, slow reading, no reading,
and going away at any time.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from typing import Any

import pytest

from interlock.transport.pipes import (
    HIGH_WATER,
    READ_AHEAD,
    PipeChannel,
    ThreadChannel,
    open_pipe_channel,
)
from tests.transport.ends import both_kinds, ends, open_descriptors, received, turns

MB = 1024 * 1024


@both_kinds
async def test_lines_come_as_they_were_written_however_the_bytes_come(kind: Any) -> None:
    """In crumbs, several at once, with blank lines between (`STD-01`)."""
    async with ends(kind) as both:
        for crumb in (b'{"a"', b":1}", b'\n\n{"b":2}\r\n{"', b"c", b'":3}\n'):
            both.write(crumb)
            await turns(2)
        frames = await received(both.channel, 3)
    assert [frame.strip() for frame in frames] == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


@both_kinds
async def test_half_a_line_at_the_end_is_a_line(kind: Any) -> None:
    """And then it is the end, again and again (`LIF-24`)."""
    async with ends(kind) as both:
        both.write(b"one\ntwo")
        both.hang_up()
        assert await received(both.channel, 2) == [b"one", b"two"]
        assert await both.channel.receive() == []
        assert await both.channel.receive() == []


@both_kinds
async def test_what_is_sent_arrives_whole_at_a_peer_that_reads_in_crumbs(kind: Any) -> None:
    """However much it is, and while more is being sent (partial writes)."""
    frames = [bytes([65 + n % 26]) * (n * 7919 % 200_000) for n in range(60)]
    async with ends(kind) as both:
        for n in range(0, 60, 3):
            both.channel.send(frames[n : n + 3])
            await turns(1)
        wire = b"".join(frame + b"\n" for frame in frames)
        head = await both.read(10_000, piece=7)
        assert head + await both.read(len(wire) - len(head), piece=50_000) == wire
        await both.channel.drain()
        assert both.channel.queued == 0


@both_kinds
async def test_sending_never_waits_and_draining_does(kind: Any) -> None:
    """Until the peer has taken most of it; then it goes on."""
    async with ends(kind) as both:
        await asyncio.wait_for(both.channel.drain(), 10)
        for _ in range(16):
            both.channel.send([b"x" * MB])
        draining = asyncio.ensure_future(both.channel.drain())
        await turns(50)
        assert not draining.done()
        assert both.channel.queued > HIGH_WATER
        assert len(await both.read(16 * (MB + 1))) == 16 * (MB + 1)
        await draining
        assert both.channel.queued <= HIGH_WATER


@both_kinds
async def test_a_peer_that_has_gone_costs_a_sender_nothing(kind: Any) -> None:
    """What it is sent is dropped, and nobody who drains is left waiting."""
    async with ends(kind) as both:
        both.channel.send([b"x" * 4 * MB])
        draining = asyncio.ensure_future(both.channel.drain())
        await turns()
        both.stop_reading()
        await draining
        for _ in range(20):
            both.channel.send([b"x" * MB])
            await both.channel.drain()
        assert both.channel.queued <= MB + 1
        both.write(b"still here\n")
        assert await received(both.channel, 1) == [b"still here"]


async def quiet(fd: int, data: bytes) -> int:
    """Write `data` again and again to a descriptor until it has taken none for a good while;
    returns how many bytes it took.
    """
    os.set_blocking(fd, False)
    loop = asyncio.get_running_loop()
    taken = 0
    stirred = asyncio.Event()

    def write() -> None:
        nonlocal taken
        try:
            taken += os.write(fd, data[taken % len(data) :])
        except BlockingIOError:
            return
        stirred.set()

    loop.add_writer(fd, write)
    try:
        while taken < 256 * MB:
            stirred.clear()
            async with asyncio.timeout(0.5):
                await stirred.wait()
    except TimeoutError:
        pass
    finally:
        loop.remove_writer(fd)
        os.set_blocking(fd, True)
    return taken


@both_kinds
async def test_reading_pauses_where_nobody_takes_what_came(kind: Any) -> None:
    """A peer that only writes cannot fill our memory; once somebody takes it, all of it comes, and
    more after it.
    """
    line = b"y" * 9_999 + b"\n"
    async with ends(kind) as both:
        taken = await quiet(both.write_to, line * 10)
        assert taken < READ_AHEAD + 4 * MB
        whole, half = divmod(taken, len(line))
        assert await received(both.channel, whole) == [line[:-1]] * whole
        both.write(line[half:] if half else line)
        assert await received(both.channel, 1) == [line[:-1]]


@both_kinds
async def test_pushed_frames_come_in_order_and_the_end_once(kind: Any) -> None:
    """Also those that were there before anybody wanted them pushed."""
    async with ends(kind) as both:
        both.write(b"0\n1\n")
        await turns(20)
        taken: list[bytes] = []
        over = asyncio.get_running_loop().create_future()
        both.channel.push(taken.extend, lambda: over.set_result(None), patient=False)
        both.write(b"2\n3\nhalf")
        both.hang_up()
        await over
        await turns()
        assert taken == [b"0", b"1", b"2", b"3", b"half"]


@both_kinds
async def test_a_patient_channel_takes_nothing_more_from_a_peer_that_does_not_read(
    kind: Any,
) -> None:
    """Its requests wait in its own pipe until it has taken its answers (back-pressure)."""
    async with ends(kind) as both:
        taken: list[bytes] = []

        def answer(frames: list[bytes]) -> None:
            taken.extend(frames)
            both.channel.send([b"z" * 4 * MB for _ in frames])

        both.channel.push(answer, lambda: None, patient=True)
        both.write(b"0\n")
        while both.channel.queued <= HIGH_WATER:
            await turns()
        both.write(b"1\n2\n3\n")
        await turns(100)
        assert taken == [b"0"]
        assert len(await both.read(4 * (4 * MB + 1))) == 4 * (4 * MB + 1)
        assert taken == [b"0", b"1", b"2", b"3"]


@both_kinds
async def test_a_peer_that_goes_while_a_patient_channel_waits_for_it_is_noticed(kind: Any) -> None:
    """It did not read, so nothing more was read from it; its end must be seen all the same, or a
    server would never end.
    """
    async with ends(kind) as both:
        over = asyncio.get_running_loop().create_future()
        both.channel.push(
            lambda frames: both.channel.send([b"z" * 8 * MB]),
            lambda: over.set_result(None),
            patient=True,
        )
        both.write(b"1\n")
        while both.channel.queued <= HIGH_WATER:
            await turns()
        both.close()
        await over


@both_kinds
async def test_a_line_that_is_too_long_is_told_of_at_once(kind: Any) -> None:
    """Not only when the next line comes; and told once."""
    async with ends(kind, limit=100) as both:
        told = asyncio.Queue[tuple[list[bytes], str]]()
        both.channel.push(
            lambda frames: told.put_nowait((frames, both.channel.lost)), lambda: None, patient=True
        )
        both.write(b"w" * 1000 + b"\n")
        frames, why = await told.get()
        assert (frames, "more than 100 bytes" in why) == ([], True)
        both.write(b"fine\n")
        frames, why = await told.get()
        assert (frames, why) == ([b"fine"], "")


@both_kinds
async def test_closing_writes_what_is_queued(kind: Any) -> None:
    """As far as the peer takes it, and then the peer sees the end."""
    async with ends(kind) as both:
        both.channel.send([b"x" * 3 * MB, b"last"])
        reading = asyncio.ensure_future(both.rest())
        await both.channel.aclose()
        await both.channel.aclose()
        wire = await reading
    assert (len(wire), wire[-6:]) == (3 * MB + 6, b"\nlast\n")


@both_kinds
async def test_closing_does_not_wait_for_a_peer_that_does_not_read(kind: Any) -> None:
    """It returns, whatever is still queued."""
    async with ends(kind) as both:
        both.channel.send([b"x" * 3 * MB])
        await both.channel.aclose()
        both.channel.send([b"into the void"])
        await both.channel.drain()


async def test_whoever_waits_for_frames_hears_that_the_channel_was_closed() -> None:
    """The end, as if the peer had gone."""
    async with ends(PipeChannel) as both:
        waiting = asyncio.ensure_future(both.channel.receive())
        await turns()
        await both.channel.aclose()
        assert await waiting == []


async def test_closing_tells_a_pusher_once() -> None:
    """Also where the peer goes afterwards."""
    async with ends(PipeChannel) as both:
        ended: list[int] = []
        both.channel.push(lambda frames: None, lambda: ended.append(1), patient=True)
        await both.channel.aclose()
        both.close()
        await turns()
        assert ended == [1]


@both_kinds
async def test_a_wait_for_frames_that_was_given_up_loses_none(kind: Any) -> None:
    """The next one gets them."""
    async with ends(kind) as both:
        waiting = asyncio.ensure_future(both.channel.receive())
        await turns()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        both.write(b"1\n2\n")
        assert await received(both.channel, 2) == [b"1", b"2"]


@both_kinds
async def test_nothing_is_left_open(kind: Any) -> None:
    """Neither descriptors nor threads, whichever side goes first, and `on_close` is called once."""
    before = open_descriptors()
    threads = threading.active_count()
    others = set(threading.enumerate())
    for peer_first in (True, False):
        for _ in range(20):
            closed: list[int] = []
            async with ends(kind, on_close=lambda closed=closed: closed.append(1)) as both:
                both.write(b"1\n")
                await received(both.channel, 1)
                if peer_first:
                    both.close()
                await both.channel.aclose()
                await both.channel.aclose()
            assert closed == [1]
    for thread in threading.enumerate():
        if thread.name.startswith("interlock-") and thread not in others:
            await asyncio.to_thread(thread.join, 30)
    assert open_descriptors() <= before + 2  # the pool of to_thread may have made its own
    assert threading.active_count() <= threads + 4


@pytest.mark.parametrize("sockets", [False, True], ids=["pipes", "sockets"])
@both_kinds
async def test_what_stands_behind_a_barrier_comes_in_a_later_read(kind: Any, sockets: bool) -> None:
    """However late the peer reads, and however many barriers there are; in order."""
    async with ends(kind, sockets=sockets) as both:
        for piece in ([b"1"], [b"2", b"3"], [], [b"4"]):
            if piece:
                both.channel.send(piece)
            both.channel.barrier()
        both.channel.send([b"5"])
        reads = []
        while b"5\n" not in reads:
            await turns(200)
            reads.append(await asyncio.to_thread(os.read, both.read_from, 65536))
        assert reads == [b"1\n", b"2\n3\n", b"4\n", b"5\n"]
        await both.channel.drain()
        while both.channel.queued:
            await turns()


@both_kinds
async def test_a_barrier_behind_what_was_read_holds_nothing_back(kind: Any) -> None:
    """What is sent then is written at once, in the same turn where that is possible."""
    async with ends(kind) as both:
        both.channel.send([b"1"])
        assert await both.read(2) == b"1\n"
        both.channel.barrier()
        both.channel.send([b"2"])
        if kind is PipeChannel:
            assert both.channel.queued == 0
        assert await both.read(2) == b"2\n"


@both_kinds
async def test_a_barrier_behind_more_than_a_pipe_holds(kind: Any) -> None:
    """First all before it is written, and then read; only then comes what is behind."""
    async with ends(kind) as both:
        both.channel.send([b"x" * MB])
        both.channel.barrier()
        both.channel.send([b"last"])
        assert await both.read(MB + 1, piece=50_000) == b"x" * MB + b"\n"
        assert await both.read(5) == b"last\n"


@both_kinds
async def test_closing_writes_what_stands_behind_barriers(kind: Any) -> None:
    """A peer that has hung up need not read the one before it gets the other."""
    async with ends(kind) as both:
        for frame in (b"1", b"2", b"3"):
            both.channel.send([frame])
            both.channel.barrier()
        both.hang_up()
        await both.channel.aclose()
        assert await both.rest() == b"1\n2\n3\n"


@both_kinds
async def test_a_peer_that_goes_before_a_barrier_leaves_nothing_waiting(kind: Any) -> None:
    """Neither frames nor whoever drains."""
    async with ends(kind) as both:
        both.channel.send([b"x"])
        both.channel.barrier()
        both.channel.send([b"y" * 2 * MB])
        draining = asyncio.ensure_future(both.channel.drain())
        await turns()
        both.close()
        await draining


async def test_pipes_and_sockets_are_waited_for_and_files_get_threads(tmp_path: Any) -> None:
    """As the platform allows."""
    read, write = os.pipe()
    one, other = socket.socketpair()
    channels = [open_pipe_channel(read, write), open_pipe_channel((fd := one.detach()), os.dup(fd))]
    assert [type(channel) for channel in channels] == [PipeChannel, PipeChannel]
    (tmp_path / "in").write_bytes(b"1\n2\nhalf")
    files = open_pipe_channel(
        os.open(tmp_path / "in", os.O_RDONLY), os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    )
    assert type(files) is ThreadChannel
    assert await received(files, 3) == [b"1", b"2", b"half"]
    files.send([b"written", b"to a file"])
    await files.aclose()
    assert (tmp_path / "out").read_bytes() == b"written\nto a file\n"
    for channel in channels:
        await channel.aclose()
    other.close()


@pytest.mark.parametrize("number", [1, 10_000])
async def test_many_small_frames_behind_a_slow_peer_are_written_in_order(number: int) -> None:
    """A long queue costs no more than its length."""
    async with ends(PipeChannel) as both:
        for n in range(number):
            both.channel.send([b"%06d" % n + b"." * 200])
        wire = await both.read(number * 207)
    assert [int(line[:6]) for line in wire.splitlines()] == list(range(number))
