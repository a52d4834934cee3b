"""The pages in a real browser: log-in, consent, devices and the proxy, with mouse and with keys, by
day and by night, large and small.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import msgspec
import pytest

from interlock_issuer.app import Issuer
from interlock_issuer.interfaces import Client
from interlock_issuer.login.accounts import Accounts, Cost
from interlock_issuer.login.users import LocalUsers
from interlock_issuer.proxy import OAuthProxy
from tests.issuer.landing import RedirectListener
from tests.issuer.office import SCOPES, request
from tests.proxy.elsewhere import ACME, ID, SECRET, Elsewhere

pytestmark = [
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="session"),
]  # the loop of the browser, which takes a second to start

PASSWORD = "correct horse"
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"
SHOTS = os.environ.get("INTERLOCK_SHOTS")
LOOKS = [("light", 1000, 900), ("dark", 1000, 900), ("phone", 375, 720)]
TV = Client(id="tv", name="Television", grants=("urn:ietf:params:oauth:grant-type:device_code",))


async def shot(page: Any, name: str) -> None:
    """A picture, for people to look at, where somebody wants one."""
    if SHOTS:
        await page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)


class BrowserLogin:
    """An issuer, a client that waits for its answer, and a page of a browser.

    Whatever the browser complains of is kept.
    """

    def __init__(self, page: Any, url: str, landing: RedirectListener, back: str) -> None:
        self.page = page
        self.url = url
        self.landing = landing
        self.back = f"{back}/callback"
        self.complaints: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._dialog)

    async def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def ask(self, **changes: str | None) -> str:
        """The address with which a client sends somebody here."""
        told = request(redirect_uri=self.back, resource="http://127.0.0.1:9/mcp", **changes)
        return f"{self.url}/authorize?{urlencode(told)}"

    async def answer(self) -> dict[str, str]:
        """What the client hears, once the browser has come to rest there."""
        received = dict(parse_qsl(await asyncio.wait_for(self.landing.came.get(), 20)))
        await self.page.get_by_role("heading", name="It has arrived").wait_for()
        return received

    async def log_in(self, name: str = "anna", password: str = PASSWORD) -> None:
        """With the mouse."""
        await self.page.get_by_label("Name").fill(name)
        await self.page.get_by_label("Password").fill(password)
        await self.page.get_by_role("button", name="Log in").click()


async def browser_login_of(
    chromium: Any,
    serve: Any,
    tmp_path: Path,
    *,
    look: tuple[str, int, int] = LOOKS[0],
    **options: Any,
) -> BrowserLogin:
    """A browser, and an issuer with users who have accounts."""
    landing = RedirectListener()
    back = await serve(lambda url: landing)
    accounts = Accounts(tmp_path / "people.db", cost=Cost(passes=1, memory=64, lanes=1))
    await accounts.add("anna", PASSWORD, display="Anna Blume")
    app = Client(id="app", name="The App", redirect_uris=(f"{back}/callback",))
    given = {"clients": [app, TV], "scopes": SCOPES} | options
    url = await serve(
        lambda url: Issuer(url, LocalUsers(accounts, brand="Example & Sons"), **given)
    )
    name, width, height = look
    context = await chromium.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if name == "dark" else "light",
    )
    return BrowserLogin(await context.new_page(), url, landing, back)


async def registered(login: BrowserLogin, name: str) -> str:
    """The id of a client that registered itself."""
    body = msgspec.json.encode(
        {"client_name": name, "redirect_uris": [login.back], "token_endpoint_auth_method": "none"}
    ).decode()
    reply = await login.page.request.post(
        f"{login.url}/register", data=body, headers={"content-type": "application/json"}
    )
    return str((await reply.json())["client_id"])


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look[0])
async def test_log_in_and_agree(
    chromium: Any, serve: Any, tmp_path: Path, look: tuple[str, int, int]
) -> None:
    """A person mistypes their password, logs in, reads who asks for what, agrees, and the client
    has its code: nothing is blocked on the way, nothing sticks out of the screen (AUT-19,
    SEC-08).
    """
    login = await browser_login_of(chromium, serve, tmp_path, look=look)
    page = login.page
    client = await registered(login, "Inspector")
    await page.goto(login.ask(client_id=client))
    await shot(page, f"1-login-{look[0]}")
    await login.log_in(password="wrong password")
    await page.get_by_role("alert").wait_for()
    await shot(page, f"2-wrong-{look[0]}")
    assert await page.get_by_label("Name").input_value() == "anna"
    login.complaints.clear()  # a browser notes the 403 of a wrong password
    await login.log_in()
    await page.get_by_role("heading", name="Allow Inspector to act for you?").wait_for()
    await shot(page, f"3-consent-{look[0]}")
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    for words in (
        "Anna Blume",
        "Read your files.",
        "127.0.0.1",
        "started it yourself just now",
        "Example & Sons",
    ):
        assert words in await page.inner_text("body")
    await page.get_by_role("button", name="Allow").click()
    answer = await login.answer()
    assert answer["code"]
    assert (answer["state"], answer["iss"]) == ("a state", login.url)
    assert login.complaints == []


async def test_deny(chromium: Any, serve: Any, tmp_path: Path) -> None:
    """A person says no, and the client hears it."""
    login = await browser_login_of(chromium, serve, tmp_path)
    await login.page.goto(login.ask())
    await login.log_in()
    await login.page.get_by_role("button", name="Deny").click()
    assert (await login.answer())["error"] == "access_denied"


async def test_with_the_keyboard_alone(chromium: Any, serve: Any, tmp_path: Path) -> None:
    """The cursor stands in the first field, Enter logs in, and the answer is a few tabs away.

    Enter alone agrees to nothing.
    """
    login = await browser_login_of(chromium, serve, tmp_path)
    keys = login.page.keyboard
    await login.page.goto(login.ask())
    await login.page.locator("input:focus").wait_for()  # the cursor comes a moment after the page
    await keys.type("anna")
    await keys.press("Tab")
    await keys.type(PASSWORD)
    await keys.press("Enter")
    await login.page.get_by_role("heading", name="Allow The App").wait_for()
    await keys.press("Enter")
    for _ in range(10):
        await keys.press("Tab")
        if await login.page.evaluate("document.activeElement.textContent") == "Allow":
            break
    assert login.landing.came.empty()
    await shot(login.page, "4-keyboard")
    await keys.press("Enter")
    assert (await login.answer())["code"]


async def test_what_was_agreed_is_not_asked_again(
    chromium: Any, serve: Any, tmp_path: Path
) -> None:
    """With the box ticked the second visit goes straight through, from the log-in page too."""
    login = await browser_login_of(chromium, serve, tmp_path)
    await login.page.goto(login.ask())
    await login.log_in()
    await login.page.get_by_label("Do not ask again").check()
    await login.page.get_by_role("button", name="Allow").click()
    assert (await login.answer())["code"]
    await login.page.goto(login.ask())
    assert (await login.answer())["code"]
    await login.page.context.clear_cookies()
    await login.page.goto(login.ask())
    await login.log_in()
    assert (await login.answer())["code"]
    assert login.complaints == []


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look[0])
async def test_a_device(
    chromium: Any, serve: Any, tmp_path: Path, look: tuple[str, int, int]
) -> None:
    """A person types the code of a device, in small letters, looks at it, and agrees."""
    login = await browser_login_of(chromium, serve, tmp_path, look=look)
    page = login.page
    reply = await page.request.post(
        f"{login.url}/device_authorization", form={"client_id": "tv", "scope": "files:read"}
    )
    device = await reply.json()
    await page.goto(device["verification_uri"])
    await login.log_in()
    await shot(page, f"5-code-{look[0]}")
    await page.get_by_label("Code").fill(device["user_code"].lower().replace("-", ""))
    await page.get_by_role("button", name="Continue").click()
    await page.get_by_text(device["user_code"]).wait_for()
    await shot(page, f"6-device-{look[0]}")
    await page.get_by_role("button", name="Allow").click()
    await page.get_by_role("heading", name="Done").wait_for()
    await shot(page, f"7-done-{look[0]}")
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "client_id": "tv",
        "device_code": device["device_code"],
    }
    assert "access_token" in await (await page.request.post(f"{login.url}/token", form=form)).json()
    assert login.complaints == []


async def test_an_evil_name(chromium: Any, serve: Any, tmp_path: Path) -> None:
    """A client whose name is a program is shown, and not run."""
    login = await browser_login_of(chromium, serve, tmp_path)
    client = await registered(login, EVIL)
    await login.page.goto(login.ask(client_id=client))
    await login.log_in()
    await login.page.get_by_role("button", name="Allow").wait_for()
    assert "<script>" in await login.page.inner_text("h1")
    await shot(login.page, "8-evil")
    assert await login.page.locator("main img, main script").count() == 0
    assert login.complaints == []


async def test_no_frame(chromium: Any, serve: Any, tmp_path: Path) -> None:
    """A page of another site cannot frame the consent page, and so cannot have it clicked unseen
    (SEC-08).
    """
    login = await browser_login_of(chromium, serve, tmp_path)
    await login.page.goto(login.ask())
    await login.log_in()
    await login.page.get_by_role("button", name="Allow").wait_for()
    consent = login.page.url
    await login.page.goto(login.back.replace("/callback", "/"))
    await login.page.evaluate(
        "url => { const f = document.createElement('iframe'); f.src = url; "
        "document.body.append(f) }",
        consent,
    )
    await login.page.wait_for_function(
        "document.querySelector('iframe') && performance.getEntriesByType('resource').length > 0"
    )
    assert not [
        frame
        for frame in login.page.frames
        if await frame.get_by_role("button", name="Allow").count()
    ]
    assert any("frame" in words.lower() for words in login.complaints)


async def test_a_form_of_another_site(chromium: Any, serve: Any, tmp_path: Path) -> None:
    """Another site makes the browser send a consent form, with the person logged in here: nothing
    is agreed (SEC-08).
    """
    login = await browser_login_of(chromium, serve, tmp_path)
    await login.page.goto(login.ask())
    await login.log_in()
    form = login.page.locator("form[action$=consent]")
    fields = {
        name: await form.locator(f"[name={name}]").first.input_value() for name in ("at", "token")
    } | {"answer": "yes"}
    await login.page.goto(login.back.replace("/callback", "/").replace("127.0.0.1", "localhost"))
    await login.page.evaluate(
        """([url, fields]) => {
            const form = document.createElement('form'); form.method = 'post'; form.action = url;
            for (const [name, value] of Object.entries(fields)) {
                const input = document.createElement('input'); input.name = name;
                input.value = value; form.append(input);
            }
            document.body.append(form); form.submit();
        }""",
        [f"{login.url}/consent", fields],
    )
    await login.page.get_by_role("heading", name="Login failed").wait_for()
    await shot(login.page, "9-refused")
    assert login.landing.came.empty()


class Gate:
    """The provider's own pages, which send people about before they send them back."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.provider = msgspec.structs.replace(ACME, authorization_endpoint=f"{url}/authorize")
        self.elsewhere = Elsewhere(self.provider, clock=time.time)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Redirect twice."""
        if scope["type"] == "lifespan":
            return await RedirectListener()(scope, receive, send)
        first = f"{self.url}/authorize?{scope['query_string'].decode()}"
        place = (
            first.replace("/authorize?", "/again?")
            if scope["path"] == "/authorize"
            else self.elsewhere.visit(first)
        )
        await send(
            {
                "type": "http.response.start",
                "status": 302,
                "headers": [(b"location", place.encode())],
            }
        )
        await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look[0])
async def test_through_the_proxy(chromium: Any, serve: Any, look: tuple[str, int, int]) -> None:
    """Consent here, log-in at a provider that sends people about before it sends them back, and on
    to the client: the browser goes along, and for another client it is asked anew (AUF-15).
    """
    landing = RedirectListener()
    gates = list[Gate]()
    back = await serve(lambda url: landing)
    await serve(lambda url: gates.append(Gate(url)) or gates[0])
    clients = [
        Client(id=name, name=name.title(), redirect_uris=(f"{back}/callback",))
        for name in ("app", "second")
    ]
    options = {"upstream_fetch": gates[0].elsewhere, "clients": clients, "scopes": SCOPES}
    url = await serve(lambda url: OAuthProxy(url, gates[0].provider, ID, SECRET, **options))
    name, width, height = look
    context = await chromium.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if name == "dark" else "light",
    )
    login = BrowserLogin(await context.new_page(), url, landing, back)
    for client in ("app", "second"):
        await login.page.goto(login.ask(client_id=client))
        await login.page.get_by_role(
            "heading", name=f"Allow {client.title()} to act for you?"
        ).wait_for()
        await shot(login.page, f"10-proxy-{name}")
        await login.page.get_by_label("Do not ask again").check()
        await login.page.get_by_role("button", name="Continue to Acme").click()
        assert (await login.answer())["code"]
    assert login.complaints == []
