"""The skills of a folder, served by FastMCP over stdio, or over HTTP at a port. Run by its own
Python.

Arguments: the folder, then perhaps the port.
"""

import sys
from pathlib import Path

from fastmcp import FastMCP
from fastmcp.server.providers.skills import SkillsDirectoryProvider
from fastmcp.skills.extension import SkillsExtension

server = FastMCP("skills")
provider = SkillsDirectoryProvider(Path(sys.argv[1]), experimental_skills=True)
server.add_provider(provider)
server.add_extension(SkillsExtension(providers=[provider]))

if sys.argv[2:]:
    port = int(sys.argv[2])
    server.run("http", port=port, host="127.0.0.1", show_banner=False, log_level="error")
else:
    server.run(show_banner=False)
