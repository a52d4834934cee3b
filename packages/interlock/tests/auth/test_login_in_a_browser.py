"""The whole way of a person on their desk: a client of ours, a real browser, our consent page, and
back to the client's own listener.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Context, Server
from interlock.auth import Browser, Denied, Guard, OAuth
from interlock_issuer import Accounts, Issuer, LocalUsers
from tests.auth.served import guarded
from tests.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

PASSWORD = "correct horse battery staple"


@asynccontextmanager
async def shop(folder: Path) -> AsyncIterator[str]:
    """A guarded server, and beside it the authorization server where its people have accounts."""
    server = Server("shop")
    port = free_port()

    @server.tool
    async def who(ctx: Context) -> str:
        """Who asks."""
        assert ctx.principal is not None
        return str(ctx.principal.claims.get("name"))

    accounts = Accounts(folder / "accounts.db")
    await accounts.add("ada", PASSWORD)
    here = f"http://127.0.0.1:{port}"
    issuer = Issuer(
        here, LocalUsers(accounts), resources=[f"{here}/mcp"], scopes={"shop": "Use the shop"}
    )
    async with guarded(server, Guard(issuer, resource=f"{here}/mcp", scopes=["shop"]), port) as url:
        yield url


class User:
    """Somebody with a browser, who does what a page asks for, and says yes or no in the end."""

    def __init__(self, browser: Any, answer: str) -> None:
        self.browser = browser
        self.answer = answer
        self.loop = asyncio.get_running_loop()
        self.last: asyncio.Future[str] = self.loop.create_future()

    def open(self, url: str) -> bool:
        """The client wants an address to be visited, and says so from a thread of its own."""
        asyncio.run_coroutine_threadsafe(self.visit(url), self.loop)
        return True

    async def visit(self, url: str) -> None:
        """Log in, read, decide."""
        context = await self.browser.new_context()
        page = await context.new_page()
        await page.goto(url)
        await page.get_by_label("Name").fill("ada")
        await page.get_by_label("Password").fill(PASSWORD)
        await page.get_by_role("button", name="Log in").click()
        await page.get_by_role("button", name=self.answer).click()
        await page.wait_for_url("http://127.0.0.1:*/callback?*")
        self.last.set_result(await page.inner_text("body"))
        await context.close()


async def test_a_person_agrees(chromium: Any, tmp_path: Path) -> None:
    """They log in, allow it, and the client goes on as them.

    The page at the end says that it is over.
    """
    person = User(chromium, "Allow")
    auth = OAuth(agent=lambda: Browser(open=person.open, say=lambda line: None), name="Desk")
    async with shop(tmp_path) as url, Client(url, auth=auth) as client:
        assert (await client.call_tool("who")).text == "ada"
        assert "close" in await person.last


async def test_a_person_says_no(chromium: Any, tmp_path: Path) -> None:
    """The client hears it, and who said it."""
    person = User(chromium, "Deny")
    auth = OAuth(agent=lambda: Browser(open=person.open, say=lambda line: None))
    async with shop(tmp_path) as url:
        with pytest.raises(Denied) as caught:
            await Client(url, auth=auth).open()
        assert (caught.value.code, caught.value.culprit) == ("access_denied", "person")
        assert await person.last
