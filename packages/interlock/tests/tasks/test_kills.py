"""Series of kills: a worker is killed at a random moment of a task, and nothing is lost or
repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.tasks.test_workers import YES, asks, has_ended, worker
from tests.workers.conftest import store

KILLS = 12

__all__ = ["store"]  # a fixture: SQLite, and a Valkey server of its own


async def _answered(id: str, one: Any) -> dict[str, Any]:
    """Answer the question of a task, and wait for its end."""
    task = await one.until(id, lambda task: asks(task) or has_ended(task))
    if asks(task):
        await one.request("tasks/update", taskId=id, inputResponses={"publish": YES})
    ended: dict[str, Any] = await one.until(id, has_ended)
    return ended


@pytest.mark.endurance(seconds=60)
async def test_no_task_is_lost_when_workers_are_killed(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Every announced task ends, as completed or as "may have happened", and no recorded step is
    repeated.
    """
    seed = request.config.option.seed
    chance = random.Random(seed)
    log = tmp_path / "log"
    ids: list[str] = []
    for _ in range(KILLS):
        async with worker(store, log) as one:
            await one.request("tools/list")  # it has started
            creating = asyncio.ensure_future(one.create("report", steps=3))
            await asyncio.wait({creating}, timeout=chance.random() * 0.2)
            await asyncio.sleep(chance.random() * 0.1)
            await one.kill()
            with contextlib.suppress(ValueError):  # killed before it announced the task
                ids.append(await creating)
    async with worker(store, log) as last:
        ended = [await _answered(id, last) for id in ids]
    doubtful = [task for task in ended if task["status"] != "completed"]
    for task in doubtful:
        assert task["error"]["data"] == {"reason": "may_have_happened"}, (seed, task)
    for task in ended:
        if task not in doubtful:
            assert task["result"]["content"][0]["text"] == "published: True"
    lines = Counter(log.read_text().splitlines() if log.exists() else [])
    steps = sum(count for line, count in lines.items() if line.startswith("step"))
    assert steps <= 3 * KILLS, (seed, lines)
