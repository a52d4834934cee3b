"""The last lines of files, and what is left out of searches and trees."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, TextContent
from interlock_servers.filesystem import FilesystemLimits, filesystem_server, tail
from interlock_servers.filesystem.results import ReadResult
from interlock_servers.filesystem.tail import last_lines
from tests.servers.calls import done, refusal, words
from tests.servers.filesystem.conftest import QUICK


@pytest.mark.parametrize(
    "first, text, numbers",
    [(-1, "five\n", (5, 5)), (-2, "four\nfive\n", (4, 5)),
        (-5, "one\ntwo\nthree\nfour\nfive\n", (1, 5)), (-99, "one\ntwo\nthree\nfour\nfive\n",
            (1, 5))],
)  # fmt: skip
async def test_the_last_lines(
    client: Client, tree: Path, first: int, text: str, numbers: tuple[int, int]
) -> None:
    """As text, with the numbers that they have in the file (`TOL-09`)."""
    assert await words(client, "read_file", path="lines.txt", first_line=first) == text
    read = await done(client, "read_file", path="lines.txt", first_line=first)
    assert (read["firstLine"], read["lastLine"], read["lines"], read["complete"]) == (
        *numbers,
        5,
        numbers[0] == 1,
    )


async def test_what_is_no_last_line(client: Client, tree: Path) -> None:
    """In words: there is no line 0, and no end but that of the file."""
    (tree / "empty").write_text("")
    (tree / "bytes").write_bytes(b"a\nb\xff\n")
    assert "count from 1" in await refusal(client, "read_file", path="lines.txt", first_line=0)
    assert "leave last_line out" in await refusal(
        client, "read_file", path="lines.txt", first_line=-2, last_line=3
    )
    assert "not text in utf-8 (see byte 3)" in await refusal(
        client, "read_file", path="bytes", first_line=-1
    )
    assert await words(client, "read_file", path="empty", first_line=-3) == ""


async def test_the_last_lines_of_long_files(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read from the end: what is before is only counted, and not where that is too much; what has
    no room is cut and read on.
    """
    text = "".join(f"line {n}\n" for n in range(1, 50_001))
    (tree / "long").write_text(text)
    limits = msgspec.structs.replace(QUICK, read=100, scanned=1000)
    async with Client(filesystem_server([tree], limits)) as client:
        read = await done(client, "read_file", path="long", first_line=-3)
        assert (read.get("firstLine"), read["offset"], read["complete"]) == (
            None,
            len(text) - 33,
            False,
        )
        assert (
            await words(client, "read_file", path="long", first_line=-3)
            == "line 49998\nline 49999\nline 50000\n"
        )
        read = await done(client, "read_file", path="long", first_line=-20)
        assert (read["cut"], read["nextOffset"]) == (True, len(text) - 220 + 99)
        (tree / "wide").write_text("a\n" + "x" * 300_000 + "\n")
        assert "too long" in await refusal(client, "read_file", path="wide", first_line=-2)


@given(
    st.text(alphabet="a\nü\u0a0a\u0a00\U0001f600\r", max_size=60),
    st.integers(1, 12),
    st.sampled_from(["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "gb18030", "shift_jis"]),
    st.sampled_from([4, 8, 64]),
)
def test_the_last_lines_are_those_of_the_text(
    text: str, count: int, encoding: str, chunk: int
) -> None:
    """Whatever the encoding, and wherever the pieces end in which it is read: bytes of other
    characters are no line feeds.
    """
    data = text.encode(encoding, "ignore")
    text = data.decode(encoding)
    whole = (
        text.splitlines(keepends=True)
        if not set(text) - set("a\nü")
        else [f"{one}\n" for one in text.split("\n")]
    )
    if whole and text != "".join(whole):
        whole[-1] = whole[-1].removesuffix("\n")
        whole = whole if whole[-1] else whole[:-1]
    fd = os.memfd_create("text") if hasattr(os, "memfd_create") else os.open(os.devnull, os.O_RDWR)
    before = tail._CHUNK
    tail._CHUNK = chunk
    try:
        os.write(fd, data)
        answer = ReadResult("f", "file:///f", "text", "text/plain", len(data), "1", complete=True)
        read, content = last_lines(fd, answer, count, encoding, 0, FilesystemLimits())
        assert isinstance(content, TextContent)
        assert content.text == "".join(whole[-count:])
        assert (read.first_line or 1) == max(1, len(whole) - count + 1)
        assert read.complete == (len(whole) <= count)
    finally:
        tail._CHUNK = before
        os.close(fd)


@pytest.fixture
def project(tree: Path) -> Path:
    """A folder with what nobody wants to look at."""
    for name in (
        "node_modules/pkg/a.py",
        "src/node_modules/b.py",
        "build/out/c.py",
        "src/d.min.py",
    ):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("needle\n")
    return tree


LEFT_OUT: list[tuple[list[str], list[str]]] = [
    (
        [],
        [
            "build/out/c.py",
            "node_modules/pkg/a.py",
            "src/d.min.py",
            "src/deep/test_a.py",
            "src/node_modules/b.py",
        ],
    ),
    (["node_modules"], ["build/out/c.py", "src/d.min.py", "src/deep/test_a.py"]),
    (["node_modules", "*.min.py", "build/**"], ["src/deep/test_a.py"]),
    (["src/node_modules", "{build,deep}"], ["node_modules/pkg/a.py", "src/d.min.py"]),
    (
        ["./build/out"],
        ["node_modules/pkg/a.py", "src/d.min.py", "src/deep/test_a.py", "src/node_modules/b.py"],
    ),
    (
        ["!src", "-x", "--", "[n]ode_modules/pkg"],
        ["build/out/c.py", "src/d.min.py", "src/deep/test_a.py", "src/node_modules/b.py"],
    ),
]


@pytest.mark.parametrize("exclude, left", LEFT_OUT)
@pytest.mark.parametrize("program", ["ripgrep", "none"])
async def test_what_is_left_out(
    client: Client,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    exclude: list[str],
    left: list[str],
    program: str,
) -> None:
    """Of a folder all that is in it, in searches by text and by name and in trees; the same with
    ripgrep, where that is, and without.
    """
    if program == "none":
        monkeypatch.setenv("PATH", "")
    found = await done(client, "search_files", text="needle", exclude=exclude)
    assert [hit["path"] for hit in found["hits"]] == left
    assert found["complete"]
    names = await done(client, "find_files", pattern="*.py", exclude=exclude)
    assert {entry["path"] for entry in names["entries"]} - {"src/main.py"} == set(left)

    def files(branch: dict[str, Any], way: tuple[str, ...] = ()) -> list[str]:
        here = ["/".join((*way, branch["path"]))] if branch["kind"] == "file" else []
        below = (*way, branch["path"]) if branch["path"] != "." else way
        return here + [path for one in branch.get("entries") or () for path in files(one, below)]

    tree = await done(client, "show_tree", depth=9, exclude=exclude)
    assert {path for path in files(tree) if path.endswith(".py")} - {"src/main.py"} == set(left)


async def test_what_is_left_out_is_not_walked(project: Path) -> None:
    """So that a large folder that nobody wants costs nothing: what is left is complete."""
    for n in range(50):
        (project / "node_modules" / f"{n}.py").write_text("")
    async with Client(
        filesystem_server([project], msgspec.structs.replace(QUICK, walked=30))
    ) as client:
        assert (await done(client, "find_files", pattern="*.py"))["complete"] is False
        assert (await done(client, "find_files", pattern="*.py", exclude=["node_modules"]))[
            "complete"
        ] is True
        assert "64 patterns" in await refusal(
            client, "find_files", pattern="*", exclude=["{" + ",".join("ab" * 90) + "}"]
        )
