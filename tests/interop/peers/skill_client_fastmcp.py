"""A client of FastMCP that reads all skills; prints what it saw as a line of JSON. Run by its own
Python.

Arguments: the mode, then the URL of a server or its command.
"""

import asyncio
import base64
import hashlib
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.skills import SkillsClientExtension
from mcp import MCPError


async def bytes_of(client, file):
    """A file's bytes, which must be those of its entry."""
    (content,) = await client.read_resource(file.uri)
    text = getattr(content, "text", None)
    data = base64.b64decode(content.blob) if text is None else text.encode()
    assert len(data) == file.size
    assert f"sha256:{hashlib.sha256(data).hexdigest()}" == file.digest
    return base64.b64encode(data).decode()


async def main(mode, *target):
    """Read every skill that has digests, and the entries of all."""
    road = target[0]
    if not road.startswith("http"):
        road = StdioTransport(command=road, args=list(target[1:]))
    seen = {"skills": {}}
    async with Client(road, mode=mode, extensions=[SkillsClientExtension()]) as client:
        try:
            entries = await client.list_skills()
        except RuntimeError as bad:
            print(json.dumps({"refused": str(bad)}))
            return
        for listed in entries:
            entry = await client.get_skill(listed.uri)
            files = {}
            if entry.resources != "dynamic":
                files = {file.uri: await bytes_of(client, file) for file in entry.resources}
            seen["skills"][entry.uri] = {"frontmatter": entry.frontmatter.root, "files": files}
        try:
            await client.get_skill("skill://nothing/SKILL.md")
        except MCPError as bad:
            seen["unknown"] = bad.error.code
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
