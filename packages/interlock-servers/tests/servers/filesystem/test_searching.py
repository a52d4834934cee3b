"""Lines that are looked for: as text or by patterns, with ripgrep and without, and what is said of
those that were not looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Client, TimedOut
from interlock_servers.filesystem import filesystem_server, search
from tests.servers.calls import done, refusal
from tests.servers.filesystem.conftest import QUICK


@pytest.mark.parametrize(
    "arguments, hits",
    [
        ({"text": "needle"}, [("src/deep/test_a.py", 1)]),
        ({"text": "needle", "ignore_case": True}, [("src/deep/test_a.py", 1), ("src/main.py", 3)]),
        ({"text": "^import|[N]eedle", "regex": True}, [("src/main.py", 1), ("src/main.py", 3)]),
        ({"text": "needle", "hidden": True}, [(".hidden/x.py", 1), ("src/deep/test_a.py", 1)]),
        ({"text": "e", "glob": "*.txt"}, [("lines.txt", 1), ("lines.txt", 3), ("lines.txt", 5)]),
        ({"text": "t", "path": "lines.txt"}, [("lines.txt", 2), ("lines.txt", 3)]),
        ({"text": "--help"}, []),
        ({"text": "('"}, [("src/main.py", 3)]),
    ],
)
async def test_searching(
    client: Client, tree: Path, arguments: dict[str, Any], hits: list[tuple[str, int]]
) -> None:
    """Lines with a text or a pattern, where they stand; the same with ripgrep, where that is
    installed, and without.
    """
    found = await done(client, "search_files", **arguments)
    assert [(hit["path"], hit["line"]) for hit in found["hits"]] == hits
    assert found["complete"]


@pytest.mark.parametrize("program", ["ripgrep", "none"])
async def test_a_search_says_what_it_left_out(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """Files that are too large or may not be read, and folders that are too deep: nobody is told
    that this was all.
    """
    if program == "none":
        monkeypatch.setenv("PATH", "")
    for name, arm in (
        ("more than 1,000 bytes", lambda: (tree / "large").write_text("needle\n" * 1000)),
        (
            "hard links",
            lambda: (
                (tmp_path / "one").write_text("needle"),
                os.link(tmp_path / "one", tree / "two"),
            ),
        ),
        (
            "too deep",
            lambda: (
                (tree / "1/2/3/4").mkdir(parents=True),
                (tree / "1/2/3/4/f").write_text("needle"),
            ),
        ),
    ):
        arm()
        async with Client(
            filesystem_server([tree], msgspec.structs.replace(QUICK, searched=1000, depth=3))
        ) as client:
            found = await done(client, "search_files", text="needle")
            assert (found["complete"], name in found["reason"], len(found["hits"])) == (
                False,
                True,
                1,
            ), found
        for path in (tree / "large", tree / "two"):
            path.unlink(missing_ok=True)


async def test_what_is_no_text_to_look_for(client: Client, tree: Path) -> None:
    """Said in words, and nobody is warned of it."""
    assert "NUL" in await refusal(client, "search_files", text="a\0b")
    assert "NUL" in await refusal(client, "search_files", text="a\0b", regex=True)
    for pattern in ("(", "[", "a**", "(?P<a>x)(?P<a>y)", "(?<=a*)b"):
        assert "not a regular expression" in await refusal(
            client, "search_files", text=pattern, regex=True
        )
    assert (await done(client, "search_files", text="[[i]m", regex=True))["files"] == 1


async def test_ripgrep_is_started_only_where_it_can_be(
    client: Client, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no opened folder can be entered by its descriptor, our own search is used."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "rg").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "bin" / "rg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert (await done(client, "search_files", text="needle"))["files"] == 0
    monkeypatch.setattr(search, "OPENED", str(tmp_path / "none"))
    assert (await done(client, "search_files", text="needle"))["files"] == 1


async def test_ripgrep_is_believed_in_nothing(
    client: Client, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program in its place that names files outside, links and nonsense: what is shown comes from
    inside, and is what was looked for.
    """
    (tree / "out").symlink_to(tmp_path / "outside")
    names = (
        "../outside/secret.txt",
        "out/secret.txt",
        f"{tmp_path}/outside/secret.txt",
        "lines.txt",
        "./src/deep/test_a.py",
        "nothing",
    )
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "rg"
    program.write_text("#!/bin/sh\npwd >&2\nprintf '" + "\\0".join(names) + "\\0'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    for text in ("needle", "nobody", "ne"):
        hits = (await done(client, "search_files", text=text))["hits"]
        assert {hit["path"] for hit in hits} <= {"lines.txt", "src/deep/test_a.py"}
        assert all(text in hit["text"] for hit in hits)
    assert len((await done(client, "search_files", text="ne"))["hits"]) == 2


async def test_a_search_that_nobody_waits_for_ends(folder: Path, no_ripgrep: None) -> None:
    """The process that looks for a pattern is gone with the call, and the next one is served."""
    (folder / "a").write_text("a" * 40 + "!")
    async with Client(
        filesystem_server([folder], msgspec.structs.replace(QUICK, seconds=3600, matching=3600.0))
    ) as client:
        with pytest.raises(TimedOut):
            await client.call_tool("search_files", {"text": "(a+)+$", "regex": True}, timeout=0.3)
        assert (await done(client, "search_files", text="a!"))["files"] == 1
        for _ in range(10_000):
            if not children():
                return
            await asyncio.sleep(0.001)
    pytest.fail("the process goes on")


def children() -> list[str]:
    """The processes that look for patterns, of this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if (
                path.read_text().rpartition(")")[2].split()[1] == str(os.getpid())
                and b"grep.py" in path.with_name("cmdline").read_bytes()
            ):
                found.append(path.parent.name)
    return found


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(?=(a+)+$)", r"(a*)*\1b"])
async def test_a_pattern_that_backtracks_without_end_is_stopped(
    folder: Path, no_ripgrep: None, pattern: str
) -> None:
    """By the processor time that it used, long before the time of a call is over, and the next
    search goes on.
    """
    (folder / "a").write_text("a" * 60 + "!")
    limits = msgspec.structs.replace(QUICK, seconds=3600, matching=0.2)
    async with Client(filesystem_server([folder], limits)) as client:
        before = os.times()
        assert "too long" in await refusal(client, "search_files", text=pattern, regex=True)
        after = os.times()
        assert not children()
        spent = after.children_user + after.children_system
        assert spent - before.children_user - before.children_system < 5
        assert (await done(client, "search_files", text="a+!", regex=True))["files"] == 1


async def test_the_time_of_a_pattern_grows_with_what_it_searches(
    folder: Path, no_ripgrep: None
) -> None:
    """A search through much text is no offence: with next to no time of its own a pattern still
    gets what its files allow.
    """
    for number in range(5):
        (folder / f"{number}.txt").write_text("a line of text\n" * 100_000)
    limits = msgspec.structs.replace(QUICK, seconds=3600, matching=0.5)
    async with Client(filesystem_server([folder], limits)) as client:
        found = await done(client, "search_files", text="l[aeiou]ne of nothing|^zz", regex=True)
        assert (found["files"], found["complete"]) == (0, True)
