"""The message box: messages for a running turn, files, the model, and the context meter."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock.models.scripted import call
from interlock.types import CreateMessageRequestParams
from interlock_apps.fleet.policy import Policy
from tests.web.stage import say, shot, staged

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


class Gate:
    """An answer that waits until the test opens it."""

    def __init__(self, answer: Any) -> None:
        self.open = asyncio.Event()
        self._answer = answer

    async def __call__(self, request: CreateMessageRequestParams) -> Any:
        await self.open.wait()
        return self._answer


async def test_what_is_typed_while_it_works_steers_it(chromium: Any) -> None:
    """It waits above the box, can be edited, moved and removed, and reaches the model at the next
    step; after Stop it stays until it is sent.
    """
    first = Gate(call("weather__alerts", state="OR"))
    second = Gate("Warm, in short.")
    never = Gate("Never.")
    answers = (first, second, "And Rome is hot.", never, "Yes.")
    async with staged(chromium, *answers, policy=Policy(default="allow")) as stage:
        page = await stage.page()
        await say(page, "How is the weather?")
        queue = page.get_by_role("region", name="Queued messages")
        field = page.get_by_label("Your message")
        await page.get_by_role("button", name="Stop").wait_for()
        for words in ("Be brif.", "Nonsense", "And Rome?"):
            await say(page, words)
            await queue.get_by_text(words).wait_for()
        assert await field.input_value() == ""
        rows = queue.get_by_role("listitem")
        await rows.nth(1).get_by_role("button", name="Remove").click()
        await queue.get_by_text("Nonsense").wait_for(state="detached")
        await rows.nth(1).get_by_label("When the model gets it").select_option("turn")
        await rows.nth(0).get_by_role("button", name="Edit").click()
        edit = queue.get_by_label("Edit the queued message")
        await edit.fill("Be brief.")
        await edit.press("Enter")
        await queue.get_by_text("Be brief.").wait_for()
        await shot(page, "composing-queue")
        first.open.set()
        await page.get_by_role("article", name="You").get_by_text("Be brief.").wait_for()
        assert await rows.count() == 1
        second.open.set()
        await page.get_by_text("And Rome is hot.").wait_for()
        await queue.wait_for(state="detached")
        await say(page, "Go on")
        await page.get_by_role("button", name="Stop").wait_for()
        await say(page, "Left over")
        await queue.get_by_text("Left over").wait_for()
        await page.get_by_role("button", name="Stop").click()
        await queue.get_by_role("button", name="Send it now").click()
        await page.get_by_text("Yes.").wait_for()
        await queue.wait_for(state="detached")
