"""A process that writes into a folder with many others: `python worker.py FOLDER NAME START COUNT`;
it prints what was done, once it is.
"""

from __future__ import annotations

import asyncio
import sys

from interlock import Client
from interlock_servers.filesystem import filesystem_server

SIZE = 300_000


async def main(folder: str, name: str, start: int, count: int) -> None:
    """Append a line, count in the table, make a file, and replace the large one, over and over."""
    async with Client(filesystem_server([folder])) as client:
        for number in range(start, start + count):
            for tool, arguments in (
                ("append_file", {"path": "log", "text": f"{name} {number} {'x' * 5000} end\n"}),
                (
                    "edit_file",
                    {
                        "path": "table",
                        "edits": [{"old": f"{name}: {number}\n", "new": f"{name}: {number + 1}\n"}],
                    },
                ),
                ("create_file", {"path": f"{name}-{number}", "text": f"{name} {number}"}),
                ("write_file", {"path": "large", "text": name * SIZE}),
            ):
                result = await client.call_tool(tool, arguments)
                if result.is_error:
                    print("error", tool, result.text, flush=True)
                    sys.exit(1)
                print("done", tool, number, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
