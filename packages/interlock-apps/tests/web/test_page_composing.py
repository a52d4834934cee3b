"""The message box: messages for a running turn, files, the model, and the context meter."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from interlock.models.scripted import call
from interlock.types import CreateMessageRequestParams
from interlock_apps.fleet.policy import Policy
from interlock_servers.everything.samples import png
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
