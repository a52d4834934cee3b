"""The small parts that hold everything within bounds: waits, floods, secrets."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import McpError, ProtocolError, TimedOut, Unreachable
from interlock.configs import DOTS
from interlock.redaction import Redactor
from interlock.types import LoggingMessageNotificationParams
from interlock_apps.fleet.events import Event, Notice, ServerLogLine
from interlock_apps.fleet.hub import Backoff
from interlock_apps.fleet.hub.log_buffer import MOST_CHARACTERS, MOST_LINES, ServerLogBuffer
from interlock_apps.fleet.hub.timeouts import CleanupTasks, Throttle, within
from tests.fleet.hub.keeping import Clock, turns

# -- backoff


@pytest.mark.parametrize(
    "failed, chance, seconds",
    [
        (0, 0.5, 0),
        (1, 0.5, 1),
        (2, 0.5, 2),
        (3, 0.5, 4),
        (6, 0.5, 30),
        (10**6, 0.5, 30),
        (1, 0, 0.75),
        (1, 1, 1.25),
        (9, 1, 37.5),
    ],
)
def test_waits(failed: int, chance: float, seconds: float) -> None:
    """Longer each time, up to a bound, and a little more or less."""
    assert Backoff(first=1, most=30, factor=2, jitter=0.25).seconds(failed, chance) == seconds


@given(
    st.floats(0.001, 10),
    st.floats(1, 1e6),
    st.floats(1, 1e300),
    st.floats(0, 0.99),
    st.integers(1, 2000),
    st.floats(0, 1),
)
def test_waits_are_bounded_and_grow(
    first: float, more: float, factor: float, jitter: float, failed: int, chance: float
) -> None:
    """Whatever the numbers."""
    backoff = Backoff(first=first, most=first * more, factor=factor, jitter=jitter)
    seconds = backoff.seconds(failed, chance)
    assert first * (1 - jitter) * 0.999 <= seconds <= backoff.most * (1 + jitter) * 1.001
    assert backoff.seconds(failed + 1, chance) >= seconds


@pytest.mark.parametrize(
    "wrong",
    [{"first": 0}, {"first": 2, "most": 1}, {"factor": 0.5}, {"jitter": 1}, {"jitter": -0.1}],
)
def test_a_backoff_makes_sense(wrong: dict[str, float]) -> None:
    """Or it is none."""
    with pytest.raises(ValueError, match="backoff"):
        Backoff(**wrong)


# -- waits


async def test_waiting_within() -> None:
    """The work is not cancelled, and the clock is not left running."""
    clock = Clock()
    work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(within(work, 5, clock.sleep))
    await clock.until_asked(5)
    await clock.advance(5)
    assert await waiting is False
    assert not work.done()
    again = asyncio.ensure_future(within(work, 5, clock.sleep))
    await turns()
    work.set_result(None)
    assert await again is True
    assert clock.waits == []
    assert await within(work, None, clock.sleep) is True


async def test_what_is_wanted_often_is_done_seldom() -> None:
    """At once, and not again before its seconds are over; once more where it was wanted meanwhile,
    also while it was done.
    """
    clock = Clock()
    done = list[float]()
    gate = asyncio.Event()

    async def do() -> None:
        done.append(clock.now)
        await gate.wait()

    throttle = Throttle(do, 10, clock.sleep)
    throttle.request()
    await turns()
    throttle.request()
    gate.set()
    for _ in range(3):
        await clock.advance(3)
        throttle.request()
    assert done == [1000]
    await clock.advance(1)
    assert done == [1000, 1010]
    await clock.advance(50)
    assert done == [1000, 1010]
    throttle.request()
    await turns()
    assert len(done) == 3
    throttle.request()
    await throttle.aclose()
    await clock.advance(50)
    assert len(done) == 3


async def test_cleanup_are_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """However often the wait is cancelled, and though one of them fails."""
    cleanup = CleanupTasks()
    gate = asyncio.Event()

    async def fail() -> None:
        await gate.wait()
        raise ZeroDivisionError

    async def chain() -> None:
        await gate.wait()
        cleanup.start(last())

    async def last() -> None:
        await turns(3)
        ended.append("last")

    ended: list[str] = []
    cleanup.start(fail())
    cleanup.start(chain())
    waiting = asyncio.ensure_future(cleanup.finish())
    for _ in range(3):
        await turns(2)
        waiting.cancel()
    await turns(2)
    assert not waiting.done()
    gate.set()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    assert ended == ["last"]
    assert "ZeroDivisionError" in caplog.text


# -- what servers say


class Said:
    """A log buffer, its clock and what it told."""

    def __init__(self, *secrets: str, most: int = 10) -> None:
        self.clock = Clock()
        self.told = list[Event]()
        self.buffer = ServerLogBuffer("s", Redactor(secrets), self.told.append, self.clock, most)


def message(data: Any, logger: str | None = None) -> LoggingMessageNotificationParams:
    """A log message."""
    return LoggingMessageNotificationParams(level="warning", data=data, logger=logger)


@pytest.mark.parametrize(
    "data, text",
    [
        ("plain", "plain"),
        ({"a": [1, "ä"]}, '{"a":[1,"ä"]}'),
        (None, "null"),
        ("x" * 5000, "x" * 4096 + "…"),
        (["x" * 5000], '["' + "x" * 4094 + "…"),
    ],
)
def test_log_messages_are_text(data: Any, text: str) -> None:
    """Whatever JSON they hold; bounded in length."""
    said = Said()
    said.buffer.add_message(message(data, "l" * 300))
    assert said.told == [
        ServerLogLine(server="s", level="warning", text=text, logger="l" * 200 + "…")
    ]
    assert list(said.buffer.lines) == said.told


def test_floods_are_counted_and_told_of_once() -> None:
    """Of lines and of messages together; whoever shouts all the time is told of once a minute at
    the most.
    """
    said = Said(most=10)
    for second in range(50):
        for number in range(100):
            said.buffer.add_line(f"{second} {number}")
            said.buffer.add_message(message("m"))
        said.clock.now += 1
    assert said.buffer.left_out == 50 * 190
    assert len([event for event in said.told if isinstance(event, Notice)]) == 1
    lines = [entry.text for entry in said.buffer.lines]
    assert lines[:11] == [
        *(line for number in range(5) for line in (f"0 {number}", "m")),
        "(190 lines were left out here.)",
    ]
    assert len(lines) == 50 * 11 - 1
    said.clock.now += 60
    for _ in range(11):
        said.buffer.add_line("x")
    assert len([event for event in said.told if isinstance(event, Notice)]) == 2


def test_the_log_is_bounded() -> None:
    """A thousand lines."""
    said = Said(most=10**9)
    for number in range(3000):
        said.buffer.add_line(str(number))
    assert [entry.text for entry in said.buffer.lines] == [
        str(number) for number in range(2000, 3000)
    ]
    assert len(said.buffer.lines) == MOST_LINES
    assert list(said.buffer.last_stderr) == [str(number) for number in range(2995, 3000)]
    said.buffer.process_started()
    assert not said.buffer.last_stderr


@pytest.mark.parametrize("place", range(MOST_CHARACTERS - 20, MOST_CHARACTERS + 5))
def test_a_secret_is_not_cut_through(place: int) -> None:
    """Where a line is too long the first part of a secret does not remain at its end."""
    said = Said("opensesame")
    said.buffer.add_line("." * place + "opensesame" + "." * 100)
    text = said.buffer.lines[0].text
    assert not any(part in text for part in ("open", "op", "sesame"))
    assert len(text) <= MOST_CHARACTERS + 1


def test_the_end_of_a_secret_is_no_word() -> None:
    """Where the beginning of a long line or of stderr is lost, what is left may be the end
    of one.
    """
    said = Said("opensesame")
    said.buffer.add_line("sesame" + "." * 9000)
    assert "sesame" not in said.buffer.lines[0].text
    redactor = Redactor(["opensesame"])
    assert "sesame" not in redactor.tail("sesame" + "ä" * 4093)
    assert redactor.tail("sesame, oil") == "sesame, oil"


# -- secrets


@given(st.text(min_size=4, max_size=30).filter(lambda secret: not set("<>") & set(secret)))
def test_secrets_are_found_in_every_form(secret: str) -> None:
    """As they are, in URLs and in JSON."""
    redactor = Redactor([secret])
    raw = secret.encode()
    for form in (
        secret,
        quote(raw),
        quote(raw, safe=""),
        quote_plus(raw),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    ):
        assert redactor(f"<{form}>") == f"<{DOTS}>"


def test_the_longest_secret_goes_first() -> None:
    """So that nothing of it remains where another is a part of it; lines of a long one count by
    themselves.
    """
    redactor = Redactor(["open", "opensesame", "-----BEGIN-----\nMIIEabcdefgh\n}\n", ""])
    assert redactor("opensesame open") == f"{DOTS} {DOTS}"
    assert redactor("x MIIEabcdefgh }") == f"x {DOTS} }}"
    assert Redactor()("open") == "open"
    redactor.learn(["other"])
    assert redactor("open other") == f"open {DOTS}"


@pytest.mark.parametrize(
    "bad",
    [
        McpError(-1, "a sesame", {"sesame": ["sesame", 1, None]}),
        Unreachable("a sesame", exit_code=1, stderr="b sesame"), TimedOut("sesame"),
        ProtocolError("sesame"), FileNotFoundError(2, "sesame", "/sesame"), ValueError("sesame", 7),
    ],
    ids=lambda bad: type(bad).__name__,
)  # fmt: skip
def test_errors_have_no_secrets(bad: Exception) -> None:
    """Neither they nor those that led to them, of which there may be a ring."""
    first = ValueError("sesame")
    first.__cause__ = bad
    bad.__context__ = first
    outer = Unreachable("sesame")
    outer.__cause__ = first
    Redactor(["sesame"]).hide(outer)
    for error in (outer, first, bad):
        assert "sesame" not in f"{error} {error!r} {vars(error)} {error.args}"
        assert DOTS in str(error)


def test_strange_secrets_do_no_harm() -> None:
    """Half a surrogate pair is a text too."""
    assert Redactor(["abc\ud800"])("1abc\ud8002") == f"1{DOTS}2"
