"""The locks: complete, hashed, without addresses, and consistent with pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture import locks

GOOD = (
    "a==1 \\\n    --hash=sha256:"
    + "0" * 64
    + "\nb==2 ; sys_platform == 'win32' \\\n    --hash=sha256:"
    + "1" * 64
    + "\n"
)

BREACHES = {
    "no hash": ("a==1\n", "a==1: has no hash"),
    "no pin": ("a>=1 \\\n    --hash=sha256:" + "0" * 64 + "\n", "is not pinned"),
    "an address": (GOOD + "c @ https://x.example/c.whl\n", "names an address"),
    "an option": ("--index-url x\n" + GOOD, "is an option"),
    "a comment": ("# made by hand\n" + GOOD, "is a comment"),
}


@pytest.fixture(scope="module")
def folder(top: Path) -> Path:
    """The folder of the locks."""
    return top / "requirements"


def test_every_lock_is_whole(folder: Path) -> None:
    """Every file that is compiled from a ``.in`` is pinned and hashed, and contains no address."""
    sources = sorted(folder.glob("*.in"))
    assert sources
    found = [line for source in sources for line in locks.problems(source.with_suffix(".txt"))]
    assert not found, "\n".join(found)


def test_the_tests_run_on_what_a_run_installs(folder: Path) -> None:
    """Each pin of run.txt is in dev.txt too, so that the tests run with the same packages as the
    program."""
    run = locks.pins(folder / "run.txt")
    dev = locks.pins(folder / "dev.txt")
    assert run
    assert run.items() <= dev.items()


def test_the_locks_ask_for_what_the_project_asks_for(folder: Path, pyproject: Path) -> None:
    """A dependency or an extra of pyproject.toml is in the source of a lock, with the same
    bounds."""
    wanted = []
    for file in sorted(pyproject.glob("*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        wanted += project["dependencies"]
        for lines in project.get("optional-dependencies", {}).values():
            wanted += lines
    asked = {
        plain(line)
        for name in ("run.in", "dev.in")
        for line in (folder / name).read_text(encoding="utf-8").splitlines()
    }
    assert {plain(line) for line in wanted if not line.startswith("interlock")} <= asked


def plain(requirement: str) -> str:
    """A requirement without its comment, its spaces and its kind of quotation marks."""
    return re.sub(r"\s+#.*|\s", "", requirement).replace('"', "'")


@pytest.mark.parametrize("text, alarm", BREACHES.values(), ids=BREACHES)
def test_each_fault_of_a_lock_is_found(tmp_path: Path, text: str, alarm: str) -> None:
    """One fault, one alarm."""
    (tmp_path / "x.txt").write_text(text, encoding="utf-8")
    (found,) = locks.problems(tmp_path / "x.txt")
    assert alarm in found


def test_a_good_lock_gives_no_alarm(tmp_path: Path) -> None:
    """And its pins are read with their versions."""
    (tmp_path / "x.txt").write_text(GOOD, encoding="utf-8")
    assert list(locks.problems(tmp_path / "x.txt")) == []
    assert locks.pins(tmp_path / "x.txt") == {"a": "1", "b": "2"}
