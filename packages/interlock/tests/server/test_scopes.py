"""Scopes of features, in memory: who sees what, who may use what, and what is said to whoever may
not.
"""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import (
    Caller,
    Client,
    Context,
    Exchange,
    Forbidden,
    McpError,
    Principal,
    QuestionSettings,
    Server,
    ServerLimits,
    Socket,
)
from interlock import types as t
from interlock.cursors import encode_cursor
from interlock.exchange import RawResult
from interlock.server.catalogue.visibility import Audience
from interlock.server.run.program import _sockets
from interlock.wire.codec import decode
from interlock.wire.revisions import METHODS, NEWEST, R4, R5, REVISIONS
from tests.server.by_hand import pages_of
from tests.server.wire import Peer

BOTH_ERAS = pytest.mark.parametrize("revision", [R4, R5])
EACH = pytest.mark.parametrize("revision", REVISIONS)
SCOPES = ("files:read", "files:write", "mail:send")


def who(*scopes: str, subject: str = "ada") -> Principal:
    """Somebody who may do this and no more."""
    return Principal(subject=subject, scopes=frozenset(scopes))


def office(**options: Any) -> Server:
    """A server with features of every kind for everybody, for readers, for writers, and for who may
    do two things.
    """
    server = Server("office", **options)

    @server.tool
    async def hello() -> str:
        return "hello"

    @server.tool(scopes=["files:read"])
    async def find(name: str) -> str:
        return f"found {name}"

    @server.tool(scopes="files:write mail:send")
    async def publish(name: str) -> str:
        return f"published {name}"

    @server.tool
    async def save(name: str, ctx: Context) -> str:
        """A tool that all see and some may use."""
        if name != "draft":
            ctx.require("files:write", "mail:send")
        return f"saved {name}"

    @server.tool
    async def mine(ctx: Context) -> str:
        return ctx.principal.subject if ctx.principal is not None else "nobody"

    @server.tool
    async def peek(uri: str, ctx: Context) -> str:
        """Reads on behalf of whoever calls."""
        return (await ctx.read_resource(uri))[0].text or ""

    @server.tool
    async def both(ctx: Context) -> str:
        """Two things at once, each of which wants a scope."""

        async def one(scope: str) -> None:
            ctx.require(scope)

        async with asyncio.TaskGroup() as group:
            group.create_task(one("files:write"))
            group.create_task(one("mail:send"))
        return "both"

    server.add_resource("docs://open", "open")
    server.add_resource("docs://secret", "secret", scopes={"files:read"}, cache_scope="public")

    @server.resource("files://{name}", scopes=["files:read"])
    async def file(name: str) -> str:
        return f"file {name}"

    @server.resource("files://vault/{name}", scopes=["files:read", "files:write"])
    async def vault(name: str) -> str:
        return f"vault {name}"

    @server.resource("notes://{name}")
    async def note(name: str) -> str:
        return f"note {name}"

    @server.prompt
    async def greet(name: str) -> str:
        return f"Greet {name}."

    @server.prompt(scopes=["mail:send"])
    async def write(to: str) -> str:
        return f"Write to {to}."

    @server.completion("write", "to")
    async def addresses(value: str) -> list[str]:
        return [f"{value}@example.com"]

    @server.completion("files://{name}", "name")
    async def names(value: str) -> list[str]:
        return [f"{value}.txt"]

    return server


async def names(client: Client) -> dict[str, list[str]]:
    """All that a client sees."""
    return {
        "tools": [tool.name for tool in await client.list_tools()],
        "resources": [resource.uri for resource in await client.list_resources()],
        "templates": [template.uri_template for template in await client.list_resource_templates()],
        "prompts": [prompt.name for prompt in await client.list_prompts()],
    }


OPEN = {
    "tools": ["hello", "save", "mine", "peek", "both"],
    "resources": ["docs://open"],
    "templates": ["notes://{name}"],
    "prompts": ["greet"],
}
READER = {
    "tools": ["hello", "find", "save", "mine", "peek", "both"],
    "resources": ["docs://open", "docs://secret"],
    "templates": ["files://{name}", "notes://{name}"],
    "prompts": ["greet"],
}
ALL = {
    "tools": ["hello", "find", "publish", "save", "mine", "peek", "both"],
    "resources": ["docs://open", "docs://secret"],
    "templates": ["files://{name}", "files://vault/{name}", "notes://{name}"],
    "prompts": ["greet", "write"],
}


@EACH
async def test_lists_hold_what_a_caller_may_use(revision: str) -> None:
    """Tools, resources, templates and prompts, for whoever has the scopes and for nobody else
    (`AUT-17`, `SEC-25`, `STA-15`).
    """
    server = office()
    for principal, seen in (
        (who(), OPEN),
        (who("files:read"), READER),
        (who(*SCOPES), ALL),
        (who("files:read", "other"), READER),
    ):
        async with Client(server.transport(principal=principal), revision=revision) as client:
            assert await names(client) == seen
    async with Client(server, revision=revision) as client:  # the person at this machine
        assert await names(client) == ALL


def refused(error: McpError) -> set[str]:
    """The scopes that an error asks for."""
    assert (error.code, error.message.split(":")[0]) == (t.FORBIDDEN, "Forbidden")
    return set(error.data["requiredScopes"])


OPERATIONS: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "tool": ("tools/call", {"name": "find", "arguments": {"name": "x"}}, {"files:read"}),
    "tool with two": (
        "tools/call",
        {"name": "publish", "arguments": {"name": "x"}},
        {"files:write", "mail:send"},
    ),
    "wrong arguments": ("tools/call", {"name": "find", "arguments": {"number": 1}}, {"files:read"}),
    "require": (
        "tools/call",
        {"name": "save", "arguments": {"name": "x"}},
        {"files:write", "mail:send"},
    ),
    "task group": ("tools/call", {"name": "both"}, {"files:write", "mail:send"}),
    "read within": (
        "tools/call",
        {"name": "peek", "arguments": {"uri": "files://vault/x"}},
        {"files:read", "files:write"},
    ),
    "resource": ("resources/read", {"uri": "docs://secret"}, {"files:read"}),
    "template": ("resources/read", {"uri": "files://x"}, {"files:read"}),
    "closest template": (
        "resources/read",
        {"uri": "files://vault/x"},
        {"files:read", "files:write"},
    ),
    "prompt": ("prompts/get", {"name": "write", "arguments": {"to": "x"}}, {"mail:send"}),
    "argument of a prompt": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "write"}, "argument": {"name": "to", "value": "a"}},
        {"mail:send"},
    ),
    "hidden argument": (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "write"},
            "argument": {"name": "nothing", "value": "a"},
        },
        {"mail:send"},
    ),
    "variable of a template": (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "files://{name}"},
            "argument": {"name": "name", "value": "a"},
        },
        {"files:read"},
    ),
    "variable of a resource": (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "docs://secret"},
            "argument": {"name": "name", "value": "a"},
        },
        {"files:read"},
    ),
}


def read(method: str, params: dict[str, Any]) -> Any:
    """Params as the protocol has them."""
    return decode(msgspec.json.encode(params), METHODS[method].params)


@BOTH_ERAS
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_who_lacks_a_scope_is_told_all_that_it_needs(operation: str, revision: str) -> None:
    """The error names every scope of the operation, those that were granted too, and comes before
    anything is looked at (`AUS-04`, `AUS-08`, `AUT-17`); with all of them there is no such error,
    and without a principal in memory neither.
    """
    method, params, needed = OPERATIONS[operation]
    server = office()
    granted = sorted(needed)[:-1]
    for principal in (who(), who(*granted), who("other", *granted)):
        async with Client(server.transport(principal=principal), revision=revision) as client:
            with pytest.raises(McpError) as caught:
                await client.request(method, read(method, params))
            asked_one_by_one = operation == "task group"
            assert refused(caught.value) == (
                needed - principal.scopes if asked_one_by_one else needed
            )
    for able in (who(*needed), who(*SCOPES), None):
        async with Client(server.transport(principal=able), revision=revision) as client:
            try:
                await client.request(method, read(method, params))
            except McpError as bad:
                assert operation == "hidden argument"  # which is looked for now, and not found
                assert bad.code == t.INVALID_PARAMS


async def test_what_all_may_use_is_unchanged() -> None:
    """Whoever has no scopes at all uses what asks for none."""
    async with Client(office().transport(principal=who())) as client:
        assert (await client.call_tool("hello")).text == "hello"
        assert (await client.call_tool("save", {"name": "draft"})).text == "saved draft"
        assert (await client.call_tool("mine")).text == "ada"
        assert (await client.call_tool("peek", {"uri": "docs://open"})).text == "open"
        assert (await client.read_resource("notes://x")).contents[0].text == "note x"
        assert (await client.get_prompt("greet", {"name": "Bob"})).messages[
            0
        ].content.text == "Greet Bob."
    async with Client(office()) as client:
        assert (await client.call_tool("mine")).text == "nobody"


async def test_a_broader_scope_is_as_good() -> None:
    """The scopes of a principal hold what they imply (the guard sees to that):

    `files` stands for reading and writing (`AUS-10`).
    """
    closure = who("files", "files:read", "files:write")
    async with Client(office().transport(principal=closure)) as client:
        assert (await client.call_tool("find", {"name": "x"})).text == "found x"
        assert (await client.read_resource("files://vault/x")).contents[0].text == "vault x"
        with pytest.raises(McpError) as caught:
            await client.call_tool("publish", {"name": "x"})
        assert refused(caught.value) == {"files:write", "mail:send"}


# -- lists in pages -------------------------------------------------------------------------------


async def page(
    server: Server,
    method: str,
    principal: Principal | None,
    cursor: str | None = None,
    revision: str = NEWEST,
) -> dict[str, Any]:
    """One page as it stands on the wire."""
    kind = {"tools/list": t.ListToolsRequestParams, "prompts/list": t.ListPromptsRequestParams}[
        method
    ]
    result = await server.handle(
        Exchange(method, kind(cursor=cursor), Caller(revision, principal=principal))
    )
    assert isinstance(result, RawResult)
    found: dict[str, Any] = msgspec.json.decode(result.body)
    return found


def shown(body: dict[str, Any]) -> list[str]:
    """The names on a page."""
    return [tool["name"] for tool in body["tools"]]


def shelf(scopes: list[str | None], **options: Any) -> Server:
    """A server with a tool for each of these."""
    server = Server("shelf", **options)

    async def feature() -> str:
        return ""

    for n, scope in enumerate(scopes):
        server.add_tool(feature, name=f"f{n}", scopes=scope)
    return server


@given(
    st.lists(st.sampled_from([None, "a", "b", "a b"]), max_size=12),
    st.sets(st.sampled_from("abc")),
    st.integers(1, 4),
)
async def test_pages_of_what_is_seen(scopes: list[str | None], have: set[str], size: int) -> None:
    """Every page but the last is full, whatever lies hidden between, and all together are what the
    caller may see, in order.
    """
    server = shelf(scopes, limits=ServerLimits(page_size=size))
    server.changed("tools")
    seen: list[str] = []
    cursor = None
    while True:
        body = await page(server, "tools/list", who(*have), cursor)
        seen += shown(body)
        cursor = body.get("nextCursor")
        assert len(body["tools"]) == size or cursor is None
        assert body["tools"] or not seen
        if cursor is None:
            break
    assert seen == [f"f{n}" for n, scope in enumerate(scopes) if set((scope or "").split()) <= have]


async def test_the_cursor_of_another_principal_shows_nothing_more() -> None:
    """A cursor says where to go on, and nothing of what may be seen there (`SEC-04`, `SEC-05`)."""
    server = shelf([None, "a", "a", None, "a", None], limits=ServerLimits(page_size=2))
    all_of_it = await page(server, "tools/list", who("a"))
    assert shown(all_of_it) == ["f0", "f1"]
    assert shown(await page(server, "tools/list", who(), all_of_it["nextCursor"])) == ["f3", "f5"]
    assert shown(await page(server, "tools/list", who("a"), all_of_it["nextCursor"])) == [
        "f2",
        "f3",
    ]
    little = await page(server, "tools/list", who())
    assert (shown(little), little.get("nextCursor") is None) == (["f0", "f3"], False)
    assert shown(await page(server, "tools/list", who("a"), little["nextCursor"])) == ["f4", "f5"]


async def test_cursors_do_not_say_how_much_is_hidden() -> None:
    """Two servers with one key, and many more features hidden on one of them: a page and its cursor
    have the same length, nothing of the place can be read, and a place made up is refused.
    """
    keys = QuestionSettings(state_keys=[b"k" * 16])
    few = shelf([None, "a", None, None], limits=ServerLimits(page_size=2), questions=keys)
    many = shelf([None, *["a"] * 500, None, None], limits=ServerLimits(page_size=2), questions=keys)
    cursors = []
    for server in (few, many):
        first = await page(server, "tools/list", who())
        assert len(first["tools"]) == 2
        cursors.append(first["nextCursor"])
        assert len((await page(server, "tools/list", who(), cursors[-1]))["tools"]) == 1
    assert len(cursors[0]) == len(cursors[1])
    for cursor, place in zip(cursors, (3, 502), strict=True):
        read = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        assert place.to_bytes(2) not in read
        with pytest.raises(McpError, match="Invalid cursor"):
            await page(few, "tools/list", who(), encode_cursor(place.to_bytes(6), "tools"))


async def test_whose_a_list_is() -> None:
    """A list that depends on who asks is for nobody else to keep, not even the part that all may
    see; another list of the same server is as public as ever (`CAC-05`).
    """
    server = shelf([None, None], limits=ServerLimits(page_size=5))
    server.add_prompt(lambda: "", name="prompt")
    for principal in (None, who(), who("a")):
        assert (await page(server, "tools/list", principal))["cacheScope"] == "public"
    server.add_tool(lambda: "", name="hidden", scopes="a")
    for principal in (None, who(), who("a")):
        assert (await page(server, "tools/list", principal))["cacheScope"] == "private"
        assert (await page(server, "prompts/list", principal))["cacheScope"] == "public"
    server.remove_tool("hidden")
    assert (await page(server, "tools/list", who()))["cacheScope"] == "public"


async def test_what_some_may_not_read_is_kept_by_nobody_else() -> None:
    """Whatever its author said of caches, the content of a resource with scopes is its reader's
    alone.
    """
    async with Client(office().transport(principal=who("files:read"))) as client:
        assert (await client.read_resource("docs://secret")).cache_scope == "private"
        assert (
            await client.read_resource("docs://open")
        ).cache_scope == "private"  # as it is where nobody says otherwise


async def test_lists_are_kept_for_all_who_see_the_same() -> None:
    """The same bytes for other scopes that make no difference; new ones after a change; and few,
    however many scopes there are.
    """
    server = shelf([None, "a", "b"])
    pages = pages_of(server)

    def kept(*have: str) -> bytes:
        return pages.page("tools", None, NEWEST, Audience(b"", None, frozenset(have)))

    assert kept("a") is kept("a", "x") is kept("a", "y", "z")
    assert len({kept(), kept("a"), kept("b"), kept("a", "b")}) == 4
    before = kept("a")
    server.add_tool(lambda: "", name="more", scopes="a")
    assert kept("a") is before  # nobody has told this one
    pages.clear()
    assert b"more" in kept("a")
    assert b"more" not in kept("b")

    crowd = shelf([f"s{n}" for n in range(12)])
    crowded = pages_of(crowd)
    for number in range(1 << 12):
        have = frozenset(f"s{n}" for n in range(12) if number >> n & 1)
        crowded.page("tools", None, NEWEST, Audience(b"", None, have))
    assert len(crowded._pages) <= 1024
    last = Audience(b"", None, frozenset(f"s{n}" for n in range(12)))
    assert crowded.page("tools", None, NEWEST, last) is crowded.page("tools", None, NEWEST, last)


async def test_a_list_without_scopes_is_one_for_all() -> None:
    """Where nothing is asked for, who asks makes no difference, and the bytes are shared."""
    pages = pages_of(shelf([None, None]))
    somebody = Audience(b"", None, frozenset({"a"}))
    assert pages.page("tools", None, NEWEST, somebody) is pages.page("tools", None, NEWEST)
    assert len(pages._pages) == 1


# -- subscriptions --------------------------------------------------------------------------------


@BOTH_ERAS
async def test_nobody_watches_what_it_may_not_read(revision: str) -> None:
    """Subscribing to a resource, or to one of a template, asks for its scopes; all of them in one
    error (`AUS-08`).
    """
    server = office()
    async with Client(server.transport(principal=who()), revision=revision) as client:
        for uris, needed in (
            (["docs://secret"], {"files:read"}),
            (["files://vault/x"], {"files:read", "files:write"}),
        ):
            with pytest.raises(McpError) as caught:
                async with client.watch(
                    resources=["docs://open", *uris] if revision == R5 else uris
                ):
                    pass
            assert refused(caught.value) == needed
        if revision == R5:
            with pytest.raises(McpError) as caught:
                async with client.watch(resources=["docs://secret", "files://vault/x"]):
                    pass
            assert refused(caught.value) == {"files:read", "files:write"}
        async with client.watch(resources=["docs://open"]) as changes, asyncio.timeout(10):
            server.updated("docs://open")
            assert (await anext(changes)).uri == "docs://open"
    async with (
        Client(server.transport(principal=who("files:read")), revision=revision) as client,
        client.watch(resources=["docs://secret"]) as changes,
        asyncio.timeout(10),
    ):
        server.updated("docs://secret")
        assert (await anext(changes)).uri == "docs://secret"


@BOTH_ERAS
async def test_a_hidden_part_of_what_is_watched_stays_hidden(revision: str) -> None:
    """Whoever watches a whole does not hear of the parts that it may not read, be they hidden from
    now on only.
    """
    server = Server("parts")
    server.add_resource("docs://all", "all")
    server.add_resource("docs://all/open", "open")
    server.add_resource("docs://all/secret", "secret", scopes="read")
    for principal, received in (
        (who(), ["docs://all/open", "docs://all"]),
        (who("read"), ["docs://all/secret", "docs://all/open", "docs://all"]),
    ):
        async with (
            Client(server.transport(principal=principal), revision=revision) as client,
            client.watch(resources=["docs://all"]) as changes,
            asyncio.timeout(10),
        ):
            for uri in ("docs://all/secret", "docs://all/open", "docs://all"):
                server.updated(uri)
            assert [(await anext(changes)).uri for _ in received] == received


# -- over a channel -------------------------------------------------------------------------------


@BOTH_ERAS
async def test_a_stranger_at_a_channel(revision: str) -> None:
    """Whoever comes over a network and is nobody in particular has no scopes, and all else is as it
    is for anybody; on a channel of this machine's own there is nobody else than its person.
    """
    server = office()
    peer = await Peer.of(server, revision)
    assert (await peer.ask("tools/call", {"name": "find", "arguments": {"name": "x"}}))["result"][
        "content"
    ][0]["text"] == "found x"
    await peer.aclose()
    peer = await Peer.of(server, revision, anonymous=True)
    for name in ("find", "publish", "save"):
        error = (await peer.ask("tools/call", {"name": name, "arguments": {"name": "x"}}))["error"]
        assert error["code"] == t.FORBIDDEN
        assert error["message"].endswith("and nothing here says who asks")
    assert (await peer.ask("tools/call", {"name": "hello"}))["result"]["content"][0][
        "text"
    ] == "hello"
    assert [tool["name"] for tool in (await peer.ask("tools/list"))["result"]["tools"]] == OPEN[
        "tools"
    ]
    await peer.aclose()
    peer = await Peer.of(server, revision, anonymous=True, principal=who("files:read"))
    assert [tool["name"] for tool in (await peer.ask("tools/list"))["result"]["tools"]] == READER[
        "tools"
    ]
    await peer.aclose()


@BOTH_ERAS
async def test_whoever_may_reach_a_socket(revision: str, tmp_path: Path) -> None:
    """A Unix socket is its owner's; at a TCP port there may be anybody."""
    for transport, seen in (("unix", ALL), ("tcp", OPEN)):
        server = office()
        ready = asyncio.get_running_loop().create_future()
        address: Any = tmp_path / "s" if transport == "unix" else ("127.0.0.1", 0)
        serving = asyncio.ensure_future(
            _sockets(server, address=address, limit=1 << 20, on_ready=ready.set_result)
        )
        async with Client(Socket(await ready), revision=revision) as client:
            assert await names(client) == seen
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


# -- authors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scopes, words",
    [
        (["with space"], "is no scope"),
        (['quo"te'], "is no scope"),
        ([""], "is no scope"),
        (["back\\slash"], "is no scope"),
        (["offline_access"], "cannot ask for offline_access"),
        ("files:read offline_access", "cannot ask for offline_access"),
    ],
)
def test_what_is_no_scope(scopes: Any, words: str) -> None:
    """A misspelt scope would shut a feature away from everybody; `offline_access` is no business of
    a server (`AUS-14`).
    """
    server = Server("strict")
    with pytest.raises(ValueError, match=words):
        server.add_tool(lambda: "", name="tool", scopes=scopes)
    with pytest.raises(ValueError, match=words):
        server.add_resource("docs://a", "text", scopes=scopes)
    with pytest.raises(ValueError, match=words):
        server.add_resource("docs://{a}", lambda a: a, scopes=scopes)
    with pytest.raises(ValueError, match=words):
        server.add_prompt(lambda: "", name="prompt", scopes=scopes)
    assert server.scopes == frozenset()


def test_a_scope_for_everything_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """One that stands for all there is helps whoever steals a token (`SEC-25`)."""
    Server("lax").add_tool(lambda: "", name="tool", scopes="*")
    assert "asks for the scope '*'" in caplog.text


def test_all_scopes_of_a_server() -> None:
    """What a guard lists in its metadata follows the features as they come and go."""
    server = office()
    assert server.scopes == set(SCOPES)
    server.remove_prompt("write")
    server.remove_tool("publish")
    assert server.scopes == {"files:read", "files:write"}
    server.add_tool(lambda: "", name="new", scopes=["new"])
    assert server.scopes == {"files:read", "files:write", "new"}
    assert Server("plain").scopes == frozenset()


def test_the_wire_says_nothing_of_scopes() -> None:
    """Listings are as they are without scopes: who sees a feature has all that it asks for
    already.
    """
    plain = Server("a")
    scoped = Server("b")
    for server, scopes in ((plain, None), (scoped, "a b")):
        server.add_tool(lambda: "", name="tool", scopes=scopes)
    assert plain.tools.all()[0].listing == scoped.tools.all()[0].listing


def test_the_error() -> None:
    """All scopes once, in the order given; a sentence of one's own; and none at all where no scope
    would help.
    """
    assert Forbidden("b", "a", "b").scopes == ("b", "a")
    assert str(Forbidden("a")) == "Forbidden: this needs the scope a (code 403)"
    assert str(Forbidden("b", "a", "b")) == "Forbidden: this needs the scopes b a (code 403)"
    assert Forbidden("a").data == {"requiredScopes": ["a"]}
    assert (Forbidden().message, Forbidden().data, Forbidden().scopes) == ("Forbidden", None, ())
    assert Forbidden(message="Not yours").message == "Not yours"
    assert isinstance(Forbidden(), McpError)


# -- questions ------------------------------------------------------------------------------------


def asking(suspend: bool) -> tuple[Server, list[str]]:
    """A server with a tool that asks, does something once, asks for a scope, and says what it was
    told; and what it did.
    """
    server = Server("asking", questions=QuestionSettings(suspend=suspend, state_keys=[b"k" * 32]))
    done: list[str] = []

    @server.tool
    async def pay(ctx: Context) -> str:
        first = await ctx.elicit("how much?", int)
        await ctx.once("paid", done.append, "paid")
        ctx.require("pay")
        second = await ctx.elicit("sure?", int)
        return f"{first} {second} {ctx.principal.subject if ctx.principal else ''}"

    return server, done


def retry(state: str | None, questions: Any, answers: list[int]) -> dict[str, Any]:
    """The params of a call that comes back with answers."""
    given = {
        key: {"action": "accept", "content": {"value": answer}}
        for key, answer in zip(questions or {}, answers, strict=True)
    }
    return {
        "name": "pay",
        **({"requestState": state, "inputResponses": given} if state is not None else {}),
    }


class Hand:
    """A client that goes through its rounds by hand, as whoever it says it is."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def ask(self, principal: Principal | None, params: dict[str, Any]) -> Any:
        """One round."""
        able = t.ClientCapabilities(elicitation=t.ElicitationCapability(form={}))
        read = msgspec.json.decode(msgspec.json.encode(params), type=t.CallToolRequestParams)
        return await self.server.handle(
            Exchange("tools/call", read, Caller(NEWEST, able, principal=principal))
        )


@pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "replayed"])
async def test_the_questions_of_one_principal_are_not_answered_by_another(suspend: bool) -> None:
    """Neither by another person, nor by another program or at another issuer, nor by nobody; what
    was asked stays open for whom it was asked (`SEC-04`, `SEC-05`).
    """
    server, done = asking(suspend)
    hand = Hand(server)
    first = await hand.ask(who("pay"), retry(None, None, []))
    come_back = retry(first.request_state, first.input_requests, [41])
    others = [
        None,
        who("pay", subject="bob"),
        Principal(subject="ada", issuer="https://other.example", scopes=frozenset({"pay"})),
        Principal(subject="ada", client="other", scopes=frozenset({"pay"})),
    ]
    for other in others:
        with pytest.raises(McpError, match="Invalid requestState"):
            await hand.ask(other, come_back)
    assert done == []
    second = await hand.ask(who("pay"), come_back)
    result = await hand.ask(who("pay"), retry(second.request_state, second.input_requests, [42]))
    assert (result.text, done) == ("41 42 ada", ["paid"])
    await server.aclose()


@pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "replayed"])
async def test_a_call_goes_on_with_the_scopes_that_it_lacked(suspend: bool) -> None:
    """The same retry, with a token that may do more, is no repetition: the call goes on, its person
    is not asked again, and a tool that waited did nothing twice (2026-07-28, "Step-Up Authorization
    Flow").
    """
    server, done = asking(suspend)
    hand = Hand(server)
    first = await hand.ask(who(), retry(None, None, []))
    come_back = retry(first.request_state, first.input_requests, [41])
    for _ in range(2):
        with pytest.raises(McpError) as caught:
            await hand.ask(who(), come_back)
        assert refused(caught.value) == {"pay"}
    if suspend:
        one, two = await asyncio.gather(
            hand.ask(who("pay"), come_back), hand.ask(who("pay"), come_back)
        )
        assert one == two
        assert done == ["paid"]
    second = await hand.ask(who("pay"), come_back)
    assert next(iter(second.input_requests.values())).params.message == "sure?"
    result = await hand.ask(who("pay"), retry(second.request_state, second.input_requests, [42]))
    assert result.text == "41 42 ada"
    await server.aclose()


@pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "replayed"])
async def test_a_call_goes_on_with_the_token_that_it_comes_back_with(suspend: bool) -> None:
    """Scopes are those of the token that a retry brings, not of the one that the call began with:
    fewer are fewer.
    """
    server, _ = asking(suspend)
    hand = Hand(server)
    first = await hand.ask(who("pay"), retry(None, None, []))
    with pytest.raises(McpError) as caught:
        await hand.ask(who(), retry(first.request_state, first.input_requests, [41]))
    assert refused(caught.value) == {"pay"}
    await server.aclose()
