"""The files server: clients can read and find the files of the folder, and no other files."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import files
from examples.files import MOST_BYTES, Folder, folder_server
from interlock import Client, McpError, types


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with every kind of entry, and a secret beside it."""
    root = tmp_path / "shown"
    for name, text in {
        "README.md": "# Shown\nA needle here.\n",
        "src/a.py": "needle = 1\n",
        "src/deep/b.py": "x = 2\n",
        "a b%20c.txt": "odd name\n",
        ".hidden/key": "needle\n",
        ".env": "needle\n",
        "node_modules/x.js": "needle\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (root / "picture.png").write_bytes(b"\x89PNG\0needle")
    (root / "large.txt").write_text("needle\n" * (MOST_BYTES // 7 + 1), encoding="utf-8")
    (tmp_path / "secret").write_text("needle", encoding="utf-8")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "linked").symlink_to(tmp_path, target_is_directory=True)
    return root


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[Client]:
    """A client of a server over that folder."""
    async with Client(folder_server(folder)) as opened:
        yield opened


async def test_lists_what_may_be_seen(client: Client) -> None:
    """Hidden files, build outputs and links are not listed; a pattern matches names or whole
    paths."""

    async def listed(**arguments: str) -> list[str]:
        blocks = (await client.call_tool("list_files", arguments)).content
        return [block.name for block in blocks if isinstance(block, types.ResourceLink)]

    assert await listed() == [
        "README.md",
        "a b%20c.txt",
        "large.txt",
        "picture.png",
        "src/a.py",
        "src/deep/b.py",
    ]
    assert await listed(pattern="*.md") == ["README.md"]
    assert await listed(pattern="src/*.py") == ["src/a.py", "src/deep/b.py"]
    assert await listed(pattern="nothing") == []


async def test_every_link_can_be_read(client: Client) -> None:
    """The URI of a link leads to the file, even if it has an unusual name."""
    (link,) = (await client.call_tool("list_files", {"pattern": "a b*"})).content
    assert isinstance(link, types.ResourceLink)
    assert link.uri == "file:///a%20b%2520c.txt"
    (contents,) = (await client.read_resource(link.uri)).contents
    assert contents.text == "odd name\n"
    (python,) = (await client.read_resource("file:///src/deep/b.py")).contents
    assert (python.mime_type, python.text) == ("text/x-python", "x = 2\n")


@pytest.mark.parametrize(
    "path",
    [
        "secret",
        "../secret",
        "..%2Fsecret",
        "src/../../secret",
        "link",
        "linked/secret",
        ".env",
        ".hidden/key",
        "src",
        "",
        "/etc/passwd",
        "%2Fetc%2Fpasswd",
    ],
)
async def test_what_must_not_be_read(client: Client, path: str) -> None:
    """A path outside, a hidden file, a link or a folder is not a resource (`RES-08`)."""
    with pytest.raises(McpError, match="not found"):
        await client.read_resource(f"file:///{path}")


@pytest.mark.parametrize(
    "path, words", [("picture.png", "is not text"), ("large.txt", "more than")]
)
async def test_what_is_not_read(client: Client, path: str, words: str) -> None:
    """Binary and very large files are rejected, and the error names them."""
    with pytest.raises(McpError, match=words):
        await client.read_resource(f"file:///{path}")


async def test_search(client: Client) -> None:
    """The search returns lines with their places, from visible text files, ignoring case."""
    result = await client.call_tool("search_files", {"text": "NEEDLE"})
    assert result.text == "README.md:2: A needle here.\nsrc/a.py:1: needle = 1"
    found = result.value()
    assert found == {
        "hits": [
            {"path": "README.md", "line": 2, "text": "A needle here."},
            {"path": "src/a.py", "line": 1, "text": "needle = 1"},
        ],
        "complete": True,
    }
    assert (await client.call_tool("search_files", {"text": ""})).is_error


async def test_completion_and_prompt(client: Client) -> None:
    """Paths complete, for the template and for the prompt, which holds the file."""
    template = (await client.list_resource_templates())[0].uri_template
    assert (await client.complete(template, "path", "src/")).values == ["src/a.py", "src/deep/b.py"]
    assert (await client.complete("explain_file", "path", "R")).values == ["README.md"]
    prompt = await client.get_prompt("explain_file", {"path": "src/a.py"})
    assert "needle = 1" in str(prompt.messages[0].content)
    with pytest.raises(McpError, match="There is no file \\.\\./secret"):
        await client.get_prompt("explain_file", {"path": "../secret"})


async def test_as_a_program(folder: Path) -> None:
    """The module runs over stdio and takes the folder as its argument."""
    async with Client([sys.executable, files.__file__, str(folder)]) as client:
        assert (await client.read_resource("file:///src/a.py")).contents[0].text == "needle = 1\n"


def test_what_is_no_folder_is_refused(folder: Path) -> None:
    """A server for a file instead of a folder raises an error."""
    with pytest.raises(NotADirectoryError):
        folder_server(folder / "README.md")


@given(st.text(alphabet="./\\%2eEfFcC~ab\0 ", max_size=24))
def test_no_path_leads_out(path: str) -> None:
    """Any path leads only to files within the folder: here the tests' own folder, which has no file
    of that name.
    """
    here = Folder(Path(__file__).parent)
    for asked in (path, quote(path)):
        with pytest.raises(FileNotFoundError):
            here.read(asked)
