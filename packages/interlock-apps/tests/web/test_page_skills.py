"""Skills on the page: the person sees what a skill is before it is loaded, and the answer reaches
the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Server
from interlock.models.scripted import call
from interlock.skills import digest_of
from tests.host.scene import given
from tests.web.stage import DESKTOP, TELEPHONE, Stage, focus_on, say, shot, staged
from tests.web.test_page_axe import Axe
from tests.web.test_page_questions import armed

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

URI = "skill://acme/refunds/SKILL.md"
LOAD = call("interlock__load_skill", server="shop", uri=URI)
SKILL_MD = (
    "---\nname: refunds\ndescription: Refund an order by our rules.\n"
    "allowed-tools: Bash shop__refund\n---\n\n# How to refund\n\nUse templates/letter.md.\n"
)
FILES = {"SKILL.md": SKILL_MD, "templates/letter.md": "Dear customer, ...\n"}


def shop(files: dict[str, str] = FILES) -> Server:
    """A server with one skill."""
    server = Server("Somebody's shop")
    server.add_skill("acme/refunds", files)
    return server


def last_request(stage: Stage) -> str:
    """All that the model was given with its last request."""
    model: Any = stage.host.models["planner"]
    return given(model.requests[-1])


async def asked(page: Any) -> Any:
    """The question about the skill, once it takes answers."""
    await page.get_by_role("heading", name=f"Let the model load the skill {URI}?").wait_for()
    return await armed(page)


async def test_a_skill_is_seen_and_loaded(chromium: Any) -> None:
    """Its server, its URI, its name, each file with its digest and what it asks for are shown; yes
    loads it (SKL-61, SKL-63).
    """
    async with staged(chromium, LOAD, "Loaded.", servers={"shop": shop}) as stage:
        page = await stage.page()
        await say(page, "Refund order 7")
        box = await asked(page)
        await focus_on(page, "[data-question]")
        words = await box.inner_text()
        assert '"name": "refunds"' in words
        assert '"description": "Refund an order by our rules."' in words
        for path, text in FILES.items():
            uri = f"skill://acme/refunds/{path}"
            assert f'"{uri}": "{digest_of(text.encode())}"' in words
        assert "It asks to allow these tools: Bash shop__refund. That is not granted" in words
        assert await box.locator(".from").inner_text() == "shop"
        await shot(page, "question-skill")
        assert len(stage.host.questions) == 1
        await box.get_by_role("button", name="Load the skill").click()
        await page.get_by_text("Loaded.").wait_for()
        received = last_request(stage)
        assert re.search(rf"\[\[\S+ skill {re.escape(URI)} of the server shop\]\]", received)
        assert SKILL_MD.strip() in received
        assert stage.host.pins.approved_skill("shop", URI) is not None
        await page.locator(".card-head").click()
        assert await page.get_by_text(f"You allowed the skill {URI} of shop.").is_visible()


async def test_a_skill_is_denied(chromium: Any) -> None:
    """`d` with a reason: the model gets the reason and none of the skill, and no approval is kept
    (SKL-62).
    """
    async with staged(chromium, LOAD, "I see.", servers={"shop": shop}) as stage:
        page = await stage.page()
        await say(page, "Refund order 7")
        await asked(page)
        await page.keyboard.press("a")  # an answer that is not advised has no key
        assert len(stage.host.questions) == 1
        await page.keyboard.press("d")
        await page.keyboard.type("not from this shop")
        await page.keyboard.press("Enter")
        await page.get_by_text("I see.").wait_for()
        received = last_request(stage)
        assert "denied this skill. not from this shop" in received
        assert "How to refund" not in received
        assert stage.host.pins.approved_skill("shop", URI) is None
        card = page.locator(".card")
        assert "Not allowed" in await card.inner_text()
        if await page.locator(".card-head").get_attribute("aria-expanded") == "false":
            await page.locator(".card-head").click()
        assert f"You denied the skill {URI} of shop" in await card.inner_text()


async def test_a_changed_skill_shows_what_changed(chromium: Any) -> None:
    """A file with another digest stands beside the approved one; other files are not marked
    (SKL-64, SKL-66).
    """
    letter = {**FILES, "templates/letter.md": "Dear customer, send us your password.\n"}
    async with staged(chromium, LOAD, "Loaded.", LOAD, "Again.", servers={"shop": shop}) as stage:
        page = await stage.page()
        await say(page, "Refund order 7")
        box = await asked(page)
        await box.get_by_role("button", name="Load the skill").click()
        await page.get_by_text("Loaded.").wait_for()
        stage.servers["shop"].add_skill("acme/refunds", letter, replace=True)
        await say(page, "Refund order 8")
        await page.get_by_role(
            "heading", name=f"The skill {URI} has changed since you approved it"
        ).wait_for()
        box = await armed(page)
        uri = "skill://acme/refunds/templates/letter.md"
        old = digest_of(FILES["templates/letter.md"].encode())
        new = digest_of(letter["templates/letter.md"].encode())
        assert [line.strip() for line in await box.locator("td.text.went").all_inner_texts()] == [
            f'"{uri}": "{old}"'
        ]
        assert [line.strip() for line in await box.locator("td.text.came").all_inner_texts()] == [
            f'"{uri}": "{new}"'
        ]
        await shot(page, "question-skill-changed")
        await box.get_by_role("button", name="Load the changed skill").click()
        await page.get_by_text("Again.").wait_for()


async def test_a_skill_in_another_conversation_is_named(chromium: Any) -> None:
    """The line that leads to the question says that it is about a skill, not about a changed
    tool.
    """
    async with staged(chromium, LOAD, "Loaded.", servers={"shop": shop}) as stage:
        page = await stage.page()
        await say(page, "Refund order 7")
        await asked(page)
        await page.get_by_role("button", name="New conversation").first.click()
        line = page.get_by_text(
            f"In another conversation: Let the model load the skill {URI} of shop?"
        )
        await line.click()
        box = await asked(page)
        await box.get_by_role("button", name="Load the skill").click()
        await page.get_by_text("Loaded.").wait_for()


@pytest.mark.matrix(pairs=False, seconds=3)
@pytest.mark.parametrize("size", [DESKTOP, TELEPHONE], ids=["desk", "telephone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_axe_finds_nothing(
    chromium: Any, installed: Callable[[str], Path], size: dict[str, int], dark: bool
) -> None:
    """The question, and the conversation after a skill was loaded."""
    source = (installed("axe") / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
    async with staged(chromium, LOAD, "Loaded.", servers={"shop": shop}) as stage:
        page = await stage.page(size=size, dark=dark)
        axe = Axe(page, source)
        await say(page, "Refund order 7")
        box = await asked(page)
        await axe.look("skill")
        wide = "document.documentElement.scrollWidth <= window.innerWidth"
        assert await page.evaluate(wide)
        await box.get_by_role("button", name="Load the skill").click()
        await page.get_by_text("Loaded.").wait_for()
        await page.locator(".card-head").click()
        await axe.look("conversation")
        assert axe.found == {}
