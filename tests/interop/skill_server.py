"""Our server with skills: those of a folder, over stdio, or over HTTP at a port.

Arguments: the folder, then perhaps the port.
"""

import sys

from interlock import Server

server = Server("skills", version="1.0.0")


@server.skill("reports/daily")
async def daily() -> dict[str, str | bytes]:
    """Write the report of the day."""
    return {"SKILL.md": "# Today\n", "figures.csv": "sold,returned\n7,1\n"}


if __name__ == "__main__":
    server.skills(sys.argv[1])
    if len(sys.argv) > 2:
        server.run("http", port=int(sys.argv[2]))
    else:
        server.run()
