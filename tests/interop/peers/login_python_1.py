"""A client made with the official Python SDK 1.x that logs in, and then needs more scopes.

Run by that SDK's own Python.
"""

import asyncio

from login import REDIRECT, URL, Browser, Storage, report
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientMetadata


async def main() -> None:
    browser = Browser()
    storage = Storage()

    async def came() -> tuple[str, str | None]:
        return browser.said("code") or "", browser.said("state")

    metadata = OAuthClientMetadata(client_name="python-1", redirect_uris=[REDIRECT])
    auth = OAuthClientProvider(URL, metadata, storage, browser.visit, came)
    async with (
        create_mcp_http_client(auth=auth) as http,
        streamable_http_client(URL, http_client=http) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        who = (await session.call_tool("who")).content[0].text
        ordered = (await session.call_tool("order", {"what": "tea"})).content[0].text
    report(browser, storage, tools, who, ordered)


asyncio.run(main())
