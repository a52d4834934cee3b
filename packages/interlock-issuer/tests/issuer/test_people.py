"""People with accounts: the whole way from a client's request to its code, and whoever tries to
take a shorter one.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
import pytest

from interlock.store.vaults.memory import MemoryVault
from interlock_issuer.app import Issuer
from interlock_issuer.interfaces import Client, PendingRequest, User
from interlock_issuer.login import consents
from interlock_issuer.login.accounts import Accounts, Cost
from interlock_issuer.login.users import LocalUsers
from tests.auth.network import Clock
from tests.issuer.exchange import Reply
from tests.issuer.office import (
    APP,
    BACK,
    SCOPES,
    SECOND,
    SERVER,
    VERIFIER,
    World,
    claims_of,
    request,
    said,
)
from tests.issuer.visitors import Page, Visitor, answer_at, leads_to

PASSWORD = "correct horse"
DEVICE = Client(
    id="tv",
    name="Television",
    grants=("urn:ietf:params:oauth:grant-type:device_code", "refresh_token"),
)
NATIVE = Client(id="native", name="Native", redirect_uris=("http://127.0.0.1/cb",))
DOCUMENT = "https://inspector.example/client.json"


class Town:
    """An issuer whose people have accounts."""

    def __init__(
        self, path: Path, url: str = "https://issuer.example/auth", **options: Any
    ) -> None:
        self.clock = Clock()
        self.world = World()
        self.vault = MemoryVault(clock=self.clock)
        self.accounts = Accounts(path, cost=Cost(passes=1, memory=64, lanes=1), clock=self.clock)
        self.people = LocalUsers(self.accounts)
        given: dict[str, Any] = {
            "clients": [APP, SECOND, DEVICE, NATIVE],
            "scopes": SCOPES,
            "resources": [SERVER],
            "vault": self.vault,
            "fetch": self.world,
            "clock": self.clock,
        }
        self.issuer = Issuer(url, self.people, **(given | options))

    def visitor(self, address: str = "192.0.2.7") -> Visitor:
        """Somebody's browser."""
        return Visitor(self.issuer, address)

    async def insider(self, name: str = "anna") -> Visitor:
        """Somebody who has logged in."""
        visitor = self.visitor()
        page = await visitor.follow(await visitor.get("/auth/login"))
        assert (
            "You are logged in"
            in Page(await visitor.follow(await log_in(visitor, page, name))).text
        )
        return visitor

    async def register(self, *redirect_uris: str, name: str = "Stranger") -> str:
        """The id of a client that registered itself."""
        body = {
            "redirect_uris": redirect_uris,
            "client_name": name,
            "token_endpoint_auth_method": "none",
        }
        visitor = self.visitor()
        reply = await visitor.ask(
            "POST",
            "/auth/register",
            msgspec.json.encode(body),
            {"content-type": "application/json"},
        )
        return str(said(reply, 201)["client_id"])


async def log_in(
    visitor: Visitor, page: Reply, name: str = "anna", password: str = PASSWORD
) -> Reply:
    """Fill in the log-in page."""
    return await visitor.fill(page, "/login", name=name, password=password)


@pytest.fixture
async def town(tmp_path: Path) -> Town:
    """Two people live there."""
    town = Town(tmp_path / "people.db")
    await town.accounts.add("anna", PASSWORD, display="Anna")
    await town.accounts.add("otto", PASSWORD, display="Otto")
    return town


async def test_the_whole_way(town: Town) -> None:
    """A stranger logs in, is asked, agrees, and the client comes to a token about them.

    `iss` and `state` come along (AUT-19, AUF-12).
    """
    visitor = town.visitor()
    page = await visitor.begin(request())
    assert "to continue to The App" in Page(page).text
    page = await visitor.follow(await log_in(visitor, page))
    seen = Page(page)
    for words in (
        "Allow The App to act for you?",
        "Read your files.",
        "Change your files.",
        "mcp.example",
        "app.example",
        "Anna",
    ):
        assert words in seen.text
    place = leads_to(await visitor.fill(page, "/consent", answer="yes"))
    assert place.startswith(f"{BACK}?")
    answer = answer_at(place)
    assert (answer["state"], answer["iss"]) == ("a state", "https://issuer.example/auth")
    form = {
        "grant_type": "authorization_code",
        "code": answer["code"],
        "client_id": "app",
        "redirect_uri": BACK,
        "code_verifier": VERIFIER,
    }
    tokens = said(await visitor.send("/auth/token", form, origin=None))
    claims = claims_of(tokens["access_token"])
    anna = (await town.accounts.list())[0]
    assert (claims["sub"], claims["name"], claims["scope"]) == (
        anna.subject,
        "Anna",
        "files:read files:write",
    )


async def test_no_is_no(town: Town) -> None:
    """Who says no sends the client an error, and it gets no second chance with the same request."""
    visitor = await town.insider()
    page = await visitor.begin(request())
    answer = answer_at(leads_to(await visitor.fill(page, "/consent", answer="no")))
    assert answer["error"] == "access_denied"
    assert "code" not in answer
    assert "code=" not in (await visitor.fill(page, "/consent", answer="yes")).body.decode()


@pytest.mark.parametrize("answer", [{}, {"answer": ""}, {"answer": "YES"}, {"answer": "maybe"}])
async def test_only_yes_is_yes(town: Town, answer: dict[str, str]) -> None:
    """A form that does not say yes says no."""
    visitor = await town.insider()
    page = await visitor.begin(request())
    assert (
        answer_at(leads_to(await visitor.fill(page, "/consent", **answer)))["error"]
        == "access_denied"
    )


async def test_cookies_are_for_this_host_alone(town: Town, tmp_path: Path) -> None:
    """`__Host-`, Secure, HttpOnly, SameSite=lax (SEC-09).

    On loopback without https, where no browser takes the prefix, without it.
    """
    visitor = await town.insider()
    assert visitor.set
    for header in visitor.set:
        assert header.startswith("__Host-")
        assert set(header.split("; ")[1:]) == {"Path=/", "HttpOnly", "SameSite=lax", "Secure"}
    near = Town(tmp_path / "other.db", "http://127.0.0.1:8000")
    await near.accounts.add("anna", PASSWORD)
    visitor = near.visitor()
    page = await visitor.begin(request())
    page = await visitor.follow(await log_in(visitor, page))
    assert "Allow The App" in Page(page).text
    assert all("__Host-" not in header and "HttpOnly" in header for header in visitor.set)


async def test_a_log_in_renames_the_browser(town: Town) -> None:
    """Who has put a cookie of theirs into another's browser has no session once that one logs in
    (session fixation).
    """
    attacker = town.visitor()
    await attacker.follow(await attacker.get("/auth/login"))
    victim = town.visitor()
    victim.cookies = dict(attacker.cookies)
    page = await victim.get("/auth/login")
    await victim.follow(await log_in(victim, page))
    assert "You are logged in" in Page(await victim.get("/auth/login")).text
    assert "You are logged in" not in Page(await attacker.get("/auth/login")).text


async def test_the_vault_holds_no_cookie(town: Town) -> None:
    """Who reads the vault can take over no session: it has digests of the cookies only."""
    visitor = await town.insider()
    (value,) = visitor.cookies.values()
    assert await town.vault.keys("session") == [hashlib.sha256(value.encode()).hexdigest()]
    assert value.encode() not in (
        await town.vault.get("session", (await town.vault.keys("session"))[0]) or b""
    )


CROSS = ["https://evil.example", "null", "http://issuer.example", "https://issuer.example:444"]


@pytest.mark.parametrize("origin", CROSS)
async def test_forms_from_elsewhere_do_nothing(town: Town, origin: str) -> None:
    """A form that another site has the browser send is refused, even with all that our own page has
    (SEC-08).
    """
    visitor = await town.insider()
    page = await visitor.begin(request())
    form = Page(page).form("/consent")
    reply = await visitor.send(form.action, form.fields | {"answer": "yes"}, origin=origin)
    assert reply.status == 403
    assert "code=" not in reply.body.decode()
    assert "code=" in leads_to(await visitor.fill(page, "/consent", answer="yes"))


async def test_forms_without_our_token_do_nothing(town: Town) -> None:
    """Consent, log-in, log-out and device forms without the token of this page and browser are
    refused (SEC-08), older browsers' too, which do not say where a form comes from.
    """
    visitor = await town.insider()
    other = await town.insider("otto")
    own = Page(await visitor.begin(request()))
    foreign = Page(await other.begin(request()))
    good = own.form("/consent").fields
    wrong = [
        {"at": good["at"]},
        good | {"token": ""},
        good | {"token": foreign.form("/consent").fields["token"]},
        good | {"token": own.form("/logout").fields["token"]},
        good | {"at": foreign.form("/consent").fields["at"]},
        foreign.form("/consent").fields,
    ]
    for path in ("/auth/consent", "/auth/login", "/auth/logout", "/auth/device"):
        for fields in wrong:
            if (
                path.endswith("logout")
                and fields.get("token") == own.form("/logout").fields["token"]
            ):
                continue  # that one is its own
            told = fields | {
                "answer": "yes",
                "name": "otto",
                "password": PASSWORD,
                "user_code": "X",
            }
            reply = await visitor.send(path, told, origin=None)
            assert reply.status == 403, (path, fields)
            assert reply.header("location") is None
    assert "Anna" in Page(await visitor.get("/auth/login")).text


async def test_log_in_for_somebody_else_is_refused(town: Town) -> None:
    """An attacker cannot log a victim's browser in to the attacker's account by a form of their own
    (log-in CSRF).
    """
    attacker = town.visitor()
    victim = town.visitor()
    form = Page(await attacker.get("/auth/login")).form("/login")
    await victim.get("/auth/login")
    for origin in ("https://evil.example", None):
        reply = await victim.send(
            form.action, form.fields | {"name": "otto", "password": PASSWORD}, origin=origin
        )
        assert reply.status == 403
    assert "You are logged in" not in Page(await victim.get("/auth/login")).text


async def test_a_reference_is_for_one_browser(town: Town) -> None:
    """The address of a consent page, copied to another browser, asks nobody anything there (a
    request of another browser).
    """
    attacker = town.visitor()
    victim = await town.insider()
    first = await attacker.get(f"/auth/authorize?{urlencode(request())}")
    place = first.header("location") or ""
    assert "/auth/login?at=" in place
    at = dict(parse_qsl(urlsplit(place).query))["at"]
    for path in ("login", "consent"):
        reply = await victim.get(f"/auth/{path}?{urlencode({'at': at})}")
        assert "Start again" in Page(reply).text
        assert reply.status == 400


@pytest.mark.parametrize("path", ["/auth/login", "/auth/consent", "/auth/device", "/auth/logout"])
@pytest.mark.parametrize("name", ["next", "at", "return_to", "redirect_uri", "url", "continue"])
@pytest.mark.parametrize(
    "evil",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "phttps://evil.example~x",
        "javascript:alert(1)",
    ],
)
async def test_no_page_leads_where_a_stranger_says(
    town: Town, path: str, name: str, evil: str
) -> None:
    """There is no parameter that sends anybody anywhere: where a log-in goes on to is a word of
    ours (open redirect).
    """
    visitor = town.visitor()
    reply = await visitor.follow(await visitor.get(f"{path}?{urlencode({name: evil})}"))
    assert "evil" not in (reply.header("location") or "")
    if any(form.action.endswith("/login") for form in Page(reply).forms):
        reply = await visitor.follow(
            await visitor.fill(
                reply,
                "/login",
                name="anna",
                password=PASSWORD,
                **{name: evil} if name != "at" else {},
            )
        )
        assert "evil" not in (reply.header("location") or "")
        assert Page(reply).refresh is None


async def test_the_form_cannot_change_what_was_asked(town: Town) -> None:
    """Redirect URI, client, scopes and resource are those of the request that the person saw,
    whatever the form says besides (SEC-10).
    """
    visitor = await town.insider()
    page = await visitor.begin(request(scope="files:read"))
    extra = {
        "redirect_uri": "https://evil.example/",
        "client_id": "second",
        "scope": "mail",
        "resource": "https://evil.example/mcp",
        "state": "other",
    }
    place = leads_to(await visitor.fill(page, "/consent", answer="yes", **extra))
    assert place.startswith(f"{BACK}?")
    answer = answer_at(place)
    assert answer["state"] == "a state"
    form = {
        "grant_type": "authorization_code",
        "code": answer["code"],
        "client_id": "app",
        "redirect_uri": BACK,
        "code_verifier": VERIFIER,
    }
    claims = claims_of(said(await visitor.send("/auth/token", form, origin=None))["access_token"])
    assert (claims["scope"], claims["aud"], claims["client_id"]) == ("files:read", SERVER, "app")


async def test_a_wrong_password_says_little(town: Town) -> None:
    """A wrong password and a name that nobody has get the same page, with what was typed and no
    password.
    """
    texts = set()
    for name in ("anna", "nobody"):
        visitor = town.visitor()
        page = await visitor.get("/auth/login")
        reply = await log_in(visitor, page, name, "wrong password")
        assert reply.status == 403
        assert "wrong password" not in reply.body.decode()
        texts.add(Page(reply).text)
        assert name in reply.body.decode()
        assert "You are logged in" not in Page(await visitor.get("/auth/login")).text
    assert len(texts) == 1


async def test_guessing_is_slowed_down(town: Town) -> None:
    """After a few wrong passwords even the right one has to wait, however many browsers there are.

    Elsewhere it does not.
    """
    for _ in range(5):
        visitor = town.visitor()
        assert (
            await log_in(visitor, await visitor.get("/auth/login"), password="wrong password")
        ).status == 403
    visitor = town.visitor()
    reply = await log_in(visitor, await visitor.get("/auth/login"))
    assert reply.status == 429
    assert int(reply.header("retry-after") or 0) > 0
    elsewhere = town.visitor("198.51.100.9")
    assert (await log_in(elsewhere, await elsewhere.get("/auth/login"))).status == 303
    town.clock.now += 60
    assert (await log_in(visitor, await visitor.get("/auth/login"))).status == 303


async def test_an_office_is_no_attacker(town: Town) -> None:
    """Many who log in from one address, with the right passwords, are not slowed down."""
    for n in range(70):
        visitor = town.visitor()
        assert (
            await log_in(visitor, await visitor.get("/auth/login"), "anna" if n % 2 else "otto")
        ).status == 303


async def test_spellings_of_a_name_are_one_name(town: Town) -> None:
    """Wide letters and capitals are no new tries."""
    replies = []
    for name in ("anna", "ANNA", "ａｎｎａ", " anna ", "Anna", "anNa"):
        visitor = town.visitor()
        replies.append(
            (await log_in(visitor, await visitor.get("/auth/login"), name, "wrong password")).status
        )
    assert replies == [403] * 5 + [429]


async def test_sessions_end(town: Town) -> None:
    """A log-in ends by itself, with the account, and with its password."""
    for end in ("time", "passwd", "remove"):
        visitor = await town.insider("anna")
        if end == "time":
            town.clock.now += 8 * 3600 + 1
        elif end == "passwd":
            await town.accounts.passwd("anna", PASSWORD)
        else:
            await town.accounts.remove("anna")
        page = Page(await visitor.begin(request()))
        assert page.form("/login")


async def test_grants_end_with_account_and_password(town: Town) -> None:
    """Nobody's tokens are renewed whose account is gone, or has another password than when they
    agreed.
    """
    people = town.people
    (anna, _) = await town.accounts.list()
    visitor = await town.insider()
    page = await visitor.begin(request())
    code = answer_at(leads_to(await visitor.fill(page, "/consent", answer="yes")))["code"]
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": "app",
        "redirect_uri": BACK,
        "code_verifier": VERIFIER,
    }
    tokens = said(await visitor.send("/auth/token", form, origin=None))
    renew = {"grant_type": "refresh_token", "client_id": "app"}
    tokens = said(
        await visitor.send(
            "/auth/token", renew | {"refresh_token": tokens["refresh_token"]}, origin=None
        )
    )
    await town.accounts.passwd("anna", PASSWORD)
    reply = await visitor.send(
        "/auth/token", renew | {"refresh_token": tokens["refresh_token"]}, origin=None
    )
    assert said(reply, 400)["error"] == "invalid_grant"
    await town.accounts.remove("anna")
    assert await people.is_active(User(anna.subject)) is False


async def test_not_you(town: Town) -> None:
    """Somebody else at the same browser logs out and in, and is asked the same as themselves.

    The old session is gone.
    """
    visitor = await town.insider("anna")
    old = dict(visitor.cookies)
    page = await visitor.begin(request())
    page = await visitor.follow(await visitor.fill(page, "/logout"))
    page = await visitor.follow(await log_in(visitor, page, "otto"))
    assert "Otto" in Page(page).text
    thief = town.visitor()
    thief.cookies = old
    assert "You are logged in" not in Page(await thief.get("/auth/login")).text
    assert "code=" in leads_to(await visitor.fill(page, "/consent", answer="yes"))
    page = await visitor.get("/auth/login")
    assert "Logged out" in Page(await visitor.fill(page, "/logout")).text


async def test_what_was_agreed_is_not_asked_again(town: Town) -> None:
    """Who ticked the box is sent straight on: the same person, client, redirect URI, server, and no
    more scopes; until the end of it.
    """
    visitor = await town.insider()
    page = await visitor.begin(request(scope="files:read"))
    await visitor.fill(page, "/consent", answer="yes", remember="yes")
    again = await visitor.get(f"/auth/authorize?{urlencode(request(scope='files:read'))}")
    assert (again.header("location") or "").startswith(f"{BACK}?code=")
    for more in (
        request(),
        request(scope="files:read mail"),
        request(client_id="second", scope="files:read"),
        request(scope="files:read", prompt="consent"),
    ):
        page = await visitor.begin(more)
        assert Page(page).form("/consent"), more
    await visitor.fill(
        await visitor.begin(request(client_id="second")), "/consent", answer="yes", remember="yes"
    )
    elsewhere = request(client_id="second", redirect_uri="https://second.example/back")
    assert Page(await visitor.begin(elsewhere)).form("/consent")
    other = await town.insider("otto")
    assert Page(await other.begin(request(scope="files:read"))).form("/consent")
    town.clock.now += consents.SECONDS + 1
    visitor = await town.insider()
    assert Page(await visitor.begin(request(scope="files:read"))).form("/consent")


async def test_without_the_box_it_is_asked_again(town: Town) -> None:
    """Nothing is remembered that the person did not want remembered."""
    visitor = await town.insider()
    await visitor.fill(await visitor.begin(request()), "/consent", answer="yes")
    assert Page(await visitor.begin(request())).form("/consent")


async def test_programs_that_anybody_may_be_are_asked_about_each_time(town: Town) -> None:
    """A client that registered itself, or has a document, and is answered on the own machine is
    never remembered (SEC-26, AUR-10).
    """
    town.world.documents[DOCUMENT] = {
        "client_id": DOCUMENT,
        "client_name": "Inspector",
        "redirect_uris": ["http://localhost:1/cb"],
    }
    stranger = await town.register("http://127.0.0.1/cb")
    visitor = await town.insider()
    for client, back in (
        (stranger, "http://127.0.0.1:4711/cb"),
        (DOCUMENT, "http://localhost:1/cb"),
    ):
        asked = request(client_id=client, redirect_uri=back)
        page = await visitor.begin(asked)
        seen = Page(page)
        assert "started it yourself just now" in seen.text
        assert "remember" not in seen.form("/consent").boxes
        await visitor.fill(page, "/consent", answer="yes", remember="yes")
        assert Page(await visitor.begin(asked)).form("/consent")
    configured = request(client_id="native", redirect_uri="http://127.0.0.1:4711/cb")
    await visitor.fill(await visitor.begin(configured), "/consent", answer="yes", remember="yes")
    again = await visitor.get(
        f"/auth/authorize?{urlencode(request(client_id='native', redirect_uri='http://127.0.0.1:999/cb'))}"
    )
    assert (again.header("location") or "").startswith("http://127.0.0.1:999/cb?code=")


async def test_the_host_of_the_document_stands_on_the_page(town: Town) -> None:
    """A client that calls itself by a good name is shown with the host
    that its id names (SEC-26)."""
    town.world.documents["https://evil.example/client.json"] = {
        "client_id": "https://evil.example/client.json",
        "client_name": "Your Bank",
        "redirect_uris": ["https://evil.example/cb"],
    }
    visitor = await town.insider()
    page = await visitor.begin(
        request(
            client_id="https://evil.example/client.json", redirect_uri="https://evil.example/cb"
        )
    )
    assert "published at evil.example" in Page(page).text


async def test_a_client_with_an_evil_name(town: Town) -> None:
    """A name that is HTML is shown as the letters that it has, on the log-in page too."""
    stranger = await town.register(
        "https://app.example/back", name="<b onclick=x>A</b><script>x</script>"
    )
    visitor = town.visitor()
    page = await visitor.begin(request(client_id=stranger))
    for _ in range(2):
        assert not {tag for tag, _ in Page(page).tags} & {"script"}
        assert "<script>x</script>" in Page(page).text
        if Page(page).forms[0].action.endswith("/login"):
            page = await visitor.follow(await log_in(visitor, page))
    assert "registered itself" in Page(page).text


PROMPTS = [("none", False, "login_required"), ("none", True, "consent_required")]


@pytest.mark.parametrize("prompt, inside, error", PROMPTS)
async def test_prompts_without_a_page(town: Town, prompt: str, inside: bool, error: str) -> None:
    """`prompt=none` shows no page (OpenID Connect Core, 3.1.2.6)."""
    visitor = await town.insider() if inside else town.visitor()
    reply = await visitor.get(f"/auth/authorize?{urlencode(request(prompt=prompt))}")
    assert answer_at(leads_to(reply))["error"] == error


async def test_prompt_login_asks_who_it_is(town: Town) -> None:
    """`prompt=login` asks for the password again; `login_hint` fills in the name."""
    visitor = await town.insider()
    form = Page(await visitor.begin(request(prompt="login", login_hint="anna"))).form("/login")
    assert form.fields["name"] == "anna"


async def begin_device(town: Town) -> dict[str, Any]:
    """The codes of a device."""
    return said(
        await town.visitor().send(
            "/auth/device_authorization",
            {"client_id": "tv", "scope": "files:read", "resource": SERVER},
            origin=None,
        )
    )


async def poll(town: Town, device_code: str) -> dict[str, Any]:
    """What the device hears."""
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "client_id": "tv",
        "device_code": device_code,
    }
    reply = await town.visitor().send("/auth/token", form, origin=None)
    return said(reply, reply.status)


async def test_a_device(town: Town) -> None:
    """The code is typed, or comes with the address and is looked at.

    The page shows it, warns, and the device gets its token.
    """
    for complete in (False, True):
        device = await begin_device(town)
        visitor = town.visitor()
        page = await visitor.follow(
            await visitor.get(
                device["verification_uri_complete" if complete else "verification_uri"]
            )
        )
        page = await visitor.follow(await log_in(visitor, page))
        form = Page(page).form("/device")
        assert form.fields["user_code"] == (device["user_code"] if complete else "")
        page = await visitor.follow(
            await visitor.fill(page, "/device", user_code=device["user_code"].lower())
        )
        seen = Page(page)
        assert "your device shows this code" in seen.text
        assert device["user_code"] in seen.text
        assert (await poll(town, device["device_code"]))["error"] == "authorization_pending"
        assert "Done" in Page(await visitor.fill(page, "/consent", answer="yes")).text
        town.clock.now += 6
        assert "access_token" in await poll(town, device["device_code"])


async def test_a_device_is_denied(town: Town) -> None:
    """Who says no to a device sees so, and the device hears it."""
    device = await begin_device(town)
    visitor = await town.insider()
    page = await visitor.follow(
        await visitor.fill(
            await visitor.get("/auth/device"), "/device", user_code=device["user_code"]
        )
    )
    assert "Denied" in Page(await visitor.fill(page, "/consent", answer="no")).text
    assert (await poll(town, device["device_code"]))["error"] == "access_denied"


async def test_codes_of_devices_cannot_be_guessed(town: Town) -> None:
    """Wrong codes are counted by address, and soon even the right one has to wait (RFC 8628,
    5.1)."""
    device = await begin_device(town)
    visitor = await town.insider()
    page = await visitor.get("/auth/device")
    statuses = [
        (await visitor.fill(page, "/device", user_code=f"BCDF-{n:04}")).status for n in range(11)
    ]
    assert statuses == [404] * 10 + [429]
    assert (await visitor.fill(page, "/device", user_code=device["user_code"])).status == 429


async def test_a_link_alone_connects_no_device(town: Town) -> None:
    """The address with the code, opened by somebody who is logged in, only fills in the page (RFC
    8628, 5.4).
    """
    device = await begin_device(town)
    visitor = await town.insider()
    await visitor.get(device["verification_uri_complete"])
    assert (await poll(town, device["device_code"]))["error"] == "authorization_pending"


async def test_a_link_with_an_evil_code(town: Town) -> None:
    """What somebody writes into the address of the device page is shown, on the log-in page carried
    along, and nothing else.
    """
    shapes = []
    for code in ("harmless", '"><script>alert(1)</script>', "'<b>~x&amp;"):
        visitor = town.visitor()
        page = await visitor.follow(
            await visitor.get(f"/auth/device?{urlencode({'user_code': code})}")
        )
        shapes.append([(tag, sorted(given)) for tag, given in Page(page).tags])
        page = await visitor.follow(await log_in(visitor, page))
        assert Page(page).form("/device").fields["user_code"] == code
    assert shapes[0] == shapes[1] == shapes[2]


async def test_a_request_that_has_ended(town: Town) -> None:
    """A page that was left open too long says so, and leads nowhere."""
    visitor = await town.insider()
    page = await visitor.begin(request())
    town.clock.now += 3600
    reply = await visitor.fill(page, "/consent", answer="yes")
    assert reply.status == 400
    assert "has ended" in Page(reply).text


@pytest.mark.parametrize("path", ["/consent", "/login", "/device", "/logout"])
@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "OPTIONS"])
async def test_other_methods(town: Town, path: str, method: str) -> None:
    """Pages take GET and POST; a log-out takes a form."""
    reply = await town.visitor().ask(method, f"/auth{path}")
    assert reply.status == 405


async def test_what_cannot_be_read(town: Town) -> None:
    """Fields that come twice, and bodies that are no form, get a page that says so."""
    visitor = await town.insider()
    for body in (b"at=1&at=2", b"\xff", b"at=%ff"):
        reply = await visitor.ask(
            "POST", "/auth/consent", body, {"content-type": "application/x-www-form-urlencoded"}
        )
        assert reply.status == 400
        assert "cannot be read" in Page(reply).text
    assert (
        await visitor.ask("POST", "/auth/consent", b"{}", {"content-type": "application/json"})
    ).status == 400


async def test_paths_of_others(town: Town) -> None:
    """What is none of its pages is left to others, also what only looks like one."""
    for path in ("/login", "/auth", "/authx/login", "/auth/login/", "/auth/other"):
        assert (await town.visitor().get(path)).status == 404


async def test_of_two_yeses_one_counts(town: Town) -> None:
    """A double click gives one code."""
    visitor = await town.insider()
    page = await visitor.begin(request())
    replies = await asyncio.gather(
        *(visitor.fill(page, "/consent", answer="yes") for _ in range(2))
    )
    assert sorted(reply.status for reply in replies) == [200, 400]


def test_what_may_be_remembered() -> None:
    """A table: whose answers may be remembered at all."""
    table = [
        ("configured", "https://a.example/cb", True),
        ("configured", "http://127.0.0.1/cb", True),
        ("registered", "https://a.example/cb", True),
        ("registered", "http://localhost/cb", False),
        ("registered", "https://localhost:8443/cb", False),
        ("document", "https://127.0.0.1/cb", False),
        ("registered", "com.example.app:/cb", False),
        ("document", "https://a.example/cb", True),
        ("document", "http://[::1]/cb", False),
    ]
    for source, back, wanted in table:
        client = Client(id="x", source=source, redirect_uris=(back,))  # type: ignore[arg-type]  # one of the three
        assert (
            consents.may_remember(PendingRequest(id="p", client=client, until=0, redirect_uri=back))
            is wanted
        )
    assert not consents.may_remember(PendingRequest(id="d.", client=DEVICE, until=0, user_code="X"))
