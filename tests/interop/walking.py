"""Third-party clients that are connected to one of our servers: their view of it is checked against
its snapshot and its schemas."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from interlock.schema import compile as compile_schema
from interlock.testing.catalogue import condensed
from tests.interop.driver import Driver, Step, command_of, led, on_the_web
from tests.ports import free_port

# The newest revision of each client; for clients of both eras, the handshake too.
WAYS = [
    ("python-2", "auto"),
    ("python-2", "legacy"),
    ("python-1", "legacy"),
    ("typescript-2", "auto"),
    ("typescript-1", "legacy"),
]
SNAPSHOTS = Path(__file__).parents[2] / "packages/interlock-servers/tests/servers"
# The peers pass almost no environment variables to a server, so the program sets its own.
PROGRAM = (
    "import os; os.environ.update({env!r}); from interlock.cli import main; main(['serve', "
    "{name!r}, *{arguments!r}])"
)

Walk = Callable[..., AbstractAsyncContextManager["Walker"]]


class Walker:
    """A client that is connected to one server; every structured result is validated against the
    server's schema.

    `standing` are the client's default answers to questions.
    """

    def __init__(self, client: Driver, name: str, standing: Mapping[str, Any]) -> None:
        self.client = client
        self._name = name
        self._standing = dict(standing)
        self._schemas: dict[str, Any] = {}
        self.stateless = False
        self.mine = True  # whether the server serves only this client, which is then its caller

    async def begin(self) -> None:
        """Check that the lists match the snapshot: this client receives every entry."""
        self.stateless = (await self._do("who"))["revision"] >= "2026"
        (snapshot,) = SNAPSHOTS.rglob(f"{self._name}_catalogue.json")
        known = json.loads(snapshot.read_text(encoding="utf-8"))
        tools = (await self._do("list_tools"))["tools"]
        assert {tool["name"] for tool in tools} == known["tools"].keys()
        self._schemas = {
            tool["name"]: tool["outputSchema"] for tool in tools if "outputSchema" in tool
        }
        listed = condensed({"tools": {tool["name"]: tool for tool in tools}})["tools"]
        for name, tool in listed.items():
            assert tool["inputSchema"] == known["tools"][name]["inputSchema"], name
        if known["templates"] or known["resources"]:
            templates = (await self._do("list_resource_templates"))["resourceTemplates"]
            assert {template["uriTemplate"] for template in templates} == known["templates"].keys()
        prompts = (await self._do("list_prompts"))["prompts"] if known["prompts"] else []
        assert {prompt["name"] for prompt in prompts} == known["prompts"].keys()

    async def _do(self, what: str, **given: Any) -> Any:
        return (await self.client.do(what, answers=self._standing, **given)).result

    async def uris(self) -> set[str]:
        """The resources that are listed."""
        return {resource["uri"] for resource in (await self._do("list_resources"))["resources"]}

    async def use(
        self, tool: str, arguments: dict[str, Any], answers: dict[str, Any] | None = None
    ) -> Any:
        """The structured result of a tool, validated against its schema."""
        value, _ = await self.asked(tool, arguments, answers or {})
        return value

    async def asked(
        self, tool: str, arguments: dict[str, Any], answers: dict[str, Any] | None = None
    ) -> tuple[Any, Step]:
        """Like `use`, together with the messages that the client received during the call."""
        step = await self.client.call(
            tool, arguments, answers={**self._standing, **(answers or {})}
        )
        assert not step.result.get("isError"), step.text
        value = step.result["structuredContent"]
        assert compile_schema(self._schemas[tool]).check(value) == []
        return value, step

    async def refused(
        self, tool: str, arguments: dict[str, Any], answers: dict[str, Any] | None = None
    ) -> str:
        """The error message of a failing tool."""
        step = await self.client.call(
            tool, arguments, answers={**self._standing, **(answers or {})}
        )
        assert step.result.get("isError"), step.text
        return step.text

    async def read(self, uri: str, *spelled: str) -> str:
        """The text of a resource; `spelled` is the form of its URI in some clients."""
        (contents,) = (await self._do("read", uri=uri))["contents"]
        assert contents["uri"] in (uri, *spelled), contents
        return str(contents["text"])

    async def complete(self, argument: str, value: str, **of: str) -> list[str]:
        """Suggestions for an argument of a prompt or a template."""
        values = (await self._do("complete", argument=argument, value=value, **of))["completion"][
            "values"
        ]
        return [str(each) for each in values]

    async def prompt(self, name: str, **arguments: str) -> str:
        """The text of a prompt of one message."""
        (message,) = (await self._do("prompt", name=name, arguments=arguments))["messages"]
        return str(message["content"]["text"])


def walk_by(way: tuple[str, str], installed: Callable[[str], Path], *, road: str = "stdio") -> Walk:
    """A function that connects one combination's client to `interlock serve NAME`, with environment
    variables, over stdio or HTTP."""

    @asynccontextmanager
    async def begin(
        name: str, env: dict[str, str], standing: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Walker]:
        maker, mode = way
        client = command_of("client", maker, installed)
        async with contextlib.AsyncExitStack() as stack:
            target: dict[str, Any] = {"command": _command(name, env)}
            if road == "http":
                port = free_port()
                await stack.enter_async_context(
                    on_the_web(_command(name, env, "--http", f":{port}"), port)
                )
                target = {"url": f"http://127.0.0.1:{port}/mcp", "road": road}
            walker = Walker(
                await stack.enter_async_context(led(client, mode=mode, **target)),
                name,
                standing or {},
            )
            walker.mine = road == "stdio"
            await walker.begin()
            yield walker

    return begin


def _command(name: str, env: dict[str, str], *arguments: str) -> list[str]:
    return [
        sys.executable,
        "-P",
        "-c",
        PROGRAM.format(env=env, name=name, arguments=list(arguments)),
    ]


def accepted(content: dict[str, Any]) -> dict[str, Any]:
    """A form that is filled in and sent."""
    return {"action": "accept", "content": content}
