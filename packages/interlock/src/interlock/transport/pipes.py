"""Lines over file descriptors: without threads if the platform can poll the descriptors, otherwise
with two threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from itertools import islice

from ..wire.jsonrpc import Frame
from ..wire.lines import DEFAULT_LIMIT, LineSplitter

HIGH_WATER = 1024 * 1024  # bytes queued for writing above which `drain` waits
READ_AHEAD = 8 * 1024 * 1024  # bytes received but not taken above which reading pauses
_SMALL_READ = 64 * 1024
_LARGE_READ = 1024 * 1024
_JOIN_UP_TO = 64 * 1024
# seconds until the next check whether the peer has read; doubled each time
_FIRST_LOOK = 0.0005
_LAST_LOOK = 0.016
_BARRIER = b""  # marks a barrier in the write queue of a thread
_GRACE_TO_READ = 0.01  # seconds, if the platform cannot tell what the peer has read


def open_pipe_channel(
    read_fd: int,
    write_fd: int,
    *,
    limit: int = DEFAULT_LIMIT,
    on_close: Callable[[], None] | None = None,
) -> PipeChannel | ThreadChannel:
    """Return a channel over two descriptors, which the channel owns from now on. `limit` is the
    maximum length of a line in bytes.
    """
    if sys.platform != "win32" and _pollable(read_fd) and _pollable(write_fd):
        return PipeChannel(read_fd, write_fd, limit=limit, on_close=on_close)
    return ThreadChannel(read_fd, write_fd, limit=limit, on_close=on_close)


def _pollable(fd: int) -> bool:
    """Whether a descriptor can be polled. Pipes and sockets can; files cannot; a terminal must not
    be, because its flags are shared with the shell.
    """
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _unread(fd: int) -> int | None:
    """Return the number of bytes that the reader of a pipe or socket has not read yet (for a
    socket: bytes of memory).

    None if the platform does not support this: only Linux tells the writing end. If the reader is
    gone, the number is 0.
    """
    if sys.platform != "linux":
        return None
    import fcntl  # late: not on Windows, and needed only after progress
    import termios  # late: as above

    question = termios.TIOCOUTQ if stat.S_ISSOCK(os.fstat(fd).st_mode) else termios.FIONREAD
    try:
        left = int.from_bytes(fcntl.ioctl(fd, question, bytes(4)), sys.byteorder)
    except OSError:
        return None
    return left and (0 if _is_deserted(fd) else left)


def _is_deserted(fd: int) -> bool:
    """Whether the reading end of a pipe is closed everywhere. Then the content of the pipe is never
    read.
    """
    watch = select.poll()
    watch.register(fd, 0)
    return any(event & select.POLLERR for _, event in watch.poll(0))


def _chunks(frames: list[Frame]) -> list[memoryview]:
    """Return the bytes of many frames. Small frames are joined, large ones are not copied."""
    chunks: list[memoryview] = []
    small: list[Frame] = []
    held = 0
    for frame in frames:
        if len(frame) >= _JOIN_UP_TO // 4:
            if small:
                chunks.append(memoryview(b"\n".join(small) + b"\n"))
                small = []
                held = 0
            chunks += (memoryview(frame), memoryview(b"\n"))
            continue
        small.append(frame)
        held += len(frame)
        if held >= _JOIN_UP_TO:
            chunks.append(memoryview(b"\n".join(small) + b"\n"))
            small = []
            held = 0
    if small:
        chunks.append(memoryview(b"\n".join(small) + b"\n"))
    return chunks


def _size(frames: list[Frame]) -> int:
    """Return the size of frames in bytes, with their newlines."""
    return sum(map(len, frames)) + len(frames)


def _too_long(splitter: LineSplitter, reported: int) -> str:
    return (
        f"a line of more than {splitter.limit} bytes was dropped"
        if splitter.dropped > reported
        else ""
    )


class PipeChannel:
    """A channel over non-blocking descriptors, driven by readiness callbacks of the event loop: no
    thread, no queue, one write for each turn of the loop.
    """

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        *,
        limit: int = DEFAULT_LIMIT,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._on_close = on_close
        self._splitter = LineSplitter(limit)
        self._reported = 0
        self._frames: list[Frame] = []
        self._held = 0
        self._read_size = _SMALL_READ
        self._ended = self._paused = self._write_closed = self._closed = False
        self._reader: asyncio.Future[None] | None = None
        self._take: Callable[[list[Frame]], None] | None = None
        self._on_end: Callable[[], None] | None = None
        self._patient = False
        # called once, at the first large message
        self.on_large: Callable[[], None] | None = None
        self._out: deque[memoryview] = deque()
        self._behind: deque[list[Frame]] = deque()  # the frames behind each barrier
        self._looking: asyncio.TimerHandle | None = None
        self.queued = 0
        self.received_bytes = 0
        self.sent_bytes = 0
        self._room: asyncio.Event = asyncio.Event()
        self._room.set()
        for fd in (read_fd, write_fd):
            os.set_blocking(fd, False)
        self._loop.add_reader(read_fd, self._readable)

    def push(
        self, take: Callable[[list[Frame]], None], ended: Callable[[], None], *, patient: bool
    ) -> None:
        """Deliver frames by callback instead of `receive`: `take` gets frames in the turn of the
        event loop in which they arrive, `ended` is called at the end.

        `take` gets an empty list if a line was dropped. With `patient`, reading pauses while the
        write queue is long.
        """
        self._take = take
        self._on_end = ended
        self._patient = patient
        if self._frames or self._splitter.dropped != self._reported:
            frames = self._frames
            self._frames = []
            self._held = 0
            take(frames)
        if self._paused and not self._ended:  # enough data had been received before
            self._paused = False
            self._loop.add_reader(self._read_fd, self._readable)
        if self._ended:
            ended()

    async def receive(self) -> list[Frame]:
        """Return the next frames; an empty list at the end."""
        while not self._frames:
            if self._ended:
                return []
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        frames = self._frames
        self._frames = []
        self._held = 0
        if self._paused and not self._ended:
            self._paused = False
            self._loop.add_reader(self._read_fd, self._readable)
        return frames

    def send(self, frames: list[Frame]) -> None:
        """Queue frames for writing; they are written at once if the queue is empty."""
        if self._write_closed:
            return
        if self._behind:
            self._behind[-1] += frames
            self.queued += _size(frames)
        else:
            self._write(frames)
        if self.queued > HIGH_WATER:
            self._room.clear()

    def barrier(self) -> None:
        """Hold back all later frames until the peer has read the earlier ones."""
        if self._write_closed:
            return
        if self._out or self._behind or _unread(self._write_fd) != 0:
            self._behind.append([])
            self._look_soon()

    def _write(self, frames: list[Frame]) -> None:
        total = sum(map(len, frames))
        if total <= _JOIN_UP_TO:
            chunks = [memoryview(b"\n".join(frames) + b"\n")]
        else:
            chunks = _chunks(frames)
            self._note_large()
        idle = not self._out
        self._out.extend(chunks)
        self.queued += total + len(frames)
        if idle:
            self._writable()
            if self._out and not self._write_closed:
                self._loop.add_writer(self._write_fd, self._writable)

    def _look_soon(self, after: float = _FIRST_LOOK) -> None:
        """Schedule a check whether the peer has read everything before the barrier, once that is
        written.
        """
        if self._looking is None and self._behind and not self._out:
            self._looking = self._loop.call_later(after, self._look, after)

    def _look(self, after: float) -> None:
        """Write the frames behind the barrier if the peer has read everything before it."""
        self._looking = None
        unread = _unread(self._write_fd)
        if unread is None and after < _GRACE_TO_READ:
            self._look_soon(_GRACE_TO_READ)
        elif unread:
            self._look_soon(min(2 * after, _LAST_LOOK))
        else:
            self._pass_barrier()
            self._look_soon()

    def _pass_barrier(self) -> None:
        frames = self._behind.popleft()
        if frames:
            self.queued -= _size(frames)
            self._write(frames)
        elif not self._behind:
            self._relax()

    async def drain(self) -> None:
        """Wait until the queue is short."""
        if self.queued > HIGH_WATER and not self._write_closed:
            await self._room.wait()

    async def aclose(self) -> None:
        """Write queued frames for a moment longer, then close both descriptors."""
        if self._closed:
            return
        self._closed = True
        while self._behind:  # a peer that is closing may read frames together
            self._pass_barrier()
        if self._out and not self._write_closed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    while self._out and not self._write_closed:
                        self._room.clear()
                        await self._room.wait()
        self._close_write()
        self._end()
        if self._read_fd >= 0:
            os.close(self._read_fd)
            self._read_fd = -1
        if self._on_close is not None:
            self._on_close()

    @property
    def lost(self) -> str:
        """Why lines were dropped since the last access."""
        why = _too_long(self._splitter, self._reported)
        self._reported = self._splitter.dropped
        return why

    # -- callbacks of the event loop ---------------------------------------------------------------

    def _readable(self) -> None:
        try:
            chunk = os.read(self._read_fd, self._read_size)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        if not chunk:
            rest = self._splitter.close()
            if self._take is None:
                self._frames += rest
            elif rest:
                self._take(rest)
            self._end()
            return
        self.received_bytes += len(chunk)
        if len(chunk) >= _SMALL_READ:
            self._read_size = _LARGE_READ
            self._note_large()
        else:
            self._read_size = _SMALL_READ
        before = self._splitter.dropped
        frames = self._splitter.feed(chunk)
        if self._take is not None:
            if frames or self._splitter.dropped != before:
                self._take(frames)
                if self._patient and self.queued > HIGH_WATER and not self._ended:
                    self._paused = True
                    self._loop.remove_reader(self._read_fd)
            return
        if frames:
            self._frames += frames
            self._held += len(chunk)
            if self._held > READ_AHEAD:
                self._paused = True
                self._loop.remove_reader(self._read_fd)
        if frames or self._splitter.dropped != before:
            self._wake()

    def _writable(self) -> None:
        out = self._out
        while out:
            try:
                written = (
                    os.write(self._write_fd, out[0])
                    if len(out) == 1
                    else os.writev(self._write_fd, [*islice(out, 64)])
                )
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self._close_write()
                return
            self.queued -= written
            self.sent_bytes += written
            while written:
                first = out[0]
                if written < len(first):
                    out[0] = first[written:]
                    break
                written -= len(first)
                out.popleft()
        self._loop.remove_writer(self._write_fd)
        if self._behind:
            self._look_soon()
        else:
            self._relax()

    def _relax(self) -> None:
        """Wake waiting tasks and resume reading, because the queue is empty."""
        self._room.set()
        if self._take is not None and self._paused and not self._ended:
            self._paused = False
            self._loop.add_reader(self._read_fd, self._readable)

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            if not self._paused:
                self._loop.remove_reader(self._read_fd)
            if self._on_end is not None:
                self._on_end()
        self._wake()

    def _close_write(self) -> None:
        if not self._write_closed:
            self._write_closed = True
            self._out.clear()
            self._behind.clear()
            self.queued = 0
            if self._looking is not None:
                self._looking.cancel()
                self._looking = None
            self._loop.remove_writer(self._write_fd)
            if self._write_fd != self._read_fd:
                os.close(self._write_fd)
        self._relax()

    def _note_large(self) -> None:
        noted = self.on_large
        self.on_large = None
        if noted is not None:
            noted()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


class ThreadChannel:
    """A channel with blocking reads and writes in two threads, for descriptors that the event loop
    cannot poll (files, terminals, Windows).
    """

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        *,
        limit: int = DEFAULT_LIMIT,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._on_close = on_close
        self._splitter = LineSplitter(limit)
        self._reported = 0
        # [] for a dropped line, None at the end
        self._arrived: asyncio.Queue[list[Frame] | None] = asyncio.Queue()
        self._taken = threading.Semaphore(64)  # reading pauses after this many untaken chunks
        self._pushing: asyncio.Task[None] | None = None
        self._ended = self._closed = False
        self._out: deque[bytes] = deque()
        self._work = threading.Condition()
        self.queued = 0
        self._stopping = False
        self._room = asyncio.Event()
        self._room.set()
        self._written = asyncio.Event()
        threading.Thread(target=self._read_loop, name="interlock-read", daemon=True).start()
        threading.Thread(target=self._write_loop, name="interlock-write", daemon=True).start()

    def push(
        self, take: Callable[[list[Frame]], None], ended: Callable[[], None], *, patient: bool
    ) -> None:
        """Deliver frames by callback instead of `receive`: `take` gets frames as they arrive,
        `ended` is called at the end.

        `take` gets an empty list if a line was dropped. With `patient`, reading pauses while the
        write queue is long.
        """
        self._pushing = self._loop.create_task(self._push(take, ended, patient))

    async def _push(
        self, take: Callable[[list[Frame]], None], ended: Callable[[], None], patient: bool
    ) -> None:
        try:
            while (frames := await self._next()) is not None:
                take(frames)
                if patient:
                    await self.drain()
        finally:
            ended()

    async def receive(self) -> list[Frame]:
        """Return the next frames; an empty list at the end."""
        while (frames := await self._next()) is not None:
            if frames:
                return frames
        return []

    async def _next(self) -> list[Frame] | None:
        if self._ended:
            return None
        frames = await self._arrived.get()
        self._taken.release()
        self._ended = frames is None
        return frames

    def send(self, frames: list[Frame]) -> None:
        """Queue frames for writing."""
        data = b"\n".join(frames) + b"\n"
        with self._work:
            if self._stopping:
                return
            self._out.append(data)
            self.queued += len(data)
            self._work.notify()
            if self.queued > HIGH_WATER:
                self._room.clear()

    def barrier(self) -> None:
        """Hold back all later frames until the peer has read the earlier ones."""
        with self._work:
            if not self._stopping:
                self._out.append(_BARRIER)
                self._work.notify()

    async def drain(self) -> None:
        """Wait until the queue is short."""
        await self._room.wait()

    async def aclose(self) -> None:
        """Write queued frames for a moment longer, then end the threads."""
        if self._closed:
            return
        self._closed = True
        if self._pushing is not None:
            self._pushing.cancel()
        with self._work:
            self._stopping = True
            self._work.notify()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._written.wait()
        self._room.set()  # do not wait for a peer that has stopped reading
        if self._on_close is not None:
            self._on_close()

    @property
    def lost(self) -> str:
        """Why lines were dropped since the last access."""
        why = _too_long(self._splitter, self._reported)
        self._reported = self._splitter.dropped
        return why

    def _read_loop(self) -> None:
        while True:
            self._taken.acquire()
            try:
                chunk = os.read(self._read_fd, _SMALL_READ)
            except OSError:
                chunk = b""
            dropped = self._splitter.dropped
            frames = self._splitter.feed(chunk) if chunk else self._splitter.close()
            if chunk and not frames and self._splitter.dropped == dropped:
                self._taken.release()
                continue
            if (chunk or frames) and not self._post(self._arrived.put_nowait, frames):
                return
            if not chunk:
                self._post(self._arrived.put_nowait, None)
                with contextlib.suppress(OSError):
                    os.close(self._read_fd)
                return

    def _write_loop(self) -> None:
        while True:
            with self._work:
                while not self._out and not self._stopping:
                    self._work.wait()
                if not self._out:
                    break
                data = self._out.popleft()
            if data is _BARRIER:
                self._wait_for_reader()
                continue
            if not self._write_all(data):
                with self._work:
                    self._stopping = True
                    self._out.clear()
                    self.queued = 0
                break
            with self._work:
                self.queued -= len(data)
                low = self.queued <= HIGH_WATER
            if low:
                self._post(self._room.set)
        with contextlib.suppress(OSError):
            os.close(self._write_fd)
        self._post(self._room.set)
        self._post(self._written.set)

    def _wait_for_reader(self) -> None:
        """Wait until the peer has read what was written, or the channel is closing."""
        if sys.platform == "win32":
            with contextlib.suppress(OSError):
                os.fsync(self._write_fd)  # FlushFileBuffers, which waits for the reader of a pipe
            return
        if not _pollable(self._write_fd):
            return  # a file or a terminal, which has no reader to wait for
        after = _FIRST_LOOK
        while (unread := _unread(self._write_fd)) != 0 and not self._stopping:
            time.sleep(after if unread else _GRACE_TO_READ)
            if unread is None:
                return
            after = min(2 * after, _LAST_LOOK)

    def _write_all(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._write_fd, view) :]
            except OSError as bad:
                if bad.errno not in (errno.EAGAIN, errno.EINTR):
                    return False
        return True

    def _post(self, callback: Callable[..., None], *args: object) -> bool:
        """Call a function in the event loop's thread. Returns False if the loop is closed."""
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            return False
        return True
