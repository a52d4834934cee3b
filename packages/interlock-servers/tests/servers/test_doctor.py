"""The doctor raises no error and no warning for the servers that come with Interlock."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from interlock.doctor import ExamineOptions, examine
from interlock_servers.commands import servers_here
from tests.servers.git.repos import repository

ARGUMENTS = {"filesystem": "{folder}", "git": "{folder}/repository", "database": "{folder}/shop.db"}
"""The arguments of servers that need some."""
DELIBERATE = {
    "everything": {"read-only-name", "schema-openai", "schema-anthropic", "schema-gemini"},
}
"""Findings that are right and intended: `everything` has each keyword of JSON Schema."""


@pytest.mark.parametrize("name", sorted(servers_here()))
async def test_a_server_of_ours_is_clean(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is started as a host starts it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    repository(tmp_path / "repository")
    (tmp_path / "shop.db").touch()  # an empty file is an empty database
    words = ARGUMENTS.get(name, "").format(folder=tmp_path).split()
    command = [sys.executable, "-m", "interlock", "serve", name, *words]
    report = await examine(command, ExamineOptions(timeout=120, slow_seconds=600, exit_seconds=60))
    raised = {found.rule for found in report.diagnostics if found.severity != "note"}
    assert raised == DELIBERATE.get(name, set()), msgspec.json.encode(report).decode()
    assert not any(part.skipped for part in report.parts)
