"""What servers, and what lies in the log, may do to the page and to its address."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from interlock import Server
from interlock.models.scripted import call
from interlock.types import CallToolResult, TextContent
from interlock_apps.fleet.log import MemoryLog
from interlock_apps.fleet.questions import Filled, UrlQuestion
from interlock_apps.host.pages.site import HostSite
from interlock_apps.host.pages.state import MOST_DESCRIPTION, MOST_SHOWN, plain
from interlock_apps.host.pages.user import PageUser
from tests.host.scene import turns
from tests.web.asking import ORIGIN, Browser, host_of


async def test_what_a_server_says_of_itself_does_not_fill_the_page() -> None:
    """The state comes again and again; a description of megabytes in it would stop every page
    (`TOL-24`).
    """
    server = Server("big", instructions="i" * 1_000_000)

    @server.tool(description="d" * 1_000_000, title="t" * 1_000_000)
    async def tool() -> str:
        """Nothing."""
        return ""

    async with host_of(big=server) as host:
        site = HostSite(host, origin=ORIGIN)
        state = site.feed.state()
        site.close()
    assert len(msgspec.json.encode(state)) < 5 * MOST_DESCRIPTION
    (shown,) = state["servers"]
    assert shown["instructions"].endswith("(… 990,000 more characters)")
    assert shown["tools"][0]["description"].startswith("ddd")


def test_a_result_of_any_size_is_shown_as_far_as_a_page_can() -> None:
    """All texts of a record together are bounded, and what is left out is told."""
    result = CallToolResult(
        content=[TextContent(text="a" * MOST_SHOWN), TextContent(text="\u202e" * 100_000)]
    )
    first, second = plain(result)["content"]
    assert first["text"] == "a" * MOST_SHOWN
    assert second["text"] == " (… 100,000 more characters)"


def test_arguments_are_shown_whole() -> None:
    """They may be edited, and what comes back of them is what is called with."""
    text = "a" * (MOST_SHOWN + 1)
    assert plain({"arguments": {"text": text}}) == {"arguments": {"text": text}}


@pytest.mark.parametrize(
    "session", ["a%0d%0aset-cookie:%20x=y", "a%22b", "%C3%A9", "a%00b", "a%0ab"]
)
async def test_the_name_of_a_conversation_writes_no_header(session: str) -> None:
    """An export is named after its conversation where that is a name."""
    async with host_of("hello") as host:
        site = HostSite(host, origin=ORIGIN)
        browser = Browser(site)
        await browser.enter()
        answer = await browser.ask("GET", f"/api/log.jsonl?session={session}")
        site.close()
    assert answer.headers["content-disposition"] == "attachment"


async def test_a_call_within_a_call_of_the_hosts_own_tools_is_refused() -> None:
    """`use_tool` uses tools of servers; of the host's own it reads resources, which is judged as
    ever (`HST-06`).
    """
    log = MemoryLog()
    nested = {
        "name": "interlock__use_tool",
        "arguments": {"name": "interlock__use_tool", "arguments": {}},
    }
    async with host_of(
        call("interlock__use_tool", **nested), "done", log=log, one=Server("one")
    ) as host:
        session = host.session()
        ended = await asyncio.wait_for(session.say("go"), 20)
        result = session.messages[2].content[0]  # type: ignore[index,union-attr]  # the result of the use
    assert ended.reason == "done"
    assert result.is_error


@pytest.mark.parametrize(
    "target",
    ["/api/events?token=", "/api/log.jsonl?token=", "/static/main.js?token=", "/api/act?token="],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
async def test_the_token_opens_the_page_and_nothing_else(method: str, target: str) -> None:
    """With the right token, too, nothing but the page is to be had without the cookie
    (`SEC-01`).
    """
    async with host_of("hello") as host:
        site = HostSite(host, origin=ORIGIN)
        token = site.entry.partition("token=")[2]
        for given in (token, "guess"):
            assert (await Browser(site).ask(method, target + given)).status == 401
        assert (
            await Browser(site).ask("HEAD", f"/?token={token}")
        ).status == 401  # a look ahead does not use it up
        assert (await Browser(site).ask("GET", f"/?token={token}")).status == 303
        site.close()


async def test_every_answer_says_that_it_is_nobody_elses() -> None:
    """No address of ours, which may hold the token, goes to another site; no other page has a hold
    on ours (`SEC-23`).
    """
    async with host_of("hello") as host:
        site = HostSite(host, origin=ORIGIN)
        browser = Browser(site)
        entered = await browser.ask("GET", site.entry.removeprefix(ORIGIN))
        for answer in (
            entered,
            *[
                await browser.ask("GET", target)
                for target in ("/", "/static/main.js", "/api/log.jsonl")
            ],
        ):
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert answer.headers["cross-origin-opener-policy"] == "same-origin"
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert (
                answer.headers["permissions-policy"] == "camera=(), microphone=(), geolocation=()"
            )
        site.close()


async def test_the_cookie_goes_to_no_other_port() -> None:
    """Cookies know no ports: a page that somebody else serves on this machine gets none of ours,
    for it cannot know their path (`SEC-01`).
    """
    async with host_of("hello") as host:
        site, other = (HostSite(host, origin=ORIGIN) for _ in range(2))
        browser = Browser(site)
        cookie = (await browser.ask("GET", site.entry.removeprefix(ORIGIN))).headers["set-cookie"]
        assert f"Path={site.place};" in f"{cookie};"
        assert len(site.place) > 20
        assert site.place != other.place
        # With the cookie, but at another path, nobody is let in.
        stolen = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        outside = Browser(site)
        for target in (
            "/",
            "/api/events",
            "/static/main.js",
            f"{site.place}x/api/events",
            site.place,
        ):
            assert (await outside.ask("GET", target, cookie=stolen, app=site)).status == 401
        site.close()
        other.close()


async def test_the_first_of_two_pages_that_answer_is_heard() -> None:
    """The second is told that the question is no longer open, and nothing fails (`TOL-24`)."""
    person = PageUser()
    asking = asyncio.create_task(
        person.answer(UrlQuestion(id="q1", message="", url="https://a.example/", host="a.example"))
    )
    await turns()
    assert person.settle("q1", Filled(action="decline"))
    assert not person.settle("q1", Filled(action="accept"))
    assert await asking == Filled(action="decline")
    assert not person.settle("q1", Filled(action="accept"))
