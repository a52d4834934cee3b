"""The feature panels in a browser: what a developer of a server does with each, on a desk and on a
telephone, by mouse and by keyboard.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock import Context, Server
from tests.inspector.stage import inspected
from tests.inspector.test_feature_acts import liar
from tests.web.stage import TELEPHONE, shot

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

SEARCH = {"origin": "BER", "destination": "BCN", "date": "2026-07-01"}


async def filled(page: Any, values: dict[str, str]) -> None:
    """Fill in fields by their labels."""
    for label, value in values.items():
        await page.get_by_role("textbox", name=label).first.fill(value)


async def test_a_tool_is_found_called_and_its_result_is_shown(
    chromium: Any, tmp_path: Path
) -> None:
    """The annotations, the form, the equivalent command, the result as a table, and its schema."""
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page("connection=travel&tab=tools")
        await page.get_by_role("searchbox", name="Search tools").fill("search")
        await page.get_by_role("button", name="Search flights").click()
        tool = page.get_by_role("article", name="Search flights")
        assert "read-only" in await tool.inner_text()
        await filled(tool, SEARCH)
        command = tool.get_by_role("group", name="Equivalent command")
        await command.get_by_text("interlock call travel.py search_flights origin=BER").wait_for()
        await tool.get_by_role("button", name="Call", exact=True).click()
        call = tool.get_by_role("region", name="Call c1")
        await call.get_by_text("VY 8301").wait_for()
        await call.get_by_text("It fits the output schema.").wait_for()
        await shot(page, "inspector-tools")
        await page.reload()
        await page.get_by_role("region", name="Call c1").get_by_text("VY 8301").wait_for()


async def test_the_form_and_the_json_are_the_same_arguments(chromium: Any, tmp_path: Path) -> None:
    """A member that the form has no field for survives an edit in the form, with all its digits."""
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page("connection=travel&tab=tools&tool=search_flights")
        tool = page.get_by_role("article", name="Search flights")
        await filled(tool, {"origin": "BER"})
        await tool.get_by_role("button", name="JSON", exact=True).click()
        editor = tool.get_by_label("Arguments as JSON")
        await editor.fill('{"origin": "BER", "extra": 1152921504606846977}')
        await tool.get_by_role("button", name="Form", exact=True).click()
        await filled(tool, {"destination": "BCN"})
        await tool.get_by_role("button", name="JSON", exact=True).click()
        text = await editor.input_value()
        assert '"extra": 1152921504606846977' in text
        assert '"destination": "BCN"' in text
        await editor.fill("{")
        await tool.get_by_text("This is not JSON").wait_for()
        assert await tool.get_by_role("button", name="Call", exact=True).is_disabled()


async def test_progress_right_after_the_call_is_shown(chromium: Any, tmp_path: Path) -> None:
    """Also on a machine that is so busy that the page does its secondary work late."""
    shown = asyncio.Event()

    def lab() -> Server:
        server = Server("lab")

        @server.tool
        async def crunch(ctx: Context) -> str:
            """Report progress once, and take long."""
            await shown.wait()
            ctx.progress(1, message="counting")
            await asyncio.get_running_loop().create_future()
            return "never"

        return server

    async with inspected(chromium, tmp_path, servers={"lab": lab}) as stage:
        page = await stage.page("connection=lab&tab=tools&tool=crunch")
        await page.get_by_role("button", name="Call", exact=True).wait_for()
        await page.evaluate(
            """() => {
                const later = window.setTimeout;
                window.requestAnimationFrame = () => 0;
                window.setTimeout = (work, delay = 0) => later(work, delay + 5000);
            }"""
        )
        await page.get_by_role("button", name="Call", exact=True).click()
        call = page.get_by_role("region", name="Call c1")
        await call.wait_for()
        shown.set()
        await call.get_by_text("counting").wait_for()


async def test_a_call_shows_its_progress_and_is_cancelled(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page("connection=travel&tab=tools&tool=compare")
        await page.get_by_role("button", name="Call", exact=True).click()
        call = page.get_by_role("region", name="Call c1")
        await call.get_by_text("Offers of the third airline").wait_for()
        assert await call.get_by_role("progressbar").get_attribute("value") == "3"
        await shot(page, "inspector-progress")
        await call.get_by_role("button", name="Cancel").click()
        await call.get_by_text("cancelled").wait_for()


async def test_pictures_links_and_failures_of_results(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page("connection=travel&tab=tools&tool=picture")
        await page.get_by_role("button", name="Call", exact=True).click()
        call = page.get_by_role("region", name="Call c1")
        await call.get_by_role("img", name="Picture of travel").wait_for()
        await call.get_by_role("button", name="Read", exact=True).click()
        await call.get_by_text("Casa Gràcia").wait_for()
        await shot(page, "inspector-picture")
        await page.get_by_role("button", name="Cancel a booking").click()
        await filled(page, {"booking": "7"})
        await page.get_by_role("button", name="Call", exact=True).click()
        failed = page.get_by_role("region", name="Call c2")
        await failed.get_by_text("There is no booking 7.").wait_for()
        await failed.get_by_text("The tool failed.").wait_for()


async def test_a_result_that_does_not_fit_its_output_schema(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path, servers={"liar": liar}) as stage:
        page = await stage.page("connection=liar&tab=tools&tool=count")
        await page.get_by_role("button", name="Call", exact=True).click()
        await page.get_by_text("does not fit the output schema").wait_for()
        await page.get_by_text("/count").wait_for()


async def test_html_of_a_server_is_shown_as_text(chromium: Any, tmp_path: Path) -> None:
    """In names, descriptions and results, on every panel."""

    def hostile() -> Server:
        server = Server("hostile", instructions="<img src=x onerror=alert(1)>")
        html = "<img src=x onerror=alert(1)><script>alert(2)</script>"

        @server.tool(title=html, description=html)
        def evil() -> str:
            return html

        @server.resource("evil://page", title=html, mime_type="text/html")
        def page() -> str:
            return html

        @server.prompt(title=html, description=html)
        def ask() -> str:
            return html

        return server

    async with inspected(chromium, tmp_path, servers={"hostile": hostile}) as stage:
        page = await stage.page("connection=hostile&tab=tools&tool=evil")
        await page.get_by_role("button", name="Call", exact=True).click()
        call = page.get_by_role("region", name="Call c1")
        await call.get_by_text("<script>alert(2)</script>").first.wait_for()
        await page.evaluate("() => { location.hash = 'connection=hostile&tab=resources&resource=' "
                            "+ encodeURIComponent('evil://page'); }")  # fmt: skip
        await page.get_by_text("<script>alert(2)</script>").first.wait_for()
        await page.evaluate(
            "() => { location.hash = 'connection=hostile&tab=prompts&prompt=ask'; }"
        )
        await page.get_by_role("button", name="Get prompt").click()
        await page.get_by_role("region", name="Messages").get_by_text("<script>").first.wait_for()
        assert await page.locator("#view img, #view script").count() == 0


async def test_a_form_is_answered_beside_its_call(chromium: Any, tmp_path: Path) -> None:
    """What the server does not allow is said at the field; Decline and JSON are there too."""
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page("connection=travel&tab=tools&tool=book_hotel")
        await filled(page, {"city": "Bari"})
        await page.get_by_role("button", name="Call", exact=True).click()
        question = page.get_by_role("region", name="Question q1")
        await question.get_by_text("Who sleeps in Bari, and how?").wait_for()
        await question.get_by_label("name").fill("Ada")
        await question.get_by_label("window").check()
        await question.get_by_label("nights").fill("99")
        await question.get_by_role("button", name="Send").click()
        await question.get_by_text("This must be from 1 to 30.").wait_for()
        await shot(page, "inspector-question")
        await question.get_by_label("nights").fill("2")
        await question.get_by_role("button", name="Send").click()
        await page.get_by_text("Booked 2 nights in Bari for Ada, window side.").wait_for()


async def test_sampling_is_answered_and_a_rule_answers_the_next(
    chromium: Any, tmp_path: Path
) -> None:
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page("connection=travel&tab=tools&tool=find_best_flight")
        await filled(page, {"destination": "Bari"})
        await page.get_by_role("button", name="Call", exact=True).click()
        question = page.get_by_role("region", name="Question q1")
        await question.get_by_text("Answer in one line.").wait_for()
        await question.get_by_label("The model's message").fill("VY 8301")
        await question.get_by_role("button", name="Send").click()
        await page.get_by_text("The model says: VY 8301").wait_for()
        await page.get_by_role("tab", name="Questions").click()
        rule = page.get_by_role("form", name="New rule")
        await rule.get_by_label("Answer").select_option("text")
        await rule.get_by_label("Text", exact=True).fill("IB 6252")
        await rule.get_by_role("button", name="Add rule").click()
        rules = page.get_by_role("region", name="Rules")
        await rules.get_by_text("Any question: Answer sampling with this text").wait_for()
        await shot(page, "inspector-rules")
        await page.reload()
        await rules.get_by_text("Any question: Answer sampling with this text").wait_for()
        await page.get_by_role("tab", name="Tools").click()
        await filled(page, {"destination": "Bari"})
        await page.get_by_role("button", name="Call", exact=True).click()
        await page.get_by_text("The model says: IB 6252").wait_for()


async def test_resources_are_read_and_watched(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page("connection=travel&tab=resources")
        await page.get_by_role("button", name="Preferences").click()
        await page.get_by_text("Window seat. No early flights.").wait_for()
        await page.get_by_role("button", name="Subscribe", exact=True).click()
        await page.get_by_text("0 updates since you subscribed.").wait_for()
        stage.servers["travel"].updated("trips://preferences")
        await page.get_by_text("1 update since you subscribed.").wait_for()
        await shot(page, "inspector-resources")
        await page.get_by_role("tab", name="Subscriptions").click()
        one = page.get_by_role("listitem", name="Subscription s1")
        await one.get_by_text("Granted: trips://preferences").wait_for()
        await one.get_by_text("content of").wait_for()
        await shot(page, "inspector-subscriptions")
        await one.get_by_role("button", name="Unsubscribe").click()
        await one.get_by_text("You ended it.").wait_for()


async def test_the_lists_are_watched(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page("connection=travel&tab=subscriptions")
        await page.get_by_label("List of tools").check()
        await page.get_by_role("button", name="Subscribe", exact=True).click()
        one = page.get_by_role("listitem", name="Subscription s1")
        await one.get_by_text("Granted: tools").wait_for()
        stage.servers["travel"].remove_tool("compare")
        await one.get_by_text("1 change").wait_for()


async def test_a_template_is_filled_in_with_suggestions(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page("connection=weather&tab=resources")
        await page.get_by_role("button", name="Weather forecast").click()
        city = page.get_by_role("combobox", name="City")
        await city.press_sequentially("par")
        await page.get_by_role("option", name="Park City").click()
        await page.get_by_role("combobox", name="Date").fill("today")
        await page.get_by_role("button", name="Read", exact=True).click()
        await page.get_by_text("clear").first.wait_for()
        await page.get_by_text("interlock read weather.py").wait_for()


async def test_a_prompt_is_got_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page("connection=travel&tab=prompts")
        item = page.get_by_role("button", name="Plan a vacation")
        await item.focus()
        await page.keyboard.press("Enter")
        field = page.get_by_role("combobox", name="Destination")
        await field.focus()
        await page.keyboard.type("bar")
        await page.get_by_role("option", name="Barcelona").wait_for()
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await page.keyboard.press("Enter")
        messages = page.get_by_role("region", name="Messages")
        await messages.get_by_text("in Barcelona").wait_for()
        await shot(page, "inspector-prompts")


async def test_a_skill_is_checked(chromium: Any, tmp_path: Path) -> None:
    text = "---\nname: refunds\ndescription: Refund an order.\n---\n\n# How\n"

    def shop() -> Server:
        server = Server("shop")
        server.add_skill("acme/refunds", {"SKILL.md": text, "letter.md": "Dear customer\n"})
        return server

    async with inspected(chromium, tmp_path, servers={"shop": shop}) as stage:
        page = await stage.page("connection=shop&tab=skills")
        await page.get_by_role("button", name="refunds").click()
        await page.get_by_role("button", name="Check all files").click()
        await page.get_by_text("matches its digest").nth(1).wait_for()
        letter = page.get_by_role("listitem").filter(has_text="letter.md")
        await letter.get_by_role("button", name="Read").click()
        await page.get_by_text("Dear customer").wait_for()
        await shot(page, "inspector-skills")


async def test_the_panels_on_a_telephone(chromium: Any, tmp_path: Path) -> None:
    """The list first, then the tool with a way back; nothing is wider than the screen."""
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page("connection=travel&tab=tools", size=TELEPHONE, dark=True)
        await page.get_by_role("button", name="Search flights").click()
        tool = page.get_by_role("article", name="Search flights")
        await filled(tool, SEARCH)
        await tool.get_by_role("button", name="Call", exact=True).click()
        await tool.get_by_text("VY 8301").wait_for()
        await shot(page, "inspector-tools-telephone")
        wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(wide) <= 0
        await page.locator(".beside-back").click()
        await page.get_by_role("button", name="Book a hotel").wait_for()
