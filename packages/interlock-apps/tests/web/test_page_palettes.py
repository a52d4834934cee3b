"""The palettes over the page: prompts, resources and templates, and everything; by keys, with
completion, on a desk and on a telephone.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock.models.scripted import call
from interlock_apps.fleet.events import ResourceUpdated
from tests.web.stage import TELEPHONE, focus_on, say, shot, staged

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


async def test_a_prompt_is_found_filled_in_and_used_by_keys_alone(chromium: Any) -> None:
    """`/`, words, Enter, a completed argument, Enter: it is said, and shown as the prompt of that
    server (`PRM-05`, `PRM-10`, `CMP-06`).
    """
    from playwright.async_api import expect  # late: only these tests need it

    async with staged(chromium, "Planned.") as stage:
        page = await stage.page()
        await page.get_by_label("Your message").press("/")
        await page.get_by_role("listbox", name="Prompts").wait_for()
        await page.keyboard.type("vacation tra")
        assert await page.locator(".mentions li").count() == 1
        assert await page.get_by_label("Your message").input_value() == "/vacation tra"
        await page.keyboard.press("Enter")
        field = page.get_by_role("combobox", name="destination")
        await focus_on(page, "[data-field=destination]")
        await page.keyboard.press("Enter")
        await page.get_by_text("This field is required.").wait_for()
        await page.keyboard.type("Bar")
        # What fitted the empty field may stand there for a moment.
        await expect(page.locator(".suggestions li")).to_have_text(
            ["Barcelona", "Barbados", "Bari"]
        )
        await shot(page, "palette-prompt")
        await page.keyboard.press("ArrowDown")
        assert await field.get_attribute("aria-activedescendant") == await page.get_by_role(
            "option", name="Barcelona"
        ).get_attribute("id")
        await page.keyboard.press("Enter")
        assert await field.input_value() == "Barcelona"
        await page.get_by_role("button", name="Preview").click()
        await page.get_by_text("Plan 7 days in Barcelona. Interests: none.").wait_for()
        await shot(page, "palette-preview")
        await field.press("Enter")
        await page.get_by_text("Planned.").wait_for()
        said = page.get_by_role("article", name="You")
        assert "Plan a vacation" in await said.inner_text()
        assert "travel" in await said.inner_text()
        await focus_on(page, "#say")


@pytest.mark.parametrize(
    "text",
    ["/etc/hosts: what is it", "/", "/plan", "ask @ada", "mail ada@example.com", "@bar", "@"],
)
async def test_slash_and_at_can_be_typed(chromium: Any, text: str) -> None:
    """Every letter stays where it was typed, and what is sent is what was typed; Escape closes the
    list once.
    """
    async with staged(chromium, "Yes.") as stage:
        page = await stage.page()
        field = page.get_by_label("Your message")
        await field.press_sequentially(text)
        assert await field.input_value() == text
        if await page.locator(".mentions").count():
            await page.keyboard.press("Escape")
            await page.locator(".mentions").wait_for(state="detached")
        assert await field.input_value() == text
        assert await page.get_by_role("dialog").count() == 0
        await page.keyboard.press("Enter")
        await page.get_by_text("Yes.").wait_for()
        assert await page.get_by_role("article", name="You").locator("bdi").inner_text() == text


async def test_a_resource_is_attached_while_one_writes(chromium: Any) -> None:
    """`@`, a part of its name, Enter: it is attached, the name goes, the sentence stays; so does a
    template (`RES-18`).
    """
    async with staged(chromium, "Read.") as stage:
        page = await stage.page()
        field = page.get_by_label("Your message")
        await field.press_sequentially("Compare @lis")
        await page.get_by_role("option", name="Lisbon 2022").wait_for()
        assert await field.get_attribute("aria-activedescendant") == await page.get_by_role(
            "option", name="Lisbon 2022"
        ).get_attribute("id")
        await shot(page, "mentions")
        await page.keyboard.press("Enter")
        await page.keyboard.type("with today")
        assert await field.input_value() == "Compare with today"
        assert await page.locator(".composer .chip-text").all_inner_texts() == ["Lisbon 2022"]
        await page.keyboard.type(" @forecast")
        await page.keyboard.press("Enter")
        await page.get_by_role("dialog").get_by_role("combobox", name="city").wait_for()
        await page.keyboard.press("Escape")
        await page.get_by_role("dialog").wait_for(state="detached")
        assert await field.input_value() == "Compare with today "


@pytest.mark.parametrize("opened", ["Prompts", "Resources", "Search everything"])
async def test_one_escape_closes_a_palette_with_words_in_it(chromium: Any, opened: str) -> None:
    """The search field does not keep the first Escape for itself."""
    async with staged(chromium) as stage:
        page = await stage.page()
        await page.get_by_role("button", name=opened, exact=True).click()
        await page.get_by_role("dialog").wait_for()
        await page.keyboard.type("bar")
        await page.keyboard.press("Escape")
        await page.get_by_role("dialog").wait_for(state="detached")


async def test_one_writes_on_where_a_dialog_was_closed(chromium: Any) -> None:
    """The message box does not only have the focus again: what is typed goes into it."""
    async with staged(chromium) as stage:
        page = await stage.page()
        await page.get_by_label("Your message").press_sequentially("one")
        await page.keyboard.press("Control+k")
        await page.get_by_role("dialog").wait_for()
        await page.keyboard.press("Escape")
        await page.get_by_role("dialog").wait_for(state="detached")
        await page.keyboard.type(" two")
        assert await page.get_by_label("Your message").input_value() == "one two"


async def test_suggestions_are_asked_for_once_where_one_types_quickly(chromium: Any) -> None:
    """Only for what stands there when the typing pauses (`CMP-06`)."""
    async with staged(chromium) as stage:
        page = await stage.page()
        asked: list[str] = []
        page.on(
            "request",
            lambda request: (
                asked.append(request.post_data_json["value"])
                if (request.post_data_json or {}).get("act") == "complete"
                else None
            ),
        )
        await page.get_by_role("button", name="Plan a vacation").click()
        await focus_on(page, "[data-field=destination]")
        await page.clock.install(time=0)
        await page.clock.pause_at(
            3_600_000
        )  # from here on time passes in the page as it is told to, however slow the machine is
        for key in "Barcel":
            await page.keyboard.press(key)
            await page.clock.run_for(50)
        await page.clock.resume()
        await page.wait_for_function(
            "() => document.querySelectorAll('.suggestions li').length === 1"
        )
        assert await page.get_by_role("option", name="Barcelona").is_visible()
        assert asked[-1] == "Barcel"
        assert not {"Ba", "Bar", "Barc", "Barce"} & set(asked)
        await page.keyboard.press("Escape")
        await page.locator(".suggestions li").first.wait_for(state="detached")
        assert await page.get_by_role("dialog").is_visible()  # Escape closes the list first
        await page.keyboard.press("Escape")
        await page.get_by_role("dialog").wait_for(state="detached")


async def test_resources_are_walked_looked_at_and_attached(chromium: Any) -> None:
    """A tree by server and address, with keys; several are chosen, shown as chips, and go with what
    is said (`RES-18`, `HST-01`).
    """
    async with staged(chromium, "I have read them.") as stage:
        page = await stage.page()
        await page.get_by_label("Your message").press("@")
        await page.get_by_role("option", name="Browse all resources").click()
        tree = page.get_by_role("tree", name="Resources")
        await tree.get_by_role("treeitem", name="travel").focus()
        for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
            await page.keyboard.press(key)
        await page.get_by_text("Casa Gràcia").wait_for()
        await page.keyboard.press("Space")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Space")
        await page.keyboard.press("Enter")
        await page.get_by_role("link", name="notes").wait_for()  # Markdown of a resource
        await shot(page, "resources")
        await page.keyboard.press("ArrowLeft")
        await page.keyboard.press("ArrowLeft")
        assert await tree.get_by_role("treeitem", name="Lisbon").count() == 0  # folded away
        await page.get_by_role("button", name="Attach 2").click()
        await focus_on(page, "#say")
        assert await page.locator(".composer .chip-text").all_inner_texts() == [
            "Barcelona 2023",
            "Lisbon 2022",
        ]
        await page.get_by_role("button", name="Remove Lisbon 2022").click()
        await say(page, "Read this")
        await page.get_by_text("I have read them.").wait_for()
        assert [
            text.split() for text in await page.locator(".attachments summary").all_inner_texts()
        ] == [["Barcelona", "2023", "travel"]]
        assert "Casa Gràcia" in str(stage.host.models["planner"].requests[0].messages)  # type: ignore[attr-defined]  # the scripted model keeps what it is asked


async def test_resources_are_searched(chromium: Any) -> None:
    """By words of title, address and server; what does not fit goes."""
    async with staged(chromium) as stage:
        page = await stage.page()
        await page.get_by_role("button", name="Resources", exact=True).click()
        await page.get_by_label("Search resources").fill("history bar")
        tree = page.get_by_role("tree")
        assert await tree.locator("[data-leaf]").count() == 1
        await page.get_by_label("Search resources").fill("forecast")
        await tree.get_by_role("treeitem", name="Weather forecast").wait_for()
        await page.get_by_label("Search resources").fill("nothing of the kind")
        await page.get_by_text("No resource matches.").wait_for()


async def test_a_template_is_filled_in_with_suggestions_on_a_telephone(chromium: Any) -> None:
    """City completes, the address is made, looked at and attached (`CMP-03`, `CMP-06`)."""
    async with staged(chromium) as stage:
        page = await stage.page(size=TELEPHONE, has_touch=True, is_mobile=True)
        await page.get_by_role("button", name="Resources", exact=True).tap()
        await page.get_by_role("treeitem", name="Weather forecast").tap()
        await page.get_by_role("button", name="View").tap()
        assert await page.get_by_text("This field is required.").count() == 2
        await page.get_by_role("combobox", name="city").fill("Par")
        await page.get_by_role("option", name="Paris").tap()
        await page.get_by_role("combobox", name="date").fill("2024-06-15")
        await page.get_by_role("button", name="View").tap()
        await page.get_by_text("clear").wait_for()
        assert await page.get_by_text("weather://forecast/Paris/2024-06-15").is_visible()
        await shot(page, "telephone-template")
        await page.get_by_role("dialog").get_by_role("button", name="Attach").tap()
        await page.get_by_role("button", name="Attach 1").tap()
        assert "Weather forecast: Paris" in await page.locator(".composer .chips").inner_text()


async def test_everything_is_found_from_one_place(chromium: Any) -> None:
    """Ctrl+K, words, Enter: panels, servers, and tools that are called by hand over the usual
    questions (`TOL-24`).
    """
    async with staged(chromium) as stage:
        page = await stage.page()
        await page.keyboard.press("Control+k")
        await page.keyboard.type("folders")
        await page.keyboard.press("Enter")
        await page.get_by_role("complementary", name="Folders").wait_for()
        await page.keyboard.press("Control+k")
        await page.keyboard.type("call search flights")
        await shot(page, "palette-everything")
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("origin").fill("NYC")
        await dialog.get_by_label("destination").fill("Bari")
        await dialog.get_by_label("date").fill("2024-06-15")
        assert await dialog.get_by_role("button", name="Call", exact=True).is_enabled()
        await page.keyboard.press("Escape")
        await dialog.wait_for(state="detached")


async def test_tools_come_before_conversations(chromium: Any) -> None:
    """A tool that is called so is the first, also where conversations and prompts have its name in
    theirs.
    """
    async with staged(chromium) as stage:
        page = await stage.page()
        for number in range(3):
            stage.host.session(title=f"call travel__search_flights {number}")
        firsts = []
        for words in ("search_flights", "search flights", "plan-vacation", "weather", "folders"):
            await page.keyboard.press("Control+k")
            await page.keyboard.type(words)
            option = page.locator(".picker-list [aria-selected=true]")
            group = page.locator(".picker-group").first
            firsts.append((await group.inner_text(), (await option.inner_text()).split("\n")[0]))
            await page.keyboard.press("Escape")
        assert firsts == [
            ("Call a tool", "Search flights"),
            ("Call a tool", "Search flights"),
            ("Prompts", "Plan a vacation"),
            ("Servers", "weather"),
            ("Show", "Folders"),
        ]
        await page.keyboard.press("Control+k")
        await page.keyboard.type("travel__search_flights 2")
        await page.keyboard.press("Enter")
        await page.get_by_role("log").wait_for()


async def test_the_focus_comes_back_where_it_was(chromium: Any) -> None:
    """A dialog gives the focus back, and nothing behind it can be reached while it is open."""
    async with staged(chromium, call("travel__picture")) as stage:
        page = await stage.page()
        button = page.get_by_role("button", name="Search everything")
        await button.focus()
        await page.keyboard.press("Enter")
        await page.get_by_role("dialog").wait_for()
        for _ in range(6):
            await page.keyboard.press("Tab")
            assert await page.evaluate(
                "document.activeElement === document.body || "
                "!!document.activeElement.closest('dialog')"
            )
        await page.keyboard.press("Escape")
        await focus_on(page, ".search-all")


async def test_a_resource_that_changes_is_read_again_while_it_is_looked_at(chromium: Any) -> None:
    """The page watches what it shows, and says no more of it when it is left (`RES-18`)."""
    async with staged(chromium) as stage:
        page = await stage.page()
        acts: list[str] = []
        page.on(
            "request",
            lambda request: (
                acts.append(request.post_data_json["act"])
                if request.url.endswith("/api/act")
                else None
            ),
        )
        await page.get_by_role("button", name="Resources", exact=True).click()
        await page.get_by_role("treeitem", name="Preferences").click()
        await page.get_by_text("Window seat.").wait_for()
        stage.servers["travel"].likes = "Aisle seat."  # type: ignore[attr-defined]  # what this example server reads
        stage.host.publish(ResourceUpdated(server="travel", uri="trips://preferences"))
        await page.get_by_text("Aisle seat.").wait_for()
        async with page.expect_request(
            lambda request: (request.post_data_json or {}).get("act") == "unwatch"
        ):
            await page.keyboard.press("Escape")
        await page.get_by_role("dialog").wait_for(state="detached")
        assert [act for act in acts if act in ("watch", "unwatch")] == ["watch", "unwatch"]


COMPOSED = """field => field.dispatchEvent(new KeyboardEvent("keydown", {
    key: "Enter", isComposing: true, bubbles: true, cancelable: true,
}))"""


async def test_the_enter_of_an_input_method_chooses_nothing(chromium: Any) -> None:
    """Enter ends a composition of Chinese, Japanese or Korean text, here as in every other
    field.
    """
    async with staged(chromium) as stage:
        page = await stage.page()
        await page.get_by_role("button", name="Search everything").click()
        search = page.get_by_role("combobox", name="Search everything")
        await search.fill("New conversation")
        assert await search.evaluate(COMPOSED)
        assert await page.get_by_role("dialog").count() == 1
        await search.press("Escape")
        await page.get_by_label("Your message").press("/")
        await page.keyboard.type("vacation tra")
        await page.keyboard.press("Enter")
        field = page.get_by_role("combobox", name="destination")
        await field.press_sequentially("Bar")
        await page.get_by_role("option", name="Barbados").wait_for()
        await field.press("ArrowDown")
        assert await field.evaluate(COMPOSED)
        assert await field.input_value() == "Bar"


async def test_a_prompt_that_fails_leaves_what_was_attached(chromium: Any) -> None:
    """The resources beside it are there for another try; the turn that runs is still shown as
    running.
    """
    async with staged(chromium) as stage:
        page = await stage.page()
        field = page.get_by_label("Your message")
        await field.press_sequentially("@lis")
        await page.get_by_role("option", name="Lisbon 2022").wait_for()
        await page.keyboard.press("Enter")
        await page.route(
            "**/api/act",
            lambda route: (
                route.fulfill(json={"ok": False, "words": "Not now."})
                if '"prompt"' in (route.request.post_data or "")
                else route.continue_()
            ),
        )
        await field.press("/")
        await page.keyboard.type("vacation tra")
        await page.keyboard.press("Enter")
        await page.get_by_role("combobox", name="destination").fill("Bari")
        await page.get_by_role("button", name="Use prompt").click()
        await page.get_by_role("status", name="Notices").get_by_text("Not now.").wait_for()
        assert await page.locator(".composer .chip-text").all_inner_texts() == ["Lisbon 2022"]
