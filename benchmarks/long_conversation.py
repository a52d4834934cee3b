"""The page of a host with a conversation of 5,000 messages and 500 tools: how fast it opens and
takes a key, and how much memory the host needs. A part of `python -m benchmarks.hosting`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from interlock import CallToolResult
from interlock.models.interface import Usage
from interlock.types import (
    CreateMessageResult,
    SamplingMessage,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from interlock_apps.fleet.events import (
    AnyEvent,
    CallDecided,
    CallEnded,
    CallProposed,
    ModelAsked,
    ModelSaid,
    PersonSaid,
    ResultsGiven,
    SessionBegan,
    TurnEnded,
)
from interlock_apps.fleet.log import SqliteLog
from scripts.peers import INSTALLERS
from tests.browser import browsing

MESSAGES = 5_000
TOOLS = 500
SESSION = "s00000000"
ROUNDS = 5
TEXT = "The quick brown fox jumps over the lazy dog. " * 12
SERVER = f"""
from interlock import Server

server = Server("many")
ABOUT = (
    "looks for words in a large collection of papers, and gives those that fit best, with their "
    "titles, authors and places."
)

def tool(number):
    def act(words: str, limit: int = 10, deep: bool = False) -> str:
        return words
    act.__doc__ = f"Thing {{number}} {{ABOUT}}"
    return act

for number in range({TOOLS}):
    server.tool(name=f"tool_{{number}}")(tool(number))
"""


async def measure_page() -> None:
    """Print the figures, medians of several pages."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        await write_log(home / "log.db")
        (home / "many.py").write_text(SERVER, encoding="utf-8")
        command = {
            "command": sys.executable,
            "args": ["-P", "-m", "interlock", "run", str(home / "many.py")],
            "sandbox": False,
        }
        (home / ".mcp.json").write_text(json.dumps({"mcpServers": {"many": command}}))
        await _measure(home)


async def write_log(path: Path) -> None:
    """Write a log with one conversation of 5,000 messages: half of them from the person, each with
    a call and its result.
    """
    log = SqliteLog(path)
    await log.open()
    for number in range(MESSAGES // 2):
        for event in turn(number):
            log.note(event)
        if number % 200 == 0:
            await log.flush()
    await log.aclose()


def turn(number: int) -> list[AnyEvent]:
    """The events of one turn."""
    call = f"{SESSION}.{number}"
    use = ToolUseContent(id=f"u{number}", name="many__tool_7", input={"words": f"fox {number}"})
    result = CallToolResult(content=[TextContent(TEXT)])
    first = [SessionBegan(session=SESSION, title="A long one", model="planner")]
    return [
        *(first if number == 0 else []),
        PersonSaid(
            session=SESSION,
            messages=(SamplingMessage(role="user", content=TextContent(f"{number}: {TEXT[:90]}")),),
        ),
        ModelAsked(session=SESSION, model="planner", step=1, messages=1, tools=TOOLS, tokens=900),
        ModelSaid(
            session=SESSION,
            model="planner",
            step=1,
            result=CreateMessageResult(role="assistant", content=[use], model="planner"),
            usage=Usage(input=900, output=20),
        ),
        CallProposed(
            session=SESSION,
            call=call,
            name=use.name,
            server="many",
            tool="tool_7",
            arguments=dict(use.input),
        ),
        CallDecided(session=SESSION, call=call, allow=True, by="rule"),
        CallEnded(session=SESSION, call=call, server="many", tool="tool_7", result=result),
        ResultsGiven(
            session=SESSION,
            results=(ToolResultContent(tool_use_id=use.id, content=[TextContent(TEXT)]),),
        ),
        ModelAsked(session=SESSION, model="planner", step=2, messages=3, tools=TOOLS, tokens=999),
        ModelSaid(
            session=SESSION,
            model="planner",
            step=2,
            result=CreateMessageResult(
                role="assistant",
                content=TextContent(f"Answer **{number}**. {TEXT}"),
                model="planner",
            ),
            usage=Usage(input=999, output=120),
        ),
        TurnEnded(session=SESSION, reason="done", usage=Usage(input=1_899, output=140)),
    ]


async def _measure(home: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "interlock", "host", "-m", "planner",
        "--log", str(home / "log.db"), "--discovery", "1",
        cwd=home,
        env={**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home / "data")},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        line = ""
        while not (found := re.search(r"http://\S+", line)):
            line = (await process.stdout.readline()).decode()
        async with browsing(INSTALLERS["chromium"]()) as chromium:
            context = await chromium.new_context()
            page = await context.new_page()
            await page.goto(found[0])
            await _start_server(page)
            figures = await _figures(page, page.url.partition("#")[0], process.pid)
        figures["host, MB"] = [_memory(process.pid)]
    finally:
        process.terminate()
        await process.wait()
    for name, values in figures.items():
        print(f"{MESSAGES:,} messages, {TOOLS} tools, {name:28} {statistics.median(values):8.1f}")


async def _start_server(page: Any) -> None:
    """Allow the start of the server and its tools."""
    await page.get_by_role("button", name=re.compile("^(Start|Allow)")).first.click()
    await page.get_by_text(f"with {TOOLS} tools").wait_for()


async def _figures(page: Any, place: str, pid: int) -> dict[str, list[float]]:
    """Times of the page in milliseconds. Those of the processor do not depend on other programs."""
    names = (
        "opens, ms",
        "opens, page CPU, ms",
        "opens, host CPU, ms",
        "resumes, ms",
        "a key, ms",
        "timeline, ms",
    )
    found: dict[str, list[float]] = {name: [] for name in names}
    tools = await page.context.new_cdp_session(page)
    await tools.send("Performance.enable", {"timeDomain": "threadTicks"})
    last = f"Answer {MESSAGES // 2 - 1}."
    for number in range(ROUNDS):
        await page.goto("about:blank")
        host = _processor(pid)
        busy = await _busy(tools)
        began = time.perf_counter()
        await page.goto(f"{place}#{SESSION}")
        await page.get_by_text(last).last.wait_for()
        found["opens, ms"].append((time.perf_counter() - began) * 1000)
        found["opens, host CPU, ms"].append(_processor(pid) - host)
        found["opens, page CPU, ms"].append(await _busy(tools) - busy)
        if number == 0:
            began = time.perf_counter()
            await page.get_by_role("button", name="Continue it").click()
            await page.get_by_label("Your message").wait_for()
            found["resumes, ms"].append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        await page.get_by_role("button", name="Timeline").click()
        await page.locator(".time-entry").last.wait_for()
        found["timeline, ms"].append((time.perf_counter() - began) * 1000)
        await page.get_by_label("Your message").click()
        found["a key, ms"].append(await page.evaluate(KEY))
        await page.get_by_role("button", name="Close Timeline").click()
    return found


KEY = """async () => {
    const field = document.getElementById("say");
    const times = [];
    for (const letter of "words that are typed") {
        const began = performance.now();
        document.execCommand("insertText", false, letter);
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        times.push(performance.now() - began);
    }
    times.sort((one, other) => one - other);
    field.value = "";
    field.dispatchEvent(new Event("input", {bubbles: true}));
    return times[times.length >> 1];
}"""
"""Types a text, letter by letter: the median of the times until the page has painted one."""


async def _busy(tools: Any) -> float:
    """The time of the processor that the main thread of the page has used, in milliseconds."""
    measured = (await tools.send("Performance.getMetrics"))["metrics"]
    return 1000 * float(next(one["value"] for one in measured if one["name"] == "TaskDuration"))


def _processor(pid: int) -> float:
    """The time of the processor that a process has used, in milliseconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float:
    """The resident memory of a process, in megabytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) / 1000 if found else 0.0


if __name__ == "__main__":
    asyncio.run(measure_page())
