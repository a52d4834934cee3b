"""A server whose tool only runs as a task, and whose tasks survive it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from interlock.configs import Entry
from tests.client.peers import TASK_SERVER


class Lab:
    """A server whose tasks survive it, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._script = folder / "lab.py"
        self._script.write_text(TASK_SERVER, encoding="utf-8")
        self._hold = self._script.with_suffix(".hold")
        self.entry = Entry(id="lab", command=(sys.executable, str(self._script)))
        self.servers = {"lab": self.entry}

    def hold(self) -> None:
        """Let no task end."""
        self._hold.touch()

    def release(self) -> None:
        """Let all tasks end."""
        self._hold.unlink()

    @property
    def statuses(self) -> list[str]:
        """The statuses of all tasks."""
        tasks = json.loads(self._script.with_suffix(".json").read_text())
        return [task["status"] for task in tasks.values()]
