"""The message box: messages for a running turn, files, the model, and the context meter."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from interlock.models.interface import ModelFacts
from interlock.models.scripted import call
from interlock.types import CreateMessageRequestParams
from interlock_apps.fleet.policy import Policy
from interlock_servers.everything.samples import png
from tests.host.test_model_choice import Thinker, answered
from tests.web.stage import say, shot, staged

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


class Gate:
    """An answer that waits until the test opens it."""

    def __init__(self, answer: Any) -> None:
        self.open = asyncio.Event()
        self._answer = answer

    async def __call__(self, request: CreateMessageRequestParams) -> Any:
        await self.open.wait()
        return self._answer


async def test_what_is_typed_while_it_works_steers_it(chromium: Any) -> None:
    """It waits above the box, can be edited, moved and removed, and reaches the model at the next
    step; after Stop it stays until it is sent.
    """
    first = Gate(call("weather__alerts", state="OR"))
    second = Gate("Warm, in short.")
    never = Gate("Never.")
    answers = (first, second, "And Rome is hot.", never, "Yes.")
    async with staged(chromium, *answers, policy=Policy(default="allow")) as stage:
        page = await stage.page()
        await say(page, "How is the weather?")
        queue = page.get_by_role("region", name="Queued messages")
        field = page.get_by_label("Your message")
        await page.get_by_role("button", name="Stop").wait_for()
        for words in ("Be brif.", "Nonsense", "And Rome?"):
            await say(page, words)
            await queue.get_by_text(words).wait_for()
        assert await field.input_value() == ""
        rows = queue.get_by_role("listitem")
        await rows.nth(1).get_by_role("button", name="Remove").click()
        await queue.get_by_text("Nonsense").wait_for(state="detached")
        await rows.nth(1).get_by_label("When the model gets it").select_option("turn")
        await rows.nth(0).get_by_role("button", name="Edit").click()
        edit = queue.get_by_label("Edit the queued message")
        await edit.fill("Be brief.")
        await edit.press("Enter")
        await queue.get_by_text("Be brief.").wait_for()
        await shot(page, "composing-queue")
        first.open.set()
        await page.get_by_role("article", name="You").get_by_text("Be brief.").wait_for()
        assert await rows.count() == 1
        second.open.set()
        await page.get_by_text("And Rome is hot.").wait_for()
        await queue.wait_for(state="detached")
        await say(page, "Go on")
        await page.get_by_role("button", name="Stop").wait_for()
        await say(page, "Left over")
        await queue.get_by_text("Left over").wait_for()
        await page.get_by_role("button", name="Stop").click()
        await queue.get_by_role("button", name="Send it now").click()
        await page.get_by_text("Yes.").wait_for()
        await queue.wait_for(state="detached")


CODE = """Here it is:

```python
def add(a, b):
    return "sum", a + b  # two numbers
```

```nonsense
<b>not markup</b>
```
"""


async def test_code_tables_and_pictures_are_shown_and_saved(chromium: Any) -> None:
    """Code in colours, a table and a picture without a click; each can be saved, under a name that
    its server cannot choose freely.
    """
    calls = [
        call("travel__search_flights", origin="A", destination="B", date="2026-05-01"),
        call("travel__picture"),
    ]
    async with staged(chromium, calls, CODE, policy=Policy(default="allow")) as stage:
        page = await stage.page(permissions=["clipboard-write"])
        await say(page, "Go")
        code = page.locator("figure.code")
        await code.first.locator(".code-keyword").first.wait_for()
        assert await code.first.locator(".code-keyword").all_inner_texts() == ["def", "return"]
        assert await code.first.locator(".code-comment").inner_text() == "# two numbers"
        assert await code.nth(1).locator("pre").inner_text() == "<b>not markup</b>"
        assert await code.nth(1).locator("pre span").count() == 0
        await code.first.get_by_role("button", name="Copy").click()
        await code.first.get_by_text("Copied").wait_for()
        table = page.locator(".card").first
        assert await table.get_by_role("cell", name="VY 8301").is_visible()
        picture = page.locator(".card").nth(1)
        assert await picture.get_by_role("img").is_visible()
        saved = {}
        for place, name in (
            (code.first, "Save the code"),
            (table, "Save as CSV the table"),
            (table, "Save as JSON the result"),
            (picture, "Save the picture"),
        ):
            async with page.expect_download() as started:
                await place.get_by_role("button", name=name).click()
            file = await started.value
            saved[file.suggested_filename] = Path(await file.path()).read_bytes()
        assert list(saved) == [
            "code.py",
            "search_flights.csv",
            "search_flights.json",
            "picture.png",
        ]
        assert saved["code.py"].startswith(b"def add(a, b):\n")
        assert saved["search_flights.csv"].startswith(
            b"flight,from,to,departs,price\r\nVY 8301,A,B,"
        )
        assert json.loads(saved["search_flights.json"])
        assert saved["picture.png"].startswith(b"\x89PNG")
        await shot(page, "composing-content")
        kit = "new URL('kit/download.js', location.href).href"
        names = [
            ["report", "pdf"],
            ["../../etc/passwd", "txt"],
            ["C:\\x\\evil.exe", "png"],
            ["photo\u202egnp.exe", "png"],
            ["CON", "txt"],
            ["..", "txt"],
            ["a<b>:c.PNG", "png"],
            ["x" * 300, "txt"],
        ]
        made = await page.evaluate(
            f"async (names) => {{ const {{ safeName }} = await import({kit});"
            " return names.map(([name, extension]) => safeName(name, extension)); }",
            names,
        )
        assert made == [
            "report.pdf",
            "passwd.txt",
            "evil.exe.png",
            "photognp.exe.png",
            "_CON.txt",
            "file.txt",
            "abc.png",
            "x" * 80 + ".txt",
        ]
        rows = [{"a": "=1+1", "b": -2, "c": 'x "y", z'}, {"a": None, "d": [1]}]
        text = await page.evaluate(
            f"async (rows) => (await import({kit})).csv(rows)",
            rows,
        )
        assert text == 'a,b,c,d\r\n\'=1+1,-2,"x ""y"", z",\r\n,,,[1]'


async def test_the_model_its_effort_and_its_context(chromium: Any) -> None:
    """Model and effort are chosen in mid-conversation; thoughts are folded, also after a reload;
    the meter says what fills the window, which tools are offered, and what it cost.
    """
    facts = ModelFacts(context=20_000, efforts=("low", "high"), price_in=1.0, price_out=2.0)
    thinker = Thinker(answered("Four.", 30_000, 10_000), "Five.", name="thinker", facts=facts)
    async with staged(chromium, "Hello.", "Back.") as stage:
        stage.host.models["thinker"] = thinker
        page = await stage.page()
        await say(page, "Hello")
        await page.get_by_text("Hello.", exact=True).wait_for()
        await page.get_by_role("combobox", name="Model").select_option("thinker")
        await page.get_by_text("From here on thinker answers.").wait_for()
        await page.get_by_label("Effort").select_option("high")
        await page.get_by_text("answers, with high effort").wait_for()
        await say(page, "2 + 2?")
        await page.get_by_text("Four.").wait_for()
        assert stage.host.sessions[next(iter(stage.host.sessions))].effort == "high"
        await page.get_by_text("30,000 tokens in, 10,000 out, $0.05").wait_for()
        await page.reload()
        thoughts = page.locator(".thought summary")
        await thoughts.wait_for()
        assert not await page.get_by_text("Let me think.").is_visible()
        await thoughts.click()
        await page.get_by_text("Let me think.").wait_for()
        assert await page.get_by_label("Effort").input_value() == "high"
        meter = page.get_by_role("button", name="Context:")
        assert "price ≥ $0.05" in (await meter.get_attribute("aria-label") or "")
        await meter.click()
        dialog = page.get_by_role("dialog", name="Context")
        await dialog.get_by_text("of 20,000 tokens are used").wait_for()
        await dialog.get_by_text("Price: at least $0.05.").wait_for()
        await dialog.get_by_role("button", name="Search").click()
        await dialog.get_by_text("You chose the search.").wait_for()
        await dialog.get_by_text("tools offered now").click()
        await dialog.get_by_text("interlock__find_tools").wait_for()
        await shot(page, "composing-meter")
        await page.keyboard.press("Escape")
        await say(page, "2 + 3?")
        await page.get_by_text("Five.").wait_for()
        assert "interlock__find_tools" in [tool.name for tool in thinker.requests[-1].tools]


GIVE = """(target, {how, name, type, data}) => {
  const bytes = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
  const given = new DataTransfer();
  given.items.add(new File([bytes], name, { type }));
  if (how === "paste")
    target.dispatchEvent(
      new ClipboardEvent("paste", { clipboardData: given, bubbles: true, cancelable: true }));
  else
    for (const kind of ["dragenter", "dragover", "drop"])
      target.dispatchEvent(
        new DragEvent(kind, { dataTransfer: given, bubbles: true, cancelable: true }));
}"""


async def test_files_are_picked_pasted_and_dropped(chromium: Any) -> None:
    """Each is shown before it is sent and can be removed; the model gets what is left; what it
    cannot read is refused in words, and nothing is lost.
    """
    async with staged(chromium, "A red sea.", "I see.") as stage:
        page = await stage.page()
        files = page.get_by_role("group", name="Files")
        field = page.get_by_label("Your message")
        picture = base64.b64encode(png(200)).decode()
        async with page.expect_file_chooser() as chosen:
            await page.get_by_role("button", name="Attach files").click()
        await (await chosen.value).set_files(
            [
                {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Pack light."},
                {"name": "old.zip", "mimeType": "application/zip", "buffer": b"PK\x03\x04\xff"},
            ]
        )
        await (
            page.get_by_role("status", name="Notices").get_by_text("old.zip is neither").wait_for()
        )
        pasted = {"how": "paste", "name": "sea.png", "type": "image/png", "data": picture}
        await field.evaluate(GIVE, pasted)
        await files.get_by_role("img", include_hidden=True).first.wait_for(state="attached")
        dropped = {**pasted, "how": "drop", "name": "other.png"}
        await page.get_by_role("main").evaluate(GIVE, dropped)
        await files.get_by_role("button", name="Remove other.png").click()
        await files.get_by_text("11 bytes").wait_for()
        assert await files.locator(".chip").count() == 2
        await field.fill("What is this?")
        await shot(page, "composing-files")
        await page.get_by_role("button", name="Send", exact=True).click()
        await page.get_by_text("A red sea.").wait_for()
        await files.wait_for(state="detached")
        said = page.get_by_role("article", name="You")
        await said.get_by_role("img", name="sea.png").wait_for()
        assert await said.get_by_text("File sea.png:").count() == 0
        assert await said.get_by_text("file notes.txt").count() == 1
        [message] = stage.host.models["planner"].requests[0].messages
        assert [type(block).__name__ for block in message.content] == [
            "TextContent",
            "TextContent",
            "ImageContent",
            "TextContent",
        ]
        await shot(page, "composing-files-sent")
