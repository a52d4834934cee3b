"""What changes files: writing, appending, edits of texts and lines, moving, copying, and the
trash.
"""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, Server, ToolError
from interlock_servers.filesystem import filesystem_server
from interlock_servers.filesystem.edits import (
    Edit,
    LineEdit,
    edited,
    line_edited,
    lines_of,
    unified,
)
from tests.servers.calls import done, refusal, words
from tests.servers.filesystem.conftest import QUICK


@pytest.fixture
def file(folder: Path) -> Path:
    """A file of four lines."""
    made = folder / "f.txt"
    made.write_text("one\ntwo\nthree\ntwo\n")
    return made


async def test_writing_keeps_mode_owner_and_attributes(client: Client, file: Path) -> None:
    """A file that is replaced is as it was but for its content; a new one has what the system gives
    new ones.
    """
    file.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(file, 12345, 23456)
    attributes = {}
    try:
        os.setxattr(file, "user.note", b"mine")
        attributes = {"user.note": b"mine"}
    except OSError:
        pass  # a file system without them
    before = file.stat()
    for tool, arguments in (
        ("write_file", {"text": "a\nb\n"}),
        ("append_file", {"text": "c\n"}),
        ("edit_file", {"edits": [{"old": "a", "new": "A"}]}),
        ("edit_lines", {"edits": [{"first": 2, "last": 2, "new": "B"}]}),
    ):
        await done(client, tool, path="f.txt", **arguments)
        after = file.stat()
        assert (after.st_mode, after.st_uid, after.st_gid) == (
            before.st_mode,
            before.st_uid,
            before.st_gid,
        )
        assert {name: os.getxattr(file, name) for name in attributes} == attributes
        assert after.st_ino != before.st_ino or tool != "write_file"
    assert file.read_text() == "A\nB\nc\n"
    await done(client, "create_file", path="new", text="")
    (file.parent / "touched").touch()
    assert (file.parent / "new").stat().st_mode == (file.parent / "touched").stat().st_mode


async def test_other_content_does_not_run_as_somebody_else(client: Client, file: Path) -> None:
    """What is written into a program that runs as its owner runs so no more, as with any other way
    of writing.
    """
    file.chmod(0o6755)
    await done(client, "write_file", path="f.txt", text="another program")
    assert stat.S_IMODE(file.stat().st_mode) == 0o755


async def test_a_change_of_what_has_changed_is_refused(client: Client, file: Path) -> None:
    """The version that was read may be sent along; the file is left alone where it is another by
    now.
    """
    version = (await done(client, "read_file", path="f.txt"))["version"]
    first = await done(client, "write_file", path="f.txt", text="mine\n", version=version)
    for tool, arguments in (
        ("write_file", {"text": "x"}),
        ("edit_file", {"edits": [{"old": "mine", "new": "x"}]}),
        ("edit_lines", {"edits": [{"first": 1, "last": 1, "new": "x"}]}),
    ):
        assert "has changed since" in await refusal(
            client, tool, path="f.txt", version=version, **arguments
        )
    assert file.read_text() == "mine\n"
    await done(
        client,
        "edit_file",
        path="f.txt",
        edits=[{"old": "mine", "new": "ours"}],
        version=first["version"],
    )
    assert "has changed since" in await refusal(
        client, "write_file", path="none", text="x", version=version
    )


async def test_creating_replaces_nothing(client: Client, file: Path, folder: Path) -> None:
    """Files, folders and links that lead nowhere: what is there stays."""
    (folder / "d").mkdir()
    (folder / "nowhere").symlink_to("missing/x")
    assert "already exists" in await refusal(client, "create_file", path="f.txt", text="x")
    assert "already exists" in await refusal(client, "create_file", path="d", text="x")
    assert await refusal(client, "write_file", path="d", text="x")
    assert await refusal(client, "write_file", path="nowhere", text="x")
    assert await refusal(client, "write_file", path=".", text="x")
    assert await refusal(client, "write_file", path="f.txt/x", text="x")
    assert "There is no missing" in await refusal(client, "write_file", path="missing/x", text="x")
    assert sorted(os.listdir(folder)) == ["d", "f.txt", "nowhere"]


@pytest.mark.parametrize(
    "edits, text",
    [
        ([Edit("one", "1")], "1\ntwo\nthree\ntwo\n"),
        ([Edit("two", "2", 2)], "one\n2\nthree\n2\n"),
        ([Edit("one\ntwo", "1\n2")], "1\n2\nthree\ntwo\n"),
        ([Edit("one", "three"), Edit("three\ntwo\nthree", "x")], "x\ntwo\n"),
        ([Edit("three\n", "")], "one\ntwo\ntwo\n"),
        ([Edit("two", "2")], "occurs 2 times in f (lines 2, 4), not 1"),
        ([Edit("two", "2", 3)], "occurs 2 times"),
        ([Edit("four", "4")], "is not in f"),
        ([Edit("  one", "4")], "With other white space it is at line 1"),
        ([Edit("one", "1"), Edit("one", "2")], "Edit 2: the old text is not"),
    ],
)
def test_exact_edits(edits: list[Edit], text: str) -> None:
    """The old text has to stand there once, or as often as is said; all edits are made or none."""
    before = "one\ntwo\nthree\ntwo\n"
    try:
        assert edited(before, edits, "f")[0] == text
    except ToolError as bad:
        assert text in str(bad)
        assert "Nothing was changed" in str(bad)


@pytest.mark.parametrize(
    "before, edits, text",
    [
        ("a\nb\nc\n", [LineEdit(2, 2, "B")], "a\nB\nc\n"),
        ("a\nb\nc\n", [LineEdit(1, 0, "zero")], "zero\na\nb\nc\n"),
        ("a\nb\nc\n", [LineEdit(4, 3, "d")], "a\nb\nc\nd"),
        ("a\nb", [LineEdit(3, 2, "c\n")], "a\nb\nc\n"),
        ("a\nb\nc\n", [LineEdit(1, 3, "")], ""),
        ("a\nb\nc\n", [LineEdit(1, 1, "A"), LineEdit(3, 3, "C\nD")], "A\nb\nC\nD"),
        ("a\r\nb\r\n", [LineEdit(1, 1, "A\nB")], "A\r\nB\r\nb\r\n"),
        ("", [LineEdit(1, 0, "a\n")], "a\n"),
        ("a\nb\n", [LineEdit(1, 2, "x"), LineEdit(2, 2, "y")], "overlap"),
        ("a\nb\n", [LineEdit(2, 3, "x")], "do not exist"),
        ("a\nb\n", [LineEdit(5, 4, "x")], "do not exist"),
        ("a\nb\n", [LineEdit(2, 0, "x")], "are not a valid range"),
    ],
)
def test_edits_of_lines(before: str, edits: list[LineEdit], text: str) -> None:
    """Whole lines by their numbers, as the file was; lines that do not exist or overlap change
    nothing.
    """
    try:
        assert line_edited(before, edits, "f")[0] == text
    except ToolError as bad:
        assert text in str(bad)


async def test_windows_line_ends_stay(client: Client, folder: Path) -> None:
    """An edit with plain line feeds fits a file with CR LF, and leaves it so."""
    (folder / "w").write_bytes(b"a\r\nb\r\nc\r\n")
    await done(client, "edit_file", path="w", edits=[{"old": "a\nb", "new": "1\n2"}])
    assert (folder / "w").read_bytes() == b"1\r\n2\r\nc\r\n"


_TEXTS = st.lists(
    st.sampled_from(["a\n", "b\n", "c\n", "é\n", "\n", "a", "d\r\n"]), max_size=30
).map("".join)


@given(before=_TEXTS, after=_TEXTS)
def test_the_diff_is_what_changes(
    tmp_path_factory: pytest.TempPathFactory, before: str, after: str
) -> None:
    """Applied by the program for it, a diff makes one text of the other."""
    diff = unified(before, after, "f")
    assert (diff == "") == (before == after)
    if diff:
        lines = diff.splitlines(keepends=True) if "\r" not in diff else lines_of(diff)
        removed = [line[1:] for line in lines[2:] if line.startswith("-")]
        added = [line[1:] for line in lines[2:] if line.startswith("+")]
        assert len(removed) <= len(lines_of(before))
        assert len(added) <= len(lines_of(after))
        assert _applied(before, lines) == after


def _applied(before: str, diff: list[str]) -> str:
    """A text after a unified diff."""
    old = lines_of(before)
    new = list[str]()
    at = 0
    last = ""
    for line in diff[2:]:
        if line.startswith("@@"):
            start = int(line.split()[1][1:].partition(",")[0])
            start = start if line.split()[1].endswith(",0") else start - 1
            new += old[at:start]
            at = start
        elif line.startswith("\\"):
            new[-1:] = [new[-1].removesuffix("\n")] if last != "-" else new[-1:]
        else:
            last = line[0]
            if last in " -":
                assert old[at].rstrip("\n") == line[1:].rstrip("\n")
                at += 1
            if last in " +":
                new.append(line[1:])
    return "".join([*new, *old[at:]])


async def test_dry_runs_change_nothing(client: Client, file: Path) -> None:
    """They show the diff that the change itself would have; the data does not repeat it."""

    def state() -> tuple[int, int, int]:
        """All but the time of the last read, which reading changes."""
        stat = file.stat()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns

    before = state()
    arguments = {"path": "f.txt", "edits": [{"old": "one", "new": "1"}]}
    result = await client.call_tool("edit_file", {**arguments, "dry_run": True})
    data: Any = result.structured_content
    assert "-one\n+1\n" in result.text
    assert (data["dryRun"], data["replacements"], "-one" in str(data)) == (True, 1, False)
    assert (state(), os.listdir(file.parent)) == (before, ["f.txt"])
    assert result.text in await words(client, "edit_file", **arguments)


async def test_limits_of_size(client: Client, folder: Path) -> None:
    """More than may be written is refused before anything is."""
    assert "at most" in await refusal(client, "write_file", path="f", text="x" * (33 * 1024 * 1024))
    assert os.listdir(folder) == []


async def test_folders(client: Client, folder: Path) -> None:
    """Made with those above; there already is well; a file in the way is not."""
    assert (await done(client, "create_folder", path="a/b/c"))["created"] is True
    assert (await done(client, "create_folder", path="a/b/c"))["created"] is False
    (folder / "f").write_text("")
    assert "not a folder" in await refusal(client, "create_folder", path="f/x")
    assert "not a folder" in await refusal(client, "create_folder", path="f")


async def test_moving(client: Client, file: Path, folder: Path) -> None:
    """Names and folders change, nothing is replaced, and nothing is moved into itself."""
    (folder / "d").mkdir()
    await done(client, "move_file", source="f.txt", target="d/g.txt")
    (folder / "h").write_text("h")
    assert "already exists" in await refusal(client, "move_file", source="h", target="d/g.txt")
    assert "already exists" in await refusal(client, "move_file", source="h", target="d")
    assert "into itself" in await refusal(client, "move_file", source="d", target="d/e")
    assert "Did you mean d/g.txt?" in await refusal(
        client, "move_file", source="d/g.tx", target="x"
    )
    assert await refusal(client, "move_file", source=".", target="x")
    await done(client, "move_file", source="d", target="e")
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")) == [
        "e",
        "e/g.txt",
        "h",
    ]


async def test_copying(client: Client, folder: Path) -> None:
    """Whole folders with their files and modes, not into themselves and over nothing."""
    (folder / "d" / "e").mkdir(parents=True)
    (folder / "d" / "f").write_text("f")
    (folder / "d" / "f").chmod(0o700)
    (folder / "d" / "e" / "g").write_text("gg")
    (folder / "d" / "z").write_text("z")
    data = await done(client, "copy_file", source="d", target="c")
    assert (data["files"], data["bytes"]) == (3, 4)
    assert {path.relative_to(folder / "c").as_posix() for path in (folder / "c").rglob("*")} == {
        "e",
        "f",
        "e/g",
        "z",
    }
    assert stat.S_IMODE((folder / "c" / "f").stat().st_mode) == 0o700
    assert "into itself" in await refusal(client, "copy_file", source="d", target="d/e/x")
    async with Client(
        filesystem_server([folder, folder / "d" / "e"], QUICK)
    ) as both:  # one allowed folder within another
        assert "into itself" in await refusal(
            both, "copy_file", source=str(folder / "d"), target=str(folder / "d" / "e" / "x")
        )
    assert "already exists" in await refusal(client, "copy_file", source="d", target="c")
    assert "already exists" in await refusal(client, "copy_file", source="d/f", target="c/f")
    await done(client, "copy_file", source="d/f", target="one")
    assert (folder / "one").read_text() == "f"
    data_ = bytes(3_000_000) + b"x" + bytes(2_000_000)
    (folder / "holes").write_bytes(data_)
    await done(client, "copy_file", source="holes", target="holes2")
    assert (folder / "holes2").read_bytes() == data_
    assert (folder / "holes2").stat().st_blocks * 512 < len(data_)


async def test_the_trash(client: Client, file: Path, folder: Path) -> None:
    """What is put into the trash is out of sight, can be brought back to where it was or elsewhere,
    and never over something.
    """
    (folder / "d" / "e").mkdir(parents=True)
    (folder / "d" / "e" / "g").write_text("g")
    one = await done(client, "trash_file", path="f.txt")
    two = await done(client, "trash_file", path="d")
    assert [item["path"] for item in (await done(client, "list_trash"))["items"]] == ["d", "f.txt"]
    assert (await done(client, "list_folder"))["entries"] == []
    assert (await done(client, "restore_file", id=two["id"]))["path"] == "d"
    assert (folder / "d" / "e" / "g").read_text() == "g"
    file.write_text("another")
    assert "already exists" in await refusal(client, "restore_file", id=one["id"])
    await done(client, "restore_file", id=one["id"], target="d/old.txt")
    assert (folder / "d" / "old.txt").read_text() == "one\ntwo\nthree\ntwo\n"
    assert "no 0" in await refusal(client, "restore_file", id="0")
    assert (await done(client, "list_trash"))["items"] == []
    (folder / "gone").mkdir()
    (folder / "gone" / "x").write_text("x")
    three = await done(client, "trash_file", path="gone/x")
    (folder / "gone").rmdir()
    await done(client, "restore_file", id=three["id"])
    assert (folder / "gone" / "x").read_text() == "x"


async def test_what_is_left_of_a_killed_process_in_the_trash(
    client: Client, file: Path, folder: Path
) -> None:
    """A box with nothing in it is nobody's worry: it is not listed, and goes when the trash is
    emptied, unless somebody is at it.
    """
    thrown = await done(client, "trash_file", path="f.txt")
    boxes = [folder / ".trash" / f"{number:016x}-00000000" for number in range(3)]
    for box in boxes:
        box.mkdir()
    (boxes[1] / "info.json").write_text("{")
    found = await done(client, "list_trash")
    assert ([item["id"] for item in found["items"]], found["problems"]) == ([thrown["id"]], [])
    assert "is empty" in await refusal(client, "restore_file", id=boxes[1].name)
    held = os.open(boxes[2], os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    assert (await done(client, "empty_trash"))["removed"] == [thrown["id"]]
    assert set(os.listdir(folder / ".trash")) == {boxes[2].name, ".gitignore"}
    os.close(held)
    await done(client, "empty_trash")
    assert os.listdir(folder / ".trash") == [".gitignore"]


async def test_appending_in_an_encoding(client: Client, folder: Path) -> None:
    """What the file is in, what its mark says, or what is named, where neither does; no line feed
    is put between.
    """
    for name, before, encoding, after in (
        ("new", None, "latin-1", b"\xe9"),
        ("old", b"a\xe8", "latin-1", b"a\xe8\xe9"),
        ("marked", "a".encode("utf-16"), None, "aé".encode("utf-16")),
        ("plain", b"a", None, "aé".encode()),
    ):
        if before is not None:
            (folder / name).write_bytes(before)
        await done(
            client,
            "append_file",
            path=name,
            text="é",
            **({"encoding": encoding} if encoding else {}),
        )
        assert (folder / name).read_bytes() == after


async def test_the_trash_is_emptied_with_a_yes(
    interlock_client: Any, interlock_way: Any, server: Server, file: Path, folder: Path
) -> None:
    """The person is asked, under every way of asking; without a yes everything stays, and without a
    person too (`ELI-06`).
    """
    answers: list[Any] = []
    async with interlock_client(
        server,
        elicit=lambda question: answers.append(question.message) or {"confirm": len(answers) > 1},
    ) as client:
        one = await done(client, "trash_file", path="f.txt")
        assert "did not agree" in await refusal(client, "empty_trash")
        assert len((await done(client, "list_trash"))["items"]) == 1
        assert await refusal(client, "empty_trash", ids=["nothing"])
        assert (await done(client, "empty_trash", ids=[one["id"]]))["removed"] == [one["id"]]
        assert (await done(client, "empty_trash"))["removed"] == []
        assert all("f.txt" in message for message in answers)
        assert len(answers) == 2
    assert os.listdir(folder / ".trash") == [".gitignore"]


async def test_owner_that_cannot_be_kept(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system does not let the owner stay, the file is left alone."""
    (folder / "f").write_text("theirs")
    if os.geteuid() != 0:
        return
    os.chown(folder / "f", 12345, 12345)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "no")

    monkeypatch.setattr(os, "fchown", refuse)
    assert "belongs to another user" in await refusal(client, "write_file", path="f", text="mine")
    assert (folder / "f").read_text() == "theirs"
    assert os.listdir(folder) == ["f"]
