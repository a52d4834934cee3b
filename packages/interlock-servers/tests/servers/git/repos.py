"""Repositories for the tests of the git server: made quickly, and apart from whoever's
configuration is on this machine.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

AUTHOR = "Ada Lovelace <ada@example.com>"
PEOPLE = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Ada Lovelace"), ("EMAIL", "ada@example.com"))
}
DATES = {
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+00:00",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+00:00",
}


def git(
    folder: Path, *arguments: str, feed: str | bytes | None = None, check: bool = True, **more: str
) -> str:
    """Run git as a person would who has configured nothing; what it wrote."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **PEOPLE,
        **DATES,
        **more,
    }
    data = feed.encode() if isinstance(feed, str) else feed
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *arguments],
        cwd=folder,
        env=env,
        input=data if data is not None else b"",
        capture_output=True,
        check=False,
    )
    if check and done.returncode:
        raise AssertionError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="surrogateescape")


def repository(folder: Path, files: dict[str, str] | None = None) -> Path:
    """A repository with one commit of some files: a copy of one that is made once."""
    if files is None:
        files = {"a.txt": "one\ntwo\nthree\n", "src/b.py": "x = 1\n"}
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(_made_once(tuple(files.items())), folder, symlinks=True)
    git(folder, "update-index", "-q", "--refresh")  # the copies are other files to git
    return folder


@functools.cache
def _made_once(files: tuple[tuple[str, str], ...]) -> Path:
    top = Path(tempfile.mkdtemp(prefix="interlock-git-"))
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    folder = top / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    write(folder, dict(files))
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "First")
    return folder


def write(folder: Path, files: dict[str, str]) -> None:
    """Write some files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def commit(folder: Path, files: dict[str, str], message: str, **more: str) -> str:
    """Commit some files; the commit."""
    write(folder, files)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", message, **more)
    return git(folder, "rev-parse", "HEAD").strip()


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Everything that lies in a folder, by its path; of links where they lead."""
    return {
        path.relative_to(folder).as_posix(): os.readlink(path).encode()
        if path.is_symlink()
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def paths(changes: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What changed how."""
    return [(one["change"], one["path"]) for one in changes]
