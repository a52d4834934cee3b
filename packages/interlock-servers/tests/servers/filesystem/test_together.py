"""Eight processes that write into one folder at once, some of them killed in the middle; and the
server over this repository.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock import Client
from interlock_servers.filesystem import filesystem_server
from tests.servers.calls import done, words
from tests.servers.checkout import clone
from tests.servers.filesystem.conftest import QUICK
from tests.servers.filesystem.worker import SIZE

WORKER = Path(__file__).with_name("worker.py")
NAMES = "abcdefgh"


def prepared(folder: Path) -> None:
    """What the workers write into."""
    (folder / "log").write_text("")
    (folder / "large").write_text("a" * SIZE)
    (folder / "table").write_text("".join(f"{name}: 0\n" for name in NAMES))


async def started(folder: Path, name: str, start: int, count: int) -> asyncio.subprocess.Process:
    """A worker."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(WORKER),
        str(folder),
        name,
        str(start),
        str(count),
        stdout=asyncio.subprocess.PIPE,
    )


def check_log(folder: Path) -> Counter[str]:
    """The lines of the log, each whole."""
    lines = (folder / "log").read_text().split("\n")
    assert lines.pop() == ""
    assert all(re.fullmatch(r"[a-h] \d+ x{5000} end", line) for line in lines)
    return Counter(" ".join(line.split()[:2]) for line in lines)


async def look_at_large(folder: Path, over: asyncio.Event) -> int:
    """Read the file that everybody replaces until it is over: it is always somebody's, whole."""
    looks = 0
    while not over.is_set():
        text = await asyncio.to_thread((folder / "large").read_text)
        assert len(text) == SIZE
        assert text == text[0] * SIZE
        looks += 1
        await asyncio.sleep(0)
    return looks


@pytest.mark.endurance(seconds=7)
async def test_eight_processes_lose_nothing(folder: Path) -> None:
    """Each line is there once, each count is right, each file is whole, and who reads meanwhile
    never sees half of one.
    """
    prepared(folder)
    over = asyncio.Event()
    looking = asyncio.create_task(look_at_large(folder, over))
    workers = [await started(folder, name, 0, 15) for name in NAMES]
    told = await asyncio.gather(*(worker.communicate() for worker in workers))
    over.set()
    assert await looking > 10
    assert [worker.returncode for worker in workers] == [0] * 8, told
    assert check_log(folder) == Counter(
        {f"{name} {number}": 1 for name in NAMES for number in range(15)}
    )
    assert (folder / "table").read_text() == "".join(f"{name}: 15\n" for name in NAMES)
    assert all(
        (folder / f"{name}-{number}").read_text() == f"{name} {number}"
        for name in NAMES
        for number in range(15)
    )
    assert len(os.listdir(folder)) == 3 + 8 * 15


@pytest.mark.endurance(seconds=10)
async def test_killed_processes_tear_nothing(folder: Path) -> None:
    """`kill -9` in the middle, again and again: what was answered is there, what was not is there
    whole or not at all.
    """
    prepared(folder)
    over = asyncio.Event()
    chance = random.Random(7)
    looking = asyncio.create_task(look_at_large(folder, over))
    answered: Counter[str] = Counter()
    begun: dict[str, int] = {}

    async def live(name: str, number: int) -> None:
        """Be a worker, and be killed after some answers; several lives of each."""
        for life in range(3):
            start = begun.get(name, 0)
            worker = await started(folder, f"{name}", start, 50)
            assert worker.stdout is not None
            for _ in range(chance.randrange(5, 40)):
                line = (await worker.stdout.readline()).decode().split()
                assert line[:1] == ["done"], line
                answered[f"{name} {line[1]} {line[2]}"] += 1
            worker.kill()
            rest = (await worker.communicate())[0].decode()
            assert "error" not in rest
            for said in rest.splitlines():
                if re.fullmatch(r"done \w+ \d+", said):
                    answered[f"{name} {' '.join(said.split()[1:])}"] += 1
            # The next life goes on with numbers of its own: the table says how far this one came,
            # the files may be one further.
            text = (folder / "table").read_text()
            (count,) = re.findall(rf"^{name}: (\d+)$", text, re.MULTILINE)
            begun[name] = 1000 * (life + 1)
            async with Client(filesystem_server([folder], QUICK)) as client:
                await done(
                    client,
                    "edit_file",
                    path="table",
                    edits=[{"old": f"{name}: {count}\n", "new": f"{name}: {begun[name]}\n"}],
                )
            counts[name].append((start, int(count)))

    counts: dict[str, list[tuple[int, int]]] = {name: [] for name in NAMES}
    await asyncio.gather(*(live(name, number) for number, name in enumerate(NAMES)))
    over.set()
    assert await looking > 10
    log = check_log(folder)
    assert set(log.values()) == {1}
    for said in answered:
        name, tool, number = said.split()
        if tool == "append_file":
            assert log[f"{name} {number}"] == 1
        elif tool == "create_file":
            assert (folder / f"{name}-{number}").read_text() == f"{name} {number}"
        elif tool == "edit_file":
            assert any(start <= int(number) < count for start, count in counts[name])
    assert re.fullmatch(r"([a-h]: \d+\n){8}", (folder / "table").read_text())
    for path in folder.glob("?-*"):
        assert path.read_text() == path.name.replace("-", " ")
    left = [name for name in os.listdir(folder) if name.startswith(".")]
    assert (
        len(left) <= 1
    )  # what the last one that was killed was writing; the next one takes its name
    async with Client(filesystem_server([folder], QUICK)) as client:
        assert not any(
            entry["path"].startswith(".")
            for entry in (await done(client, "list_folder"))["entries"]
        )
        await done(client, "write_file", path="after", text="")
    assert not [name for name in os.listdir(folder) if name.startswith(".")]


async def git(top: Path, *arguments: str) -> str:
    """What git says."""
    done_ = await asyncio.create_subprocess_exec(
        "git", "-C", str(top), *arguments, stdout=asyncio.subprocess.PIPE
    )
    return (await done_.communicate())[0].decode()


@pytest.mark.slow
async def test_over_this_repository(folder: Path) -> None:
    """A copy of the repository is found in, searched, edited, copied and put into the trash, as one
    would work on it.
    """
    top = await asyncio.to_thread(clone, folder / "repository")
    async with Client(filesystem_server([top], QUICK)) as client:
        await client.list_tools()
        found = {
            entry["path"]
            for entry in (
                await done(client, "find_files", pattern="packages/interlock/src/**/*.py")
            )["entries"]
        }
        wanted = (await git(top, "ls-files", "packages/interlock/src/*.py")).split()
        assert found == set(wanted)
        hits = await done(client, "search_files", text="class Server:", glob="*.py")
        assert ("packages/interlock/src/interlock/server/app.py") in {
            hit["path"] for hit in hits["hits"]
        }
        assert (
            await done(
                client,
                "search_files",
                text=r"^class \w+\(Protocol\)",
                regex=True,
                path="packages/interlock/src",
            )
        )["files"] > 3
        page = await done(client, "read_file", path="README.md")
        assert page["complete"]
        await done(
            client,
            "edit_lines",
            path="README.md",
            edits=[{"first": 1, "last": 1, "new": "# Another"}],
            version=page["version"],
        )
        assert "-# Interlock\n+# Another\n" in await git(top, "diff")
        copied = await done(client, "copy_file", source="packages/interlock/src", target="copy")
        assert copied["files"] >= len(wanted)
        await done(client, "trash_file", path="copy")
        await done(client, "trash_file", path="packages/interlock/src")
        listed = await done(client, "list_folder", path="packages/interlock")
        assert "packages/interlock/src" not in {entry["path"] for entry in listed["entries"]}
        (src,) = [
            item["id"]
            for item in (await done(client, "list_trash"))["items"]
            if item["path"] == "packages/interlock/src"
        ]
        await done(client, "restore_file", id=src)
        assert (await words(client, "show_tree", path="packages/interlock/src", depth=2)).count(
            "\n"
        ) > 10
        assert (await git(top, "status", "--porcelain")).split() == [
            "M",
            "README.md",
        ]  # the trash says itself that it is to be ignored


@pytest.mark.slow
async def test_with_ripgrep_and_without(
    folder: Path, monkeypatch: pytest.MonkeyPatch, installed: Callable[[str], Path]
) -> None:
    """The real program finds what our own search finds, whatever is looked for."""
    installed("ripgrep")
    (folder / "d").mkdir()
    (folder / "d" / "a.txt").write_text("--help\nÄpfel\nx1\n")
    (folder / "-b.txt").write_text("needle\nNEEDLE\n")
    (folder / ".hidden").write_text("needle\n")
    async with Client(filesystem_server([folder], QUICK)) as client:
        asked = [
            {"text": "--help"},
            {"text": "needle", "ignore_case": True},
            {"text": r"\w\d$", "regex": True},
            {"text": "needle", "hidden": True},
            {"text": r"(?=x)x", "regex": True},
            {"text": "-e"},
        ]
        with_program = [await done(client, "search_files", **one) for one in asked]
        monkeypatch.setenv("PATH", "")
        assert [await done(client, "search_files", **one) for one in asked] == with_program
