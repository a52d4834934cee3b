"""Commands that talk to a host that runs already: another address of its page, and runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.commands.hosting import hosting, ran_here, written

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no Unix sockets")


async def test_another_address_and_a_run(home: Path, everyday: Path) -> None:
    """`--new-address` admits a second browser, and ends the printed address; `ask --background`
    returns at once, and its answer is in the page; `--runs` lists it.
    """
    servers = written(home / "servers.json", {"everyday": everyday})
    async with hosting("host", "-c", servers, "-m", "planner") as page:
        ended = await ran_here("host", "--new-address")
        assert ended.code == 0
        address = ended.out.split()[1]
        assert address.startswith(str(page.client.base_url).rstrip("/"))
        refused = await page.client.get(page.address)
        assert refused.status_code == 401
        assert "interlock host --new-address" in refused.text
        page.address = address
        await page.enter()
        again = await ran_here("host", "--new-address", "--folder", str(home))
        assert (again.code, again.out == ended.out) == (0, False)

        ended = await ran_here("ask", "--background", "Plan", "a", "week", "in", "Lisbon")
        assert (ended.code, ended.err.count("page")) == (0, 1)
        session = ended.out.strip()

        def is_done(told: dict[str, object]) -> bool:
            return told["kind"] == "state" and any(
                one["id"] == session and not one["running"] and one["title"]
                for one in told["state"]["sessions"]  # type: ignore[index]  # the state is an object
            )

        await page.until(is_done)
        assert (await page.act("openSession", session=session))["live"]
        ended = await ran_here("host", "--runs")
        assert [session, "done"] == ended.out.split()[:2]
        assert "Plan a week in Lisbon" in ended.out

        for words, said in (
            (["ask", "--background", "x", "--json"], "Give only --model and --folder"),
            (["ask", "--background", "x", "-m", "a", "-m", "b"], "give one --model"),
            (["ask", "x", "--folder", str(home)], "together with --background"),
            (["host", "--folder", str(home)], "together with --new-address"),
        ):
            ended = await ran_here(*words)
            assert ended.code == 2, words
            assert said in " ".join(ended.err.split())
        ended = await ran_here("ask", "--background", "x", "-m", "other")
        assert (ended.code, "no model other" in ended.err) == (4, True)


def test_no_host_is_running(home: Path, interlock: Command) -> None:
    """The command says how to start one."""
    ended = interlock("host", "--new-address")
    assert ended.exit_code == 4
    assert "No host is running. Start one with `interlock host`." in ended.stderr
