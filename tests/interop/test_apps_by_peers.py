"""A page that uses the official library of MCP Apps (`@modelcontextprotocol/ext-apps`), given by
`server.app` and shown by our host."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Server, ToolResult
from interlock.models.scripted import call
from interlock_apps.fleet.policy import Policy, Rule
from tests.web.stage import say, shot, staged

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

BUNDLE = "node_modules/@modelcontextprotocol/ext-apps/dist/src/app-with-deps.js"

PAGE = """<!doctype html>
<meta charset="utf-8">
<title>Counter</title>
<p id="shown">Not yet</p>
<p id="given"></p>
<button type="button" disabled>Count</button>
<script type="module">
%s
const { App } = globalThis.extApps;
const shown = document.getElementById("shown");
const button = document.querySelector("button");
const app = new App({ name: "counter", version: "1.0.0" }, {});
app.ontoolinput = (params) => {
  document.getElementById("given").textContent = `from ${params.arguments.start}`;
};
app.ontoolresult = (result) => {
  shown.textContent = `The count is ${result.structuredContent.count}`;
  button.disabled = false;
};
button.addEventListener("click", async () => {
  const result = await app.callServerTool({ name: "increase", arguments: {} });
  shown.textContent = `The count is ${result.structuredContent.count}`;
  await app.updateModelContext({ content: [{ type: "text", text: shown.textContent }] });
  shown.textContent += ", and the model knows";
});
await app.connect();
document.title = `shown by ${app.getHostVersion().name}`;
</script>
"""


def counter(folder: Path, bundle: str) -> Server:
    """A server whose page is written with the official library, all of it within the page."""
    exported = re.search(r"export\{([^}]*)\};?\s*$", bundle)
    assert exported is not None
    names = re.findall(r"([\w$]+) as ([\w$]+)", exported[1])
    published = ", ".join(f"{public}: {local}" for local, public in names)
    library = f"{bundle[: exported.start()]}\nglobalThis.extApps = {{ {published} }};"
    page = PAGE.replace("%s", library.replace("</script", "<\\/script"))
    (folder / "counter.html").write_text(page, encoding="utf-8")
    server = Server("counter")
    counts = {"now": 0}

    def result() -> ToolResult[dict[str, int]]:
        return ToolResult({"count": counts["now"]}, f"The count is {counts['now']}.")

    @server.tool
    async def count(start: int) -> ToolResult[dict[str, int]]:
        """Begin to count."""
        counts["now"] = start
        return result()

    @server.tool
    async def increase() -> ToolResult[dict[str, int]]:
        """Count on."""
        counts["now"] += 1
        return result()

    server.app(folder / "counter.html", tool=count).link(increase, visibility=("app",))
    return server


async def test_a_page_of_the_official_library(
    chromium: Any, installed: Callable[[str], Path], tmp_path: Path
) -> None:
    """It opens its conversation with our host, gets arguments and result, calls a tool that is for
    it alone, and tells the model (`APP-20`, `APP-21`, `APP-23`, `APP-24`, `APP-29`, `APP-31`)."""
    bundle = (installed("npm-apps") / BUNDLE).read_text(encoding="utf-8")
    async with staged(
        chromium,
        call("counter__count", start=41),
        "Done.",
        servers={"counter": lambda: counter(tmp_path, bundle)},
        policy=Policy([Rule(decision="allow", server="counter", tool="*")]),
    ) as stage:
        page = await stage.page()
        await say(page, "Count from 41")
        app = page.frame_locator("iframe.app-window").frame_locator("iframe")
        await app.get_by_text("The count is 41", exact=True).wait_for()
        assert await app.locator("#given").inner_text() == "from 41"
        await app.get_by_role("button", name="Count").click()
        await app.get_by_text("The count is 42, and the model knows", exact=True).wait_for()
        frame = next(frame for frame in page.frames if frame.url == "about:srcdoc")
        assert await frame.evaluate("document.title") == "shown by interlock-host"
        await shot(page, "app-official-library")
