"""A whole server in one file: the text files of a folder, to list, search and read.

It writes nothing and guards against path traversal: no path and no link leads out of the folder.
Run it with `python examples/files.py FOLDER`, or `interlock run examples/files.py` for the current
folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta, Struct

from interlock import (
    Context,
    McpError,
    ResourceLink,
    Server,
    ServerInfo,
    ServerLimits,
    ToolAnnotations,
    ToolError,
    ToolResult,
    types,
)

MOST_BYTES = 256 * 1024  # of one file
MOST_FILES = 5_000
MOST_HITS = 100
_BUILT = frozenset({"node_modules", "__pycache__", "build", "dist"})
Pattern = Annotated[str, Meta(max_length=200)]


class Hit(Struct):
    """A line that matches the search."""

    path: str
    line: int
    text: str


class Found(Struct):
    """The matching lines; `complete` is false if there are more."""

    hits: list[Hit]
    complete: bool


class Folder:
    """A folder and its visible files: hidden files, build outputs and links that lead out are
    excluded.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve(strict=True)
        if not self.root.is_dir():
            raise NotADirectoryError(f"{root} is not a folder")

    def paths(self, pattern: str = "*") -> Iterator[str]:
        """Return the sorted paths, with `/`, of the files below the folder whose name or whole path
        matches a pattern.
        """
        left = MOST_FILES
        for where, folders, names in os.walk(self.root):  # follows no links to folders
            folders[:] = sorted(name for name in folders if not _unseen(name))
            for name in sorted(names):
                whole = Path(where, name)
                path = whole.relative_to(self.root).as_posix()
                if (
                    not _unseen(name)
                    and (fnmatchcase(name, pattern) or fnmatchcase(path, pattern))
                    and not whole.is_symlink()
                ):
                    yield path
                    left -= 1
                    if not left:
                        return

    def read(self, path: str) -> str:
        """Return the text of a file.

        Raises FileNotFoundError for a missing or hidden file, ToolError for a file that is not
        text.
        """
        parts = Path(path).parts
        if not parts or "\0" in path or any(_unseen(part) for part in parts):
            raise FileNotFoundError(path)
        whole = self.root.joinpath(path).resolve()
        if not whole.is_relative_to(self.root) or not whole.is_file():
            raise FileNotFoundError(path)
        with whole.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ToolError(f"{path} has more than {MOST_BYTES} bytes, and that much is not read.")
        try:
            if b"\0" in data:
                raise ValueError
            return data.decode()
        except ValueError:
            raise ToolError(f"{path} is not text.") from None


def _unseen(name: str) -> bool:
    return name.startswith(".") or name in _BUILT or name.endswith(".egg-info")


def folder_server(root: str | Path = ".") -> Server:
    """Return a server for the files of a folder.

    Raises FileNotFoundError or NotADirectoryError.
    """
    folder = Folder(Path(root))
    made = Server(
        "files",
        "1.0.0",
        info=ServerInfo(
            title=f"The files of {folder.root.name}",
            description="The text files of one folder, to be read and searched.",
        ),
        instructions=(
            "Find files with list_files and search_files, and read them as resources: "
            "file:///path, below the folder."
        ),
        limits=ServerLimits(page_size=200),
    )
    _add_tools(made, folder)
    _add_reading(made, folder)
    return made


def _add_tools(made: Server, folder: Folder) -> None:
    only_reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)

    @made.tool(title="List files", annotations=only_reads)
    def list_files(pattern: Pattern = "*") -> list[ResourceLink]:
        """The files whose path fits a pattern, as links that can be read.

        Args:
            pattern: of the name, like "*.md", or of the whole path, like "src/*.py"; `*` spans
                folders too.
        """
        found = folder.paths(pattern)
        return [
            ResourceLink(uri=_uri(path), name=path, size=(folder.root / path).stat().st_size)
            for path in islice(found, MOST_HITS)
        ]

    @made.tool(title="Search files", annotations=only_reads, timeout=20.0)
    def search_files(
        text: Annotated[str, Meta(min_length=1, max_length=200)],
        ctx: Context,
        pattern: Pattern = "*",
    ) -> ToolResult[Found]:
        """The lines that hold a text, whatever its case.

        Args:
            text: what to look for, as it stands.
            pattern: which files to look into, as for list_files.
        """
        wanted = text.casefold()
        paths = list(folder.paths(pattern))
        hits: list[Hit] = []
        for number, path in enumerate(paths):
            if ctx.cancelled or len(hits) > MOST_HITS:
                break
            if number % 50 == 0:
                ctx.progress(number, len(paths), path)
            hits += _hits(folder, path, wanted)
        found = Found(hits[:MOST_HITS], complete=len(hits) <= MOST_HITS)
        lines = [f"{hit.path}:{hit.line}: {hit.text}" for hit in found.hits] or [
            "No line holds it."
        ]
        return ToolResult(
            found, "\n".join([*lines, *([] if found.complete else ["There are more."])])
        )


def _add_reading(made: Server, folder: Folder) -> None:
    @made.resource("file:///{+path}", name="file", title="A file of the folder")
    def file(path: str) -> str | None:
        """The text of a file, by its path below the folder."""
        try:
            return folder.read(path)
        except FileNotFoundError:
            return None

    @made.completion("file:///{+path}", "path")
    def complete_path(value: str) -> list[str]:
        return [path for path in folder.paths() if path.startswith(value)]

    @made.prompt(title="Explain a file")
    def explain_file(path: str) -> str:
        """Ask for an explanation of one file."""
        try:
            text = folder.read(path)
        except FileNotFoundError:
            raise McpError(types.INVALID_PARAMS, f"There is no file {path}") from None
        return (
            f"Explain what this file is for, and how its parts work together.\n\n# {path}\n\n{text}"
        )

    @made.completion("explain_file", "path")
    def complete_prompt(value: str) -> list[str]:
        return complete_path(value)


def _uri(path: str) -> str:
    return f"file:///{quote(path)}"


def _hits(folder: Folder, path: str, wanted: str) -> list[Hit]:
    try:
        lines = folder.read(path).splitlines()
    except (ToolError, OSError):
        return []  # not text, too large, or deleted since it was listed
    return [
        Hit(path, number, line.strip()[:200])
        for number, line in enumerate(lines, 1)
        if wanted in line.casefold()
    ]


server = folder_server()


if __name__ == "__main__":
    folder_server(*sys.argv[1:2]).run()
