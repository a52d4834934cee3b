"""A client made with the official Python SDK 2.x that logs in, and then needs more scopes.

Run by that SDK's own Python.
"""

import asyncio

from login import REDIRECT, URL, Browser, Storage, report
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata


async def main() -> None:
    browser = Browser()
    storage = Storage()

    async def came() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=browser.said("code") or "", state=browser.said("state"), iss=browser.said("iss")
        )

    metadata = OAuthClientMetadata(client_name="python-2", redirect_uris=[REDIRECT])
    auth = OAuthClientProvider(URL, metadata, storage, browser.visit, came)
    async with (
        create_mcp_http_client(auth=auth) as http,
        Client(streamable_http_client(URL, http_client=http)) as client,
    ):
        tools = [tool.name for tool in (await client.list_tools()).tools]
        who = (await client.call_tool("who")).content[0].text
        ordered = (await client.call_tool("order", {"what": "tea"})).content[0].text
    report(browser, storage, tools, who, ordered)


asyncio.run(main())
