"""What the server offers: the catalogue, annotations that are true, every revision over every road,
roots, watching, limits.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import REVISIONS, Answers, Client, McpError, Server
from interlock_servers.filesystem import FilesystemLimits, filesystem_server, openat, server_of
from interlock_servers.filesystem import roots as grounds
from tests.servers.calls import ON_THE_COMMAND_LINE, done, refusal, words
from tests.servers.filesystem.conftest import QUICK
from tests.servers.roads import over, serving


async def test_nobody_who_uses_it_is_broken(
    server: Server, folder: Path, interlock_catalogue: Any
) -> None:
    """Tools, resources and templates are those of the snapshot (`TOL-02`, `RES-02`)."""
    async with Client(filesystem_server([], QUICK)) as client:
        assert not (await interlock_catalogue(client, "filesystem_catalogue.json")).breaking


# tool -> arguments of a call that works
CALLS: dict[str, dict[str, Any]] = {
    "list_allowed_folders": {},
    "read_file": {"path": "f"},
    "read_files": {"paths": ["f", "d/g"]},
    "list_folder": {},
    "show_tree": {},
    "find_files": {"pattern": "*"},
    "search_files": {"text": "e"},
    "file_info": {"path": "f", "checksum": True},
    "write_file": {"path": "f", "text": "x"},
    "create_file": {"path": "n", "text": "x"},
    "append_file": {"path": "f", "text": "x"},
    "edit_file": {"path": "f", "edits": [{"old": "one", "new": "oneone", "count": 1}]},
    "edit_lines": {"path": "f", "edits": [{"first": 1, "last": 0, "new": "x"}]},
    "create_folder": {"path": "n/m"},
    "move_file": {"source": "f", "target": "n"},
    "copy_file": {"source": "d", "target": "n"},
    "trash_file": {"path": "d"},
    "list_trash": {},
    "restore_file": {"id": ""},
    "empty_trash": {},
}


def seen(folder: Path) -> dict[str, tuple[object, ...]]:
    """All that there is in a folder."""
    return {
        path.relative_to(folder).as_posix(): (
            path.lstat().st_mode,
            path.lstat().st_ino,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [folder, *sorted(folder.rglob("*"))]
    }


def contents(folder: Path) -> dict[str, bytes]:
    """The files and folders, without what a replacement changes of them."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b"/"
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("name", CALLS)
async def test_annotations_are_true(client: Client, folder: Path, name: str) -> None:
    """A tool that only reads changes nothing at all, one that is idempotent may be repeated, one
    that is not destructive loses nothing.
    """
    (folder / "d").mkdir()
    (folder / "f").write_text("one\n")
    (folder / "d" / "g").write_text("here\n")
    (folder / "t").write_text("put into the trash")
    thrown = await done(client, "trash_file", path="t")
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert set(tools) == set(CALLS)
    hints = tools[name].annotations
    assert hints is not None
    arguments = {**CALLS[name], **({"id": thrown["id"]} if name == "restore_file" else {})}
    before = seen(folder)
    held = contents(folder)
    await done(client, name, **arguments)
    if hints.read_only_hint:
        assert seen(folder) == before
    else:
        assert seen(folder) != before
    once = contents(folder)
    if not hints.destructive_hint:
        lost = [path for path in held if not once.get(path, b"").startswith(held[path])]
        assert all(path.startswith(".trash/") for path in lost)  # where what was restored was
    again = await client.call_tool(name, arguments)
    if hints.idempotent_hint:
        assert not again.is_error
        assert contents(folder) == once
    else:
        assert again.is_error or contents(folder) != once


@pytest.mark.matrix
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("road", ["memory", "http"])
async def test_every_revision(folder: Path, revision: str, road: str) -> None:
    """Reading, writing, refusing and asking, in memory and over HTTP, in all revisions."""
    served = filesystem_server([folder], QUICK)
    person: Any = lambda question: {"confirm": True}  # noqa: E731 - as short as it is
    async with (
        over(road, served) as target,
        Client(target, revision=revision, elicit=person) as client,
    ):
        await client.list_tools()
        assert "was created" in await words(client, "write_file", path="f", text="one\n")
        assert await words(client, "read_file", path="f") == "one\n"
        assert await refusal(client, "read_file", path="../outside/secret.txt")
        assert "in the trash" in await words(client, "trash_file", path="f")
        emptied = await client.call_tool("empty_trash")
        assert bool(emptied.is_error) == (
            revision < "2025-06-18"
        )  # before it nobody could be asked
        (folder / "g").write_text("g")
        assert (await client.read_resource(f"file://{folder}/g")).contents[0].text == "g"


@pytest.mark.parametrize("revision", ON_THE_COMMAND_LINE)
async def test_from_the_command_line(folder: Path, tmp_path: Path, revision: str) -> None:
    """`interlock serve filesystem FOLDER...` over stdio; the environment names folders where no
    arguments do.
    """
    (tmp_path / "more").mkdir()
    async with Client(
        serving("filesystem", folder, tmp_path / "more"), revision=revision
    ) as client:
        assert await words(client, "list_allowed_folders") == f"{folder}\n{tmp_path}/more"
        await words(client, "write_file", path=f"{tmp_path}/more/f", text="x")
        assert "must begin with one of them" in await refusal(client, "read_file", path="f")
        assert (
            await words(client, "find_files", path=str(tmp_path / "more"), pattern="f")
        ).startswith(f"{tmp_path}/more/f")
        assert "is outside of the allowed folders" in await refusal(
            client, "read_file", path=f"{tmp_path}/outside/secret.txt"
        )


async def test_without_a_folder_nothing_is_allowed(
    monkeypatch: pytest.MonkeyPatch, folder: Path, outside: Path
) -> None:
    """Nothing, whatever the client's roots; the environment's folders where no arguments name
    any.
    """
    monkeypatch.delenv("INTERLOCK_FILESYSTEM_FOLDERS", raising=False)
    async with Client(server_of(), answers=Answers(roots=[str(outside)])) as client:
        assert "No folder is allowed" in await refusal(
            client, "read_file", path=f"{outside}/secret.txt"
        )
    monkeypatch.setenv("INTERLOCK_FILESYSTEM_FOLDERS", f"{folder}{os.pathsep}{folder}/")
    async with Client(server_of()) as client:
        assert (await done(client, "list_allowed_folders"))["folders"] == [str(folder)]
    with pytest.raises(NotADirectoryError, match="not a folder"):
        server_of("/nowhere/at/all")


@pytest.mark.parametrize(
    "limit", [known.name for known in msgspec.structs.fields(FilesystemLimits)]
)
def test_limits_are_as_stated(limit: str) -> None:
    """The page has each of them with what it is unless told otherwise."""
    value = getattr(FilesystemLimits(), limit)
    words_ = value if isinstance(value, str) else f"{int(value):,}"
    page = (Path(__file__).parents[5] / "docs" / "servers" / "filesystem.md").read_text(
        encoding="utf-8"
    )
    (row,) = [
        line
        for line in page.splitlines()
        if line.startswith("|") and f"`{limit.upper()}`" in line.split("|")[1]
    ]
    names = re.findall(r"`(\w+)`", row.split("|")[1])
    assert row.split("|")[2].strip().split(", ")[names.index(limit.upper())] == words_


async def test_a_system_that_cannot_is_refused(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """Where files cannot be opened relative to a folder, every tool says so, and touches
    nothing.
    """
    monkeypatch.setattr(os, "supports_dir_fd", set())
    with pytest.raises(OSError, match="cannot open files relative"):
        openat.check_platform()
    async with Client(filesystem_server([folder], QUICK)) as client:
        assert "does not work on" in await refusal(client, "list_folder")


# -- roots -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "roots, sees",
    [
        (["{folder}"], {"a", "b"}),
        (["{folder}/"], {"a", "b"}),
        (["/"], {"a", "b"}),
        (["{folder}/.."], None),
        (["{folder}/a"], {"x"}),
        (["{folder}/a/../b"], {"y"}),
        (["{folder}/link"], None),
        (["{outside}"], None),
        (["{folder}/missing"], None),
        ([], None),
        (["{folder}/a", "{outside}"], {"x"}),
    ],
)
async def test_roots_narrow_and_never_widen(
    interlock_client: Any,
    interlock_way: Any,
    folder: Path,
    outside: Path,
    roots: list[str],
    sees: set[str] | None,
) -> None:
    """What is in the allowed folders and in the roots may be touched, and nothing else, under every
    way of asking (`ROO-08`).
    """
    for name, inner in (("a", "x"), ("b", "y")):
        (folder / name).mkdir()
        (folder / name / inner).write_text(inner)
    (folder / "link").symlink_to(outside)
    named = [root.format(folder=folder, outside=outside) for root in roots]
    uris = [f"file://{root}" for root in named]
    async with interlock_client(
        filesystem_server([folder], QUICK), answers=Answers(roots=uris)
    ) as client:
        result = await client.call_tool("list_folder", {})
        if sees is None:
            assert result.is_error
            assert "None of the client's roots" in result.text
        else:
            data: Any = result.structured_content
            assert {entry["path"] for entry in data["entries"]} - {"link"} == sees
        for path in (
            f"{outside}/secret.txt",
            f"{folder}/../outside/secret.txt",
            f"{folder}/link/secret.txt",
        ):
            assert await refusal(client, "read_file", path=path)
        if sees == {"x"}:
            assert await refusal(client, "read_file", path=f"{folder}/b/y")
            assert await refusal(client, "write_file", path="../b/y", text="no")
            assert await words(client, "read_file", path=f"{folder}/a/x") == "x"
            assert (await client.read_resource(f"file://{folder}/a/x")).contents[0].text == "x"
            completed = (await client.complete("file:///{+path}", "path", f"{folder}/"[1:])).values
            assert set(completed) <= {f"{folder}/a/"[1:]}
            for path in (f"{folder}/b/y", f"{folder}/b", f"{outside}/secret.txt"):
                with pytest.raises(McpError):
                    await client.read_resource(f"file://{path}")


@pytest.mark.parametrize(
    "uri, path",
    [
        ("file:///a/b%20c", "/a/b c"), ("file://localhost/a", "/a"), ("FILE:///a", "/a"),
            ("file:/a", "/a"), ("file://elsewhere/a", None),
        ("https:///a", None), ("/a", None), ("file:a", None), ("file:///a%00b", None),
            ("file://[/a", None), ("", None),
    ],
)  # fmt: skip
def test_a_root_is_a_path_of_this_machine(uri: str, path: str | None) -> None:
    """What is none allows nothing (`ROO-08`)."""
    assert grounds._path_of(uri) == path


async def test_roots_are_asked_for_again(folder: Path) -> None:
    """A client that changes its roots is believed at once: nothing is kept that would be more than
    it allows now (`ROO-08`).
    """
    (folder / "a").mkdir()
    (folder / "f").write_text("f")
    roots = [f"file://{folder}"]

    for revision in ("2025-11-25", "2026-07-28"):
        roots[:] = [f"file://{folder}"]
        async with Client(
            filesystem_server([folder], QUICK),
            revision=revision,
            answers=Answers(roots=lambda: list(roots)),
        ) as client:
            assert await words(client, "read_file", path=f"{folder}/f") == "f"
            roots[:] = [f"file://{folder}/a"]
            client.roots_changed()
            assert "outside of the allowed folders" in await refusal(
                client, "read_file", path=f"{folder}/f"
            )


# -- watching --------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("bell", ["watchfiles", "polling"])
async def test_changes_are_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, revision: str, bell: str
) -> None:
    """Who watches a folder hears of what others change in it, with watchfiles and without
    (`SUB-02`).
    """
    if bell == "polling":
        monkeypatch.setitem(sys.modules, "watchfiles", None)
    (folder / "f").write_text("f")
    (folder / "d").mkdir()
    served = filesystem_server([folder], msgspec.structs.replace(QUICK, polling=0.02))
    async with (
        Client(served, revision=revision) as client,
        client.watch(resources=[f"file://{folder}"]) as changes,
    ):
        watcher = served.lifespan_state.watcher
        async with asyncio.timeout(30):
            async with watcher.looks:
                await watcher.looks.wait_for(lambda: watcher.watching)
            for change, path in (
                (lambda: (folder / "f").write_text("changed"), "f"),
                (lambda: (folder / "d" / "new").write_text("n"), "d/new"),
                (lambda: (folder / "f").unlink(), "f"),
            ):
                change()
                while (await anext(changes)).uri != f"file://{folder}/{path}":
                    pass


async def test_own_changes_are_told_at_once(client: Client, folder: Path) -> None:
    """A tool that changes a file says so itself."""
    async with client.watch(resources=[f"file://{folder}/f"]) as changes:
        await done(client, "write_file", path="f", text="x")
        async with asyncio.timeout(30):
            assert (await anext(changes)).uri == f"file://{folder}/f"


async def test_an_allowed_folder_that_is_removed(
    client: Client, folder: Path, outside: Path
) -> None:
    """The one that takes its place is served; a link that does is not."""
    folder.rmdir()
    assert "cannot be opened" in await refusal(client, "list_folder")
    folder.mkdir()
    (folder / "new").write_text("")
    assert [entry["path"] for entry in (await done(client, "list_folder"))["entries"]] == ["new"]
    (folder / "new").unlink()
    folder.rmdir()
    folder.symlink_to(outside)
    assert "took its place" in await refusal(client, "list_folder")
