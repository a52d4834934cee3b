"""The skills of a folder, served by NimbleBrain's extension of the official Python SDK over stdio,
or over HTTP at a port. Run by its own Python.

Arguments: the folder, then perhaps the port.
"""

import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from nimblebrain_bundle_sdk import MCPServerSkillsExtension, SkillDefinition

root = Path(sys.argv[1])
skills = [
    SkillDefinition.from_directory(file.parent, path=file.parent.relative_to(root).as_posix())
    for file in sorted(root.rglob("SKILL.md"))
]
server = MCPServer("skills", extensions=[MCPServerSkillsExtension(skills)])

if sys.argv[2:]:
    server.run("streamable-http", port=int(sys.argv[2]), host="127.0.0.1")
else:
    server.run()
