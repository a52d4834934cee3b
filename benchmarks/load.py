"""The load generator: it writes requests as bytes into a server's pipe, counts answers as lines,
and checks them after the clock has stopped."""

from __future__ import annotations

import gc
import json
import re
import time
from dataclasses import dataclass, field
from statistics import median

from .child import Child
from .messages import INITIALIZE, INITIALIZED, LIST, Params, Request
from .roster import STATELESS

ID = re.compile(rb'"id": ?(\d+)')
CURSOR = re.compile(rb'"nextCursor": ?("(?:[^"\\]|\\.)*")')
KEPT = 8_000_000  # bytes of answers kept for the check; later answers are only counted
Sample = dict[str, float]


@dataclass
class Window:
    """The counts between two readings of the clocks."""

    calls: int = 0
    wall: int = 0
    processor: int = 0
    ours: int = 0
    waits: list[int] = field(default_factory=list)
    size: int = 0

    def sample(self) -> Sample:
        """Return microseconds for each call: processor time of the server, wall time, the median
        latency, and our own processor time."""
        each = self.calls * 1000
        found = {
            "cpu": self.processor / each,
            "wall": self.wall / each,
            "driver": self.ours / each,
            "bytes": self.size / self.calls,
        }
        if self.waits:
            ordered = sorted(self.waits)
            found["p50"] = median(ordered) / 1000
            found["p99"] = ordered[len(ordered) * 99 // 100] / 1000
        return found


class Load:
    """One server under load, in one revision."""

    def __init__(self, child: Child, revision: str) -> None:
        self._child = child
        self._revision = revision
        self._next = 1

    def first(self, request: Request) -> Sample:
        """Open the conversation and make the first call; return the milliseconds since the start of
        the process, in wall time and processor time."""
        if self._revision < STATELESS:
            self._ask(INITIALIZE)
            self._child.write(INITIALIZED)
        self._ask(request)
        wall = time.perf_counter_ns() - self._child.started
        return {"wall": wall / 1e6, "cpu": self._child.processor() / 1e6}

    def press(self, request: Request, in_flight: int, seconds: float, fewest: int = 3) -> Sample:
        """Keep calls in flight for some seconds, and at least for `fewest` calls; return the
        measured costs of one."""
        window = Window()
        answers = list[bytes]()
        first = self._next
        with self._child.watched(), Quiet():
            before = self._child.processor(), time.process_time_ns()
            self._pump(window, answers, request, in_flight, seconds, fewest)
            window.processor = self._child.processor() - before[0]
            window.ours = time.process_time_ns() - before[1]
        check(
            self._child,
            request,
            b"".join(answers),
            range(first, first + window.calls),
            complete=window.size < KEPT,
        )
        return window.sample()

    def lists(self, seconds: float, expected: int) -> Sample:
        """Fetch the whole list of tools, all its pages, one after the other for some seconds;
        return the costs of one whole list."""
        window = Window()
        pages = list[bytes]()
        with self._child.watched(), Quiet():
            before = self._child.processor()
            start = time.perf_counter_ns()
            while window.calls < 3 or time.perf_counter_ns() - start < seconds * 1e9:
                began = time.perf_counter_ns()
                pages = self._pages()
                window.waits.append(time.perf_counter_ns() - began)
                window.calls += 1
            window.wall = time.perf_counter_ns() - start
            window.processor = self._child.processor() - before
        window.size = window.calls * sum(map(len, pages))
        found = sum(len(result_of(self._child, LIST, page)["tools"]) for page in pages)
        if found != expected:
            raise self._child.fault(f"listed {found} tools, not {expected}")
        return window.sample() | {"pages": len(pages)}

    def _pages(self) -> list[bytes]:
        pages = list[bytes]()
        cursor = b""
        while True:
            params = {"cursor": json.loads(cursor)} if cursor else {}
            self._child.write(
                Request("tools/list", params, LIST.right).one(self._revision, self._number())
            )
            pages.append(self._child.read_line())
            more = CURSOR.search(pages[-1])
            if more is None:
                return pages
            cursor = more[1]

    def _pump(
        self,
        window: Window,
        answers: list[bytes],
        request: Request,
        in_flight: int,
        seconds: float,
        fewest: int,
    ) -> None:
        before, after = request.parts(self._revision)
        clock = time.perf_counter_ns
        read = self._child.read
        push = self._child.push
        alone = in_flight == 1
        start = sent_at = clock()
        end = start + int(seconds * 1e9)
        # owed: the number of requests that may be sent now
        owed = in_flight
        sent = 0
        answered = 0
        rest = memoryview(b"")
        while True:
            if owed:
                first = self._next
                self._next += owed
                sent += owed
                fresh = b"".join(
                    [before + b"%d" % number + after for number in range(first, first + owed)]
                )
                rest = memoryview(bytes(rest) + fresh if rest else fresh)
                owed = 0
            if rest:
                rest = push(rest)
            if rest and not self._child.speaks():
                continue
            chunk = read()
            if window.size < KEPT or not answered:  # the first answer as a whole, however long
                answers.append(chunk)
            window.size += len(chunk)
            lines = chunk.count(b"\n")
            if not lines:
                continue
            answered += lines
            now = clock()
            if alone:
                window.waits.append(now - sent_at)
                sent_at = now
            if now < end or answered < fewest:
                owed = lines
            elif answered >= sent:
                break
        window.calls = answered
        window.wall = clock() - start

    def _ask(self, request: Request) -> None:
        number = self._number()
        with self._child.watched():
            self._child.write(request.one(self._revision, number))
            line = self._child.read_line()
        check(self._child, request, line, range(number, number + 1), complete=True)

    def _number(self) -> int:
        self._next += 1
        return self._next - 1


def check(
    child: Child, request: Request, answers: bytes, numbers: range, *, complete: bool
) -> None:
    """Raise unless each id was answered exactly once and each distinct answer, a line each, is
    correct.

    Missing ids are an error only if `complete` is set.
    """
    whole = answers[: answers.rfind(b"\n") + 1]
    ids = sorted(map(int, ID.findall(whole)))
    if (complete and ids != list(numbers)) or len(set(ids)) != len(ids) or not ids:
        raise child.fault(f"did not answer each {request.method} exactly once: {whole[:500]!r}")
    distinct = set(ID.sub(b'"id":0', whole).splitlines())
    for line in sorted(distinct)[:100]:
        if not request.right(result_of(child, request, line)):
            raise child.fault(f"answered {request.method} wrongly: {line[:500]!r}")


def result_of(child: Child, request: Request, line: bytes) -> Params:
    """Return the result in an answer; raise if the answer is an error."""
    message: Params = json.loads(line)
    if "result" not in message or message["result"].get("isError"):
        raise child.fault(f"refused {request.method}: {line[:500]!r}")
    result: Params = message["result"]
    return result


class Quiet:
    """Suspends our own garbage collection while a clock runs."""

    def __enter__(self) -> None:
        gc.collect()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        gc.enable()
