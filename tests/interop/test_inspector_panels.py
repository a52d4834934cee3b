"""The inspector's panels with the servers of other makers: tools, pictures, failures, progress,
questions, resources, subscriptions and prompts in a browser.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import ClientTransport, Stdio
from interlock.client.targets import add_tap
from interlock.tape import RecordedConnection
from interlock_apps.inspector.targets import InspectorTarget
from tests.inspector.stage import inspected
from tests.interop.driver import command_of

pytestmark = [pytest.mark.interop, pytest.mark.asyncio(loop_scope="session")]

MAKERS = ("python-2", "fastmcp", "typescript-2")
ASKING = (
    ("server", "python-2", "ask_guest"),
    ("server", "typescript-2", "ask_guest"),
    ("asking", "fastmcp", "look"),
)


def command_target(command: list[str]) -> InspectorTarget:
    """A server that is started by a command."""

    def transport(tap: RecordedConnection) -> ClientTransport:
        made = Stdio(command)
        add_tap(made, tap)
        return made

    return InspectorTarget("peer", "peer", words=("--", *command), transport=transport)


async def called(page: Any, tool: str, number: int, **values: str) -> Any:
    """Call a tool; return the section of the call."""
    await page.evaluate(
        "tool => { location.hash = `connection=peer&tab=tools&tool=${tool}`; }", tool
    )
    await page.get_by_role("article", name=tool).wait_for()
    for label, value in values.items():
        await page.get_by_role("textbox", name=label).fill(value)
    await page.get_by_role("button", name="Call", exact=True).click()
    return page.get_by_role("region", name=f"Call c{number}")


@pytest.mark.parametrize("maker", MAKERS)
async def test_the_panels_with_a_peer(
    chromium: Any, installed: Callable[[str], Path], tmp_path: Path, maker: str
) -> None:
    target = command_target(command_of("server", maker, installed))
    async with inspected(chromium, tmp_path, target, servers={}) as stage:
        page = await stage.page("connection=peer&tab=tools")

        added = await called(page, "add", 1, a="2", b="3")
        await added.get_by_text("5", exact=True).first.wait_for()
        weather = await called(page, "weather", 2, city="Vienna")
        await weather.get_by_text("It fits the output schema.").wait_for()
        media = await called(page, "media", 3)
        await media.get_by_role("img").first.wait_for()
        failed = await called(page, "fail", 4)
        await failed.get_by_text("The tool failed.").wait_for()
        await page.get_by_role("tab", name="Resources").click()
        await page.get_by_role("button", name="note://board").click()
        await page.get_by_role("article").get_by_text("note://board").first.wait_for()
        await page.get_by_role("group", name="Equivalent command").wait_for()
        await page.get_by_role("tab", name="Prompts").click()
        await page.get_by_role("button", name="picture").click()
        await page.get_by_role("button", name="Get prompt").click()
        await page.get_by_role("region", name="Messages").get_by_role("img").first.wait_for()


@pytest.mark.parametrize("role, maker, tool", ASKING)
async def test_a_question_of_a_peer(
    chromium: Any,
    installed: Callable[[str], Path],
    tmp_path: Path,
    role: str,
    maker: str,
    tool: str,
) -> None:
    """In the form of 2026-07-28, and of 2025-11-25 where the server can ask under that only."""
    target = command_target(command_of(role, maker, installed))
    async with inspected(chromium, tmp_path, target, servers={}) as stage:
        page = await stage.page("connection=peer&tab=tools")
        call = await called(page, tool, 1)
        question = call.get_by_role("region", name="Question")
        await question.get_by_role("button", name="Decline").click()
        await call.get_by_text("decline").first.wait_for()
