"""Texts of servers and models that want to be more than texts: in every place of the page they are
shown, and nothing of them runs.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Server, ServerInfo
from interlock.types import (
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    ImageContent,
    ResourceLink,
    SamplingMessage,
    TextContent,
)
from interlock_apps.fleet.events import (
    CallEnded,
    CallProposed,
    ModelSaid,
    Notice,
    PersonSaid,
    ServerLogLine,
)
from interlock_apps.fleet.questions import (
    CallQuestion,
    FeatureChange,
    FormQuestion,
    PinQuestion,
    SampleQuestion,
    StartQuestion,
    UrlQuestion,
    Warned,
)
from tests.web.stage import Stage, shot, staged
from tests.web.test_page_conversation import opened, session
from tests.web.test_page_questions import armed, asked

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

EVIL = (
    "<img src=x onerror=\"window.hit='img'\"><script>window.hit='script'</script><svg "
    "onload=\"window.hit='svg'\">"
)
TURNED = "safe\u202egpj.exe\u2066\u200b\U000e0041"
MARKDOWN = f"""{EVIL}

[a](javascript:window.hit='link') [b](JaVaScRiPt:window.hit=1) \
[c](data:text/html,<script>window.hit=1</script>) [d](vbscript:x) [e]( javascript:x ) \
<javascript:window.hit=1>
[f](https://ok.example/"onmouseover="window.hit=1) [g](//evil.example) [h](file:///etc/passwd) \
[i](java&#115;cript:window.hit=1)

![picture](https://tracker.example/pixel.png) ![q](data:image/svg+xml,<svg/onload=window.hit=1>)

[r]: javascript:window.hit=1 "title"
[r]

<a href="javascript:window.hit=1">x</a> <iframe src="https://evil.example"></iframe> \
<style>*{{display:none}}</style>

{">" * 300} deep {TURNED}

`{EVIL}`

```html"><img src=x onerror=window.hit=1>
{EVIL}
```
"""


def evil() -> Server:
    """A server whose every text is hostile."""
    server = Server("evil", info=ServerInfo(title=EVIL), instructions=EVIL)

    @server.tool("tool", title=EVIL, description=EVIL)
    def tool(argument: str) -> str:
        return EVIL

    @server.prompt("prompt", title=EVIL, description=EVIL)
    def prompt() -> str:
        return EVIL

    @server.resource(
        "evil://x/%3Cscript%3Ewindow.hit=1", title=EVIL, description=EVIL, mime_type="text/html"
    )
    def page() -> str:
        return EVIL

    @server.resource("evil://markdown", title="Markdown", mime_type="text/markdown")
    def markdown() -> str:
        return MARKDOWN

    return server


async def calm(stage: Stage, page: Any) -> None:
    """Nothing ran, nothing was fetched from elsewhere, and no element of theirs is there."""
    assert await page.evaluate("window.hit") is None
    found = await page.evaluate("""() => {
        const roots = [...document.querySelectorAll("*")].map(e => e.shadowRoot).filter(Boolean);
        const theirs = [
            "script:not([src$='/static/main.js'])", "iframe", "object", "embed", "form[action]",
            "base", "[onerror]", "[onload]", "[onmouseover]", "[style]:not(textarea)", "body style",
        ].join();
        return [document, ...roots]
            .flatMap(place => [...place.querySelectorAll(theirs)].map(e => e.outerHTML));
    }""")
    assert found == []
    links = await page.evaluate(
        """() => [...document.querySelectorAll("a[href]")].map(a => [a.protocol, a.rel])"""
    )
    assert all(protocol in ("https:", "http:", "mailto:") for protocol, _ in links)
    assert all(rel == "noopener noreferrer" for protocol, rel in links if protocol == "https:")
    assert stage.troubles == []


async def watched(stage: Stage) -> tuple[Any, list[str]]:
    """A page, and every request of it that is not to the host."""
    page = await stage.page()
    elsewhere: list[str] = []
    page.on(
        "request",
        lambda request: (
            elsewhere.append(request.url)
            if not request.url.startswith((stage.site.origin, "data:"))
            else None
        ),
    )
    return page, elsewhere


async def test_markdown_of_a_model_runs_nothing_and_loads_nothing(chromium: Any) -> None:
    """HTML is shown as text, links lead to the web only, pictures are links (`SEC-21`,
    `SEC-22`).
    """
    async with staged(chromium) as stage:
        (page, elsewhere), at = await watched(stage), session(stage)
        stage.host.publish(
            ModelSaid(
                session=at,
                model="planner",
                step=1,
                result=CreateMessageResult(
                    role="assistant", content=TextContent(MARKDOWN), model="planner"
                ),
            )
        )
        await opened(stage, page)
        prose = page.locator(".prose")
        await prose.wait_for()
        assert "<img src=x onerror=\"window.hit='img'\">" in await prose.inner_text()
        assert await prose.locator("img").count() == 0
        hrefs = await prose.locator("a").evaluate_all("all => all.map(a => a.href)")
        assert hrefs == [
            "https://ok.example/%22onmouseover=%22window.hit=1",
            "https://tracker.example/pixel.png",
        ]
        assert "⟨U+202E⟩" in await prose.inner_text()
        assert "\u202e" not in await page.content()
        await prose.get_by_role("link").first.hover()
        await shot(page, "hostile-markdown")
        await calm(stage, page)
        assert elsewhere == []


async def test_every_text_of_a_server_is_a_text(chromium: Any) -> None:
    """Titles, descriptions, instructions, addresses, logs, notices, results: in lists, palettes,
    the browser and the panel (`HST-03`).
    """
    async with staged(chromium, servers={"evil": evil}) as stage:
        page, elsewhere = await watched(stage)
        stage.host.publish(ServerLogLine(server="evil", level=EVIL, text=EVIL, logger=EVIL))
        stage.host.publish(Notice(level="warning", words=EVIL, server="evil"))
        await page.locator(".side").get_by_role("button", name="evil").click()
        await page.get_by_role("complementary").get_by_text("What it tells the model").click()
        assert await page.get_by_role("complementary").get_by_text("<img src=x").count() >= 4
        await calm(stage, page)
        await page.get_by_label("Your message").press("/")
        await page.locator(".mentions [role=option]").first.wait_for()
        await calm(stage, page)
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Preview").click()
        await page.get_by_text("What it says").wait_for()
        await calm(stage, page)
        await page.keyboard.press("Escape")
        await page.get_by_label("Your message").press("@")
        await page.locator(".mentions [role=option]").first.wait_for()
        await calm(stage, page)
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Resources", exact=True).click()
        leaves = page.locator("[data-leaf]")
        for at in range(await leaves.count()):
            await leaves.nth(at).click()
            await page.locator(".look .boxed").wait_for()
            await calm(stage, page)
        await page.keyboard.press("Escape")
        await shot(page, "hostile-server")
        assert elsewhere == []


async def test_every_text_of_a_result_is_a_text(chromium: Any) -> None:
    """Arguments, structured content, keys, errors, links with strange addresses, pictures that are
    none (`SEC-22`).
    """
    async with staged(chromium) as stage:
        (page, elsewhere), at = await watched(stage), session(stage)
        content = [
            TextContent(EVIL),
            TextContent(
                '{"' + "<script>window.hit=1</script>" + '": "<img src=x onerror=window.hit=1>"}'
            ),
            ResourceLink(
                uri="javascript:window.hit=1",
                name=EVIL,
                title=EVIL,
                description=EVIL,
                mime_type=EVIL,
            ),
            ImageContent(data='" onerror="window.hit=1', mime_type="image/png"),
            ImageContent(data="PHN2Zz4=", mime_type='image/svg+xml" onload="window.hit=1'),
        ]
        stage.host.publish(
            PersonSaid(
                session=at,
                messages=(SamplingMessage(role="user", content=TextContent(EVIL)),),
                server="travel",
                prompt=EVIL,
                arguments={EVIL: EVIL},
            )
        )
        stage.host.publish(
            CallProposed(
                session=at,
                call="c1",
                name=EVIL,
                server="travel",
                tool=EVIL,
                title=EVIL,
                arguments={
                    EVIL: EVIL,
                    "__proto__": {"x": 1},
                    "constructor": {"prototype": 1},
                    "type": {"type": "b", "props": {}},
                },
            )
        )
        stage.host.publish(
            CallEnded(
                session=at,
                call="c1",
                server="travel",
                tool=EVIL,
                error=EVIL,
                result=CallToolResult(
                    content=content,
                    structured_content={EVIL: [{EVIL: EVIL}], "toString": 1},
                    is_error=True,
                ),
            )
        )
        await opened(stage, page)
        card = page.locator(".card")
        await (
            card.get_by_text("Result").or_(card.get_by_text("Error from the tool")).first.wait_for()
        )
        await calm(stage, page)
        await card.get_by_role("button", name="JSON").first.click()
        await shot(page, "hostile-result")
        assert await page.evaluate("({}).x") is None
        assert await card.get_by_role("link").count() == 0
        await calm(stage, page)
        assert elsewhere == []


async def test_every_text_of_a_question_is_a_text(chromium: Any) -> None:
    """Messages, fields, options, warnings, commands, differences (`ELI-26`, `SEC-17`)."""
    warnings = (Warned(kind="x", words=EVIL, where=EVIL),)
    field = {
        "name": EVIL,
        "title": EVIL,
        "description": EVIL,
        "kind": "choice",
        "required": True,
        "options": [[EVIL, EVIL], ["b", TURNED]],
        "default": EVIL,
    }
    request = CreateMessageRequestParams(
        messages=[SamplingMessage(role="user", content=TextContent(EVIL))],
        max_tokens=1,
        system_prompt=EVIL,
    )
    questions = [
        FormQuestion(id="1", server="travel", message=EVIL, fields=(field,), warnings=warnings),
        UrlQuestion(
            id="2",
            server="travel",
            message=MARKDOWN,
            url=f"https://ok.example/{EVIL}",
            host="ok.example",
            warnings=warnings,
        ),
        SampleQuestion(
            id="3",
            server="travel",
            request=request,
            model=EVIL,
            models={EVIL: EVIL},
            warnings=warnings,
        ),
        PinQuestion(
            id="4",
            server="travel",
            changes=(
                FeatureChange(
                    kind="tool",
                    name=EVIL,
                    was=EVIL,
                    now=EVIL + "\n" + TURNED,
                    warnings=warnings,
                ),
            ),
            warnings=warnings,
        ),
        StartQuestion(
            id="5",
            server="travel",
            command=f"{EVIL} {TURNED}",
            source=EVIL,
            variables=(EVIL,),
            warnings=warnings,
        ),
        CallQuestion(
            id="6",
            server="travel",
            tool=EVIL,
            title=EVIL,
            description=EVIL,
            arguments={EVIL: TURNED},
            input_schema={"properties": {EVIL: {"type": "string", "title": EVIL}}},
            why=EVIL,
            warnings=warnings,
        ),
    ]
    async with staged(chromium) as stage:
        page, elsewhere = await watched(stage)
        for question in questions:
            task = asked(stage, question)
            box = await armed(page)
            await calm(stage, page)
            assert "\u202e" not in await box.inner_text()
            if isinstance(question, CallQuestion):
                await page.keyboard.press("e")
                await box.get_by_role("button", name="JSON").click()
                assert (
                    r"safe\u202egpj.exe"
                    in await box.get_by_label("Arguments as JSON").input_value()
                )
                await calm(stage, page)
            task.cancel()  # it became moot
            await asyncio.gather(task, return_exceptions=True)
            await page.locator(f"[data-question='{question.id}']").wait_for(state="detached")
        assert elsewhere == []
