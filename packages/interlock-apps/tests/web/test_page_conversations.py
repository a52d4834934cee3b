"""The list of conversations, what can be done with messages, search, and projects, on the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.types import SamplingMessage, TextContent
from interlock_apps.fleet.events import PersonSaid, SessionBegan, SessionChanged
from interlock_apps.host.conversations.projects import Projects
from tests.web.stage import DESKTOP, TELEPHONE, focus_on, say, shot, staged
from tests.web.test_page_axe import Axe

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

DRAWER = "Conversations and servers"


def said(session: str, text: str) -> PersonSaid:
    return PersonSaid(
        session=session, messages=(SamplingMessage(role="user", content=TextContent(text)),)
    )


async def option(page: Any, title: str, name: str) -> None:
    """Choose an entry in the menu of a conversation, by mouse."""
    row = page.locator(".talk-row").filter(has_text=title)
    await row.hover()
    await row.get_by_role("button", name="Options").click()
    await page.get_by_role("menuitem", name=name).click()


async def test_the_list_is_kept_in_order(chromium: Any) -> None:
    """Grouped by date; renamed, pinned and deleted by mouse and keyboard; long as it may be, the
    servers stay in sight.
    """
    async with staged(chromium, "Yes.") as stage:
        for number in range(40):
            stage.host.publish(
                SessionBegan(session=f"s{number}", title=f"Talk {number:02}", model="planner")
            )
        stage.host.publish(SessionChanged(session="s3", pinned=True))
        page = await stage.page()
        side = page.get_by_role("navigation")
        pinned = side.get_by_role("list", name="Pinned")
        assert await pinned.locator(".side-title").all_inner_texts() == ["Talk 03"]
        assert await side.get_by_role("list", name="Today").get_by_role("listitem").count() == 39
        server = await side.get_by_role("button", name="weather").bounding_box()
        assert server["y"] + server["height"] < DESKTOP["height"]
        await shot(page, "conversations-list")

        await option(page, "Talk 05", "Rename")
        await page.get_by_label("Title").fill("Rome in May")
        await page.keyboard.press("Enter")
        await side.get_by_role("button", name="Rome in May").wait_for()
        await option(page, "Rome in May", "Pin to the top")
        await pinned.get_by_text("Rome in May").wait_for()
        row = page.locator(".talk-row").filter(has_text="Rome in May")
        await row.get_by_role("button", name="Options").focus()
        await page.keyboard.press("Enter")
        await focus_on(page, "[role=menuitem]")
        await shot(page, "conversations-menu")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await side.get_by_role("list", name="Today").get_by_text("Rome in May").wait_for()

        await side.get_by_role("button", name="Rome in May").click()
        await option(page, "Rome in May", "Delete")
        await shot(page, "conversations-delete")
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await page.get_by_text("How can I help?").wait_for()
        assert await side.get_by_text("Rome in May").count() == 0
        assert await stage.host.log.read("s5") == []


async def test_a_message_is_edited_and_the_branches_stay(chromium: Any) -> None:
    """Edit, ask again, go on from here; back and forth between branches, also after a reload."""
    answers = ("Rome is warm.", "Oslo is cold.", "Oslo is freezing.", "Take gloves.")
    async with staged(chromium, *answers) as stage:
        page = await stage.page()
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        log = page.get_by_role("log")
        await say(page, "How is Rome?")
        await log.get_by_text("Rome is warm.").wait_for()
        question = page.locator(".item-said").last
        await question.hover()
        await shot(page, "message-actions")
        await question.get_by_role("button", name="Copy").click()
        assert await page.evaluate("navigator.clipboard.readText()") == "How is Rome?"
        await question.get_by_role("button", name="Edit").click()
        field = page.get_by_role("textbox", name="The message")
        assert await field.input_value() == "How is Rome?"
        await field.fill("How is Oslo?")
        await shot(page, "message-editing")
        await field.press("Enter")
        await log.get_by_text("Oslo is cold.").wait_for()
        assert await log.get_by_text("Rome is warm.").count() == 0
        branches = page.get_by_role("group", name="Branches")
        assert "2 of 2" in await branches.inner_text()

        answer = page.locator(".item-model").last
        await answer.hover()
        await answer.get_by_role("button", name="Ask again").click()
        await log.get_by_text("Oslo is freezing.").wait_for()
        assert await branches.count() == 2
        await branches.first.get_by_role("button", name="Earlier branch").click()
        await log.get_by_text("Rome is warm.").wait_for()
        assert await log.get_by_text("Oslo").count() == 0
        await page.reload()
        await log.get_by_text("Rome is warm.").wait_for()
        assert "1 of 2" in await branches.inner_text()
        await branches.get_by_role("button", name="Later branch").click()
        await log.get_by_text("Oslo is freezing.").wait_for()

        await page.locator(".item-model").last.hover()
        await page.get_by_role("button", name="Go on from here").click()
        assert await page.get_by_text("A new branch").count() == 0  # nothing follows yet
        await say(page, "What do I need?")
        await log.get_by_text("Take gloves.").wait_for()
        first = page.locator(".item-model").first
        await first.hover()
        await first.get_by_role("button", name="Go on from here").click()
        await page.get_by_text("A new branch").wait_for()
        assert await log.get_by_text("Take gloves.").count() == 0
        await shot(page, "message-new-branch")
        session = next(iter(stage.host.sessions.values()))
        assert len(session.messages) == 2


async def test_a_search_leads_to_the_message(chromium: Any) -> None:
    """Also to one in another branch and another conversation; what is found is marked as text."""
    async with staged(chromium, "A <b>violet</b> house.", "Yes.") as stage:
        page = await stage.page()
        await say(page, "What do you see?")
        await page.get_by_text("house.").wait_for()
        session = next(iter(stage.host.sessions.values()))
        for number in range(30):
            stage.host.publish(said(session.id, f"Line {number} " + "and more " * 40))
        branch = await stage.host.conversations.branch(session.id)
        await stage.host.conversations.switch(session.id, branch.entries[0].seq)
        await page.get_by_role("button", name="New conversation").click()
        await page.get_by_label("Search what was said").fill("viol")
        found = page.get_by_role("list", name="Messages found")
        await found.get_by_role("button").first.wait_for()
        assert await found.locator("mark").all_inner_texts() == ["violet"]
        await shot(page, "conversations-search")
        await found.get_by_role("button").click()
        await focus_on(page, ".item-model")
        assert await page.locator(".item-model").get_by_text("house.").is_visible()
        await page.get_by_label("Search what was said").press("Escape")
        assert await found.count() == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_projects_and_menus_on_a_telephone(
    chromium: Any, installed: Callable[[str], Path], tmp_path: Path, dark: bool
) -> None:
    """A project is created by touch and chosen; its file is text; axe finds nothing on the way."""
    source = (installed("axe") / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
    projects = Projects(folder=tmp_path)
    async with staged(chromium, "Yes.", projects=projects) as stage:
        page = await stage.page(size=TELEPHONE, dark=dark, has_touch=True)
        axe = Axe(page, source)
        await say(page, "Hello")
        await page.get_by_text("Yes.").wait_for()
        await axe.look("conversation")
        await page.locator(".item-said").get_by_role("button", name="Edit").tap()
        await axe.look("editing")
        await shot(page, f"telephone-editing-{dark}")
        await page.get_by_role("button", name="Cancel").tap()
        await page.get_by_role("button", name=DRAWER).tap()
        await page.locator(".talk-row").get_by_role("button", name="Options").tap()
        await axe.look("menu")
        await shot(page, f"telephone-menu-{dark}")
        await page.keyboard.press("Escape")
        await page.get_by_label("Search what was said").fill("hel")
        await page.get_by_role("list", name="Messages found").get_by_role("button").wait_for()
        await axe.look("found")
        await page.get_by_label("Search what was said").fill("")
        await page.get_by_role("button", name="New project").tap()
        await page.get_by_label("Name", exact=True).fill("Trips")
        await page.get_by_label("Instructions for the model").fill("Be brief.")
        await page.get_by_label("All servers").uncheck()
        await page.get_by_label("weather").uncheck()
        await page.get_by_label("Rules").fill("default = 'perhaps'")
        await axe.look("project")
        await page.get_by_role("button", name="Save").tap()
        await page.get_by_role("alert").get_by_text("write one of allow, ask, deny").wait_for()
        await page.get_by_label("Rules").fill("default = 'deny'")
        await shot(page, f"telephone-project-{dark}")
        await page.get_by_role("button", name="Save").tap()
        await page.get_by_role("dialog").wait_for(state="hidden")
        assert (tmp_path / "trips.toml").read_text() == (
            'name = "Trips"\ninstructions = "Be brief."\nservers = ["travel"]\n\n'
            "default = 'deny'\n"
        )
        assert await page.get_by_label("Project", exact=True).input_value() == "Trips"
        assert axe.found == {}
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.get_by_role("button", name="New conversation").tap()
        await say(page, "Again")
        await page.wait_for_function("() => document.querySelectorAll('.item-said').length")
        assert [s.project and s.project.name for s in stage.host.sessions.values()] == [
            None,
            "Trips",
        ]
