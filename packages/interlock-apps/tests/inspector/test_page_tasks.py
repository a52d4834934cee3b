"""Tasks in the inspector, in both forms: created by a call, listed or kept by their ids, waited for
and cancelled.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock import ClientTransport, Server, Stdio, Tasks
from interlock.client.targets import add_tap
from interlock.tape import RecordedConnection
from interlock_apps.inspector.targets import InspectorTarget
from tests.host.lab import Lab
from tests.inspector.stage import inspected
from tests.web.stage import shot

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


def lab_target(lab: Lab) -> InspectorTarget:
    """A server of 2025-11-25 whose tool runs as a task only."""

    def transport(tap: RecordedConnection) -> ClientTransport:
        made = Stdio(list(lab.entry.command))
        add_tap(made, tap)
        return made

    return InspectorTarget("lab", "lab.py", words=("lab.py",), transport=transport)


async def test_a_task_of_2025_11_25(chromium: Any, tmp_path: Path) -> None:
    """Its status is shown as it comes, it is in the list of the server, and its result is read
    again.
    """
    lab = Lab(tmp_path)
    lab.hold()
    async with inspected(chromium, tmp_path, lab_target(lab), servers={}) as stage:
        page = await stage.page("connection=lab&tab=tools&tool=crunch")
        await page.get_by_label("Run as a task").check()
        await page.get_by_role("button", name="Call", exact=True).click()
        call = page.get_by_role("region", name="Call c1")
        await call.get_by_text("counting").wait_for()
        await page.get_by_role("tab", name="Tasks").click()
        await page.get_by_role("button", name="T0").click()
        await page.get_by_text("working", exact=True).wait_for()
        await shot(page, "inspector-task")
        lab.release()
        await page.get_by_role("button", name="Wait for the result").click()
        await page.get_by_text("42", exact=True).first.wait_for()
        await page.get_by_text("completed", exact=True).wait_for()


async def test_a_task_of_2025_11_25_is_cancelled(chromium: Any, tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    lab.hold()
    async with inspected(chromium, tmp_path, lab_target(lab), servers={}) as stage:
        page = await stage.page("connection=lab&tab=tools&tool=crunch")
        await page.get_by_label("Run as a task").check()
        await page.get_by_role("button", name="Call", exact=True).click()
        call = page.get_by_role("region", name="Call c1")
        await call.get_by_text("counting").wait_for()
        await call.get_by_role("button", name="Cancel").click()
        await call.get_by_text("cancelled").wait_for()
        assert lab.statuses == ["cancelled"]


async def test_a_task_of_2026_07_28(chromium: Any, tmp_path: Path) -> None:
    """There is no list: the tasks that were started here are kept, and any other is opened by its
    id.
    """
    gate = asyncio.Event()

    def lab() -> Server:
        server = Server("lab", extensions=[Tasks("memory:")])

        @server.tool(task="required")
        async def crunch() -> str:
            await gate.wait()
            return "forty-two"

        return server

    async with inspected(chromium, tmp_path, servers={"lab": lab}) as stage:
        page = await stage.page("connection=lab&tab=tools&tool=crunch")
        await page.get_by_label("Run as a task").check()
        await page.get_by_role("button", name="Call", exact=True).click()
        call = page.get_by_role("region", name="Call c1")
        await call.get_by_text("task", exact=True).wait_for()
        await page.get_by_role("tab", name="Tasks").click()
        tasks = page.get_by_role("region", name="Tasks")
        await tasks.get_by_text("working").wait_for()
        item = tasks.get_by_role("listitem").get_by_role("button")
        id = await item.locator(".strong").inner_text()
        await page.get_by_label("Task ID").fill(id)
        await page.get_by_role("button", name="Open", exact=True).click()
        await page.get_by_role("heading", name=id).wait_for()
        await page.get_by_role("button", name="Wait for the result").click()
        gate.set()
        await page.get_by_text("forty-two", exact=True).first.wait_for()
        await page.get_by_role("button", name="Get result").wait_for()
