"""The doctor and the servers of other makers: what is sound raises nothing, and what is old is
named.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from interlock.doctor import DiagnosticReport, ExamineOptions, examine
from scripts import existing_servers
from tests.interop.existing import PEERS, furnish

pytestmark = pytest.mark.interop

OPTIONS = ExamineOptions(timeout=120, slow_seconds=600, exit_seconds=60)
KNOWN: dict[str, set[str]] = {}
"""Faults that existing servers really have, by server."""


def raised(report: DiagnosticReport) -> set[str]:
    """The rules that found something, but for notes."""
    return {found.rule for found in report.diagnostics if found.severity != "note"}


@pytest.mark.parametrize(
    "name", ["time", "git", "fetch", "filesystem", "memory", "sequentialthinking", "everything"]
)
async def test_an_existing_reference_server(
    name: str, installed: Callable[[str], Path], tmp_path: Path
) -> None:
    """They raise only what is known of them."""
    installed(PEERS.get(name, "servers-npm"))
    furnish(name, tmp_path)
    options = msgspec.structs.replace(OPTIONS, env=existing_servers.environment(name, tmp_path))
    report = await examine(existing_servers.command(name, tmp_path), options)
    assert raised(report) == KNOWN.get(name, set()), msgspec.json.encode(report).decode()
    assert not any(part.skipped for part in report.parts)
