"""The card of a call that became a task: it outlives the turn and the page, shows the status and
the result, and cancels the task.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock import Stdio
from interlock.models.scripted import call
from interlock_apps.fleet.policy import Policy
from tests.host.lab import Lab
from tests.web.stage import say, shot, staged

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

CRUNCH = call("lab__crunch")
ALLOW = Policy(default="allow")


async def test_a_task_outlives_the_turn_and_the_page(chromium: Any, tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.hold()
    servers = {"lab": lambda: Stdio(lab.entry.command)}
    answers = (CRUNCH, "Later.", "It is forty-two.")
    async with staged(chromium, *answers, servers=servers, policy=ALLOW, task_wait=0) as stage:
        page = await stage.page()
        await say(page, "Count")
        await page.get_by_text("Later.").wait_for()
        card = page.get_by_role("article", name="crunch")
        await card.get_by_text("Running as a task").wait_for()
        await card.get_by_text("counting").wait_for()
        await shot(page, "task")
        await page.reload()
        await card.get_by_text("Running as a task").wait_for()
        lab.release()
        await page.get_by_text("It is forty-two.").wait_for()
        await card.get_by_text("Done").wait_for()
        await page.get_by_text("The outcome of crunch has come in.").wait_for()
        assert await card.get_by_role("button", name="Cancel the task").count() == 0
        await page.reload()
        await card.get_by_text("Done").wait_for()


async def test_the_person_cancels_a_task(chromium: Any, tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.hold()
    servers = {"lab": lambda: Stdio(lab.entry.command)}
    answers = (CRUNCH, "Later.", "A pity.")
    async with staged(chromium, *answers, servers=servers, policy=ALLOW, task_wait=0) as stage:
        page = await stage.page()
        await say(page, "Count")
        card = page.get_by_role("article", name="crunch")
        await card.get_by_role("button", name="Cancel the task").click()
        await page.get_by_text("A pity.").wait_for()
        await card.get_by_text("The task was cancelled.").wait_for()
        assert lab.statuses == ["cancelled"]
