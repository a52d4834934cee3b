"""Skills of a server that runs already: a client over HTTP finds them."""

from __future__ import annotations

from contextlib import AsyncExitStack

from interlock import Client, Server
from tests.wired.test_gateway import served

LETTERS = "---\nname: letters\ndescription: Write letters.\n---\n\nDear ...\n"


async def test_the_first_skill_is_added_while_the_server_runs() -> None:
    """As a mounted server adds it whose lists arrive late."""
    server = Server("office")
    async with AsyncExitStack() as stack:
        url = await served(server, stack)
        async with Client(url) as client:
            assert not client.server_capabilities.extensions
        server.add_skill("letters", {"SKILL.md": LETTERS})
        async with Client(url) as client:
            (skill,) = await client.list_skills()
            assert skill.name == "letters"
