"""A folder that is allowed, another beside it that is not, and a server over the first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock import Server
from interlock_servers.filesystem import AllowedRoots, FilesystemLimits, filesystem_server, openat

SECRET = "nobody may see this\n"
QUICK = FilesystemLimits(sync=False, polling=0.05)
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415478da63382127070002b601050a5ba6060000000049454e44ae426082"
)
LINES = "one\ntwo\nthree\nfour\nfive\n"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that nobody allowed, with a secret."""
    made = tmp_path / "outside"
    made.mkdir()
    (made / "secret.txt").write_text(SECRET)
    return made


@pytest.fixture
def folder(tmp_path: Path, outside: Path) -> Path:
    """The allowed folder."""
    made = tmp_path / "allowed"
    made.mkdir()
    return made


@pytest.fixture
def server(folder: Path) -> Server:
    """A server over it."""
    return filesystem_server([folder], QUICK)


@pytest.fixture
def allowed(folder: Path) -> Iterator[AllowedRoots]:
    """The allowed folder, opened, for what is done thousands of times."""
    made = AllowedRoots([folder], QUICK)
    made.open()
    yield made
    made.close()


@pytest.fixture(params=["both walls", "the first wall alone"])
def walls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With what the kernel does besides, and without it."""
    if request.param != "both walls":
        monkeypatch.setattr(openat, "_second_wall", False)
    return str(request.param)


@pytest.fixture
def no_ripgrep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own search is used, also where ripgrep is installed."""
    monkeypatch.setenv("PATH", "")


@pytest.fixture
def tree(folder: Path) -> Path:
    """Some files."""
    (folder / "lines.txt").write_text(LINES)
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "main.py").write_text("import os\n\nprint('Needle')\n")
    (folder / "src" / "deep" / "test_a.py").write_text("# needle here\n")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "x.py").write_text("needle\n")
    (folder / "pixel").write_bytes(PIXEL)
    return folder
