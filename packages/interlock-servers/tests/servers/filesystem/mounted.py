"""A process in a world of mounts of its own: `unshare -rm python mounted.py ALLOWED OUTSIDE WALLS`;
it prints what came of it, as JSON.

With both walls what is mounted lies on the same file system; with the first one alone on another,
which is all that it can tell.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from interlock import Client
from interlock_servers.filesystem import filesystem_server, openat
from tests.servers.filesystem.conftest import QUICK, SECRET

CALLS = (
    ("read_file", {"path": "mounted/secret.txt"}),
    ("read_file", {"path": "file"}),
    ("list_folder", {"path": "mounted"}),
    ("file_info", {"path": "file"}),
    ("write_file", {"path": "file", "text": "x"}),
    ("write_file", {"path": "mounted/new", "text": "x"}),
    ("create_folder", {"path": "mounted/new"}),
    ("append_file", {"path": "file", "text": "x"}),
    ("trash_file", {"path": "mounted"}),
    ("trash_file", {"path": "file"}),
    ("copy_file", {"source": "file", "target": "copy"}),
    ("find_files", {"pattern": "secret*"}),
    ("search_files", {"text": "nobody"}),
    ("show_tree", {}),
    ("copy_file", {"source": ".", "target": "copied"}),
    ("copy_file", {"source": "in", "target": "copy"}),
    ("trash_file", {"path": "in"}),
    ("empty_trash", {}),
)


def bind(folder: Path, outside: Path) -> None:
    """Bind a folder and a file of the outside within the allowed folder."""
    for source, target in (
        (outside, "mounted"),
        (outside / "secret.txt", "file"),
        (outside, "in/deep"),
    ):
        subprocess.run(["mount", "--bind", str(source), str(folder / target)], check=True)


async def use(folder: Path) -> list[tuple[str, bool, str]]:
    """What the tools say of it."""
    said = []
    async with Client(
        filesystem_server([folder], QUICK), elicit=lambda question: {"confirm": True}
    ) as client:
        for tool, arguments in CALLS:
            result = await client.call_tool(tool, arguments)
            said.append((f"{tool} {arguments.get('path', '')}", bool(result.is_error), result.text))
    return said


def main(folder: Path, outside: Path, walls: str) -> None:
    """Mount, try, and tell."""
    if walls != "both walls":
        openat._second_wall = False
        subprocess.run(["mount", "-t", "tmpfs", "none", str(outside)], check=True)
        (outside / "secret.txt").write_text(SECRET)
    bind(folder, outside)
    said = asyncio.run(use(folder))
    copied = [path.name for path in folder.glob("cop*/**/secret.txt")]
    print(
        json.dumps(
            [
                said,
                sorted(path.name for path in outside.iterdir()),
                (outside / "secret.txt").read_text(),
                copied,
            ]
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
