"""The conversation: what is said and streamed, calls and their results, stopping, long talks, and a
stream that breaks.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock.models.interface import ModelFailure, Usage
from interlock.models.scripted import call
from interlock.types import (
    AudioContent,
    CallToolResult,
    CreateMessageResult,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    SamplingMessage,
    TextContent,
)
from interlock_apps.fleet.events import (
    CallEnded,
    CallProposed,
    ModelAsked,
    ModelSaid,
    ModelSays,
    Notice,
    PersonSaid,
    SessionBegan,
    Trimmed,
    TurnEnded,
)
from tests.web.stage import Stage, focus_on, say, shot, staged

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

GIF = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA=="
MARKDOWN = """# Your trip

Fly **early**, with *care*, ~~late~~ `VY 8301`.

1. pack
2. go
   - nested

- [x] booked
- [ ] paid

> A word of caution

| flight | price |
|:--|--:|
| VY 8301 | 129 |

```python
print("hi")
```

See [the page](https://example.com/a?b=1) or <mail@example.com>.
"""


def session(stage: Stage) -> str:
    """A conversation that a test tells about itself."""
    return stage.host.session(title="Told").id


def person(session: str, text: str) -> PersonSaid:
    """What the person said."""
    return PersonSaid(
        session=session, messages=(SamplingMessage(role="user", content=TextContent(text)),)
    )


def said(session: str, text: str) -> ModelSaid:
    """What the model said."""
    return ModelSaid(
        session=session,
        model="planner",
        step=1,
        result=CreateMessageResult(role="assistant", content=TextContent(text), model="planner"),
    )


async def opened(stage: Stage, page: Any, title: str = "Told") -> None:
    """Open the conversation at the left."""
    await page.locator(".side").get_by_role("button", name=title).first.click()
    await page.get_by_role("log").wait_for()


async def test_enter_sends_and_shift_breaks_the_line(chromium: Any) -> None:
    """The composer grows with its lines, and what was said is shown as it was written."""
    async with staged(chromium, "Yes.") as stage:
        page = await stage.page()
        field = page.get_by_label("Your message")
        await field.type("first")
        low = (await field.bounding_box())["height"]
        await field.press("Shift+Enter")
        await field.type("second")
        assert (await field.bounding_box())["height"] > low
        await field.press("Enter")
        await page.get_by_text("Yes.").wait_for()
        assert (
            await page.get_by_role("article", name="You").locator("bdi").first.inner_text()
            == "first\nsecond"
        )
        assert await field.input_value() == ""
        assert await page.title() == "Interlock"


async def test_a_draft_is_kept_where_it_was_begun(chromium: Any) -> None:
    """Each conversation has its own; going away and coming back loses nothing."""
    async with staged(chromium, "Yes.") as stage:
        page = await stage.page()
        await say(page, "Hello")
        await page.get_by_text("Yes.").wait_for()
        await page.get_by_label("Your message").fill("half a sen")
        await page.get_by_role("button", name="New conversation").click()
        assert await page.get_by_label("Your message").input_value() == ""
        await page.go_back()
        await page.get_by_text("Yes.").wait_for()
        assert await page.get_by_label("Your message").input_value() == "half a sen"


async def test_markdown_of_the_model_is_drawn(chromium: Any) -> None:
    """Headings, lists, tables, code, tasks and links, each as what it is."""
    async with staged(chromium, MARKDOWN) as stage:
        page = await stage.page()
        await say(page, "Plan")
        prose = page.locator(".prose")
        await prose.get_by_role("link", name="the page").wait_for()
        tree = await prose.aria_snapshot()
        for part in (
            'heading "Your trip" [level=3]',
            "strong: early",
            "emphasis: care",
            "deletion: late",
            'checkbox "done" [checked]',
            'checkbox "open"',
            "blockquote",
            'columnheader "price"',
            "code: print",
        ):
            assert part in tree, tree
        link = prose.get_by_role("link", name="the page")
        assert [await link.get_attribute(name) for name in ("href", "target", "rel")] == [
            "https://example.com/a?b=1",
            "_blank",
            "noopener noreferrer",
        ]
        assert not await link.locator(".address").is_visible()
        await link.focus()
        assert await link.locator(".address").is_visible()
        assert await link.locator(".address").inner_text() == "https://example.com/a?b=1"
        await shot(page, "conversation-markdown")


async def test_thinking_is_folded_and_what_the_model_is_about_to_do_is_told(chromium: Any) -> None:
    """Thoughts in a fold, notes as lines, the name of a call that is being prepared."""
    async with staged(chromium) as stage:
        page = await stage.page()
        at = session(stage)
        await opened(stage, page)
        tell = stage.host.publish
        for event in (
            person(at, "Go"),
            ModelAsked(session=at, model="planner", step=1, messages=1, tools=7, tokens=100),
            ModelSays(session=at, kind="note", text="waits for 2 s"),
            ModelSays(session=at, kind="thought", text="Hidden depths"),
        ):
            tell(event)
        await page.get_by_text("Thinking …").wait_for()
        assert not await page.get_by_text("Hidden depths").is_visible()
        tell(ModelSays(session=at, kind="call", text="travel__search_flights", call="c1"))
        await page.get_by_text("is preparing a call to").wait_for()
        assert await page.get_by_role("article", name="Model").get_attribute("aria-busy") == "true"
        tell(said(at, "Well."))
        tell(Trimmed(session=at, rule="old", words="3 old results", tokens=900))
        tell(TurnEnded(session=at, reason="steps", usage=Usage(input=1200, output=34)))
        await page.get_by_text("one turn may not take more steps").wait_for()
        assert await page.get_by_text("1,200 tokens in, 34 out").is_visible()
        assert await page.get_by_text("Not sent to the model: 3 old results").is_visible()
        assert await page.get_by_role("article", name="Model").get_attribute("aria-busy") == "false"
        await page.get_by_text("Thoughts").click()
        assert await page.get_by_text("Hidden depths").is_visible()


async def test_a_thousand_pieces_leave_the_rest_alone(chromium: Any) -> None:
    """Only the last message changes while it is streamed: nothing that stands above is drawn
    again.
    """
    async with staged(chromium) as stage:
        page = await stage.page()
        at = session(stage)
        for n in range(30):
            stage.host.publish(person(at, f"question {n}"))
            stage.host.publish(said(at, f"answer {n}"))
        await opened(stage, page)
        await page.get_by_text("answer 29").wait_for()
        stage.host.publish(
            ModelAsked(session=at, model="planner", step=1, messages=1, tools=0, tokens=1)
        )
        await page.locator(".streaming").wait_for()
        await page.evaluate("""() => {
            const last = document.querySelector(".streaming").closest(".item");
            window.elsewhere = 0; window.changes = 0;
            new MutationObserver(all => {
                for (const one of all) {
                    window.changes += 1;
                    if (!last.contains(one.target)) window.elsewhere += 1;
                }
            })
                .observe(document.querySelector(".log-inner"),
                    { subtree: true, childList: true, characterData: true, attributes: true });
        }""")
        for n in range(1000):
            stage.host.publish(
                ModelSays(
                    session=at, kind="text", text=f"word{n} " if n % 50 else f"\n\nparagraph{n} "
                )
            )
            if n % 25 == 0:
                await asyncio.sleep(0)
        await page.get_by_text("word999").wait_for()
        assert await page.evaluate("window.elsewhere") == 0
        assert 0 < await page.evaluate("window.changes") < 1000  # pieces are gathered
        assert await page.locator(".streaming p").count() == 20


UPWARDS = """async () => {
    const log = document.querySelector(".log");
    const first = log.querySelector("[data-item]");
    const rest = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    log.scrollTop = 0;
    await rest();
    const before = first.getBoundingClientRect().top;
    while (log.querySelector("[data-item]") === first) await rest();
    await rest();
    return first.getBoundingClientRect().top - before;
}"""
"""Scrolls to the beginning of what has elements, and waits until there are earlier ones; how far
the first one has moved in the view."""


async def test_five_hundred_messages_stay_usable(chromium: Any) -> None:
    """The end is in view, what comes is added to it, and only what is near the view has elements.
    Whoever scrolls up gets all of it, back to the first message, and nothing jumps.
    """
    async with staged(chromium) as stage:
        page = await stage.page()
        at = session(stage)
        for n in range(250):
            stage.host.publish(person(at, f"question {n}"))
            stage.host.publish(said(at, f"answer {n}\n\n" + MARKDOWN))
        await opened(stage, page)
        await page.get_by_text("answer 249").wait_for()
        items = page.locator("[data-item]")
        assert await items.count() <= 80
        await page.wait_for_function(
            "() => { const log = document.querySelector('.log'); return log.scrollHeight - "
            "log.scrollTop - log.clientHeight < 90; }"
        )
        assert (
            await page.evaluate(
                """() => [...document.querySelectorAll(".item > *")].filter(one =>
                one.checkVisibility({contentVisibilityAuto: true})).length
                """
            )
            < 60
        )
        await page.get_by_label("Your message").type("still quick")
        stage.host.publish(said(at, "one more"))
        await page.get_by_text("one more").wait_for()
        while not await page.get_by_text("question 0", exact=True).count():
            moved = await page.evaluate(UPWARDS)
            assert abs(moved) < 3
        assert await items.count() <= 320
        assert not await page.get_by_text("one more").count()
        await page.get_by_role("button", name="To the end").click()
        await page.get_by_text("one more").and_(page.locator(":visible")).wait_for()
        assert await items.count() <= 80


async def test_what_a_tool_gives_is_shown_by_its_kind(chromium: Any) -> None:
    """Pictures, sounds, links that are read when asked, embedded resources, structured content as
    table and as JSON, errors (`TOL-17`, `TOL-26`).
    """
    async with staged(chromium) as stage:
        page = await stage.page()
        at = session(stage)
        content = [
            TextContent("Plain words"),
            ImageContent(data=GIF, mime_type="image/gif"),
            ImageContent(data=GIF, mime_type="image/x-unheard-of"),
            AudioContent(data=WAV, mime_type="audio/wav"),
            ResourceLink(uri="trips://preferences", name="preferences", title="Preferences"),
            EmbeddedResource(
                resource=ResourceContents(
                    uri="mem://note", mime_type="text/plain", text="An embedded note"
                )
            ),
        ]
        stage.host.publish(
            CallProposed(
                session=at,
                call="c1",
                name="travel__x",
                server="travel",
                tool="x",
                title="Everything at once",
                arguments={"deep": {"a": [1, 2], "b": None}, "on": True},
            )
        )
        stage.host.publish(
            CallEnded(
                session=at,
                call="c1",
                server="travel",
                tool="x",
                seconds=0.25,
                result=CallToolResult(
                    content=content,
                    structured_content={"rows": [{"n": 1, "s": "x"}, {"n": 2, "s": "y"}]},
                ),
            )
        )
        stage.host.publish(CallProposed(session=at, call="c2", name="nope__y", arguments={}))
        stage.host.publish(CallEnded(session=at, call="c2", error="There is no tool nope__y."))
        await opened(stage, page)
        card = page.get_by_role("article", name="Everything at once")
        await card.get_by_text("Plain words").wait_for()
        assert (
            await card.locator("img").evaluate("image => image.complete && image.naturalWidth") == 1
        )
        assert "cannot be shown" in await card.inner_text()
        assert (
            await card.locator("audio").evaluate(
                "audio => new Promise(done => { audio.onerror = () => done(audio.error?.message); "
                "audio.readyState > 0 ? done('') : audio.onloadedmetadata = () => done(''); })"
            )
            == ""
        )
        await card.get_by_role("button", name="Read").click()
        await card.get_by_text("Window seat. No early flights.").wait_for()
        await card.get_by_text("mem://note").click()
        assert await card.get_by_text("An embedded note").is_visible()
        assert await card.get_by_role("cell").all_inner_texts() == ["1", "x", "2", "y"]
        await (
            card.get_by_role("group", name="How the result is shown")
            .get_by_role("button", name="JSON")
            .click()
        )
        assert '"rows": [' in await card.inner_text()
        await shot(page, "conversation-result")
        assert (
            await page.get_by_role("article", name="nope__y")
            .get_by_role("alert")
            .locator("bdi")
            .inner_text()
            == "There is no tool nope__y."
        )


ROW = {"city": "Bari", "sights": ["Basilica", "Castle"]}
ONCE: list[tuple[list[str], Any, list[str]]] = [
    (["It rains in Bari."], {"result": "It rains in Bari."}, ["It rains in Bari."]),
    (['{"sights": ["Basilica", "Castle"], "city": "Bari"}'], ROW, ["Basilica"]),
    (["42"], {"result": 42}, ["42"]),
    (["Bari", "Rome"], {"result": ["Bari", "Rome"]}, ["Bari", "Rome"]),
    (["One city was found."], ROW, ["One city was found.", "Basilica"]),
]


@pytest.mark.parametrize("texts, structured, shown", ONCE)
async def test_a_result_appears_once(
    chromium: Any, texts: list[str], structured: Any, shown: list[str]
) -> None:
    """Where the text says what the structured content holds, in whatever form, it is shown once;
    what differs stays (`TOL-26`).
    """
    async with staged(chromium) as stage:
        page = await stage.page()
        at = session(stage)
        stage.host.publish(
            CallProposed(session=at, call="c1", name="x", server="travel", tool="x", title="X")
        )
        result = CallToolResult(
            content=[TextContent(text) for text in texts], structured_content=structured
        )
        stage.host.publish(
            CallEnded(session=at, call="c1", server="travel", tool="x", result=result)
        )
        await opened(stage, page)
        card = page.get_by_role("article", name="X")
        await card.get_by_role("button").first.click()
        text = await card.locator(".result").inner_text()
        assert [text.count(each) for each in shown] == [1] * len(shown)


async def test_a_picture_stands_open_after_the_call(chromium: Any) -> None:
    """Also one that comes as a resource: whoever asked for it sees it."""
    picture = ResourceContents(uri="mem://picture", mime_type="image/gif", blob=GIF)
    async with staged(chromium) as stage:
        page = await stage.page()
        at = session(stage)
        stage.host.publish(
            CallProposed(session=at, call="c1", name="x", server="travel", tool="x", title="X")
        )
        result = CallToolResult(content=[EmbeddedResource(resource=picture)])
        stage.host.publish(
            CallEnded(session=at, call="c1", server="travel", tool="x", result=result)
        )
        await opened(stage, page)
        await page.get_by_role("article", name="X").get_by_role("img").wait_for()


async def test_long_structured_content_comes_in_pages(chromium: Any) -> None:
    """Its beginning is shown, with how long it is; all of it can be read, a page at a time."""
    rows = [{"n": n, "text": f"row {n} of a long list"} for n in range(20_000)]
    async with staged(chromium) as stage:
        page = await stage.page()
        at = session(stage)
        stage.host.publish(
            CallProposed(session=at, call="c1", name="x", server="travel", tool="x", title="X")
        )
        result = CallToolResult(content=[], structured_content={"rows": rows})
        stage.host.publish(
            CallEnded(session=at, call="c1", server="travel", tool="x", result=result)
        )
        await opened(stage, page)
        card = page.get_by_role("article", name="X")
        await card.get_by_text("This is the beginning of").wait_for()
        await card.get_by_role("button", name="Show all as JSON").click()
        await card.get_by_text("Page 1 of 2").wait_for()
        assert await card.get_by_role("button", name="Previous page").is_disabled()
        await shot(page, "structured-pages")
        await card.get_by_role("button", name="Next page").click()
        await card.get_by_text("Page 2 of 2").wait_for()
        last = await card.locator(".structured-page").text_content()
        assert "row 19999 of a long list" in last
        assert await card.get_by_role("button", name="Next page").is_disabled()


async def test_a_running_call_says_how_far_it_is_and_can_be_stopped(chromium: Any) -> None:
    """A bar with words; Escape, or the button, ends the turn (`TOL-25`)."""
    async with staged(chromium, call("travel__compare")) as stage:
        page = await stage.page()
        await say(page, "Compare")
        await page.get_by_role("button", name="Allow once").click()
        bar = page.get_by_role("progressbar", name="Offers of the third airline")
        await bar.wait_for()
        assert await bar.get_attribute("value") == "0.375"
        await shot(page, "conversation-progress")
        await focus_on(page, "#say")
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Send").wait_for()
        await page.locator(".turn-end.stopped").wait_for()
        assert not next(iter(stage.host.sessions.values())).running


async def test_a_model_that_fails_says_so_once_and_is_asked_again(chromium: Any) -> None:
    """Its words stand there once, what it waited for turns no more, and "Try again" asks it with
    what was said, once.
    """

    async def slow(request: Any) -> Any:
        session = next(iter(stage.host.sessions))
        stage.host.publish(ModelSays(session=session, kind="note", text="Asked again in 1 s"))
        return ModelFailure("Too much to do.", "overloaded")

    async with staged(chromium, slow, ModelFailure("No key.", "unauthorized"), "Hello.") as stage:
        page = await stage.page()
        await say(page, "hi")
        again = page.get_by_role("button", name="Try again")
        await again.wait_for()
        said = page.get_by_role("log").get_by_text("Too much to do.")
        await said.first.wait_for()
        assert await said.count() == 1
        wait = await page.evaluate("document.querySelector('.note-line path').getAttribute('d')")
        assert wait != await page.evaluate(
            "import('./kit/kit.js').then(kit => kit.Icon({name: 'wait'}).props.children.props.d)"
        )
        await shot(page, "conversation-failed")
        await again.click()
        await page.get_by_text("No key.").wait_for()
        assert await again.count() == 1
        await page.reload()
        await again.click()
        await page.get_by_text("Hello.").wait_for()
        assert await again.count() == 0
        assert await page.get_by_role("article", name="You").count() == 1
        model: Any = stage.host.models["planner"]
        assert [len(request.messages) for request in model.requests] == [1, 1, 1]


async def test_the_page_comes_back_when_the_stream_breaks(chromium: Any) -> None:
    """It says that the line is lost, seeks it again, and has what was missed, once (`HST-01`)."""
    async with staged(chromium) as stage:
        page = await stage.page()
        at = session(stage)
        stage.host.publish(person(at, "before"))
        await opened(stage, page)
        await page.get_by_text("before").wait_for()
        async with stage.broken(page):
            await page.get_by_text("The host is not reachable. Retrying").wait_for()
            stage.host.publish(said(at, "meanwhile"))
        await page.get_by_text("meanwhile").wait_for()
        await page.get_by_text("The host is not reachable").wait_for(state="detached")
        stage.host.publish(said(at, "after"))
        await page.locator(".item .prose", has_text="after").wait_for()
        assert await page.locator(".item .prose").all_inner_texts() == ["meanwhile", "after"]
        assert all(
            "ERR_FAILED" in words for words in stage.troubles
        )  # what this test itself kept from the page
        stage.troubles.clear()


async def test_a_host_that_is_gone_is_shown_as_gone(chromium: Any) -> None:
    """No server is green, the composer says why it is off and keeps its words; all of it comes back
    by itself.
    """
    from playwright.async_api import expect  # late: only these tests need it

    async with staged(chromium) as stage:
        page = await stage.page()
        field = page.get_by_label("Your message")
        await field.fill("half a sen")
        side = page.locator(".side")
        async with stage.broken(page):
            await expect(field).to_be_disabled()
            assert await field.get_attribute("placeholder") == "The host is not reachable"
            assert await side.locator(".dot.is-up").count() == 0
            assert await side.get_by_role("img", name="unknown").count() == 2
            assert await page.get_by_text("servers ready").count() == 0
            await expect(page.get_by_role("button", name="Send")).to_be_disabled()
            await shot(page, "host-gone")
        await expect(field).to_be_enabled()
        await expect(side.locator(".dot.is-up")).to_have_count(2)
        await focus_on(page, "#say")
        await page.keyboard.type("tence")
        assert await field.input_value() == "half a sentence"
        stage.troubles.clear()  # what this test itself kept from the page


@pytest.mark.parametrize("width", [1320, 1000, 800, 390])
async def test_what_stands_above_the_composer_stands_in_line_with_it(
    chromium: Any, width: int
) -> None:
    """Welcome, cards of calls and composer have the same edges, with a scrollbar and without; the
    placeholder fits.
    """
    async with staged(chromium) as stage:
        page = await stage.page(size={"width": width, "height": 700})
        at = session(stage)
        edges = """selector => {
            const box = [...document.querySelectorAll(selector)].at(-1).getBoundingClientRect();
            return [Math.round(box.left), Math.round(box.right)];
        }"""
        await page.locator(".welcome-inner").wait_for()
        low = await page.evaluate(edges, ".composer-box")
        assert await page.evaluate(edges, ".welcome-inner") == low
        box = page.get_by_label("Your message")
        assert await box.evaluate("box => box.scrollHeight <= box.clientHeight")
        fits = """box => {
            const canvas = new OffscreenCanvas(1, 1).getContext("2d"),
                looks = getComputedStyle(box);
            canvas.font = looks.font;
            return canvas.measureText(box.placeholder).width + 2 * parseFloat(looks.paddingLeft) <=
                box.clientWidth;
        }"""
        assert await box.evaluate(fits)
        for n in range(30):
            stage.host.publish(
                CallProposed(session=at, call=f"c{n}", name="x", server="travel", tool="x")
            )
            if n in (0, 29):
                if n == 0:
                    await page.goto(f"{stage.site.origin}{stage.site.place}/#{at}")
                await page.locator(".card").nth(n).wait_for()
                assert await page.evaluate(edges, ".card") == low


async def test_notices_come_and_go(chromium: Any) -> None:
    """What is wrong stays until it was closed; a notice names the server that it is about."""
    async with staged(chromium) as stage:
        page = await stage.page()
        stage.host.publish(Notice(level="error", words="It has died.", server="travel"))
        notice = page.get_by_role("status", name="Notices")
        await notice.get_by_text("It has died.").wait_for()
        assert "travel" in await notice.inner_text()
        await notice.get_by_role("button", name="Close the notice").click()
        await notice.get_by_text("It has died.").wait_for(state="detached")


async def test_an_earlier_conversation_is_shown_from_the_log(chromium: Any) -> None:
    """Read only, whole, with calls that never ended saying so."""
    async with staged(chromium) as stage:
        stage.host.publish(
            SessionBegan(session="old", title="Long ago", model="planner", remark="An old remark.")
        )
        stage.host.publish(person("old", "What was"))
        stage.host.publish(
            CallProposed(
                session="old",
                call="c9",
                name="travel__x",
                server="travel",
                tool="x",
                title="Unfinished",
            )
        )
        page = await stage.page()
        await page.goto(f"{stage.site.origin}{stage.site.place}/#old")
        await page.get_by_text("What was").wait_for()
        assert await page.get_by_text("An old remark.").is_visible()
        assert await page.get_by_text("Did not finish").is_visible()
        assert await page.get_by_label("Your message").count() == 0
        assert await page.get_by_role("button", name="Continue it").is_visible()
        await shot(page, "conversation-replay")


async def test_attachments_stay_with_their_conversation(chromium: Any) -> None:
    """As drafts do: also when you look at another conversation, or click the one that is open."""
    async with staged(chromium) as stage:
        for words in ("About Rome", "About Oslo"):
            stage.host.publish(person(stage.host.session(title=words).id, words))
        page = await stage.page()
        side = page.locator(".side")
        await side.get_by_role("button", name="About Rome").click()
        await page.get_by_label("Your message").press_sequentially("@lis")
        await page.get_by_role("option", name="Lisbon 2022").wait_for()
        await page.keyboard.press("Enter")
        chips = page.locator(".composer .chip-text")
        assert await chips.all_inner_texts() == ["Lisbon 2022"]
        await side.get_by_role("button", name="About Rome").click()
        assert await chips.all_inner_texts() == ["Lisbon 2022"]
        await side.get_by_role("button", name="About Oslo").click()
        await page.get_by_role("article", name="You").get_by_text("About Oslo").wait_for()
        assert await chips.count() == 0
        await side.get_by_role("button", name="About Rome").click()
        await page.get_by_role("article", name="You").get_by_text("About Rome").wait_for()
        assert await chips.all_inner_texts() == ["Lisbon 2022"]


async def test_an_address_that_names_nothing_shows_the_page(chromium: Any) -> None:
    """What stands after # may be anything that a person typed."""
    async with staged(chromium) as stage:
        page = await stage.page()
        await page.goto("about:blank")
        await page.goto(f"{stage.site.origin}{stage.site.place}/#%E0%A4%A")
        await page.get_by_text("How can I help?").wait_for()
        await page.locator(".side .dot").first.wait_for(state="attached")


async def test_a_prompt_from_an_earlier_conversation_begins_a_new_one(chromium: Any) -> None:
    """The record of a conversation that is over takes no more words."""
    async with staged(chromium, "Planned.") as stage:
        stage.host.publish(SessionBegan(session="old", title="Old", model="planner", remark=""))
        stage.host.publish(person("old", "What was"))
        page = await stage.page()
        await page.goto(f"{stage.site.origin}{stage.site.place}/#old")
        await page.get_by_text("What was").wait_for()
        await page.get_by_role("button", name="Search everything").click()
        await page.keyboard.type("vacation")
        await page.keyboard.press("Enter")
        await page.get_by_role("combobox", name="destination").fill("Bari")
        await page.get_by_role("button", name="Use prompt").click()
        await page.get_by_text("Planned.").wait_for()
        assert len(stage.host.sessions) == 1
