"""A client of the official Python SDK 2.x with an extension; prints what it saw as a line of JSON.
Run by its own Python.

Arguments: the mode, then the URL of a server or its command.
"""

import asyncio
import json
import sys
from typing import ClassVar, Literal

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.extension import ClientExtension, NotificationBinding, ResultClaim
from mcp.client.stdio import stdio_client
from pydantic import BaseModel

ID = "com.example/search"


class FindParams(types.RequestParams):
    """Params of `search/find`."""

    catalog: str
    query: str


class Find(types.Request[FindParams, Literal["search/find"]]):
    """`search/find`, whose catalogue the header Mcp-Name repeats."""

    method: Literal["search/find"] = "search/find"
    params: FindParams
    name_param: ClassVar[str | None] = "catalog"


class Plain(types.Request[FindParams, Literal["search/find"]]):
    """The same without the header."""

    method: Literal["search/find"] = "search/find"
    params: FindParams


class Hits(types.Result):
    """The result of `search/find`."""

    hits: list[str]


class SelectedParams(types.NotificationParams):
    """Params of `search/selected`."""

    hit: str


class Selected(types.Notification[SelectedParams, Literal["search/selected"]]):
    """Says which hit was of use."""

    method: Literal["search/selected"] = "search/selected"
    params: SelectedParams


class Ticket(types.Result):
    """A result of the extension."""

    result_type: Literal["com.example.ticket"]
    ticket: str


class Indexed(BaseModel):
    """Params of `search/indexed`."""

    catalog: str
    entry: str


class Search(ClientExtension):
    """The client's side."""

    identifier = ID

    def __init__(self, seen):
        self.seen = seen

    def claims(self):
        """Tickets are redeemed at once."""
        return [ResultClaim(result_type="com.example.ticket", model=Ticket, resolve=self.redeem)]

    def notifications(self):
        """New entries."""
        return [
            NotificationBinding(method="search/indexed", params_type=Indexed, handler=self.hear)
        ]

    async def redeem(self, ticket, context):
        """Redeem a ticket."""
        text = types.TextContent(type="text", text=f"redeemed {ticket.ticket}")
        return types.CallToolResult(content=[text])

    async def hear(self, indexed):
        """Note what is new."""
        self.seen["indexed"] = indexed.entry


async def use(client, seen):
    """Do what the extension offers."""
    params = FindParams(catalog="books", query="E")
    seen["found"] = (await client.session.send_request(Find(params=params), Hits)).hits
    params = FindParams(catalog="bücher", query="")
    seen["encoded"] = (await client.session.send_request(Find(params=params), Hits)).hits
    try:
        await client.session.send_request(Plain(params=params), Hits)
    except MCPError as bad:
        seen["without the header"] = bad.error.code
    await client.session.send_notification(Selected(params=SelectedParams(hit="Emma")))
    selected = await client.call_tool("selected", {})
    seen["selected"] = selected.content[0].text


def road_to(target):
    """The way to the server."""
    if target[0].startswith("http"):
        return target[0]
    return stdio_client(StdioServerParameters(command=target[0], args=list(target[1:])))


async def main(mode, *target):
    """With the extension declared, and without."""
    seen = {}
    async with Client(road_to(target), mode=mode, extensions=[Search(seen)]) as client:
        if mode != "legacy":  # where it declares no extension that claims results
            await use(client, seen)
        slow = await client.call_tool("slow", {})
        seen["slow"] = slow.content[0].text
    async with Client(road_to(target), mode=mode) as other:
        try:
            params = FindParams(catalog="books", query="")
            await other.session.send_request(Find(params=params), Hits)
        except MCPError as bad:
            seen["undeclared"] = [bad.error.code, bad.error.data]
    print(json.dumps(seen))


asyncio.run(main(*sys.argv[1:]))
