"""Rate-limited logging: what is written of a flood, what is counted, and that no logger is left
out."""

from __future__ import annotations

import ast
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from interlock.logs import JsonLine, RateLimit, limited

ROOMS = ("input_required.py", "client", "protocol", "server", "store", "tasks", "transport", "auth")


class Clock:
    """The time as a test wants it."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Kept(logging.Handler):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until it is moved."""
    return Clock()


@pytest.fixture
def kept() -> Kept:
    """What the logger has written."""
    return Kept()


@pytest.fixture
def log(clock: Clock, kept: Kept) -> logging.Logger:
    """A logger that writes three of a kind, then one in ten seconds."""
    logger = logging.Logger("limited")
    logger.addHandler(kept)
    logger.addFilter(RateLimit(burst=3, seconds=10.0, clock=clock))
    return logger


def test_the_first_are_written_and_the_rest_is_counted(
    log: logging.Logger, clock: Clock, kept: Kept
) -> None:
    """After a while one is written again, with how many there were like it meanwhile."""
    for n in range(1003):
        log.warning("refused %d", n)
    assert kept.lines == ["refused 0", "refused 1", "refused 2"]
    clock.now += 10
    for n in range(5):
        log.warning("refused %d", n)
    assert kept.lines[3:] == ["refused 0 (and 1000 more like it in the last 10 s)"]
    clock.now += 25
    log.warning("refused again")
    log.warning("refused %d", 7)
    assert kept.lines[4:] == [
        "refused again",
        "refused 7 (and 4 more like it in the last 25 s)",
    ]
    clock.now += 3600
    for n in range(9):
        log.warning("refused %d", n)
    assert kept.lines[6:] == ["refused 0", "refused 1", "refused 2"]


def test_kinds_do_not_hide_each_other(log: logging.Logger, kept: Kept) -> None:
    """Other words, another level, another exception or another place are another kind."""

    def fail(error: type[Exception]) -> None:
        try:
            raise error("oh")
        except Exception:
            log.exception("%s failed", "it")

    for _ in range(50):
        log.warning("one %s", "x")
        log.error("one %s", "x")
        log.warning("two %s", "x")
        for error in (ValueError, KeyError):
            fail(error)
        try:
            raise ValueError("elsewhere")
        except ValueError:
            log.exception("%s failed", "it")
    assert len(kept.lines) == 6 * 3


def test_a_line_of_json_stays_one(log: logging.Logger, clock: Clock, kept: Kept) -> None:
    """How many were left out are members of it; its kind is said beside it."""
    for n in range(10):
        log.warning("%s", JsonLine(("refused", 401), {"why": f"{n} \u2028"}))
        log.warning("%s", JsonLine(("refused", 403), {"why": "no"}))
    clock.now += 12
    log.warning("%s", JsonLine(("refused", 401), {"why": "last"}))
    assert all(line.isascii() and json.loads(line) for line in kept.lines)
    assert len(kept.lines) == 3 + 3 + 1
    assert json.loads(kept.lines[-1]) == {"why": "last", "more": 7, "seconds": 12}


def test_what_was_asked_for_is_never_left_out(log: logging.Logger, kept: Kept) -> None:
    """Whoever has turned on more than warnings wants all of it."""
    log.setLevel(logging.DEBUG)
    for _ in range(100):
        log.debug("a")
        log.info("b")
    assert len(kept.lines) == 200


def test_kinds_are_bounded(log: logging.Logger, clock: Clock) -> None:
    """Words that a peer has a part in cannot fill the memory."""
    (limit,) = log.filters
    assert isinstance(limit, RateLimit)
    for n in range(5000):
        log.warning(f"refused {n}")
    assert len(limit._kinds) <= 1000


def test_a_logger_is_limited_once() -> None:
    """However many modules ask for it."""
    for _ in range(3):
        logger = limited("interlock.tests.limited")
    assert len([one for one in logger.filters if isinstance(one, RateLimit)]) == 1


def test_whatever_a_peer_can_reach_logs_with_a_limit() -> None:
    """Every logger of those packages but the access log and the request log, which are there for
    each request, and the parent of all loggers, whose level an operator sets.
    """
    package = Path(__file__).resolve().parents[1] / "src" / "interlock"
    found: dict[str, Any] = {}
    for room in ROOMS:
        place = package / room
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "getLogger" in text else ():
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                name = ast.unparse(node.func)
                if name.endswith("getLogger"):
                    found[f"{path.relative_to(package)}:{node.lineno}"] = ast.unparse(node.args[0])
    assert set(found.values()) == {"'interlock.access'", "'interlock.requests'", "_LOGGER"}, found
