"""No log, no call: with `log_required` nothing is called while the log cannot be written, and
without it the host goes on.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock.models.scripted import call
from interlock_apps.fleet.events import CallDecided, CallEnded, CallProposed
from interlock_apps.fleet.log import SqliteLog
from interlock_apps.fleet.policy import Policy
from interlock_apps.fleet.rulebook import BadPolicy, read_policy
from interlock_apps.host import Host
from tests.host.scene import ALLOW, adder, last, scene

ADD = call("adder__add", a=1, b=2)


@contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process grows any more, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("by", ["option", "policy", "nobody"])
async def test_no_log_no_call(tmp_path: Path, by: str) -> None:
    """On a full disk a call is refused with the reason, and made again once there is room; the log
    then has all of it.
    """
    log = SqliteLog(tmp_path / "log.db", again=0.01)
    options: dict[str, Any] = {"policy": ALLOW}
    if by == "option":
        options["log_required"] = True
    if by == "policy":
        options["policy"] = read_policy('default = "allow"\nlog_required = true\n')
    async with scene({"adder": adder()}, ADD, "done", ADD, "done", log=log, **options) as s:
        await log.flush()
        session = s.host.session()
        with full_disk():
            assert (await session.say("add")).reason == "done"
        (ended,) = s.of(CallEnded)
        if by == "nobody":
            assert ended.result is not None
        else:
            assert ended.result is None
            assert "No tool is called while the log cannot be written" in ended.error
            assert "No tool is called while the log cannot be written" in last(s)
        assert (await session.say("add again")).reason == "done"
        assert s.of(CallEnded)[1].result is not None
        await log.flush()
        kept = [noted.event for noted in await log.read(session.id)]
        assert [
            type(event)
            for event in kept
            if isinstance(event, CallProposed | CallDecided | CallEnded)
        ] == [CallProposed, CallDecided, CallEnded] * 2
        assert await log.verify() == len(await log.read())


async def test_what_was_decided_is_on_the_disk_before_the_call(tmp_path: Path) -> None:
    """Whoever reads the file while the tool runs finds the call and the decision in it."""
    seen: list[list[type]] = []
    path = tmp_path / "log.db"
    server = adder()

    @server.tool
    async def look() -> str:
        """Look into the log's file, as another program would."""
        other = SqliteLog(path)
        await other.open()
        kept = [type(noted.event) for noted in await other.read()]
        seen.append([kind for kind in kept if kind in (CallProposed, CallDecided)])
        await other.aclose()
        return "looked"

    log = SqliteLog(path)
    async with scene(
        {"adder": server}, call("adder__look"), "done", policy=ALLOW, log=log, log_required=True
    ) as s:
        assert (await s.host.session().say("look")).reason == "done"
    assert seen == [[CallProposed, CallDecided]]


def test_a_policy_says_it_or_not() -> None:
    """In its own key, true or false; a host has what its policy or its option says."""
    assert not read_policy("").log_required
    assert read_policy('{"logRequired": true}').log_required
    with pytest.raises(BadPolicy, match="log_required is 'yes': write true or false"):
        read_policy('log_required = "yes"')
    assert Host({}, models=[], policy=Policy(log_required=True)).events.log_required
    assert not Host({}, models=[]).events.log_required
