"""MCP Apps in the inspector: the frame of an app beside its call, what it gets and asks, and what
it is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.inspector.stage import inspected
from tests.web.stage import shot
from tests.web.test_page_apps import GREETING, app_of, game, lab

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


async def test_an_app_shows_the_result_and_calls_its_server(chromium: Any, tmp_path: Path) -> None:
    """The dice show what the tool rolled. A roll in the app is a call, which is listed too."""
    async with inspected(chromium, tmp_path, servers={"game": game}) as stage:
        page = await stage.page("connection=game&tab=tools&tool=roll_dice")
        await page.get_by_role("button", name="Call", exact=True).click()
        dice = app_of(page).locator("#dice")
        await dice.wait_for()
        call = stage.inspector.connections["game"].features.calls["c1"]
        assert call.result is not None
        rolled = ", ".join(map(str, call.result.structured_content["dice"]))
        await app_of(page).locator(f"#dice[aria-label='{rolled}']").wait_for()
        await shot(page, "inspector-app")

        def is_call(response: Any) -> bool:
            return "callForApp" in (response.request.post_data or "")

        async with page.expect_response(is_call):
            await app_of(page).get_by_role("button", name="Roll again").click()
        await page.get_by_role("button", name="Roll again").first.click()
        await page.get_by_role("region", name="Call c2").get_by_text("by the app").wait_for()
        assert await page.locator("iframe.app-window").count() == 0


async def test_what_an_app_may_not_do(chromium: Any, tmp_path: Path) -> None:
    """A tool that is not for apps is refused, no page is opened, and what the app says is shown."""
    async with inspected(chromium, tmp_path, servers={"lab": lab}) as stage:
        page = await stage.page("connection=lab&tab=tools&tool=board")
        await page.get_by_role("button", name="Call", exact=True).click()
        await app_of(page).get_by_text("An app").wait_for()
        frame = next(frame for frame in page.frames if frame.url == "about:srcdoc")
        greeting = await frame.evaluate("greeting => ask('ui/initialize', greeting)", GREETING)
        assert greeting["hostInfo"]["name"] == "interlock-inspector"
        await frame.evaluate("() => tell('ui/notifications/initialized')")
        await frame.wait_for_function(
            "() => heard.some(one => one.method === 'ui/notifications/tool-result')"
        )
        secret = await frame.evaluate("() => ask('tools/call', { name: 'secret' })")
        assert "not for apps" in secret["message"]
        board = await frame.evaluate(
            "() => ask('tools/call', { name: 'board', arguments: { text: 'x' } })"
        )
        assert board["content"][0]["text"] == "shown x"
        link = await frame.evaluate("() => ask('ui/open-link', { url: 'https://example.com/' })")
        assert "denied" in link["message"]
        await page.get_by_text("The app asks to open https://example.com/.").wait_for()
