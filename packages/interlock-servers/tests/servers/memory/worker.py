"""A process that writes into a graph with many others: `python worker.py FILE NAME START COUNT`; it
prints what was done, once it is.
"""

from __future__ import annotations

import asyncio
import sys

from interlock import Client
from interlock_servers.memory import memory_server

PARTS = 20  # observations of each entity: all of them, or none


async def main(path: str, name: str, start: int, count: int) -> None:
    """Make entities of many parts, relate them, add to one that everybody adds to, and take a
    change back, over and over.
    """
    async with Client(memory_server(path)) as client:
        for number in range(start, start + count):
            one = {
                "name": f"{name}{number}",
                "entityType": "made",
                "observations": [f"part {part} of {name}{number}" for part in range(PARTS)],
            }
            wrong = {
                "name": f"wrong-{name}{number}",
                "entityType": "wrong",
                "observations": ["to be undone"],
            }
            undone = None
            for tool, arguments in (
                ("create_entities", {"entities": [one]}),
                (
                    "create_relations",
                    {
                        "relations": [
                            {"from": f"{name}{number}", "to": "shared", "relationType": "adds_to"}
                        ]
                    },
                ),
                (
                    "add_observations",
                    {"observations": [{"entityName": "shared", "contents": [f"{name}{number}"]}]},
                ),
                ("create_entities", {"entities": [wrong]}),
                ("undo", {}),
                ("search_nodes", {"query": f"part {name}{number}", "limit": 3}),
            ):
                result = await client.call_tool(tool, arguments or {"change": undone})
                data = result.structured_content
                if result.is_error or not isinstance(data, dict):
                    print("error", tool, result.text, flush=True)
                    sys.exit(1)
                undone = data.get("change")
                if tool == "search_nodes" and data["entities"][0]["name"] != f"{name}{number}":
                    print("error", "not found", f"{name}{number}", flush=True)
                    sys.exit(1)
                print("done", tool, f"{name}{number}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
