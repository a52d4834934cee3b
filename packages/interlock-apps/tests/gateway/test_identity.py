"""Upstream identity: each user connects an account on the connect page, and only that user's calls
go out under it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from html import unescape
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from interlock import Answers, Client, Context, HttpFetch, McpError, Principal, Request, Server
from interlock.auth import Guard, Jwt
from interlock.store import MemoryVault
from interlock_apps.gateway.connect_page import ConnectPage
from interlock_apps.gateway.identity import ConnectRecords, ConnectTicket
from interlock_apps.gateway.program import Gateway
from interlock_apps.gateway.settings import settings_from_config
from interlock_issuer import Issuer, User
from tests.auth.served import guarded, served
from tests.gateway.behind import names_of, settings_of
from tests.issuer.office import Willing
from tests.ports import free_port


class Browser:
    """A browser with cookies that follows what a person does on the connect page."""

    def __init__(self) -> None:
        self.cookies: dict[str, str] = {}
        self._fetch = HttpFetch()

    async def request(
        self, method: str, url: str, form: dict[str, str] | None = None, **headers: str
    ) -> tuple[int, str, str]:
        """Send a request. Returns the status, the location and the body."""
        body = urlencode(form or {}).encode()
        own = {"cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.items()), **headers}
        if form is not None:
            own["content-type"] = "application/x-www-form-urlencoded"
        response = await self._fetch(Request(method, url, tuple(own.items()), body))
        text = (await response.read(1 << 20)).decode()
        cookie = response.headers.get("set-cookie", "")
        if found := re.match(r"([\w-]+)=([^;]+)", cookie):
            self.cookies[found[1]] = found[2]
        return response.status, response.headers.get("location", ""), text

    async def press(self, url: str) -> str:
        """Open a connect page and press its button. Returns where the browser is led."""
        status, _, page = await self.request("GET", url)
        assert status == 200, page
        form = {
            name: unescape(value)
            for name, value in re.findall(r'name="(\w+)" value="([^"]*)"', page)
        }
        status, _, page = await self.request("POST", url.partition("?")[0], form)
        found = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', page)
        assert status == 200
        assert found, page
        return unescape(found[1])

    async def follow(self, url: str) -> tuple[int, str]:
        """Follow redirects. Returns the status and the text of the last page."""
        while True:
            status, location, text = await self.request("GET", url)
            if not location:
                return status, text
            url = location

    async def log_in(self, url: str) -> str:
        """Go the whole way. Returns the text of the last page."""
        return (await self.follow(await self.press(url)))[1]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._fetch.aclose()


class Town:
    """A gateway in front of a guarded server, both on loopback.

    Attributes:
        gateway: The gateway.
        url: The URL of the gateway.
        people: Who logs in at the server.
        vault: The tokens of the gateway.
        issuer: The authorization server that guards the gateway.
        staff: Who logs in at that one.
    """

    def __init__(
        self,
        gateway: Gateway,
        url: str,
        people: Willing,
        vault: MemoryVault,
        issuer: str = "https://login.example",
    ) -> None:
        self.gateway = gateway
        self.url = url
        self.people = people
        self.vault = vault
        self.issuer = issuer
        self.staff = Willing()

    def client(self, subject: str, visit: Any = None, **options: Any) -> Client:
        """Return a client of a principal, whose person does `visit` with an address."""
        who = Principal(subject=subject, issuer=self.issuer, client="c")
        answers = None if visit is None else Answers(elicit=visit)
        return Client(
            self.gateway.server.transport(principal=who), answers=answers, timeout=20, **options
        )


def crm() -> Server:
    """A server that says who calls."""
    server = Server("crm")

    @server.tool
    async def who(ctx: Context) -> str:
        """Who calls."""
        assert ctx.principal is not None
        return ctx.principal.subject

    return server


@asynccontextmanager
async def town(*, over_stdio: bool = False) -> AsyncIterator[Town]:
    """Serve an authorization server, a server behind it, and a gateway in front: over HTTP, or only
    its connect page, as over stdio."""
    people = Willing()
    ports = [free_port() for _ in range(3)]
    at, behind, front = (f"http://127.0.0.1:{port}" for port in ports)
    issuer = Issuer(at, people, vault=MemoryVault(), resources=[f"{behind}/mcp"])
    guard = Guard(Jwt(at), resource=f"{behind}/mcp")
    text = f"""
    [listen]
    http = ":{ports[2]}"
    [servers.crm]
    url = "{behind}/mcp"
    identity = "user"
    headers = {{ Authorization = "Bearer of-the-operator" }}
    """
    async with served(issuer, ports[0]), guarded(crm(), guard, ports[1]):
        vault = MemoryVault()
        gateway = Gateway(settings_of(text), vault=vault)
        there = Town(gateway, front, people, vault)
        if over_stdio:
            gateway.has_own_connect_page = True
            yield there
            return
        async with gateway.server.serve_http(port=ports[2], guard=gateway.front()):
            yield there


@asynccontextmanager
async def guarded_town() -> AsyncIterator[Town]:
    """The same with a guard: people log in at its authorization server first."""
    people = Willing()
    ports = [free_port() for _ in range(4)]
    at, behind, front, login = (f"http://127.0.0.1:{port}" for port in ports)
    issuer = Issuer(at, people, vault=MemoryVault(), resources=[f"{behind}/mcp"])
    guard = Guard(Jwt(at), resource=f"{behind}/mcp")
    text = f"""
    [listen]
    http = ":{ports[2]}"
    guard = "{login}"
    [servers.crm]
    url = "{behind}/mcp"
    identity = "user"
    """
    vault = MemoryVault()
    gateway = Gateway(settings_of(text), vault=vault)
    there = Town(gateway, front, people, vault, login)
    there.staff.person = User("ada", "Ada")
    entrance = Issuer(login, there.staff, vault=MemoryVault(), resources=[f"{front}/mcp"])
    async with (
        served(issuer, ports[0]),
        guarded(crm(), guard, ports[1]),
        served(entrance, ports[3]),
        gateway.server.serve_http(port=ports[2], guard=gateway.front()),
    ):
        yield there


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    """Open a browser."""
    made = Browser()
    try:
        yield made
    finally:
        await made.aclose()


Visit = Callable[[Any], Awaitable[Any]]


def visiting(there: Browser, pages: list[str]) -> Visit:
    """Return an answer that logs in with a browser."""

    async def visit(question: Any) -> Any:
        pages.append(await there.log_in(question.url))
        return True

    return visit


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_user_connects_and_the_call_goes_on_by_itself(revision: str) -> None:
    pages: list[str] = []
    async with town() as there, browser() as mine:
        async with there.client("ada", visiting(mine, pages), revision=revision) as ada:
            assert await names_of(ada) == ["crm__connect"]
            result = await ada.call_tool("crm__who")  # no list has it yet
            assert result.text == "anna"
            assert len(pages) == 1
            assert "Connected" in pages[0]
            assert await names_of(ada) == ["crm__who"]
            assert (await ada.call_tool("crm__who")).text == "anna"
            assert len(pages) == 1
        async with there.client("bob") as bob:  # another principal has nothing of it
            assert await names_of(bob) == ["crm__connect"]
            with pytest.raises(McpError, match="/connect/crm"):
                await bob.call_tool("crm__who")


async def test_a_gateway_over_stdio_serves_the_connect_page() -> None:
    pages: list[str] = []
    async with (
        town(over_stdio=True) as there,
        browser() as mine,
        there.client("ada", visiting(mine, pages)) as ada,
    ):
        assert (await ada.call_tool("crm__who")).text == "anna"
    assert len(pages) == 1


async def test_the_tool_to_connect() -> None:
    pages: list[str] = []
    async with (
        town() as there,
        browser() as mine,
        there.client("ada", visiting(mine, pages)) as ada,
    ):
        await names_of(ada)
        said = await ada.call_tool("crm__connect")
        assert said.text == "Connected to crm. Its tools are listed now."
        assert await names_of(ada) == ["crm__who"]


async def test_a_client_that_cannot_be_asked_gets_the_address() -> None:
    async with town() as there, browser() as mine, there.client("ada") as ada:
        with pytest.raises(McpError) as raised:
            await ada.call_tool("crm__who")
        address = raised.value.data["url"]
        assert address.startswith(f"{there.url}/connect/crm?ticket=")
        assert "Connected" in await mine.log_in(address)
        await until_connected(ada)
        assert (await ada.call_tool("crm__who")).text == "anna"


async def address_for(client: Client) -> str:
    """Return the connect page that a client gets which cannot be asked."""
    with pytest.raises(McpError) as raised:
        await client.call_tool("crm__who")
    address: str = raised.value.data["url"]
    return address


async def until_given_up(vault: MemoryVault) -> None:
    """Wait until the tokens that said who somebody is are revoked."""
    while True:
        if not any("connect page" in name for name in await vault.keys("oauth grant")):
            return
        await asyncio.sleep(0.01)


async def until_connected(client: Client) -> None:
    """Wait until the login that another call began has ended."""
    while True:
        try:
            await client.call_tool("crm__who")
        except McpError:
            await asyncio.sleep(0.05)
        else:
            return


async def test_declining_ends_the_call_in_words() -> None:
    async with town() as there, there.client("ada", lambda question: None) as ada:
        with pytest.raises(McpError, match="you declined to log in"):
            await ada.call_tool("crm__who")


async def test_a_login_that_is_refused_ends_the_call_in_words() -> None:
    pages: list[str] = []
    async with town() as there, browser() as mine:
        there.people.will = "deny"
        async with there.client("ada", visiting(mine, pages)) as ada:
            with pytest.raises(McpError, match="declined"):
                await ada.call_tool("crm__who")
        assert "Not connected" in pages[0]


async def test_a_link_works_once_and_only_in_the_browser_that_began() -> None:
    """The confused deputy: ada's link in another person's browser, and a redirect that is moved."""
    async with (
        town() as there,
        browser() as mine,
        browser() as other,
        there.client("ada") as ada,
    ):
        address = await address_for(ada)
        page = (await mine.request("GET", address))[2]
        assert "ada" in page  # the page names whose the account becomes
        leads_to = await mine.press(address)
        assert (await mine.request("GET", address))[0] == 404  # used up
        _, back, _ = await mine.request("GET", leads_to)
        for cookie in ("", "interlock-connect=of-the-other"):
            status, _, text = await other.request("GET", back, cookie=cookie)
            assert status == 403
            assert "Nothing was connected" in text
        assert (await mine.request("GET", back))[0] == 200
        assert (await mine.request("GET", back))[0] == 403  # used up


async def test_a_form_of_another_site_is_refused() -> None:
    async with town() as there, browser() as mine, there.client("ada") as ada:
        address = await address_for(ada)
        ticket = address.partition("ticket=")[2]
        post = f"{there.url}/connect/crm"
        assert (await mine.request("POST", post, {"ticket": ticket}))[0] == 403
        await mine.request("GET", address)
        form = {"ticket": ticket, "form": "0" * 64}
        assert (await mine.request("POST", post, form))[0] == 403
        crossing = {"sec-fetch-site": "cross-site"}
        assert (await mine.request("POST", post, form, **crossing))[0] == 403
        assert (await mine.request("GET", address, host="evil.example"))[0] == 421
        for wrong in ("", "?ticket=none"):
            assert (await mine.request("GET", f"{post}{wrong}"))[0] == 404
        assert (await mine.request("GET", f"{there.url}/connect/other?ticket={ticket}"))[0] == 404


async def test_with_a_guard_the_person_has_to_be_the_principal() -> None:
    """The confused deputy: mallory gets ada to open a link, or opens one of hers."""
    pages: list[str] = []
    async with guarded_town() as there, browser() as mine, browser() as hers:
        async with there.client("mallory") as mallory:
            address = await address_for(mallory)
            status, text = await mine.follow(await mine.press(address))  # ada is logged in here
            assert status == 403
            assert "logged in as <strong>ada</strong>" in text
            assert "Nothing was connected" in text
            there.staff.will = "deny"
            assert "was declined" in await mine.log_in(address)
            there.staff.will = "grant"
            assert there.people.begun == []  # nobody reached the server's authorization server
            with pytest.raises(McpError, match="not connected"):
                await mallory.call_tool("crm__who")
        async with there.client("ada", visiting(mine, pages)) as ada:
            assert (await ada.call_tool("crm__who")).text == "anna"
            assert "Connected" in pages[0]
        assert len(there.people.begun) == 1
        await until_given_up(there.vault)
        # The redirect that says who somebody is counts in the browser that began, and once.
        async with there.client("eve") as eve:
            there.staff.person = User("eve", "Eve")
            _, back, _ = await hers.request("GET", await hers.press(await address_for(eve)))
            assert urlsplit(back).path == "/connect/-/callback"
            assert (await mine.request("GET", back))[0] == 403
            status, onward, _ = await hers.request("GET", back)
            assert (status, urlsplit(onward).path) == (303, "/authorize")
            assert (await hers.request("GET", back))[0] == 403


async def test_nobody_connects_while_the_authorization_server_of_the_guard_is_down() -> None:
    port = free_port()
    text = f"""
    [listen]
    http = ":{port}"
    guard = "http://127.0.0.1:{free_port()}"
    [servers.crm]
    url = "http://127.0.0.1:1/mcp"
    identity = "user"
    """
    vault = MemoryVault()
    gateway = Gateway(settings_of(text), vault=vault)
    async with gateway.lifespan(gateway.server), browser() as mine:
        record = ConnectTicket(
            server="crm", principal="p", subject="ada", url="https://crm.example", state="s"
        )
        await ConnectRecords(vault).offer("ticket", record)
        async with served(gateway.connect_app, port) as url:
            _, _, page = await mine.request("GET", f"{url}/connect/crm?ticket=ticket")
            form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page))
            status, _, page = await mine.request("POST", f"{url}/connect/crm", form)
            assert status == 503
            assert "cannot find out who you are" in page


def test_the_cookie_of_a_public_gateway_cannot_come_from_another_host() -> None:
    page = ConnectPage(ConnectRecords(MemoryVault()), "https://mcp.example.com")
    assert page._cookie == "__Host-interlock-connect"


async def test_two_calls_share_one_login() -> None:
    pages: list[str] = []
    async with town() as there, browser() as mine:
        seen: set[str] = set()

        async def visit(question: Any) -> Any:
            if question.url not in seen:
                seen.add(question.url)
                pages.append(await mine.log_in(question.url))
            return True

        async with there.client("ada", visit) as ada:
            results = await asyncio.gather(*(ada.call_tool("crm__who") for _ in range(3)))
            assert [result.text for result in results] == ["anna"] * 3
        assert len(pages) == 1


def test_a_service_identity_needs_nothing(tmp_path: Any) -> None:
    path = tmp_path / ".mcp.json"
    path.write_text('{"mcpServers": {"crm": {"url": "https://crm.example/mcp"}}}')
    settings = settings_from_config(path)
    assert settings.servers["crm"].identity == "service"
    assert urlsplit(settings.public_url).hostname == "127.0.0.1"
