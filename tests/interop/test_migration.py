"""`interlock migrate` on files that others published: each works, or works after marked edits."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock.cli.program import program
from scripts import migration_corpus, peers
from tests.interop.migration.outcome import outcome

pytestmark = pytest.mark.interop

ENTRIES = migration_corpus.entries()
SDKS: dict[str, str] = tomllib.loads(migration_corpus.LIST.read_text(encoding="utf-8"))["sdk"]


def title(entry: dict[str, Any]) -> str:
    """The name of an entry in a report."""
    held_out = " (held out)" if entry.get("held_out") else ""
    return f"{entry['package']} {entry['version']} {entry['path']}{held_out}"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The unpacked corpus."""
    try:
        return migration_corpus.install()
    except peers.NotInstalled as bad:
        pytest.skip(f"the corpus could not be unpacked: {bad}")


@pytest.mark.endurance(seconds=20)
@pytest.mark.parametrize("entry", ENTRIES, ids=title)
def test_a_published_file(
    corpus: Path,
    installed: Callable[[str], Path],
    entry: dict[str, Any],
    record_property: Callable[[str, object], None],
) -> None:
    """The new server lists and answers the same as the old one, or the file has marks."""
    name = f"{entry['package']}-{entry['version']}"
    found = outcome(corpus / name / entry["path"], str(installed(SDKS[name])))
    record_property("verdict", found.verdict)
    assert found.verdict != "does not work", found.why


def test_the_command_proves_a_migration(
    corpus: Path, installed: Callable[[str], Path], tmp_path: Path
) -> None:
    """It starts both servers, and says that they do the same; a difference is named."""
    source = corpus / "fastmcp-3.4.10" / "examples" / "echo.py"
    file = tmp_path / "echo.py"
    file.write_bytes(source.read_bytes())
    words = ["migrate", str(file), "--prove", "--call", "--old-python", str(installed("fastmcp-3"))]
    proved = CliRunner().invoke(program, words)
    assert proved.exit_code == 0, proved.output
    assert "Both servers list the same 4 features, and gave the same 3 answers." in proved.stderr
    assert file.read_bytes() == source.read_bytes()
    words[-1] = sys.executable
    unproved = CliRunner().invoke(program, words)
    assert unproved.exit_code == 2
    assert "has no package fastmcp" in unproved.stderr


def test_the_corpus_is_as_large_as_it_says() -> None:
    """More than 60 files, 15 of them held out."""
    assert len(ENTRIES) >= 60
    assert sum(1 for entry in ENTRIES if entry.get("held_out")) == 15
