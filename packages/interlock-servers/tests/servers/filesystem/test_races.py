"""Somebody swaps folders and files for links to the outside while the server works: nothing outside
is ever read or written.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock import TextContent, ToolError
from interlock_servers.filesystem import AllowedRoots, openat
from interlock_servers.filesystem.atomic_write import filled, locked, put
from interlock_servers.filesystem.moving import CopyJob, make_folder, move
from interlock_servers.filesystem.reading import ReadRange, read_place
from interlock_servers.filesystem.resolve import ResolvedPath
from interlock_servers.filesystem.roots import CallProgress, CallRoots
from interlock_servers.filesystem.search import TextQuery, find_names, search_text
from interlock_servers.filesystem.trash import restore, throw_away
from interlock_servers.filesystem.walk import listed
from tests.servers.filesystem.conftest import SECRET

INSIDE = "this is inside\n"
TIMES = 1500


@contextlib.contextmanager
def swapping(folder: Path, one: str, other: str) -> Iterator[None]:
    """Have a second process exchange two names for as long as this lasts."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("swapper.py")), str(folder), one, other],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "swapping\n"
        yield
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def swapped(folder: Path, outside: Path) -> Iterator[Path]:
    """In the allowed folder `a/secret.txt` and `file` are sometimes its own, and sometimes those of
    the outside.
    """
    (folder / "a").mkdir()
    (folder / "a" / "secret.txt").write_text(INSIDE)
    (folder / "a" / "deep").mkdir()
    (folder / "b").symlink_to(outside)
    (folder / "file").write_text(INSIDE)
    (folder / "link").symlink_to(outside / "secret.txt")
    (outside / "deep").mkdir()
    with swapping(folder, "a", "b"), swapping(folder, "file", "link"):
        yield folder


def many(
    allowed: AllowedRoots,
    path: str,
    do: Callable[[CallRoots, ResolvedPath], Any],
    times: int = TIMES,
    *,
    refusals: bool = False,
) -> tuple[list[Any], int]:
    """Do something with a path very often: what came of it, and how often it was refused.

    It goes on until it was not refused once at least, and until it was, where `refusals` are
    wanted: so that the swapper was met.
    """
    given: list[Any] = []
    refused = n = 0
    while n < times or (n < 300 * times and (not given or (refusals and not refused))):
        n += 1
        try:
            with allowed.call_roots(None) as call_roots, call_roots.find(path) as place:
                given.append(do(call_roots, place))
        except (ToolError, FileNotFoundError):
            refused += 1
    return given, refused


@pytest.mark.matrix(pairs=False, seconds=0.4)
@pytest.mark.parametrize(
    "path", ["a/secret.txt", "file", "a/../a/secret.txt", "a/deep/../secret.txt"]
)
def test_nothing_outside_is_read(
    allowed: AllowedRoots, swapped: Path, path: str, walls: str
) -> None:
    """Whatever the moment, what is read is what is inside, or nothing."""

    given, refused = many(allowed, path, read_text, refusals=True)
    assert set(given) == {INSIDE}
    assert refused > 0  # the swapper was quick enough to be met


def test_who_checks_paths_is_fooled(swapped: Path, folder: Path) -> None:
    """The same race against the way that does not work: a path is resolved, found to be inside, and
    opened; the secret comes out.
    """
    real = folder.resolve()
    for _ in range(2_000_000):
        with contextlib.suppress(OSError):
            for path in (swapped / "file", swapped / "a" / "secret.txt"):
                if path.resolve().is_relative_to(real) and path.read_text() == SECRET:
                    return
    pytest.fail("the race was never won, so that the other tests show nothing")


def read_text(call_roots: CallRoots, place: ResolvedPath) -> str:
    """The text of a place."""
    content = read_place(place, place.shown, ReadRange(), None, call_roots.limits)[1]
    assert isinstance(content, TextContent)
    return content.text


def test_each_wall_holds_alone(
    allowed: AllowedRoots, swapped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the flag that keeps links from being followed the kernel's own check holds; without
    both the secret comes out.
    """
    monkeypatch.setattr(openat, "_ALWAYS", openat._ALWAYS & ~os.O_NOFOLLOW)
    if openat._second_wall:
        assert set(many(allowed, "file", read_text)[0]) == {INSIDE}
    monkeypatch.setattr(openat, "_second_wall", False)
    assert any(
        SECRET in many(allowed, path, read_text)[0]
        for _ in range(50)
        for path in ("file", "a/secret.txt")
    )


@pytest.mark.matrix(pairs=False, seconds=0.4)
@pytest.mark.parametrize("path", ["a/new.txt", "a/secret.txt", "file"])
def test_nothing_outside_is_written(
    allowed: AllowedRoots, swapped: Path, outside: Path, path: str, walls: str
) -> None:
    """Files are written inside or not at all: in the outside there is nothing new, and nothing has
    changed.
    """

    def write(call_roots: CallRoots, place: ResolvedPath) -> None:
        with locked(place.parent, call_roots.limits):
            put(place, filled(b"written"), call_roots.limits)

    given, refused = many(
        allowed, path, write, 150 if path == "file" else TIMES, refusals=path != "file"
    )
    assert given
    assert refused or path == "file"
    assert sorted(found.name for found in outside.iterdir()) == ["deep", "secret.txt"]
    assert (outside / "secret.txt").read_text() == SECRET


@pytest.mark.parametrize("times", [60, pytest.param(250, marks=pytest.mark.endurance(seconds=3.5))])
def test_nothing_outside_is_listed_or_found(
    allowed: AllowedRoots, folder: Path, outside: Path, swapped: Path, walls: str, times: int
) -> None:
    """Lists, globs, searches and copies have nothing of the outside in them."""
    (outside / "only-outside.txt").write_text(SECRET)

    def look(call_roots: CallRoots, place: ResolvedPath) -> list[str]:
        names = [
            entry.path
            for entry in listed(call_roots, place, CallProgress(None, call_roots.limits)).entries
        ]
        names += [
            entry.path
            for entry in find_names(
                call_roots, place, "only*", None, CallProgress(None, call_roots.limits), hidden=True
            ).entries
        ]
        return names + [
            hit.text
            for hit in search_text(
                call_roots, place, TextQuery("nobody may"), CallProgress(None, call_roots.limits)
            ).hits
        ]

    for path in (".", "a"):
        given, _ = many(allowed, path, look, times)
        assert given
        assert not any(
            "only-outside" in word or "nobody" in word for words in given for word in words
        )


def test_nothing_outside_is_made_or_moved(
    allowed: AllowedRoots, folder: Path, outside: Path, swapped: Path, walls: str
) -> None:
    """Folders are made, and files are moved, inside or not at all."""
    numbers = iter(range(10**9))

    def make(call_roots: CallRoots, place: ResolvedPath) -> None:
        number = next(numbers)
        make_folder(place.folder, ("a", f"made{number}"), "a", call_roots.limits)
        (folder / f"f{number}").write_text("mine")
        with (
            call_roots.find(f"f{number}") as source,
            call_roots.find(f"a/f{number}", follow=False) as target,
        ):
            move(source, target)
        with call_roots.find("a/secret.txt") as source, call_roots.find(f"s{number}") as target:
            move(source, target)
            move(target, source)

    many(allowed, ".", make, 300, refusals=True)
    assert sorted(found.name for found in outside.iterdir()) == ["deep", "secret.txt"]
    assert (outside / "secret.txt").read_text() == SECRET
    assert not any(found.read_text() == SECRET for found in folder.glob("s*"))


def test_nothing_outside_is_copied_or_thrown_away(
    allowed: AllowedRoots, folder: Path, outside: Path, swapped: Path
) -> None:
    """Copies hold what was inside; what is put into the trash and brought back is a link or what
    was inside, and the outside stays.
    """
    numbers = iter(range(10**9))

    def copy(call_roots: CallRoots, place: ResolvedPath) -> None:
        with call_roots.find(f"copy{next(numbers)}", follow=False) as target:
            CopyJob(call_roots, CallProgress(None, call_roots.limits)).make(place, target)

    many(allowed, "a", copy)
    many(allowed, "file", copy)
    texts = {found.read_text() for found in folder.glob("copy*/secret.txt")} | {
        found.read_text() for found in folder.glob("copy*") if found.is_file()
    }
    assert texts == {INSIDE}
    for _ in range(200):
        with contextlib.suppress(ToolError, OSError), allowed.call_roots(None) as call_roots:
            with call_roots.find("a/secret.txt", follow=False) as place:
                id_, _ = throw_away(place, call_roots.limits)
            restore(call_roots, id_, "a/secret.txt")
    assert (outside / "secret.txt").read_text() == SECRET
    assert not (outside / ".trash").exists()
