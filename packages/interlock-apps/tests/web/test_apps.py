"""What an app of a server is, which policy it gets, and what it may ask of the host (MCP Apps,
2026-01-26), without a browser.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import CallToolResult, Context, ResourceContents, Server, ToolAnnotations
from interlock.models.scripted import Scripted
from interlock.types import APP_MIME_TYPE, UI_EXTENSION, TextContent, Tool
from interlock_apps.fleet.events import (
    CallEnded,
    CallProposed,
    LogEntry,
    Notice,
    PersonSaid,
    QuestionAnswered,
    ResourceRead,
    TurnEnded,
)
from interlock_apps.fleet.policy import Policy, Rule
from interlock_apps.fleet.questions import CallQuestion, Decision, Filled, UrlQuestion
from interlock_apps.host.app import Host
from interlock_apps.host.pages.site import HostSite
from interlock_apps.web.app_policy import (
    DECLARED,
    MOST_DOMAINS,
    MOST_PAGE,
    BadApp,
    DeclaredOrigins,
    accepted,
    is_origin,
    policy,
    read_page,
    ui_of,
)
from tests.web.asking import ORIGIN, Browser

APPS = "http://127.0.0.1:4712"
PAGE = "<!doctype html><title>an app</title>"
SHOP = "ui://shop/list"


# -- what is accepted, as tables


@pytest.mark.parametrize(
    "text",
    [
        "https://api.example.com",
        "https://*.example.com",
        "https://a.example:8443",
        "https://xn--bcher-kva.example",
    ],
)
def test_origins_are_accepted(text: str) -> None:
    """One encrypted public origin, perhaps with all names below it (`APP-15`)."""
    assert is_origin(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "'self'",
        "'unsafe-eval'",
        "https:",
        "data:",
        "blob:",
        "https://*",
        "https://*.com",
        "http://example.com",
        "https://example.com/",
        "https://example.com/path",
        "https://example.com?x",
        "https://example.com#x",
        "https://user@example.com",
        "https://example.com; script-src *",
        "https://example.com *",
        "https://example.com\n",
        " https://example.com",
        "https://example.com,https://b.example",
        "HTTPS://EXAMPLE.COM",
        "https://localhost",
        "https://localhost:4711",
        "https://a.localhost",
        "https://127.0.0.1",
        "https://127.0.0.1:4711",
        "https://[::1]",
        "https://10.0.0.1",
        "https://2130706433",
        "https://0x7f.1",
        "https://printer.local",
        "https://intranet",
        "https://x.internal",
        "https://example.com:0",
        "https://example.com:99999",
        "https://example.com:",
        "https://exa_mple.com",
        "https://-a.example",
        "https://a..example",
        "https://bücher.example",
        "ftp://example.com",
        "ws://example.com",
        "wss://example.com",
        "https://example.com.",
        "//example.com",
        "example.com",
        f"https://{'a' * 64}.example",
        "https://" + "a." * 150 + "example",
    ],
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    """Keywords, schemes, paths, addresses of this machine and of the network around it, and what
    would end a directive (`APP-15`).
    """
    assert not is_origin(text)


def test_sockets_are_for_connecting_only() -> None:
    assert is_origin("wss://live.example.com", sockets=True)
    csp, refused = accepted(
        {
            "connectDomains": ["wss://live.example.com"],
            "resourceDomains": ["wss://live.example.com"],
        }
    )
    assert csp == DeclaredOrigins(connect_domains=("wss://live.example.com",))
    assert refused == ("resourceDomains: 'wss://live.example.com'",)


@pytest.mark.parametrize(
    "declared, refused",
    [
        (None, 0),
        ({}, 0),
        ("https://a.example", 1),
        ([], 1),
        ({"connectDomains": "https://a.example"}, 0),
        ({"connectDomains": [1, None, {}]}, 3),
        ({"other": ["https://a.example"]}, 0),
    ],
)
def test_what_is_declared_oddly(declared: Any, refused: int) -> None:
    """Nothing of a wrong shape opens anything."""
    csp, words = accepted(declared)
    assert len(words) == refused
    assert set(csp.domains) <= {"https://a.example"}


def test_so_many_domains_and_no_more() -> None:
    csp, refused = accepted(
        {"connectDomains": [f"https://h{n}.example" for n in range(MOST_DOMAINS + 3)]}
    )
    assert len(csp.connect_domains) == MOST_DOMAINS
    assert len(refused) == 3


def directives(text: str) -> dict[str, str]:
    """A policy, taken apart as a browser does it."""
    parts = [part.strip().partition(" ") for part in text.split(";")]
    assert len({name for name, _, _ in parts}) == len(parts)
    return {name: value for name, _, value in parts}


STRICT = {
    "default-src": "'none'",
    "script-src": "'self' 'unsafe-inline'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "media-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'none'",
    "frame-src": "'none'",
    "base-uri": "'self'",
    "worker-src": "'none'",
    "manifest-src": "'none'",
    "object-src": "'none'",
    "form-action": "'none'",
    "frame-ancestors": ORIGIN,
}


@pytest.mark.parametrize(
    "csp, changes",
    [
        ({}, {}),
        (
            {"connectDomains": ["https://api.example", "wss://api.example"]},
            {"connect-src": "https://api.example wss://api.example"},
        ),
        (
            {"resourceDomains": ["https://cdn.example"]},
            {
                "script-src": "'self' 'unsafe-inline' https://cdn.example",
                "style-src": "'self' 'unsafe-inline' https://cdn.example",
                "img-src": "'self' data: https://cdn.example",
                "media-src": "'self' data: https://cdn.example",
                "font-src": "'self' https://cdn.example",
            },
        ),
        ({"frameDomains": ["https://maps.example"]}, {"frame-src": "https://maps.example"}),
        ({"baseUriDomains": ["https://cdn.example"]}, {"base-uri": "https://cdn.example"}),
        ({"connectDomains": ["*", "'self'", "https://a.example; script-src *"]}, {}),
    ],
)
def test_the_policy(csp: Any, changes: dict[str, str]) -> None:
    """What was declared and accepted is added where it belongs, and all else stays shut (`APP-15`,
    `APP-16`, `APP-17`).
    """
    assert directives(policy(accepted(csp)[0], ORIGIN)) == {**STRICT, **changes}


@given(
    st.dictionaries(
        st.sampled_from(["connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"]),
        st.lists(st.text() | st.from_regex(r"https://[a-z*.:;' \n-]{0,20}")),
    )
)
def test_no_declaration_loosens_the_policy(csp: dict[str, list[str]]) -> None:
    """Whatever a server declares, the policy has the same directives, and each differs by accepted
    origins only (`APP-15`).
    """
    found = directives(policy(accepted(csp)[0], ORIGIN))
    assert found.keys() == STRICT.keys()
    for name, value in found.items():
        assert all(
            is_origin(each, sockets=True) for each in set(value.split()) - set(STRICT[name].split())
        )


def contents(**options: Any) -> ResourceContents:
    return ResourceContents(**{"uri": SHOP, "mime_type": APP_MIME_TYPE, "text": PAGE, **options})


def test_a_page_as_text_or_as_bytes() -> None:
    """Either way; its wishes are read, and what is no permission is none (`APP-03`, `APP-19`)."""
    meta = {
        "ui": {
            "permissions": {"camera": {}, "microphone": None, "usb": {}},
            "prefersBorder": False,
            "csp": {"connectDomains": ["https://a.example", "*"]},
        }
    }
    page = read_page(
        SHOP,
        [
            contents(
                text=None,
                blob=base64.b64encode(PAGE.encode()).decode(),
                mime_type="text/html; Profile=mcp-app",
                meta=meta,
            )
        ],
    )
    assert (page.html, page.permissions, page.border) == (PAGE, ("camera",), False)
    assert (page.csp, page.refused) == (
        DeclaredOrigins(connect_domains=("https://a.example",)),
        ("connectDomains: '*'",),
    )
    assert read_page(SHOP, [contents(uri="ui://shop/other"), contents()]).html == PAGE


@pytest.mark.parametrize(
    "parts, words",
    [
        ([], "none with that URI"),
        ([contents(mime_type="text/html")], "an app is of type"),
        ([contents(mime_type=None)], "an app is of type"),
        ([contents(text="x" * (MOST_PAGE + 1))], "larger"),
        ([contents(text=None, blob="!")], "not UTF-8 text"),
        ([contents(text=None, blob="/w==")], "not UTF-8 text"),
        ([contents(uri="ui://a"), contents(uri="ui://b")], "none with that URI"),
    ],
)
def test_what_is_no_page(parts: list[ResourceContents], words: str) -> None:
    """The type, the size and the encoding have to be right (`APP-03`)."""
    with pytest.raises(BadApp, match=words):
        read_page(SHOP, parts)


@pytest.mark.parametrize(
    "meta, uri",
    [
        (None, ""),
        ({}, ""),
        ({"ui": {"resourceUri": SHOP}}, SHOP),
        ({"ui/resourceUri": SHOP}, SHOP),
        ({"ui": {"resourceUri": "https://evil.example"}}, ""),
        ({"ui": {"resourceUri": 7}}, ""),
        ({"ui": []}, ""),
        ({"ui": {}, "ui/resourceUri": SHOP}, SHOP),
        ({"ui": {"resourceUri": "file:///etc/passwd"}, "ui/resourceUri": SHOP}, ""),
    ],
)
def test_where_a_tool_says_what_shows_it(meta: Any, uri: str) -> None:
    """`_meta.ui.resourceUri`, or the older flat key; nothing but `ui://` (`APP-04`)."""
    assert ui_of(Tool(name="x", input_schema={"type": "object"}, meta=meta)) == uri


# -- the other origin


def shop(seen: list[Any]) -> Server:
    """A server with an app, tools that the app may call and one that it may not."""
    server = Server("shop")
    wide = {
        "ui": {"csp": {"connectDomains": ["https://api.example.com", "https://127.0.0.1:4711"]}}
    }

    @server.tool(
        annotations=ToolAnnotations(read_only_hint=True), meta={"ui": {"resourceUri": SHOP}}
    )
    async def offers(ctx: Context) -> str:
        """What there is."""
        seen.append(ctx.caller.capabilities.extensions)
        return "bread"

    @server.tool(meta={"ui": {"resourceUri": "ui://shop/basket", "visibility": ["app"]}})
    async def put(thing: str) -> str:
        """Put into the basket."""
        seen.append(thing)
        return f"{thing} is in"

    @server.tool(meta={"ui": {"resourceUri": "ui://shop/gone", "visibility": ["model"]}})
    async def buy() -> str:
        """Buy the basket."""
        seen.append("bought")
        return "bought"

    @server.resource(SHOP, mime_type=APP_MIME_TYPE, meta=wide)
    def page() -> CallToolResult | ResourceContents:
        seen.append("page")
        return ResourceContents(uri=SHOP, mime_type=APP_MIME_TYPE, text=PAGE, meta=wide)

    @server.resource("ui://shop/basket", mime_type="text/html")
    def basket() -> str:
        return PAGE

    @server.resource("shop://prices", mime_type="text/plain")
    def prices() -> str:
        return "bread 3"

    return server


def other() -> Server:
    """Another server, whose tools are none of the shop's business."""
    server = Server("other")

    @server.tool
    def transfer() -> str:
        """Money."""
        return "gone"

    return server


class Person:
    """Answers as it is told to; what it was asked is kept."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answers: asyncio.Queue[Any] = asyncio.Queue()

    async def answer(self, question: Any) -> Any:
        self.asked.append(question)
        return await self.answers.get()


class Table:
    """A host, its page, and what was told."""

    def __init__(
        self, host: Host, site: HostSite, seen: list[Any], person: Person, model: Scripted
    ) -> None:
        self.host = host
        self.site = site
        self.seen = seen
        self.person = person
        self.model = model
        self.browser = Browser(site)
        self.events: list[Any] = []
        self._stirred = asyncio.Event()
        host.listen(self._receive)

    def _receive(self, noted: LogEntry) -> None:
        self.events.append(noted.event)
        self._stirred.set()

    async def until(self, kind: type, **fields: Any) -> Any:
        """Wait until something was told; what it is."""
        async with asyncio.timeout(20):
            while True:
                for event in self.events:
                    if isinstance(event, kind) and all(
                        getattr(event, name) == value for name, value in fields.items()
                    ):
                        return event
                self._stirred.clear()
                await self._stirred.wait()

    async def open(self) -> tuple[str, Any]:
        """Begin a conversation and open the app in it."""
        session = (await self.browser.act("newSession"))["session"]
        return session, await self.browser.act(
            "appResource", server="shop", uri=SHOP, session=session
        )


@pytest.fixture
async def table() -> AsyncIterator[Table]:
    seen: list[Any] = []
    model = Scripted("Yes.", forever=True)
    person = Person()
    rules = Policy(
        [
            Rule(decision="allow", tool="put", arguments={"thing": "bread"}),
            Rule(decision="deny", tool="put", arguments={"thing": "wine"}),
        ]
    )
    async with Host(
        {"shop": shop(seen), "other": other()}, models=[model], policy=rules, extensions=DECLARED
    ) as host:
        site = HostSite(host, origin=ORIGIN, apps_origin=APPS)
        host.prompter.person = person
        made = Table(host, site, seen, person, model)
        await made.browser.enter()
        yield made
        site.close()


async def test_the_place_of_an_app(table: Table) -> None:
    """Another origin, which only our page may frame, with the policy of that app; a guess finds
    nothing (`APP-11`, `APP-15`).
    """
    _, opened = await table.open()
    assert opened["url"].startswith(f"{APPS}/app/")
    path = opened["url"].removeprefix(APPS)
    answer = await table.browser.ask("GET", path, app=table.site.sandbox, host="127.0.0.1:4712")
    assert answer.status == 200
    assert directives(answer.headers["content-security-policy"]) == {
        **STRICT,
        "connect-src": "https://api.example.com",
    }
    for word in (
        b"interlock",
        PAGE.encode(),
        table.browser.csrf.encode(),
        *(value.encode() for value in table.browser.cookies.values()),
    ):
        assert word not in answer.body
    assert "set-cookie" not in answer.headers
    for target, host, status in [
        ("/app/" + "x" * 32, "127.0.0.1:4712", 404),
        ("/", "127.0.0.1:4712", 404),
        ("/static/main.js", "127.0.0.1:4712", 404),
        (path, "127.0.0.1:4711", 421),
        (path, "evil.example", 421),
        (path, "localhost:4712", 421),
        ("/proxy.js", "evil.example", 421),
    ]:
        assert (
            await table.browser.ask("GET", target, app=table.site.sandbox, host=host)
        ).status == status
    assert (
        await table.browser.ask("POST", path, app=table.site.sandbox, host="127.0.0.1:4712")
    ).status == 404
    script = await table.browser.ask(
        "GET", "/proxy.js", app=table.site.sandbox, host="127.0.0.1:4712"
    )
    assert (script.status, script.headers["content-type"].partition(";")[0]) == (
        200,
        "text/javascript",
    )
    assert (
        await table.browser.ask("GET", path)
    ).status == 404  # it is no place of the first origin


async def test_the_page_of_an_app(table: Table) -> None:
    """Read once and kept until the server changes; what it may reach is noted, with what it does
    not get (`APP-07`, `APP-18`).
    """
    session, opened = await table.open()
    assert (opened["html"], opened["domains"], opened["csp"]) == (
        PAGE,
        ["https://api.example.com"],
        {"connectDomains": ["https://api.example.com"]},
    )
    notice = await table.until(Notice, session=session, server="shop")
    assert "https://api.example.com" in notice.words
    assert "127.0.0.1:4711" in notice.words
    again = await table.browser.act("appResource", server="shop", uri=SHOP, session=session)
    assert again["app"] != opened["app"]
    assert again["url"] == opened["url"]
    assert table.seen.count("page") == 1
    assert (await table.until(ResourceRead, uri=SHOP)).by == "app"


@pytest.mark.parametrize(
    "server, uri, words",
    [
        ("other", SHOP, "No tool of other"),
        ("shop", "shop://prices", "No tool of shop"),
        ("shop", "", "No tool"),
        ("nobody", SHOP, "No tool"),
        ("shop", "ui://shop/basket", "an app is of type"),
        ("shop", "ui://shop/gone", "not found"),
    ],
)
async def test_what_cannot_be_opened(table: Table, server: str, uri: str, words: str) -> None:
    """Only what a tool of that server names, and what is an app (`APP-03`, `APP-04`)."""
    answer = await table.browser.tried("appResource", server=server, uri=uri)
    assert not answer["ok"]
    assert words in answer["words"]


async def test_only_a_host_with_a_page_declares_apps() -> None:
    """A server that starts once the page is there is told, without a word of whoever made the host
    (`APP-01`).
    """
    seen: list[Any] = []
    async with Host(
        {"shop": shop(seen)}, models=[Scripted()], policy=Policy([Rule(decision="allow")])
    ) as host:
        assert (await host.server("shop").call("offers", {})).text == "bread"
        site = HostSite(host, origin=ORIGIN, apps_origin=APPS)
        await host.hub.restart("shop")
        assert (await host.server("shop").call("offers", {})).text == "bread"
        site.close()
    assert seen == [None, DECLARED]


async def test_the_host_declares_apps(table: Table) -> None:
    """Every server is told, with the type that is shown (`APP-01`, `EXT-01`)."""
    table.host.policy.remember(Rule(decision="allow", tool="offers"), "session")
    call = (await table.browser.act("callTool", session="", server="shop", tool="offers"))["call"]
    ended = await table.until(CallEnded, call=call)
    assert ended.result.text == "bread"
    assert {UI_EXTENSION: {"mimeTypes": [APP_MIME_TYPE]}} in table.seen
    assert (await table.until(CallProposed, call=call)).by == "person"


@pytest.mark.parametrize(
    "thing, result, error", [("bread", "bread is in", ""), ("wine", "", "deny")]
)
async def test_the_policy_holds_for_apps(table: Table, thing: str, result: str, error: str) -> None:
    """An app's call is told, judged by the rules, and asked about where they ask (`APP-30`)."""
    session, opened = await table.open()
    call = (
        await table.browser.act(
            "callTool",
            session=session,
            server="shop",
            tool="put",
            arguments={"thing": thing},
            app=opened["app"],
        )
    )["call"]
    ended = await table.until(CallEnded, call=call)
    proposed = await table.until(CallProposed, call=call)
    assert (proposed.by, proposed.session) == ("app", session)
    assert (ended.result.text if ended.result else "") == result
    assert bool(ended.error) == bool(error)
    assert table.person.asked == []


@pytest.mark.parametrize("allow", [True, False])
async def test_the_person_is_asked_for_apps(table: Table, allow: bool) -> None:
    """Where no rule decides, the person does, and sees that an app wants it (`APP-30`)."""
    session, opened = await table.open()
    table.person.answers.put_nowait(Decision(allow=allow))
    call = (
        await table.browser.act(
            "callTool",
            session=session,
            server="shop",
            tool="put",
            arguments={"thing": "milk"},
            app=opened["app"],
        )
    )["call"]
    ended = await table.until(CallEnded, call=call)
    assert [type(question) for question in table.person.asked] == [CallQuestion]
    assert (table.person.asked[0].by, table.person.asked[0].call) == ("app", call)
    assert (ended.result is not None) == allow
    assert ("milk" in table.seen) == allow


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"server": "other", "tool": "transfer"}, "may not call tools of other"),
        ({"server": "shop", "tool": "transfer"}, "has no tool"),
        ({"server": "shop", "tool": "buy"}, "not for apps"),
        ({"server": "shop", "tool": "shop__put"}, "has no tool"),
        ({"server": "shop", "tool": "put", "app": "a0000"}, "no longer open"),
    ],
)
async def test_what_an_app_may_not_call(table: Table, fields: dict[str, str], words: str) -> None:
    """Other servers' tools, hidden ones, and none at all for what is no app (`APP-08`,
    `APP-09`).
    """
    session, opened = await table.open()
    before = len(table.events)
    answer = await table.browser.tried(
        "callTool", **{"session": session, "arguments": {}, "app": opened["app"], **fields}
    )
    assert not answer["ok"]
    assert words in answer["words"]
    assert len(table.events) == before  # nothing was proposed to anybody


async def test_an_app_has_so_many_calls_under_way(table: Table) -> None:
    """What is beyond that is refused; closing the app ends what waits (`APP-30`)."""
    session, opened = await table.open()
    calls = [
        await table.browser.tried(
            "callTool",
            session=session,
            server="shop",
            tool="put",
            arguments={"thing": str(n)},
            app=opened["app"],
        )
        for n in range(9)
    ]
    assert [call["ok"] for call in calls] == [True] * 8 + [False]
    for call in calls[:8]:
        await table.until(CallProposed, call=call["value"]["call"])
    await table.browser.act("closeApp", app=opened["app"])
    for call in calls[:8]:
        ended = await table.until(CallEnded, call=call["value"]["call"])
        assert ended.result is None
    assert table.host.questions == {}
    assert not (await table.browser.tried("appRead", app=opened["app"], uri="shop://prices"))["ok"]


async def test_an_app_that_heard_no_does_not_go_on_asking(table: Table) -> None:
    """After the third no its calls are refused without a question; opened anew, it may ask again
    (`APP-30`).
    """
    session, opened = await table.open()
    for allow in (True, False, False, False):
        table.person.answers.put_nowait(Decision(allow=allow))
        act = {"session": session, "server": "shop", "tool": "put", "arguments": {"thing": "milk"}}
        call = (await table.browser.act("callTool", app=opened["app"], **act))["call"]
        await table.until(CallEnded, call=call)
    refused = await table.browser.tried("callTool", app=opened["app"], **act)
    assert "denied calls of this app too often" in refused["words"]
    again = await table.browser.act("appResource", server="shop", uri=SHOP, session=session)
    assert (await table.browser.tried("callTool", app=again["app"], **act))["ok"]


async def test_no_place_no_apps() -> None:
    """A page without the second origin declares no apps and shows none."""
    async with Host({"shop": shop([])}, models=[Scripted()]) as host:
        site = HostSite(host, origin=ORIGIN)
        browser = Browser(site)
        await browser.enter()
        assert (
            "Apps cannot be shown here"
            in (await browser.tried("appResource", server="shop", uri=SHOP))["words"]
        )
        assert host.requests.extensions == {}
        site.close()


async def test_an_app_reads_its_own_server(table: Table) -> None:
    """And no other; that it did is told."""
    _, opened = await table.open()
    read = await table.browser.act("appRead", app=opened["app"], uri="shop://prices")
    assert read["contents"][0]["text"] == "bread 3"
    assert (await table.until(ResourceRead, uri="shop://prices")).by == "app"
    assert not (await table.browser.tried("appRead", app=opened["app"], uri="other://anything"))[
        "ok"
    ]


async def test_an_app_opens_a_page_by_asking(table: Table) -> None:
    """The person sees the whole address, one at a time; nothing but the web (`APP-29`)."""
    _, opened = await table.open()
    url = "https://pay.example.com/?order=1"
    question = (await table.browser.act("appLink", app=opened["app"], url=url, call="c1"))[
        "question"
    ]
    refused = await table.browser.tried("appLink", app=opened["app"], url=url)
    assert "about another page" in refused["words"]
    table.person.answers.put_nowait(Filled(action="accept"))
    assert (await table.until(QuestionAnswered, question=question)).answer == Filled(
        action="accept"
    )
    asked = table.person.asked[0]
    assert isinstance(asked, UrlQuestion)
    assert (asked.url, asked.host, asked.server, asked.call) == (
        url,
        "pay.example.com",
        "shop",
        "c1",
    )
    for bad in (
        "javascript:alert(1)",
        "file:///etc/passwd",
        "//x",
        "https://a.example/" + "x" * 9000,
    ):
        assert not (await table.browser.tried("appLink", app=opened["app"], url=bad))["ok"]


async def test_what_an_app_shows_goes_with_what_is_said_next(table: Table) -> None:
    """The last word counts, once, between the markers, and the person sees that it went along
    (`APP-29`).
    """
    session, opened = await table.open()
    app = opened["app"]
    for text in ("nothing yet", "the basket holds bread"):
        await table.browser.act(
            "appContext",
            app=app,
            content=[{"type": "text", "text": text}],
            structuredContent={"count": 1},
        )
    await table.browser.act("say", session=session, text="What is in it?")
    said = await table.until(PersonSaid, session=session)
    first, last = said.messages[0].content
    assert isinstance(first, TextContent)
    assert "the basket holds bread" in first.text
    assert '{"count":1}' in first.text
    assert "nothing yet" not in first.text
    assert first.text.startswith("[[data-")
    assert f"what the app {SHOP} of shop shows" in first.text
    assert last == TextContent(text="What is in it?")
    assert [(each.server, each.uri) for each in said.attached] == [("shop", SHOP)]
    await table.until(TurnEnded, session=session)
    table.events.clear()
    await table.browser.act("say", session=session, text="And now?")
    assert (await table.until(PersonSaid, session=session)).messages[0].content == [
        TextContent(text="And now?")
    ]


async def test_what_an_app_shows_has_bounds(table: Table) -> None:
    """Its size has, it can be taken back, and it needs a conversation."""
    session, opened = await table.open()
    assert not (
        await table.browser.tried(
            "appContext", app=opened["app"], content=[{"type": "text", "text": "x" * 70_000}]
        )
    )["ok"]
    await table.browser.act(
        "appContext", app=opened["app"], content=[{"type": "text", "text": "x"}]
    )
    await table.browser.act("appContext", app=opened["app"])
    await table.browser.act("say", session=session, text="Well?")
    assert (await table.until(PersonSaid, session=session)).messages[0].content == [
        TextContent(text="Well?")
    ]
    alone = await table.browser.act("appResource", server="shop", uri=SHOP)
    assert not (await table.browser.tried("appContext", app=alone["app"], content=[]))["ok"]
