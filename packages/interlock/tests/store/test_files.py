"""Files that several take turns at, and that are put in place whole, or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from interlock.store import file_lock, try_lock, write_atomic, write_new

ADD_ONE = """
import sys
from pathlib import Path
from interlock.store import file_lock, write_atomic

path = Path(sys.argv[1])
for _ in range(int(sys.argv[2])):
    with file_lock(path.with_name("turn"), patience=60):
        write_atomic(path, str(int(path.read_bytes()) + 1).encode())
"""


def test_threads_and_processes_take_turns(tmp_path: Path) -> None:
    """Nothing that one of them wrote is lost."""
    path = tmp_path / "count"
    path.write_bytes(b"0")
    others = [subprocess.Popen([sys.executable, "-c", ADD_ONE, str(path), "20"]) for _ in range(2)]

    def add() -> None:
        for _ in range(20):
            with file_lock(tmp_path / "turn", patience=60):
                write_atomic(path, str(int(path.read_bytes()) + 1).encode())

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [other.wait(60) for other in others] == [0, 0]
    assert path.read_bytes() == b"80"
    assert {each.name for each in tmp_path.iterdir()} == {"count", "turn"}


def test_who_waits_gives_up(tmp_path: Path) -> None:
    """After its patience.

    The words name the file, and the turn is free again once the other is done.
    """
    path = tmp_path / "turn"
    with (
        file_lock(path, patience=0),
        pytest.raises(TimeoutError, match=r"held it for 0 seconds: .*turn'"),
        file_lock(path, patience=0),
    ):
        pass
    with file_lock(path, patience=0):
        pass


def test_a_lock_belongs_to_an_opening(tmp_path: Path) -> None:
    """Two openings of one file in one process are two, and closing lets go."""
    path = tmp_path / "letter"
    path.write_bytes(b"x")
    with path.open("rb") as two:
        with path.open("rb") as one:
            assert try_lock(one.fileno())
            assert not try_lock(two.fileno())
        assert try_lock(two.fileno())


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links are another matter there")
def test_modes_and_links_stay(tmp_path: Path) -> None:
    """A new file is its owner's alone.

    One that was there keeps its mode, and the link that leads to it.
    """
    new = tmp_path / "new"
    old = tmp_path / "old"
    link = tmp_path / "link"
    assert write_atomic(new, b"n")
    old.write_bytes(b"o")
    old.chmod(0o640)
    link.symlink_to("old")
    assert write_atomic(link, b"p")
    assert (stat.S_IMODE(new.stat().st_mode), stat.S_IMODE(old.stat().st_mode)) == (0o600, 0o640)
    assert link.is_symlink()
    assert old.read_bytes() == b"p"


def test_a_file_that_is_no_longer_as_it_was_stays(tmp_path: Path) -> None:
    """Who asked for it is told, and nothing is left beside it."""
    path = tmp_path / "file"
    path.write_bytes(b"theirs")
    assert not write_atomic(path, b"ours", still=lambda: False)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("file", b"theirs")]


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_failure_leaves_the_old_file(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever step it befalls."""
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, b"after")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("file", b"before")]


def test_what_lies_there_is_never_written_over(tmp_path: Path) -> None:
    """`write_new` writes new files only."""
    write_new(tmp_path / "file", b"one")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "file", b"two")
    assert (tmp_path / "file").read_bytes() == b"one"
