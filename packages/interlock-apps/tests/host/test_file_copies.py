"""Files that calls change can be restored, as far as the host can know of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from interlock import Server
from interlock.models.scripted import call
from interlock_apps.fleet.events import FileRestored, FilesChanged
from interlock_apps.host.file_copies import CannotRestore
from tests.host.scene import ALLOW, scene


def editor() -> Server:
    server = Server("editor")

    @server.tool
    def put(path: str, text: str) -> str:
        """Write a file."""
        Path(path).write_text(text)
        return "ok"

    @server.tool
    def remove(path: str) -> str:
        """Delete a file."""
        os.unlink(path)
        return "ok"

    return server


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    root = tmp_path / "root"
    root.mkdir()
    return root, tmp_path / "undo"


async def test_what_a_call_changed_is_restored(folders: tuple[Path, Path]) -> None:
    root, copies = folders
    (root / "old.txt").write_text("before")
    (root / "gone.txt").write_text("still needed")
    steps: list[Any] = [
        call("editor__put", path=str(root / "old.txt"), text="after"),
        call("editor__put", path=str(root / "new.txt"), text="made"),
        call("editor__remove", path=(root / "gone.txt").as_uri()[7:]),
        call("editor__put", path=str(root / "same.txt"), text=""),
    ]
    (root / "same.txt").write_text("")
    async with scene(
        {"editor": editor()},
        steps,
        "done",
        policy=ALLOW,
        roots={"editor": [str(root)]},
        file_copies=copies,
    ) as one:
        session = one.host.session()
        await session.say("go")
        done = one.host.done_calls(session.id)
        files = {Path(file.path).name: (call.call, file) for call in done for file in call.files}
        assert {name: file.how for name, (_, file) in files.items()} == {
            "old.txt": "changed",
            "new.txt": "created",
            "gone.txt": "deleted",
        }
        assert len(one.of(FilesChanged)) == 3
        for of, file in files.values():
            await one.host.restore(session.id, of, file.path)
        assert (root / "old.txt").read_text() == "before"
        assert (root / "gone.txt").read_text() == "still needed"
        assert not (root / "new.txt").exists()
        assert len(one.of(FileRestored)) == 3
        assert not any(call.files for call in one.host.done_calls(session.id))
        with pytest.raises(CannotRestore, match="No copy"):
            await one.host.restore(session.id, done[0].call, str(root / "old.txt"))
        assert all((each.stat().st_mode & 0o077) == 0 for each in copies.iterdir())


async def test_a_file_that_changed_since_is_not_overwritten(folders: tuple[Path, Path]) -> None:
    root, copies = folders
    path = root / "a.txt"
    path.write_text("before")
    async with scene(
        {"editor": editor()},
        call("editor__put", path=str(path), text="after"),
        "done",
        policy=ALLOW,
        roots={"": [str(root)]},
        file_copies=copies,
    ) as one:
        session = one.host.session()
        await session.say("go")
        path.write_text("by hand")
        (done,) = one.host.done_calls(session.id)
        with pytest.raises(CannotRestore, match="has changed since"):
            await one.host.restore(session.id, done.call, done.files[0].path)
        assert path.read_text() == "by hand"


@pytest.mark.parametrize("case", ["no root", "outside", "a link out", "a folder", "no copies"])
async def test_what_the_host_does_not_copy(case: str, folders: tuple[Path, Path]) -> None:
    """Files outside of the shared folders, also through links, and without a folder for copies."""
    root, copies = folders
    outside = root.parent / "outside.txt"
    outside.write_text("secret")
    path = root / "a.txt"
    if case == "a link out":
        path.symlink_to(outside)
    elif case == "outside":
        path = outside
    else:
        path.write_text("before")
    async with scene(
        {"editor": editor()},
        call("editor__put", path=str(path), text="after"),
        "done",
        policy=ALLOW,
        roots={} if case == "no root" else {"": [str(root)]},
        file_copies=None if case == "no copies" else copies,
    ) as one:
        session = one.host.session()
        await session.say("go")
        (done,) = one.host.done_calls(session.id)
        found = [file.path for file in done.files]
        assert found == ([str(path)] if case == "a folder" else [])
