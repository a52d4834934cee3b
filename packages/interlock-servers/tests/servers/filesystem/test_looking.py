"""What looks at files: reading by lines and bytes, media, encodings, lists, trees, globs and
searches.
"""

from __future__ import annotations

import asyncio
import base64
import os
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import (
    AudioContent,
    Client,
    EmbeddedResource,
    ImageContent,
    McpError,
    TextContent,
    ToolError,
)
from interlock_servers.filesystem import AllowedRoots, filesystem_server, read_tools, reading
from interlock_servers.filesystem.reading import ReadRange, read_place
from interlock_servers.filesystem.walk import GlobPattern
from tests.servers.calls import done, refusal, words
from tests.servers.filesystem.conftest import LINES, PIXEL, QUICK


@pytest.mark.parametrize(
    "window, text, first, last, complete",
    [
        ({}, LINES, 1, 5, True),
        ({"first_line": 2, "last_line": 3}, "two\nthree\n", 2, 3, False),
        ({"first_line": 4}, "four\nfive\n", 4, 5, False),
        ({"last_line": 1}, "one\n", 1, 1, False),
        ({"last_line": 5}, LINES, 1, 5, True),
        ({"last_line": 99}, LINES, 1, 5, True),
        ({"first_line": 5, "last_line": 5}, "five\n", 5, 5, False),
        ({"path": "blank.txt", "last_line": 1}, "\n", 1, 1, False),
    ],
)
async def test_lines(
    client: Client,
    tree: Path,
    window: dict[str, Any],
    text: str,
    first: int,
    last: int,
    complete: bool,
) -> None:
    """A window of lines has exactly these, and says whether there are more; the text stands in the
    content alone.
    """
    (tree / "blank.txt").write_text("\n\n")
    result = await client.call_tool("read_file", {"path": "lines.txt", **window})
    data: Any = result.structured_content
    assert result.text == text
    assert (data["firstLine"], data["lastLine"], data["complete"]) == (first, last, complete)
    assert not any(line in str(data) for line in ("two\n", "three\n", "two\\n", "three\\n"))


@given(
    text=st.text(st.sampled_from("aé漢😀\n\r"), max_size=40),
    first=st.integers(1, 12),
    count=st.integers(0, 12),
)
def test_lines_are_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, text: str, first: int, count: int
) -> None:
    """Whatever the text, a window is what cutting it at its line feeds gives."""
    folder = tmp_path_factory.mktemp("lines")
    (folder / "f").write_bytes(text.encode())
    lines = [line for line in text.replace("\n", "\n\0").split("\0") if line]
    allowed = AllowedRoots([folder], QUICK)
    allowed.open()
    try:
        with allowed.call_roots(None) as call_roots, call_roots.find("f") as place:
            answer, content = read_place(place, "f", ReadRange(first, first + count), None, QUICK)
    except ToolError:
        assert first > max(1, len(lines))
    else:
        assert isinstance(content, TextContent)
        assert content.text == "".join(lines[first - 1 : first + count])
        assert answer.complete == (content.text == text)
    finally:
        allowed.close()


async def test_bytes(client: Client, folder: Path) -> None:
    """A range of bytes is text without the characters that it cuts, and says where that begins;
    what is not text comes as a blob.
    """
    (folder / "f").write_text("aé漢b")
    for offset, length, text, begin, size in (
        (0, 2, "a", 0, 1),
        (2, 4, "漢", 3, 3),
        (1, 2, "é", 1, 2),
        (6, 99, "b", 6, 1),
        (99, 5, "", 99, 0),
    ):
        result = await client.call_tool(
            "read_file", {"path": "f", "offset": offset, "length": length}
        )
        data: Any = result.structured_content
        assert (result.text, data["offset"], data["length"]) == (text, begin, size)
    (folder / "g").write_bytes(b"\0\1\2\xff")
    (block,) = (
        await client.call_tool("read_file", {"path": "g", "offset": 2, "length": 2})
    ).content
    assert isinstance(block, EmbeddedResource)
    assert base64.b64decode(block.resource.blob or "") == b"\2\xff"
    assert "not for both" in await refusal(client, "read_file", path="f", offset=1, first_line=1)


async def test_media_are_media(client: Client, folder: Path, tree: Path) -> None:
    """Told by their first bytes, whatever they are called."""
    (folder / "sound.txt").write_bytes(b"RIFF\x24\0\0\0WAVEfmt " + bytes(30))
    (picture,) = (await client.call_tool("read_file", {"path": "pixel"})).content
    assert isinstance(picture, ImageContent)
    assert (picture.mime_type, base64.b64decode(picture.data)) == ("image/png", PIXEL)
    (sound,) = (await client.call_tool("read_file", {"path": "sound.txt"})).content
    assert isinstance(sound, AudioContent)
    assert sound.mime_type == "audio/wav"
    (folder / "false.png").write_text("only words")
    (folder / "program").write_bytes(b"\x7fELF\0\0")
    assert "application/x-elf and not text" in await refusal(client, "read_file", path="program")


@pytest.mark.parametrize(
    "data, asked, text, told",
    [
        (b"\xef\xbb\xbfa\xc3\xa9\n", None, "aé\n", "utf-8 with a byte order mark"),
        ("aé\n".encode("utf-16"), None, "aé\n", "utf-16-le with a byte order mark"),
        ("aé\n".encode("utf-32"), None, "aé\n", "utf-32-le with a byte order mark"),
        (b"\xfe\xff\0a\0\n", None, "a\n", "utf-16-be with a byte order mark"),
        (b"a\xe9\n", "latin-1", "aé\n", "latin-1"),
        ("日本\n".encode("shift_jis"), "shift_jis", "日本\n", "shift_jis"),
        (b"", None, "", "utf-8"),
    ],
)
async def test_encodings(
    client: Client, folder: Path, data: bytes, asked: str | None, text: str, told: str
) -> None:
    """A mark says what a text is, else it is UTF-8, else its encoding has to be named; an edit
    keeps mark and encoding.
    """
    (folder / "f").write_bytes(data)
    arguments = {"path": "f"} | ({"encoding": asked} if asked else {})
    result = await client.call_tool("read_file", arguments)
    found: Any = result.structured_content
    assert (result.text, found["encoding"]) == (text, told)
    if text:
        await done(client, "edit_file", **arguments, edits=[{"old": text[0], "new": text[0] * 2}])
        assert (await client.call_tool("read_file", arguments)).text == text[0] + text
        mark = next(
            (mark for mark in (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff") if data.startswith(mark)),
            b"",
        )
        assert (folder / "f").read_bytes().startswith(mark)


async def test_what_is_no_text(client: Client, folder: Path) -> None:
    """Bytes that are not UTF-8 are refused with where they are; nothing is guessed, and characters
    that do not fit are not written.
    """
    (folder / "f").write_bytes(b"ab\xe9cd")
    assert "byte 2" in await refusal(client, "read_file", path="f")
    assert "not text in utf-8" in await refusal(client, "append_file", path="f", text="x")
    assert "does not have" in await refusal(
        client, "write_file", path="f", text="漢", encoding="latin-1"
    )
    assert (folder / "f").read_bytes() == b"ab\xe9cd"
    (folder / "n").write_bytes(b"a\0b")
    assert "not text" in await refusal(client, "read_file", path="n")


async def test_long_answers_are_cut(folder: Path) -> None:
    """A long text is cut at the limit, between characters, and the next part can be had; larger
    media are refused.
    """
    (folder / "f").write_text("é" * 1000 + "\n" + "x\n" * 10)
    (folder / "p.png").write_bytes(PIXEL + bytes(2000))
    async with Client(
        filesystem_server([folder], msgspec.structs.replace(QUICK, read=101, media=500))
    ) as client:
        result = await client.call_tool("read_file", {"path": "f"})
        data: Any = result.structured_content
        assert (result.content[0], data["complete"], data["cut"]) == (
            TextContent("é" * 50),
            False,
            True,
        )
        assert (data["nextOffset"], "read on with offset 100" in result.text) == (100, True)
        assert await words(client, "read_file", path="f", first_line=2) == "x\n" * 10
        assert "more than 500 bytes" in await refusal(client, "read_file", path="p.png")
        many = await done(client, "read_files", paths=["f"] * 10)
        assert [one["read"]["complete"] for one in many["files"]] == [False] * 10


@given(
    text=st.text(st.sampled_from("aé漢😀\n\r"), max_size=60),
    encoding=st.sampled_from(["utf-8", "utf-16-le", "cp1252"]),
    first=st.integers(1, 3),
)
def test_what_is_cut_can_be_read_on(
    tmp_path_factory: pytest.TempPathFactory, text: str, encoding: str, first: int
) -> None:
    """From where an answer was cut the next one goes on: put together they are the file, with no
    byte twice and none left out.
    """
    folder = tmp_path_factory.mktemp("cut")
    data = text.encode(encoding, "ignore")
    (folder / "f").write_bytes(data)
    limits = msgspec.structs.replace(QUICK, read=9)
    allowed = AllowedRoots([folder], limits)
    allowed.open()
    try:
        with (
            pytest.MonkeyPatch.context() as patch,
            allowed.call_roots(None) as call_roots,
            call_roots.find("f") as place,
        ):
            patch.setattr(
                reading, "_CHUNK", 5
            )  # so that characters and lines are cut in two where a file is read piece by piece
            answer, content = read_place(place, "f", ReadRange(first, None), encoding, limits)
            assert isinstance(content, TextContent)
            lines = data.decode(encoding).split("\n")
            wanted = "\n".join(lines[first - 1 :])
            assert answer.cut == (len(wanted.encode()) > 9)
            assert wanted.startswith(content.text)
            if answer.next_line is not None:
                assert wanted == content.text + "\n".join(lines[answer.next_line - 1 :])
            elif answer.next_offset is not None:
                assert wanted == content.text + data[answer.next_offset :].decode(encoding)
            else:
                assert wanted == content.text
    except ToolError as bad:
        assert "there is no line" in str(bad)
    finally:
        allowed.close()


async def test_several_files(client: Client, tree: Path) -> None:
    """Each has its own answer; one that fails does not keep the others from being read."""
    result = await client.call_tool("read_files", {"paths": ["lines.txt", "lines.tx", "pixel"]})
    data: Any = result.structured_content
    assert [bool(one.get("error")) for one in data["files"]] == [False, True, False]
    assert "Did you mean lines.txt?" in data["files"][1]["error"]
    assert any(isinstance(block, ImageContent) for block in result.content)


async def test_lists(client: Client, tree: Path) -> None:
    """In each order, with and without what is hidden, in pages; the trash is never among it."""
    (tree / ".trash").mkdir()
    names = [entry["path"] for entry in (await done(client, "list_folder"))["entries"]]
    assert names == [".hidden", "lines.txt", "pixel", "src"]
    assert [
        entry["path"] for entry in (await done(client, "list_folder", hidden=False))["entries"]
    ] == names[1:]
    assert (await done(client, "list_folder", sort="size"))["entries"][0]["path"] == "pixel"
    async with Client(
        filesystem_server([tree], msgspec.structs.replace(QUICK, entries=3))
    ) as small:
        first = await done(small, "list_folder")
        assert (len(first["entries"]), first["complete"], first["reason"]) == (
            3,
            False,
            "1 more: skip 3",
        )
        assert [
            entry["path"] for entry in (await done(small, "list_folder", skip=3))["entries"]
        ] == ["src"]


async def test_trees(client: Client, tree: Path) -> None:
    """Down to a depth; what is deeper is said to be there."""
    top = await done(client, "show_tree", depth=2)
    (src,) = [one for one in top["entries"] if one["kind"] == "folder"]
    assert [(one["path"], one.get("more", False)) for one in src["entries"]] == [
        ("deep", True),
        ("main.py", False),
    ]
    assert "test_a.py" in await words(client, "show_tree", depth=3)
    assert ".hidden" not in await words(client, "show_tree")


GLOBS = [
    ("*.py", ["a.py", "b/c.py", "b/d/e.py"]),
    ("b/*.py", ["b/c.py"]),
    ("b/**/*.py", ["b/c.py", "b/d/e.py"]),
    ("**/d/*", ["b/d/e.py"]),
    ("{a,c}.py", ["a.py", "b/c.py"]),
    ("[ac].py", ["a.py", "b/c.py"]),
    ("?.py", ["a.py", "b/c.py", "b/d/e.py"]),
    ("**", ["a.py", "b/c.py", "b/d/e.py", "x"]),
    ("b/**", ["b/c.py", "b/d/e.py"]),
    ("A.py", []),
    ("/a.py", ["a.py"]),
    ("*", ["a.py", "b/c.py", "b/d/e.py", "x"]),
    ("**/**/e.py", ["b/d/e.py"]),
]


@pytest.mark.parametrize("pattern, ways", GLOBS)
def test_globs(pattern: str, ways: list[str]) -> None:
    """`*` stays within a name, `**` spans folders, and a pattern without a slash is of the name."""
    fits = GlobPattern(pattern).fits
    assert [way for way in ("a.py", "b/c.py", "b/d/e.py", "x") if fits(way.split("/"))] == ways


async def test_finding(client: Client, tree: Path) -> None:
    """By name, files or folders, hidden ones only where that is wanted."""
    assert [
        one["path"] for one in (await done(client, "find_files", pattern="*.py"))["entries"]
    ] == ["src/deep/test_a.py", "src/main.py"]
    assert [
        one["path"]
        for one in (await done(client, "find_files", pattern="*", kind="folder"))["entries"]
    ] == ["src", "src/deep"]
    assert len((await done(client, "find_files", pattern="*.py", hidden=True))["entries"]) == 3


async def test_info(client: Client, tree: Path) -> None:
    """Size, kind, mode, type, checksum; the version changes with the file."""
    info = await done(client, "file_info", path="pixel", checksum=True)
    assert (info["kind"], info["size"], info["mimeType"], len(info["sha256"])) == (
        "file",
        len(PIXEL),
        "image/png",
        64,
    )
    (tree / "pixel").write_bytes(PIXEL + b"x")
    assert (await done(client, "file_info", path="pixel"))["version"] != info["version"]


async def test_resources(client: Client, tree: Path) -> None:
    """Each file is a resource, each folder is its list, and their paths complete; what is outside
    does not exist.
    """
    (listed,) = await client.list_resources()
    assert listed.uri == f"file://{tree}"
    (text,) = (await client.read_resource(f"file://{tree}/lines.txt")).contents
    assert (text.text, text.mime_type) == (LINES, "text/plain")
    (picture,) = (await client.read_resource(f"file://{tree}/pixel")).contents
    assert base64.b64decode(picture.blob or "") == PIXEL
    (tree / "a b#c%.txt").write_text("odd")
    uri = (await done(client, "file_info", path="a b#c%.txt"))["uri"]
    assert (await client.read_resource(uri)).contents[0].text == "odd"
    for path in (
        f"{tree}/no",
        "/etc/passwd",
        f"{tree}/../outside/secret.txt",
        f"{tree}/%2e%2e/outside/secret.txt",
        f"{tree}/.trash",
    ):
        with pytest.raises(McpError):
            await client.read_resource(f"file://{path}")
    whole = str(tree)[1:]
    assert (await client.complete("file:///{+path}", "path", whole[:-2])).values == [f"{whole}/"]
    assert (await client.complete("file:///{+path}", "path", f"{whole}/s")).values == [
        f"{whole}/src/"
    ]
    assert (await client.complete("file:///{+path}", "path", f"{whole}/src/deep/")).values == [
        f"{whole}/src/deep/test_a.py"
    ]
    assert (await client.complete("file:///{+path}", "path", "etc/pass")).values == []


@pytest.mark.endurance(seconds=2)
async def test_many_files_in_a_folder(folder: Path) -> None:
    """Twenty thousand: the list has its first page, the search its hits, and each ends."""
    (folder / "many").mkdir()
    here = os.open(folder / "many", os.O_RDONLY)
    for number in range(20_000):
        os.close(os.open(f"f{number:06}", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    async with Client(filesystem_server([folder], QUICK)) as client:
        first = await done(client, "list_folder", path="many")
        assert (len(first["entries"]), first["complete"]) == (1000, False)
        assert [
            one["path"]
            for one in (await done(client, "find_files", pattern="f01999[89]"))["entries"]
        ] == [
            "many/f019998",
            "many/f019999",
        ]
        assert (await done(client, "show_tree"))["more"]
        told: list[float] = []
        await client.call_tool(
            "find_files",
            {"pattern": "nothing"},
            on_progress=lambda progress: told.append(progress.progress),
        )
        assert len(told) > 10
        assert told == sorted(told)


async def test_a_walk_that_nobody_waits_for_ends(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at its end, and soon after the call was cancelled: it looks now and then whether somebody
    still waits (`CAN-02`).
    """
    for number in range(2_000):
        (folder / f"f{number}").touch()
    begun = threading.Event()
    over = threading.Event()
    ended = threading.Event()
    looked = []
    find = read_tools.find_names

    def slowly(found: object, steps: Any) -> bool:
        looked.append(steps)
        if len(looked) == 100:
            begun.set()
            over.wait(30)
        return False

    def watched(*arguments: Any, **more: Any) -> Any:
        try:
            return find(*arguments, **more)
        finally:
            ended.set()

    monkeypatch.setattr(GlobPattern, "fits", slowly)
    monkeypatch.setattr(read_tools, "find_names", watched)
    async with Client(filesystem_server([folder], QUICK)) as client:
        call = asyncio.create_task(client.call_tool("find_files", {"pattern": "*"}))
        await asyncio.to_thread(begun.wait, 30)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        over.set()
        await asyncio.to_thread(ended.wait, 30)
    assert 100 <= len(looked) < 300


async def test_who_does_not_wait_ends_the_work(folder: Path) -> None:
    """A call that is cancelled stops: the copy of a file that is nearly nothing but holes, and
    would take hours, does not go on.
    """
    with (folder / "big").open("wb") as file:
        file.truncate(1 << 42)
    async with Client(
        filesystem_server(
            [folder], msgspec.structs.replace(QUICK, copied=1 << 43, seconds=3600, waiting=60)
        )
    ) as client:
        copying = asyncio.Event()
        call = asyncio.create_task(
            client.call_tool(
                "copy_file",
                {"source": "big", "target": "copy"},
                on_progress=lambda p: copying.set(),
            )
        )
        await copying.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await done(
            client, "write_file", path="next", text=""
        )  # waits until the copy has let go of the folder
        assert sorted(os.listdir(folder)) == ["big", "next"]
