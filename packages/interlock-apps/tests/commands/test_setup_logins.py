"""Logins from the page of a host, at a real authorization server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.auth.test_login_in_a_browser import shop
from tests.commands.setting_up import outcome, set_up, until, write_servers

pytestmark = pytest.mark.slow


@pytest.fixture
async def guarded(home: Path) -> AsyncIterator[Path]:
    """A configuration with a server that wants a login."""
    folder = home / "shop"
    folder.mkdir()
    async with shop(folder) as url:
        yield write_servers(home / "servers.json", shop={"type": "http", "url": url})


async def test_a_server_that_wants_a_login_is_not_asked_again(guarded: Path) -> None:
    """It waits in a state of its own, without retries, until the user starts it again."""
    async with set_up(guarded) as (host, _, _):
        await until(host, "shop", "login")
        states: list[Any] = []
        host.listen(lambda entry: states.append(getattr(entry.event, "state", None)))
        assert "Retrying" not in host.hub.servers["shop"].words
        assert host.hub.servers["shop"].settled.is_set()
        await host.hub.start("shop")
        await until(host, "shop", "login")
        assert [state for state in states if state] == ["off", "starting", "login"]


async def test_a_wrong_paste_is_refused_and_asked_again(guarded: Path) -> None:
    """The address to visit, the beginning of the address at the end, and what is not the answer;
    then the user cancels.
    """
    async with set_up(guarded) as (host, setup, _):
        await until(host, "shop", "login")
        job = setup.log_in("shop", "paste")
        known = 0
        while not any(event["kind"] == "paste" for event in job.events):
            known += len(await job.after(known, 60))
            assert not job.done, job.events
        visit = next(event for event in job.events if event["kind"] == "visit")
        starts = next(event for event in job.events if event["kind"] == "paste")["starts"]
        assert visit["url"].startswith("http://127.0.0.1:")
        assert starts.startswith("http://127.0.0.1:")
        assert job.reply is not None
        job.reply(f"{starts}?nothing=here")
        job.reply(f"{starts}?code=x&state=of-another")
        while sum(event["kind"] == "refused" for event in job.events) < 2:
            known += len(await job.after(known, 60))
        first, second = (event["words"] for event in job.events if event["kind"] == "refused")
        assert "no code in it" in first
        assert "another log-in" in second
        await job.cancel()
        assert (await outcome(job))["words"] == "It was cancelled."
        assert host.hub.servers["shop"].state == "login"


async def test_only_addresses_have_a_login(home: Path) -> None:
    path = write_servers(home / "servers.json", local={"command": "true", "disabled": True})
    async with set_up(path) as (_, setup, _):
        with pytest.raises(ValueError, match="Only servers at an http address"):
            setup.log_in("local", "browser")
