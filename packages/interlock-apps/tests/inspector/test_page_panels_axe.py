"""The feature panels as axe-core sees them: it finds nothing, light and dark, on a desk and on a
telephone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Server
from tests.inspector.stage import inspected
from tests.web.offers import travel
from tests.web.stage import DESKTOP, TELEPHONE
from tests.web.test_page_axe import Axe

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

SKILL = "---\nname: refunds\ndescription: Refund an order.\n---\n\n# How\n"


def shop() -> Server:
    """The travel server with a skill."""
    server = travel()
    server.add_skill("acme/refunds", {"SKILL.md": SKILL})
    return server


@pytest.mark.matrix(pairs=False, seconds=8)
@pytest.mark.parametrize("size", [DESKTOP, TELEPHONE], ids=["desk", "telephone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_finds_nothing(
    chromium: Any,
    installed: Callable[[str], Path],
    tmp_path: Path,
    size: dict[str, int],
    dark: bool,
) -> None:
    source = (installed("axe") / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")

    async with inspected(chromium, tmp_path, servers={"travel": shop}) as stage:
        page = await stage.page("connection=travel&tab=tools", size=size, dark=dark)
        axe = Axe(page, source)

        async def go(where: str) -> None:
            await page.evaluate("where => { location.hash = `connection=travel&${where}`; }", where)

        await page.get_by_role("button", name="Search flights").wait_for()
        await axe.look("tools")
        await go("tab=tools&tool=search_flights")
        for label, value in {"origin": "BER", "destination": "BCN", "date": "today"}.items():
            await page.get_by_role("textbox", name=label).fill(value)
        await page.get_by_role("button", name="Call", exact=True).click()
        await page.get_by_text("It fits the output schema.").wait_for()
        await axe.look("result")
        await page.get_by_role("button", name="JSON", exact=True).first.click()
        await axe.look("arguments as JSON")
        await go("tab=tools&tool=cancel")
        await page.get_by_role("textbox", name="booking").fill("7")
        await page.get_by_role("button", name="Call", exact=True).click()
        await page.get_by_text("The tool failed.").wait_for()
        await axe.look("failure")
        await go("tab=tools&tool=compare")
        await page.get_by_role("button", name="Call", exact=True).click()
        await page.get_by_role("progressbar").wait_for()
        await axe.look("progress")
        await go("tab=tools&tool=book_hotel")
        await page.get_by_role("textbox", name="city").fill("Bari")
        await page.get_by_role("button", name="Call", exact=True).click()
        await page.get_by_role("region", name="Question q1").wait_for()
        await axe.look("form")
        await go("tab=tools&tool=find_best_flight")
        await page.get_by_role("textbox", name="destination").fill("Bari")
        await page.get_by_role("button", name="Call", exact=True).click()
        await page.get_by_role("region", name="Question q2").wait_for()
        await go("tab=questions")
        await page.get_by_text("No model is configured.").wait_for()
        await axe.look("questions")
        await go("tab=resources&resource=trips%3A%2F%2Fhistory%2Fbarcelona-2023")
        await page.get_by_text("Casa Gràcia").first.wait_for()
        await axe.look("resource")
        await go("tab=prompts&prompt=plan-vacation")
        await page.get_by_role("combobox", name="Destination").fill("Bari")
        await page.get_by_role("button", name="Get prompt").click()
        await page.get_by_role("region", name="Messages").wait_for()
        await axe.look("prompt")
        await go("tab=subscriptions")
        await page.get_by_label("List of tools").check()
        await page.get_by_role("button", name="Subscribe", exact=True).click()
        await page.get_by_text("Granted: tools").wait_for()
        await axe.look("subscriptions")
        await go("tab=skills&skill=skill%3A%2F%2Facme%2Frefunds%2FSKILL.md")
        await page.get_by_role("button", name="Check all files").click()
        await page.get_by_text("matches its digest").wait_for()
        await axe.look("skill")
        assert axe.found == {}
