"""The main screens of the page as axe-core sees them: it finds nothing, light and dark, on a desk
and on a telephone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.models.scripted import call
from tests.web.stage import DESKTOP, TELEPHONE, say, staged
from tests.web.test_page_questions import SEARCH, armed

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

PANELS = {
    "servers travel": "Server",
    "show folders": "Folders",
    "show rules": "Rules",
    "show log": "Log",
    "show runs": "Runs",
    "show timeline": "Timeline",
}

# What is wrong, by rule, with the elements that it is about. Animations are waited for first: half
# a fade has no contrast.
RUN = """async () => {
  const finite = document.getAnimations().filter(
    one => one.effect.getTiming().iterations !== Infinity);
  await Promise.all(finite.map(one => one.finished));
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map(one =>
      `${one.id} (${one.impact}): ${one.nodes.map(node => node.html.slice(0, 120)).join(" | ")}`);
}"""


class Axe:
    """axe-core in a page, and what it has found so far, by screen."""

    def __init__(self, page: Any, source: str) -> None:
        self._page = page
        self._source = source
        self.found: dict[str, list[str]] = {}

    async def look(self, screen: str) -> None:
        """Look at what the page shows now."""
        if not await self._page.evaluate("'axe' in window"):
            await self._page.evaluate(self._source)
        if found := await self._page.evaluate(RUN):
            self.found[screen] = found


@pytest.mark.matrix(pairs=False, seconds=8)
@pytest.mark.parametrize("size", [DESKTOP, TELEPHONE], ids=["desk", "telephone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_finds_nothing(
    chromium: Any, installed: Callable[[str], Path], size: dict[str, int], dark: bool
) -> None:
    """Welcome, prompt, resources, approval, form, results, search, panels: one after the other, as
    a person comes upon them.
    """
    source = (installed("axe") / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
    answers = (
        SEARCH,
        call("travel__book_hotel", city="Bari"),
        call("travel__picture"),
        "# Well\n\nDone.",
    )
    async with staged(chromium, *answers) as stage:
        page = await stage.page(size=size, dark=dark)
        axe = Axe(page, source)
        await axe.look("welcome")
        await page.get_by_label("Your message").press_sequentially("/")
        await page.get_by_role("listbox", name="Prompts").wait_for()
        await axe.look("suggestions")
        await page.get_by_role("option", name="Plan a vacation").click()
        await page.get_by_role("button", name="Preview").wait_for()
        await axe.look("prompt")
        await page.get_by_role("button", name="Close").click()
        await page.get_by_role("button", name="Resources", exact=True).click()
        await axe.look("resources")
        await page.get_by_role("treeitem", name="Barcelona 2023").click()
        await page.get_by_text("Casa Gràcia").wait_for()
        await axe.look("resource")
        await page.keyboard.press("Escape")
        await say(page, "Plan a trip")
        await armed(page)
        await axe.look("approval")
        await page.keyboard.press("e")
        await axe.look("arguments")
        await page.get_by_role("button", name="Allow once").click()
        await page.get_by_role("heading", name="Call Book a hotel on travel?").wait_for()
        await armed(page)
        await page.keyboard.press("a")
        await page.get_by_role("heading", name="travel asks you").wait_for()
        box = await armed(page)
        await axe.look("form")
        await box.get_by_role("button", name="Decline").click()
        await page.get_by_role("heading", name="Call Picture of the hotel on travel?").wait_for()
        await armed(page)
        await page.keyboard.press("a")
        await page.get_by_text("Done.").first.wait_for()
        await page.get_by_role("button", name="Send").wait_for()
        await axe.look("conversation")
        await page.keyboard.press("Control+k")
        await page.get_by_role("dialog").get_by_role("option").first.wait_for()
        await axe.look("search")
        await page.keyboard.press("Escape")
        for words, panel in PANELS.items():
            await page.keyboard.press("Control+k")
            await page.get_by_role("combobox", name="Search everything").fill(words)
            await page.keyboard.press("Enter")
            shown = page.get_by_role("complementary", name=panel)
            await shown.wait_for()
            if panel == "Timeline":
                await shown.get_by_role("button", name="Messages of").first.click()
                await shown.get_by_role("button", name="tools/call").first.click()
                await shown.get_by_role("region", name="the message").wait_for()
            await axe.look(panel)
            await page.keyboard.press("Escape")
        await page.keyboard.press("Control+k")
        await page.get_by_role("combobox", name="Search everything").fill("notifications")
        await page.keyboard.press("Enter")
        await page.get_by_label("Play a sound").wait_for()
        await axe.look("notifications")
        assert axe.found == {}
