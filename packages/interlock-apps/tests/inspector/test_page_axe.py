"""The screens of the inspector as axe-core sees them: it finds nothing, light and dark, on a desk
and on a telephone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.inspector.stage import inspected
from tests.inspector.test_page import call, rows, search
from tests.web.stage import DESKTOP, TELEPHONE
from tests.web.test_page_axe import Axe

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


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
    async with inspected(chromium, tmp_path) as stage:
        await search(stage)
        await call(stage, "cancel", booking=3)
        page = await stage.page(size=size, dark=dark)
        axe = Axe(page, source)
        await rows(page, "from the client, tools/call, search_flights").wait_for()
        await axe.look("timeline")
        await rows(page, "from the client, tools/call, search_flights").click()
        panel = page.get_by_role("complementary", name="Message")
        await panel.get_by_text('"destination": "BCN"').wait_for()
        await panel.get_by_text("Edit and send again").click()
        await panel.get_by_label("Params").fill("{")
        await axe.look("message")
        await panel.get_by_role("button", name="Revisions").click()
        await axe.look("revisions")
        await panel.get_by_label("Params").fill("{}")
        await panel.get_by_label("Name of the saved call").fill("Vienna")
        await panel.get_by_role("button", name="Save").click()
        await page.get_by_text("Saved as Vienna.").wait_for()
        await panel.get_by_role("button", name="Close the message").click()
        await page.get_by_role("searchbox", name="Filter").fill("serch")
        await page.get_by_text("is not a word of the filter").wait_for()
        await axe.look("filter")
        await page.get_by_role("tab", name="Saved calls").click()
        await page.get_by_role("button", name="As a command: Vienna").wait_for()
        await axe.look("saved")
        await page.get_by_role("tab", name="Compare").click()
        await page.get_by_role("button", name="Compare what they offer").click()
        await page.get_by_text("would break callers").wait_for()
        await page.get_by_text("search_flights").first.click()
        await axe.look("compare")
        if size is TELEPHONE:
            await page.get_by_role("button", name="Connections", exact=True).click()
        side = page.get_by_role("navigation", name="Connections")
        await side.get_by_role("button", name="travel").click()
        if size is TELEPHONE:
            await page.get_by_role("button", name="Connections", exact=True).click()
        await side.get_by_label("Revision").wait_for()
        await axe.look("connections")
        assert axe.found == {}
