"""The timeline of a conversation in the browser, the list of runs, and notifications."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Context, Server
from interlock.models.scripted import call
from interlock_apps.fleet.events import QuestionAsked
from tests.web.stage import TELEPHONE, say, shot, staged

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

WATCHED = """
    window.shown = [];
    window.Notification = class {
        static permission = "granted";
        static requestPermission = async () => "granted";
        constructor(title, options) { window.shown.push({title, ...options, note: this}); }
        close() { this.closed = true; this.onclose?.(); }
    };
    window.hide = (hidden) => {
        Object.defineProperty(document, "visibilityState", {
            configurable: true, get: () => hidden ? "hidden" : "visible",
        });
        document.dispatchEvent(new Event("visibilitychange"));
    };
"""
BUYS = (call("shop__buy", thing="bread"), "The bread is yours.")


def shop() -> Server:
    """A server that asks before it sells."""
    server = Server("shop")

    @server.tool
    async def buy(thing: str, ctx: Context) -> str:
        """Buy a thing."""
        return f"bought {thing}" if await ctx.confirm(f"Buy {thing}?") else "nothing"

    return server


async def allow(page: Any) -> None:
    """Allow the call that waits, and confirm the form of its server."""
    box = page.locator("[data-question]", has=page.get_by_role("heading", name="Call buy"))
    await box.locator(".answers button:not([disabled])", has_text="Allow once").click()
    form = page.locator("[data-question]", has_text="Buy bread?")
    await form.get_by_role("radio", name="Yes").check()
    await form.locator(".answers button:not([disabled])", has_text="Review").click()
    await form.locator(".answers button:not([disabled])", has_text="Send to shop").click()


async def test_from_a_turn_to_its_messages(chromium: Any) -> None:
    """A turn with its steps, its call and both questions; the call leads to its card, and one click
    below are the messages of the protocol, as the inspector shows them.
    """
    async with staged(chromium, *BUYS, servers={"shop": shop}) as stage:
        page = await stage.page()
        await say(page, "Buy bread")
        await page.get_by_role("button", name="Timeline").click()
        panel = page.get_by_role("complementary", name="Timeline")
        entries = panel.get_by_role("listitem")
        await entries.filter(has_text="Approval").filter(has_text="running").wait_for()
        await allow(page)
        await page.get_by_text("The bread is yours.").wait_for()
        turn = panel.get_by_role("region", name="Buy bread")
        await turn.get_by_text("waited for you").first.wait_for()
        await turn.locator(".time-entry").nth(5).wait_for()
        kinds = await turn.locator(".time-label").all_inner_texts()
        assert [kind.split()[0] for kind in kinds] == [
            "You", "planner", "buy", "Approval", "Form", "planner"
        ]  # fmt: skip
        await shot(page, "timeline")
        card = page.get_by_role("article", name="buy")
        await turn.locator(".time-open", has_text="buy").click()
        await page.locator(".item.is-revealed", has=card).wait_for()
        await turn.get_by_role("button", name="Messages of buy").click()
        rows = turn.get_by_role("list", name="Messages of buy").get_by_role("button")
        await rows.filter(has_text="tools/call").first.click()
        await turn.get_by_role("region", name="the message").get_by_text("bread").wait_for()
        await shot(page, "timeline-message")
        await turn.get_by_text("Revisions").click()
        await turn.get_by_role("region", name="the message under").wait_for()


async def test_the_timeline_on_a_telephone(chromium: Any) -> None:
    """An entry closes the panel and leads to its card."""
    async with staged(chromium, "Hello to you.", servers={"shop": shop}) as stage:
        page = await stage.page(size=TELEPHONE, dark=True, has_touch=True, is_mobile=True)
        await say(page, "Hello")
        await page.get_by_text("Hello to you.").wait_for()
        await page.get_by_role("button", name="Conversations and servers").tap()
        await page.get_by_role("button", name="Timeline").tap()
        panel = page.get_by_role("complementary", name="Timeline")
        await panel.locator(".time-open", has_text="planner").wait_for()
        await shot(page, "timeline-telephone")
        await panel.locator(".time-open", has_text="planner").tap()
        await panel.wait_for(state="detached")
        await page.locator(".item.is-revealed").wait_for()


async def test_runs_and_notifications(chromium: Any) -> None:
    """A run that another program gave to the host: while nobody looks, its question is a
    notification and a badge; the list of runs leads there. A page that is visible gets none.
    """
    async with staged(chromium, *BUYS, servers={"shop": shop}) as stage:
        page = await stage.page()
        await page.add_init_script(WATCHED)
        await page.reload()
        await page.locator(".side .dot").first.wait_for(state="attached")
        await page.get_by_role("button", name="Settings", exact=True).click()
        await page.get_by_role("button", name="Notifications").click()
        await page.get_by_label("Show a notification").check()
        await shot(page, "notifications")
        await page.get_by_role("button", name="Runs", exact=True).click()
        await page.evaluate("hide(true)")
        stage.host.start_run("Buy bread")
        await page.wait_for_function("() => shown.length === 1")
        assert await page.evaluate("shown[0].title") == "Call buy on shop?"
        icon = page.locator("link[rel=icon]")
        assert "waiting" in str(await icon.get_attribute("href"))
        assert (await page.title()).startswith("(1)")
        await page.evaluate("hide(false)")
        assert await page.evaluate("shown[0].note.closed")
        assert "waiting" not in str(await icon.get_attribute("href"))
        runs = page.get_by_role("list", name="Runs")
        await runs.get_by_text("Waits for you").wait_for()
        await shot(page, "runs")
        await runs.get_by_role("button").filter(has_text="Buy bread").click()
        await allow(page)
        await page.get_by_text("The bread is yours.").wait_for()
        await runs.get_by_text("Done").wait_for()
        assert await page.evaluate("shown.length") == 1


async def test_a_run_while_no_page_is_open(chromium: Any) -> None:
    """It starts, waits at its question, and goes on when a page is opened and answers."""
    async with staged(chromium, *BUYS, servers={"shop": shop}) as stage:
        asked = asyncio.Event()
        stage.host.listen(lambda noted: isinstance(noted.event, QuestionAsked) and asked.set())
        session = stage.host.start_run("Buy bread")
        await asyncio.wait_for(asked.wait(), 60)
        await asyncio.sleep(0)  # the question is open once it was published
        assert stage.host.runs()[0].state == "waiting"
        page = await stage.page()
        await page.get_by_role("button", name="Go there").click()
        await allow(page)
        await page.get_by_text("The bread is yours.").wait_for()
        assert session.messages[-1].role == "assistant"
