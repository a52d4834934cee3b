"""Who gets in: one person, at one browser of this machine, and no page of anybody else (`SEC-01`,
`SEC-23`).
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from interlock_apps.host.pages.site import HostSite
from interlock_apps.web.page_files import FOREVER
from interlock_apps.web.page_site import MOST_BODY
from tests.web.asking import ORIGIN, Browser, host_of


@pytest.fixture
async def site() -> AsyncIterator[HostSite]:
    async with host_of("hello") as host:
        made = HostSite(host, origin=ORIGIN, apps_origin="http://127.0.0.1:4712")
        yield made
        made.close()


async def test_the_address_lets_in_once(site: HostSite) -> None:
    browser = Browser(site)
    first = site.entry.removeprefix(ORIGIN)
    answer = await browser.ask("GET", first)
    assert (answer.status, answer.headers["location"]) == (303, f"{site.place}/")
    assert (await browser.ask("GET", "/")).status == 200
    again = await Browser(site).ask("GET", first)
    assert again.status == 401
    assert b"it prints a new address" in again.body
    assert site.entry.removeprefix(ORIGIN) != first


async def test_a_new_address_ends_the_one_before(site: HostSite) -> None:
    """Whoever found the unused address has nothing once another one was asked for."""
    before = site.entry.removeprefix(ORIGIN)
    after = site.new_entry().removeprefix(ORIGIN)
    assert (await Browser(site).ask("GET", before)).status == 401
    assert (await Browser(site).ask("GET", after)).status == 303


async def test_the_cookie_is_kept_from_scripts_and_other_sites(site: HostSite) -> None:
    cookie = (
        (await Browser(site).ask("GET", site.entry.removeprefix(ORIGIN)))
        .headers["set-cookie"]
        .lower()
    )
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "4711" in cookie.partition("=")[0]


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/api/events",
        "/api/log.jsonl",
        "/static/main.js",
        "/?token=",
        "/?token=guess",
        "/?token=%C3%A9",
    ],
)
async def test_nothing_without_the_cookie(site: HostSite, target: str) -> None:
    assert (await Browser(site).ask("GET", target)).status == 401
    assert (
        await Browser(site).ask("GET", target, cookie="interlock-host-4711=guess")
    ).status == 401


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:4711",
        "127.0.0.1",
        "127.0.0.1:80",
        "localhost:4711",
        "[::1]:4711",
        "",
    ],
)
async def test_another_name_for_this_machine_is_refused(site: HostSite, host: str) -> None:
    """A page of another site whose name leads here (rebinding) gets nothing, with the cookie or
    without.
    """
    browser = Browser(site)
    await browser.enter()
    for target in ("/", "/api/events", site.entry.removeprefix(ORIGIN)):
        assert (await browser.ask("GET", target, host=host)).status == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "http://127.0.0.1:4712"},
        {"origin": "null"},
        {"origin": "http://localhost:4711"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
async def test_other_sites_may_not_use_it(site: HostSite, headers: dict[str, str]) -> None:
    browser = Browser(site)
    await browser.enter()
    body = b'{"act":"newSession"}'
    assert (
        await browser.ask("POST", "/api/act", body, x_interlock=browser.csrf, **headers)
    ).status == 403
    assert (await browser.ask("GET", "/api/log.jsonl", **headers)).status == 403
    assert site.host.sessions == {}


@pytest.mark.parametrize("token", ["", "guess", "é"])
async def test_acts_need_the_token_of_our_page(site: HostSite, token: str) -> None:
    browser = Browser(site)
    await browser.enter()
    answer = await browser.ask(
        "POST", "/api/act", b'{"act":"newSession"}', origin=ORIGIN, x_interlock=token
    )
    assert answer.status == 403
    assert site.host.sessions == {}
    assert len(browser.csrf) > 20
    assert (
        await browser.ask(
            "POST", "/api/act", b'{"act":"newSession"}', origin=ORIGIN, x_interlock=browser.csrf
        )
    ).json["ok"]


async def test_the_policy_for_content_is_strict(site: HostSite) -> None:
    browser = Browser(site)
    page = await browser.enter()
    policy = {
        part.split()[0]: part.split()[1:]
        for part in page.headers["content-security-policy"].split("; ")
    }
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == ["'self'"]
    assert policy["frame-src"] == ["http://127.0.0.1:4712"]
    assert policy["frame-ancestors"] == policy["form-action"] == policy["base-uri"] == ["'none'"]
    assert policy["require-trusted-types-for"] == ["'script'"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-store"
    static = await browser.ask("GET", "/static/main.js")
    assert static.headers["cache-control"] == "no-store"
    named = re.findall(r' (?:src|href)="(v-[^"]+)"', page.body.decode())
    assert len(named) > 20
    kept = await browser.ask("GET", f"/{named[0]}")
    assert kept.headers["cache-control"] == FOREVER
    for file in (static, kept):
        assert file.headers["content-security-policy"] == page.headers["content-security-policy"]
    assert (await Browser(site).ask("GET", f"/{named[0]}")).status == 401


@pytest.mark.parametrize(
    "target",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/",
        "/kit/",
        "/kit/vendor/",
        "/kit/../page_guard.py",
        "/nothing",
    ],
)
async def test_only_the_pages_own_files(site: HostSite, target: str) -> None:
    browser = Browser(site)
    await browser.enter()
    assert (await browser.ask("GET", target)).status == 404


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"act":"nothing"}',
        b'{"act":"say"}',
        b'{"act":"newSession","more":1}',
        b'{"act":"cancel","session":3}',
        b"\xff",
    ],
)
async def test_what_is_no_act_is_refused_in_words(site: HostSite, body: bytes) -> None:
    browser = Browser(site)
    await browser.enter()
    answer = await browser.ask("POST", "/api/act", body, origin=ORIGIN, x_interlock=browser.csrf)
    assert answer.status == 400
    assert not answer.json["ok"]


async def test_too_much_at_once_is_refused(site: HostSite) -> None:
    browser = Browser(site)
    await browser.enter()
    answer = await browser.ask(
        "POST", "/api/act", b" " * (MOST_BODY + 1), origin=ORIGIN, x_interlock=browser.csrf
    )
    assert answer.status == 413


async def test_the_other_origin_knows_nothing_of_this_one(site: HostSite) -> None:
    browser = Browser(site)
    await browser.enter()
    for target in ("/", "/api/events", "/static/main.js", "/api/log.jsonl"):
        answer = await browser.ask("GET", target, app=site.sandbox, host="127.0.0.1:4712")
        assert answer.status == 404 or b"interlock-csrf" not in answer.body
        assert "set-cookie" not in answer.headers
