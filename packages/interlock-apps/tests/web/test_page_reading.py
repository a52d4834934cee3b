"""What a person reads and writes at the page: long questions, arguments as people write them,
resources within a prompt, plain words.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Server
from interlock.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    SamplingMessage,
    TextContent,
)
from interlock_apps.fleet.questions import CallQuestion, Decision, SampledQuestion, SampleQuestion
from tests.web.stage import DESKTOP, TELEPHONE, say, shot, staged
from tests.web.test_page_questions import SEARCH, armed, asked

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

WHOM = {
    "anyOf": [
        {"type": "string", "maxLength": 20_000},
        {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    ]
}
LETTER = {
    "type": "object",
    "properties": {
        "to": {**WHOM, "description": "one address or several"},
        "place": {**WHOM},
        "subject": {
            "type": "string",
            "maxLength": 900,
            "description": "the subject, one line",
        },
        "from": {"type": "string", "minLength": 1, "maxLength": 20_000},
        "body": {"type": "string", "description": "the text"},
        "copies": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
        "folder": {"type": ["string", "null"]},
        "code": {"type": "string", "maxLength": 10},
    },
    "required": ["to", "folder"],
}
GIVEN = {
    "to": "ann@example.com",
    "place": "Paris, France",
    "subject": "Hello",
    "body": "One\nTwo",
    "folder": None,
}


async def test_a_prompt_takes_resources_along(chromium: Any) -> None:
    """The prompt first and the resources second: what was filled in stays, chips show what goes
    along (`PRM-05`, `RES-18`, `HST-01`).
    """
    async with staged(chromium, "Planned.") as stage:
        page = await stage.page()
        await page.get_by_role("button", name="Plan a vacation").click()
        prompt = page.get_by_role("dialog", name="Plan a vacation")
        assert (
            await prompt.locator("label", has_text="Duration").get_attribute("title") == "duration"
        )
        await prompt.locator("[data-field=duration]").fill("5")
        await prompt.locator("[data-field=destination]").fill("Bari")
        await prompt.get_by_role("button", name="Attach resources").click()
        browser = page.get_by_role("dialog", name="Resources")
        await browser.get_by_label("Attach Lisbon 2022").check()
        await browser.get_by_label("Attach Preferences").check()
        await browser.get_by_role("button", name="Attach 2").click()
        await browser.wait_for(state="detached")
        chips = prompt.get_by_role("group", name="Attached to the prompt")
        assert await chips.locator(".chip-text").all_inner_texts() == ["Lisbon 2022", "Preferences"]
        await shot(page, "prompt-with-resources")
        await chips.get_by_role("button", name="Remove Lisbon 2022").click()
        assert await prompt.locator("[data-field=duration]").input_value() == "5"
        assert await prompt.locator("[data-field=destination]").input_value() == "Bari"
        await prompt.get_by_role("button", name="Use prompt").click()
        await page.get_by_text("Planned.").wait_for()
        said = page.get_by_role("article", name="You")
        assert await said.get_by_role("term").all_inner_texts() == ["Destination", "Duration"]
        assert await said.locator(".attachments .from").all_inner_texts() == ["travel"]
        await said.locator(".attachments summary").click()
        await said.get_by_text("Window seat.").wait_for()
        assert await said.get_by_text("trips://preferences", exact=True).is_visible()
        await said.get_by_text("What it says").click()
        assert "[[" not in await said.inner_text()
        assert "[[data-" in str(stage.host.models["planner"].requests[0].messages)  # type: ignore[attr-defined]  # the scripted model keeps what it is asked
        assert await page.locator(".side-title").first.inner_text() != "Untitled"


async def test_a_preview_comes_into_view(chromium: Any) -> None:
    """What a long prompt says is below its many fields: whoever asks for it sees its beginning
    (`PRM-05`).
    """
    from playwright.async_api import expect  # late: only these tests need it

    def server() -> Server:
        made = Server("forms")

        @made.prompt("long", title="A long form")
        def long(
            a: str = "",
            b: str = "",
            c: str = "",
            d: str = "",
            e: str = "",
            f: str = "",
            g: str = "",
            h: str = "",
            i: str = "",
            j: str = "",
            k: str = "",
            m: str = "",
        ) -> str:
            return "The first line.\n" + "more\n" * 80

        return made

    async with staged(chromium, servers={"forms": server}) as stage:
        page = await stage.page()
        await page.get_by_role("button", name="A long form").click()
        await page.get_by_role("button", name="Preview").click()
        await expect(page.get_by_role("heading", name="What it says")).to_be_in_viewport(ratio=1)
        await expect(page.get_by_text("The first line.")).to_be_in_viewport()
        await shot(page, "preview")


@pytest.mark.parametrize("size", [DESKTOP, TELEPHONE])
async def test_a_table_with_a_long_text_breaks_no_word(chromium: Any, size: dict[str, int]) -> None:
    """A long text beside short ones gets a column of its own width: a row is a few lines high, and
    a name stays on one line.
    """
    note = (
        "A long text about what to expect there: warm days and cool nights, and the sea is cold. "
    )
    row = {"city": "Barcelona", "month": "September", "high": 27.5, "low": 14, "note": note * 2}

    def server() -> Server:
        made = Server("weather")

        @made.resource("weather://year", title="Weather of a year", mime_type="application/json")
        def year() -> list[dict[str, str | float]]:
            return [row] * 3

        return made

    async with staged(chromium, servers={"weather": server}) as stage:
        page = await stage.page(size=size)
        await page.get_by_role("button", name="Resources", exact=True).click()
        await page.get_by_role("treeitem", name="Weather of a year").click()
        cells = page.get_by_role("cell")
        await cells.first.wait_for()
        lines = (
            "cell => { const range = document.createRange(); range.selectNodeContents(cell); "
            "return new Set([...range.getClientRects()].map(r => Math.round(r.top))).size; }"
        )
        heights = [await cells.nth(at).evaluate(lines) for at in range(5)]
        assert heights[:4] == [1, 1, 1, 1]
        assert heights[4] <= 6
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_arguments_are_written_as_people_write_them(chromium: Any) -> None:
    """One line for a line, several addresses with commas, what may be null as what it is otherwise;
    the untouched stays (`TOL-24`).
    """
    async with staged(chromium) as stage:
        page = await stage.page()
        task = asked(
            stage,
            CallQuestion(
                id="c1",
                server="travel",
                tool="send_mail",
                title="Send a mail",
                arguments=GIVEN,
                input_schema=LETTER,
            ),
        )
        box = await armed(page)
        await page.keyboard.press("e")
        tags = "element => [element.localName, element.rows ?? 1]"
        lines = {
            name: await box.locator(f"[data-field={name}]").evaluate(tags)
            for name in LETTER["properties"]
        }  # type: ignore[attr-defined]  # a dict
        assert lines == {
            **{
                name: ["input", 1]
                for name in ("to", "place", "subject", "copies", "folder", "code")
            },
            "from": ["textarea", 1],
            "body": ["textarea", 4],
        }
        assert await box.locator(".hint").all_inner_texts() == [
            "separate several with commas"
        ] * 2 + ["at least 1"]
        await box.locator("[data-field=copies]").fill("0")
        await box.get_by_text("This must be at least 1.").wait_for()
        await box.locator("[data-field=copies]").fill("")
        await box.locator("[data-field=code]").fill("0123456789")
        await box.get_by_text("10 of at most 10 characters").wait_for()
        await box.locator("[data-field=to]").fill(
            'ann@example.com, "Lovelace, Ada" <ada@example.com>'
        )
        await shot(page, "arguments-as-written")
        await box.get_by_role("button", name="Allow once").click()
        answer = await task
        assert isinstance(answer, Decision)
        assert answer.arguments == {
            **GIVEN,
            "to": ["ann@example.com", '"Lovelace, Ada" <ada@example.com>'],
            "code": "0123456789",
        }


@pytest.mark.parametrize("size", [DESKTOP, TELEPHONE])
async def test_what_is_long_is_folded_and_the_answers_stay_in_view(
    chromium: Any, size: dict[str, int]
) -> None:
    """A long prompt, a long answer and long arguments: about twelve lines, all of it on demand,
    answers always at hand (`SAM-06`).
    """
    from playwright.async_api import expect  # late: only these tests need it

    lines = "\n".join(f"- flight {number} at {number * 10}" for number in range(1, 48))
    request = CreateMessageRequestParams(
        messages=[SamplingMessage(role="user", content=TextContent(lines))], max_tokens=200
    )
    result = CreateMessageResult(role="assistant", content=TextContent(lines), model="planner")
    async with staged(chromium, SEARCH, "Done.") as stage:
        page = await stage.page(size=size)
        await say(page, "Find flights")
        await armed(page)
        conversation = next(iter(stage.host.sessions))
        composer = await page.locator(".composer-box").bounding_box()
        assert composer["height"] < (60 if size == TELEPHONE else 110)
        await page.get_by_role("button", name="Allow once").click()
        await page.get_by_text("Done.").wait_for()
        for question, yes in (
            (
                SampleQuestion(
                    id="l1", session=conversation, server="travel", request=request, model="planner"
                ),
                "Ask planner",
            ),
            (
                SampledQuestion(
                    id="l2", session=conversation, server="travel", model="planner", result=result
                ),
                "Give it",
            ),
            (
                CallQuestion(
                    id="l3",
                    session=conversation,
                    server="travel",
                    tool="x",
                    title="X",
                    arguments={f"a{n}": str(n) for n in range(40)},
                ),
                "Allow without having seen",
            ),
        ):
            task = asked(stage, question)
            box = await armed(page)
            await expect(box.get_by_role("heading").first).to_be_in_viewport()
            await expect(box.get_by_role("button", name=yes)).to_be_in_viewport(ratio=1)
            clamped = box.locator(".clamped-box").first
            assert await clamped.evaluate(
                "e => e.clientHeight < 320 && e.scrollHeight > e.clientHeight * 2"
            )
            await shot(page, f"long-{question.id}-{size['width']}")
            await box.get_by_role("button", name="Show all").first.click()
            assert await clamped.evaluate("e => e.scrollHeight === e.clientHeight")
            yes = yes.replace("without having seen", "once")
            await expect(box.get_by_role("button", name=yes)).to_be_in_viewport(ratio=1)
            await box.get_by_role("button", name=yes).click()
            assert (await task).allow


async def test_what_was_stopped_says_so(chromium: Any) -> None:
    """Escape ends the turn while a call waits: nothing has failed; no rule is named before a call
    where none decides (`HST-03`).
    """
    async with staged(chromium, SEARCH, "Never said.") as stage:
        page = await stage.page()
        await say(page, "Find flights")
        box = await armed(page)
        assert "No rule decides this" not in await box.inner_text()
        assert await page.locator(".side-title").first.inner_text() == "Find flights"
        await page.get_by_label("Your message").click()
        await page.keyboard.press("Escape")
        await page.get_by_text("You stopped it.").wait_for()
        card = page.get_by_role("article", name="Search flights")
        await card.get_by_text(
            "Stopped before you answered: Call Search flights on travel?"
        ).wait_for()
        assert await card.locator(".card-state").inner_text() == "Stopped"
        task = asked(
            stage,
            CallQuestion(
                id="w1",
                server="travel",
                tool="book",
                title="Book",
                why="A rule asks: it costs money.",
            ),
        )
        box = await armed(page)
        assert "A rule asks: it costs money." in await box.inner_text()
        await box.get_by_role("button", name="Deny").click()
        await box.get_by_role("button", name="Deny").click()
        assert not (await task).allow


async def test_a_page_that_is_not_let_in_any_more_says_what_to_do(chromium: Any) -> None:
    """A cookie that is lost leaves no empty page: the host's own words stand there (`SEC-01`)."""
    async with staged(chromium) as stage:
        page = await stage.page()
        await page.context.clear_cookies()
        stage.site.closing.set()
        await page.get_by_text("No access:").first.wait_for()
        stage.site.closing.clear()
        await page.get_by_role("alert").get_by_text("Ctrl+C").wait_for()
        assert all(
            "401" in words for words in stage.troubles
        )  # the refusals that this test has brought about
        stage.troubles.clear()
