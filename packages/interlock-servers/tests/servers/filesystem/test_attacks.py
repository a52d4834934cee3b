"""Paths and files that are meant to do harm: none leads outside, none hangs, and each is refused in
words.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import unicodedata
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, McpError, ToolError
from interlock_servers.filesystem import AllowedRoots, filesystem_server, openat
from interlock_servers.filesystem.resolve import RootFolder, plain
from tests.servers.calls import done, refusal, words
from tests.servers.filesystem.conftest import QUICK, SECRET

DOTS = [
    "..",
    "../outside/secret.txt",
    "a/../../outside/secret.txt",
    "./../outside/secret.txt",
    "a/./.././../outside/secret.txt",
    "//..//outside/secret.txt",
    "../allowed/../outside/secret.txt",
    "/etc/passwd",
    "/",
    "//etc/passwd",
    "/proc/self/environ",
    "{folder}/../outside/secret.txt",
    "{folder}/../allowed/a",
    "{folder}x/secret.txt",
    "{folder}/a/../../outside/secret.txt",
    "{folder}/../../../../../../../etc/passwd",
    "a/../..",
    "~/secret.txt",
    "file:///etc/passwd",
    "..%2foutside%2fsecret.txt",
    "%2e%2e/outside/secret.txt",
    "%252e%252e/outside",
    "..\\outside\\secret.txt",
    "..%5coutside",
    "..%c0%afoutside/secret.txt",
    "\u2025/outside/secret.txt",
    "\uff0e\uff0e/outside/secret.txt",
    "..\uff0foutside\uff0fsecret.txt",
    "\u2024\u2024/outside/secret.txt",
    "..;/outside/secret.txt",
    ".../outside/secret.txt",
    "..\u0000/outside",
    "a\u0000/../../outside",
]
READERS = ("read_file", "list_folder", "show_tree", "file_info")


@pytest.mark.parametrize("path", DOTS)
async def test_no_way_of_writing_leads_outside(
    client: Client, folder: Path, outside: Path, path: str
) -> None:
    """`..` in every encoding, absolute paths, NUL: refused for reading and for writing, and nothing
    appears outside.
    """
    (folder / "a").mkdir()
    path = path.replace("{folder}", str(folder))
    before = sorted(outside.parent.iterdir()), sorted(outside.iterdir())
    for tool in READERS:
        said = await client.call_tool(tool, {"path": path})
        assert SECRET not in said.text
        assert said.is_error, (tool, said.text)
    for tool, arguments in (
        ("write_file", {"path": path, "text": "x"}),
        ("create_folder", {"path": f"{path}/new"}),
        ("trash_file", {"path": path}),
        ("copy_file", {"source": path, "target": "copy"}),
        ("move_file", {"source": path, "target": "moved"}),
    ):
        await client.call_tool(tool, arguments)
    assert (sorted(outside.parent.iterdir()), sorted(outside.iterdir())) == before
    assert (outside / "secret.txt").read_text() == SECRET
    assert not any(found.is_file() and found.read_text() == SECRET for found in folder.rglob("*"))


@given(
    st.lists(
        st.sampled_from(
            ["..", ".", "", "a", "link", "up", "b", "secret.txt", "outside", "allowed"]
        ),
        max_size=12,
    )
)
def test_no_mixture_of_steps_leads_outside(steps: list[str]) -> None:
    """Whatever the steps, with links up and out among them, what is found is in the allowed
    folder.
    """
    allowed = MIXED.allowed()
    with allowed.call_roots(None) as call_roots:
        try:
            with call_roots.find("/".join(steps) or ".") as place:
                found = place.stat()
        except ToolError:
            return
        if found is not None:
            assert (found.st_dev, found.st_ino) in MIXED.inodes


class MIXED:
    """A folder with links in it, made once for all examples."""

    inodes: set[tuple[int, int]]
    _allowed: AllowedRoots | None = None

    @classmethod
    def allowed(cls) -> AllowedRoots:
        assert cls._allowed is not None
        return cls._allowed


@pytest.fixture(scope="module", autouse=True)
def mixed(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Links that stay inside, lead up, and lead out."""
    top = tmp_path_factory.mktemp("mixed")
    (top / "outside").mkdir()
    (top / "outside" / "secret.txt").write_text(SECRET)
    inside = top / "allowed"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "link").symlink_to("../a/b")
    (inside / "a" / "up").symlink_to("../..")
    (inside / "link").symlink_to(top / "outside")
    (inside / "up").symlink_to("a/../../outside")
    (inside / "a" / "b" / "secret.txt").write_text("mine")
    MIXED.inodes = {
        (found.st_dev, found.st_ino)
        for path in [inside, *inside.rglob("*")]
        for found in [path.lstat()]
    }
    MIXED._allowed = AllowedRoots([inside], QUICK)
    MIXED._allowed.open()


# -- links -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "/etc",
        "/etc/passwd",
        "../outside",
        "../outside/secret.txt",
        "/",
        "..",
        "a/../../outside",
        "/proc/self/root",
    ],
)
async def test_links_out_are_never_followed(
    client: Client, folder: Path, outside: Path, target: str, walls: str
) -> None:
    """Not at the end of a path and not within it, to read or to write; they are shown as links,
    with where they lead.
    """
    (folder / "a").mkdir()
    (folder / "out").symlink_to(target)
    for path in ("out", "out/secret.txt", "out/passwd", "out/outside/secret.txt", "a/../out"):
        for tool in ("read_file", "list_folder", "write_file"):
            assert await refusal(
                client, tool, path=path, **({"text": "x"} if tool == "write_file" else {})
            )
    (entry,) = [
        one for one in (await done(client, "list_folder"))["entries"] if one["path"] == "out"
    ]
    assert (entry["kind"], entry["target"]) == ("link", target)
    assert (await done(client, "file_info", path="out"))["target"] == target
    assert (await done(client, "find_files", pattern="passwd"))["entries"] == []
    with pytest.raises(McpError):
        await client.read_resource(f"file://{folder}/out")
    assert os.listdir(outside) == ["secret.txt"]


async def test_links_within_are_followed_step_by_step(client: Client, folder: Path) -> None:
    """Relative and absolute ones, to files and to folders, through other links; a ring of links
    ends in words.
    """
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "f").write_text("here")
    (folder / "one").symlink_to("a")
    (folder / "a" / "two").symlink_to(folder / "one" / "b")
    (folder / "three").symlink_to("one/two/../../a/two/f")
    for path in ("one/b/f", "one/two/f", "three", "a/two/../b/f", f"{folder}/one/two/f"):
        assert await words(client, "read_file", path=path) == "here"
    await done(client, "write_file", path="three", text="there")
    assert (folder / "a" / "b" / "f").read_text() == "there"
    assert (folder / "three").is_symlink()
    (folder / "ring").symlink_to("ring2")
    (folder / "ring2").symlink_to("ring")
    assert "links" in await refusal(client, "read_file", path="ring")
    assert "links" in await refusal(client, "read_file", path="ring/x")


async def test_a_link_is_moved_and_thrown_away_as_a_link(
    client: Client, folder: Path, outside: Path
) -> None:
    """What it points to stays where it is; copies leave links out."""
    (folder / "d").mkdir()
    (folder / "d" / "out").symlink_to(outside / "secret.txt")
    await done(client, "move_file", source="d/out", target="d/out2")
    assert (folder / "d" / "out2").is_symlink()
    copied = await done(client, "copy_file", source="d", target="e")
    assert copied["leftOut"] == ["d/out2"]
    assert not list((folder / "e").iterdir())
    assert "link that leads out" in await refusal(client, "copy_file", source="d/out2", target="f")
    await done(client, "trash_file", path="d/out2")
    await done(client, "empty_trash")
    assert (outside / "secret.txt").read_text() == SECRET


async def test_the_trash_cannot_be_a_way_out(client: Client, folder: Path, outside: Path) -> None:
    """A trash that is a link is refused, and so is what is written down in it when it was
    made up.
    """
    (folder / ".trash").symlink_to(outside)
    (folder / "f").write_text("x")
    assert await refusal(client, "trash_file", path="f")
    assert os.listdir(outside) == ["secret.txt"]
    (folder / ".trash").unlink()
    for number, path in enumerate(
        (
            ["..", "outside", "new"],
            ["/etc/new"],
            [""],
            "x",
            [1],
            ["a/../../new"],
            ["a\0b"],
            ["\ud800"],
            ["x" * 5000],
        )
    ):
        box = folder / ".trash" / f"{number:016x}-00000000"
        box.mkdir(parents=True)
        (box / "item").write_text("x")
        (box / "info.json").write_text(json.dumps({"path": path, "kind": "file", "trashed": 1}))
        assert await refusal(client, "restore_file", id=box.name)
    found = await done(client, "list_trash")
    assert (found["items"], len(found["problems"])) == ([], 9)
    assert os.listdir(outside) == ["secret.txt"]
    for path in (".trash", ".trash/x", "./.trash", ".trash/0000000000000000-00000000/item"):
        assert "trash" in await refusal(client, "read_file", path=path)


def test_a_link_above_an_allowed_folder(
    folder: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that comes between the look and the opening is not followed either."""
    (folder / "in").mkdir()
    (outside / "in").mkdir()
    (folder.parent / "swapped").symlink_to(outside)
    monkeypatch.setattr(os.path, "realpath", lambda path: str(folder.parent / "swapped" / "in"))
    if openat._second_wall:
        with pytest.raises(ToolError, match="cannot be opened"):
            RootFolder.at(str(folder / "in"))


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "/etc", "a\0", "link"])
def test_a_step_is_one_name(folder: Path, outside: Path, name: str, walls: str) -> None:
    """Whoever calls it: what opens and renames takes no way of several names, none upwards, and no
    link.
    """
    (folder / "a").mkdir()
    (folder / "a" / "b").touch()
    (folder / "link").symlink_to(outside)
    here = os.open(folder, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match=r"no name|Too many|Not a directory"):
            openat.step(name, openat.FOLDER, here)
        if name != "link":
            for source, target in ((name, "x"), ("a", name)):
                with pytest.raises(OSError, match="no name"):
                    openat.rename_new(source, here, target, here)
    finally:
        os.close(here)


# -- files that are none ---------------------------------------------------------------------------


async def test_hard_links_may_lead_outside(folder: Path, outside: Path) -> None:
    """A file with two names is refused, unless the owner of the server lets it in; and even then it
    is replaced, never written into.
    """
    os.link(outside / "secret.txt", folder / "hard")
    for setting, reads, writes in (
        ("refuse", False, False),
        ("read", True, False),
        ("allow", True, True),
    ):
        server = filesystem_server([folder], msgspec.structs.replace(QUICK, hard_links=setting))
        async with Client(server) as client:
            for tool, allowed, arguments in (
                ("read_file", reads, {}),
                ("append_file", writes, {"text": "x"}),
                ("write_file", writes, {"text": "x"}),
            ):
                result = await client.call_tool(tool, {"path": "hard", **arguments})
                assert bool(result.is_error) != allowed, (setting, tool)
                assert not result.is_error or "HARD_LINKS" in result.text
            if not reads:
                assert (await done(client, "search_files", text="nobody"))["hits"] == []
        assert (outside / "secret.txt").read_text() == SECRET


async def test_what_would_hang_is_refused(client: Client, folder: Path) -> None:
    """FIFOs without another end, sockets and devices: at once, in words, by every tool; a search
    goes on past them.
    """
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        here = os.open(folder, os.O_RDONLY)
        try:
            listening.bind(f"/proc/self/fd/{here}/socket")
        finally:
            os.close(here)
        (folder / "zero").symlink_to("/dev/zero")
        for name in ("fifo", "socket", "zero"):
            for tool, arguments in (
                ("read_file", {}),
                ("append_file", {"text": "x"}),
                ("edit_file", {"edits": [{"old": "a", "new": "b"}]}),
            ):
                assert await refusal(client, tool, path=name, **arguments)
            assert await refusal(client, "write_file", path=name, text="x")
        (folder / "text").write_text("needle")
        assert [
            hit["path"] for hit in (await done(client, "search_files", text="needle"))["hits"]
        ] == ["text"]
        (folder / "d").mkdir()
        os.mkfifo(folder / "d" / "fifo")
        assert (await done(client, "copy_file", source="d", target="e"))["leftOut"] == ["d/fifo"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make device files")
async def test_a_device_in_the_folder_is_not_opened(client: Client, folder: Path) -> None:
    """A /dev/zero of its own."""
    os.mknod(folder / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    assert "device" in await refusal(client, "read_file", path="zero")


async def test_a_file_of_a_terabyte(client: Client, folder: Path, no_ripgrep: None) -> None:
    """Sparse: it is told as what it is, read by bytes at its end, and never taken in whole."""
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 40)
        file.seek((1 << 40) - 4)
        file.write(b"end\n")
    assert "not text" in await refusal(client, "read_file", path="huge")
    assert await words(client, "read_file", path="huge", offset=(1 << 40) - 4) == "end\n"
    assert (await done(client, "file_info", path="huge"))["size"] == 1 << 40
    for tool, arguments in (
        ("append_file", {"text": "x"}),
        ("edit_file", {"edits": [{"old": "a", "new": "b"}]}),
    ):
        assert "more than" in await refusal(client, tool, path="huge", **arguments)
    assert (await done(client, "search_files", text="end"))["complete"] is False
    assert "cannot be copied" in await refusal(client, "copy_file", source="huge", target="copy")
    assert not (folder / "copy").exists()
    with pytest.raises(McpError):
        await client.read_resource(f"file://{folder}/huge")


@pytest.mark.parametrize("folder_", ["/proc", "/sys", "/proc/self"])
async def test_windows_into_the_kernel_are_no_folders(folder_: str) -> None:
    """Not even the owner of the server can allow them by accident."""
    async with Client(filesystem_server([folder_], QUICK)) as client:
        assert "kernel" in await refusal(client, "list_folder")


async def test_mounts_are_not_entered(walls: str) -> None:
    """With everything allowed, /proc and /dev are still other file systems."""
    async with Client(filesystem_server(["/"], QUICK)) as client:
        for path in ("/proc/self/environ", "proc/self/root/etc/passwd"):
            assert "mounted" in await refusal(client, "read_file", path=path)
    async with Client(
        filesystem_server(["/"], msgspec.structs.replace(QUICK, mounts=True))
    ) as client:
        assert "mounted" in await refusal(client, "read_file", path="/proc/self/environ")


def test_what_is_mounted_in_the_folder_is_outside(folder: Path, outside: Path, walls: str) -> None:
    """Not entered, read, written, found, copied or put into the trash; with the help of the kernel
    also where it lies on the same file system.
    """
    (folder / "mounted").mkdir()
    (folder / "in" / "deep").mkdir(parents=True)
    (folder / "file").touch()
    inside = ["unshare", "--map-root-user", "--mount"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*inside, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("this machine lets nobody mount anything")
    if walls == "both walls" and not openat._second_wall:
        pytest.skip("this kernel has no openat2")
    script = [
        sys.executable,
        str(Path(__file__).with_name("mounted.py")),
        str(folder),
        str(outside),
        walls,
    ]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parents[5]), os.environ.get("PYTHONPATH", "")]
        ),
    }
    ended = subprocess.run([*inside, *script], capture_output=True, text=True, check=True, env=env)
    said, names, secret, copied = json.loads(ended.stdout)
    assert (names, secret, copied) == (["secret.txt"], SECRET, [])
    for call, refused, text in said:
        assert SECRET.strip() not in text, call
        assert refused or call in (
            "find_files ",
            "search_files ",
            "show_tree ",
            "copy_file ",
            "trash_file in",
        ), (call, text)


# -- names -----------------------------------------------------------------------------------------


async def test_names_that_look_alike_are_different(client: Client, folder: Path) -> None:
    """NFC and NFD, upper and lower case, wide letters: each is its own file, and none is found in
    place of another.
    """
    name = "Å.txt"
    forms = [
        unicodedata.normalize("NFC", name),
        unicodedata.normalize("NFD", name),
        "å.txt",
        "\u212b.txt",
        "Å．txt",
    ]
    for number, form in enumerate(forms):
        if number:
            assert await refusal(client, "read_file", path=form)
        await done(client, "create_file", path=form, text=str(number))
    assert [await words(client, "read_file", path=form) for form in forms] == list("01234")
    assert len(os.listdir(folder)) == 5
    assert [
        one["path"] for one in (await done(client, "find_files", pattern=forms[0]))["entries"]
    ] == [forms[0]]
    await done(client, "write_file", path="README", text="x")
    assert "Did you mean README?" in await refusal(client, "read_file", path="readme")
    assert await refusal(client, "read_file", path=".TRASH/x")


@pytest.mark.parametrize(
    "name",
    [
        "-rf",
        "--help",
        "-",
        "a\nb",
        "\x1b[31mred\x1b[0m",
        "a b",
        "'; rm -rf ~",
        "$(id)",
        "*",
        "?",
        "[a]",
        "%2e%2e",
        "con",
        "a\\b",
        "\u202egnp.exe",
        " ",
    ],
)
async def test_odd_names_are_names(client: Client, folder: Path, name: str) -> None:
    """They are written, read, found, moved and put into the trash; in words nothing of them reaches
    a terminal that would act on it.
    """
    await done(client, "write_file", path=name, text="needle")
    assert (folder / name).read_text() == "needle"
    assert await words(client, "read_file", path=name) == "needle"
    for tool, arguments in (
        ("list_folder", {}),
        ("search_files", {"text": "needle"}),
        ("find_files", {"pattern": "*"}),
        ("show_tree", {}),
    ):
        text = await words(client, tool, **arguments)
        assert all(char.isprintable() or char == "\n" for char in text)
        assert plain(name) in text
    assert [one["path"] for one in (await done(client, "list_folder"))["entries"]] == [name]
    await done(client, "move_file", source=name, target=f"{name}2")
    await done(client, "trash_file", path=f"{name}2")
    assert (await done(client, "list_trash"))["items"][0]["path"] == f"{name}2"


async def test_names_that_are_no_text(client: Client, folder: Path) -> None:
    """They are shown, written out, and break nothing."""
    (Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff"))).write_text("needle")
    assert [one["path"] for one in (await done(client, "list_folder"))["entries"]] == ["bad\\xff"]
    assert [hit["path"] for hit in (await done(client, "search_files", text="needle"))["hits"]] == [
        "bad\\xff"
    ]
    assert (await done(client, "show_tree"))["entries"][0]["path"] == "bad\\xff"


async def test_long_names_and_paths(client: Client) -> None:
    """Refused by their length, in words."""
    assert "too long" in await refusal(client, "write_file", path="n" * 256, text="x")
    assert await refusal(client, "read_file", path="a/" * 3000)
    assert "too long" in await refusal(client, "read_file", path="é" * 200)
    assert "too deep" in await refusal(client, "create_folder", path="/".join(["d"] * 1000))
    assert (await done(client, "list_folder"))["entries"] == []


async def test_deep_trees(client: Client, folder: Path) -> None:
    """Deeper than the limit is not gone into, and that is said; removing one ends too."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    found = await done(client, "find_files", pattern="d")
    assert (len(found["entries"]), found["complete"]) == (64, False)
    assert await refusal(client, "list_folder", path="/".join(["d"] * 300))
    await done(client, "trash_file", path="d")
    await done(client, "empty_trash")
    assert not (folder / "d").exists()
    assert os.listdir(folder / ".trash") == [".gitignore"]


async def test_patterns_that_take_for_ever(folder: Path, no_ripgrep: None) -> None:
    """A pattern that would run for years is ended with its time; a glob cannot be made to."""
    (folder / "a").write_text("a" * 40 + "!")
    async with Client(
        filesystem_server([folder], msgspec.structs.replace(QUICK, seconds=0.5))
    ) as client:
        assert "too long" in await refusal(client, "search_files", text="(a+)+$", regex=True)
        assert await done(client, "find_files", pattern="**/" * 30 + "*a" * 60)
        assert await refusal(client, "find_files", pattern="{a,b}" * 20)
        assert await refusal(client, "search_files", text="(", regex=True)
