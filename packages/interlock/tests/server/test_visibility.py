"""Visibility: what a hook hides is unknown in every way, as if the server did not have it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import (
    Caller,
    Client,
    ClientSettings,
    Feature,
    Implementation,
    McpError,
    Principal,
    Server,
)
from interlock import types as t
from interlock.protocol.identity import Identity
from interlock.server.catalogue.visibility import name_of
from interlock.server.changes import Change
from interlock.wire.revisions import NEWEST, R4, R5, REVISIONS
from tests.server.by_hand import exchange, pages_of
from tests.server.visible import ROLES, office, role, sees
from tests.server.wire import Peer

EACH = pytest.mark.parametrize("revision", REVISIONS)
BOTH_ERAS = pytest.mark.parametrize("revision", [R4, R5])
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


def who(subject: str, *scopes: str) -> Principal:
    """Somebody with a role."""
    return Principal(subject=subject, scopes=frozenset(scopes))


def completing(ref: dict[str, Any], argument: str = "name") -> tuple[str, dict[str, Any]]:
    """A request for completions."""
    return "completion/complete", {"ref": ref, "argument": {"name": argument, "value": "a"}}


def prompt(name: str) -> dict[str, Any]:
    return {"type": "ref/prompt", "name": name}


def template(uri: str) -> dict[str, Any]:
    return {"type": "ref/resource", "uri": uri}


REQUESTS: list[tuple[str, dict[str, Any]]] = [
    *((method, {}) for method in LISTS),
    *(
        ("tools/call", {"name": name, "arguments": arguments})
        for name in ("hire", "greet", "fire", "missing")
        for arguments in ({"name": "Ada"}, {"number": 1}, {})
    ),
    *(
        ("tools/call", {"name": "peek", "arguments": {"uri": uri}})
        for uri in ("docs://salaries", "docs://menu", "people://ada", "docs://missing")
    ),
    *(
        ("resources/read", {"uri": uri})
        for uri in (
            "docs://salaries",
            "docs://menu",
            "docs://missing",
            "people://ada",
            "rooms://one",
        )
    ),
    *(
        ("prompts/get", {"name": name, "arguments": {"name": "Ada"}})
        for name in ("contract", "welcome", "missing")
    ),
    ("prompts/get", {"name": "contract"}),
    completing(prompt("contract")),
    completing(prompt("contract"), "nothing"),
    completing(prompt("welcome")),
    completing(prompt("missing")),
    completing(template("people://{name}")),
    completing(template("rooms://{name}")),
    completing(template("docs://salaries")),
    completing(template("docs://menu")),
    completing(template("docs://missing")),
]


def told(reply: dict[str, Any]) -> dict[str, Any]:
    """A reply without what says for whom a client may keep it: with a hook it is for one caller
    alone.
    """
    result = reply.get("result")
    if isinstance(result, dict):
        result.pop("cacheScope", None)
    reply.pop("id")
    return reply


@EACH
@pytest.mark.parametrize("subject", ROLES)
async def test_a_server_with_hidden_features_answers_as_one_that_does_not_have_them(
    revision: str, subject: str
) -> None:
    """Every reply is the same, word for word: capabilities, lists, calls, reads, completions and
    errors.
    """
    principal = who(subject)
    hidden = office()
    without = office(hook=False, role_of=subject)
    one = await Peer.of(hidden, None, principal=principal)
    other = await Peer.of(without, None, principal=principal)
    one.revision = other.revision = revision
    hello = {
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": {"name": "peer", "version": "1"},
    }
    requests = list(REQUESTS)
    if revision == R5:
        requests.insert(0, ("server/discover", {}))
    else:
        assert told(await one.ask("initialize", hello)) == told(
            await other.ask("initialize", hello)
        )
        for peer in (one, other):
            peer.say({"method": "notifications/initialized"})
        for uri in ("docs://salaries", "docs://menu", "docs://missing", "people://ada"):
            requests.append(("resources/subscribe", {"uri": uri}))
    for method, params in requests:
        assert told(await one.ask(method, params)) == told(await other.ask(method, params)), (
            method,
            params,
        )
    await one.aclose()
    await other.aclose()


@pytest.mark.parametrize("subject", ROLES)
async def test_listening_to_hidden_resources_is_as_listening_to_none(subject: str) -> None:
    """A subscription of the newest revision is acknowledged for what the caller sees (`LSN-03`)."""
    acknowledged = []
    for server in (office(), office(hook=False, role_of=subject)):
        peer = await Peer.of(server, R5, principal=who(subject))
        uris = ["docs://salaries", "docs://menu", "people://ada", "rooms://one", "docs://missing"]
        wanted = {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourcesListChanged": True,
            "resourceSubscriptions": uris,
        }
        peer.begin("subscriptions/listen", {"notifications": wanted})
        async with asyncio.timeout(30):
            while not any("acknowledged" in message.get("method", "") for message in peer.received):
                await peer.listen()
        (said,) = peer.received
        acknowledged.append(said["params"]["notifications"])
        await peer.aclose()
    assert acknowledged[0] == acknowledged[1]


async def seen(client: Client) -> dict[str, set[str]]:
    """What a client sees, without asking for kinds that it is not offered."""
    offered = client.server_capabilities
    found: dict[str, set[str]] = {"tools": set(), "resources": set(), "prompts": set()}
    if offered.tools is not None:
        found["tools"] = {tool.name for tool in await client.list_tools()}
    if offered.resources is not None:
        found["resources"] = {one.uri for one in await client.list_resources()} | {
            one.uri_template for one in await client.list_resource_templates()
        }
    if offered.prompts is not None:
        found["prompts"] = {one.name for one in await client.list_prompts()}
    return found


GUEST = {
    "tools": {"greet", "peek", "pay"},
    "resources": {"docs://menu", "rooms://{name}"},
    "prompts": {"welcome"},
}
NOTHING: dict[str, set[str]] = {"tools": set(), "resources": set(), "prompts": set()}


@EACH
async def test_without_a_principal_the_hook_decides_by_what_the_client_says(revision: str) -> None:
    """The person at this machine has no principal, and gets no exception from the hook."""
    for name, expected in (("guest", GUEST), ("stranger", NOTHING)):
        async with Client(
            office(), revision=revision, info=Implementation(name=name, version="1")
        ) as client:
            assert await seen(client) == expected


async def test_a_hook_knows_strangers_also_while_a_session_begins() -> None:
    """Whoever comes over a network without a principal is a stranger to the hook, for the
    capabilities too.
    """
    known: list[bool] = []
    server = office(hook=False)
    server.visible(lambda caller: known.append(caller.anonymous) or "")(lambda key, feature: True)
    peer = await Peer.of(server, R4, anonymous=True)
    await peer.ask("tools/list")
    await peer.aclose()
    assert known
    assert all(known)


async def test_scopes_and_the_hook_are_both_asked() -> None:
    """Hidden is unknown, whatever the scopes; seen without its scopes is forbidden, and in no
    list.
    """
    cases = {
        ("guest", ()): t.INVALID_PARAMS,
        ("guest", ("people:fire",)): t.INVALID_PARAMS,
        ("staff", ()): t.FORBIDDEN,
        ("staff", ("people:fire",)): None,
    }
    for (subject, scopes), code in cases.items():
        async with Client(office().transport(principal=who(subject, *scopes))) as client:
            assert ("fire" in (await seen(client))["tools"]) == (code is None)
            if code is None:
                assert (await client.call_tool("fire", {"name": "Bob"})).text == "hired Bob"
            else:
                with pytest.raises(McpError) as caught:
                    await client.call_tool("fire", {"name": "Bob"})
                assert caught.value.code == code


async def test_a_hidden_feature_leaves_its_uris_to_no_other_one() -> None:
    """A template that would match, and is seen, does not read for a hidden one that says more."""
    server = Server("vaults")

    @server.resource("files://vault/{name}", tags=["closed"])
    async def vault(name: str) -> str:
        return "gold"

    @server.resource("files://{+path}")
    async def file(path: str) -> str:
        return f"file {path}"

    server.add_resource("files://key", "key", tags=["closed"])
    server.visible(lambda caller: caller.principal is not None)(
        lambda known, feature: known or "closed" not in feature.tags
    )
    async with Client(server) as client:
        assert (await client.read_resource("files://open")).contents[0].text == "file open"
        for uri in ("files://vault/x", "files://key"):
            with pytest.raises(McpError, match="Resource not found"):
                await client.read_resource(uri)


CHECKED = {
    "unknown tool": ("tools/call", t.CallToolRequestParams(name="missing"), t.INVALID_PARAMS),
    "hidden tool": ("tools/call", t.CallToolRequestParams(name="hire"), t.INVALID_PARAMS),
    "seen tool": ("tools/call", t.CallToolRequestParams(name="greet"), None),
    "hidden prompt": ("prompts/get", t.GetPromptRequestParams(name="contract"), t.INVALID_PARAMS),
    "seen prompt": ("prompts/get", t.GetPromptRequestParams(name="welcome"), None),
    "hidden resource": (
        "resources/read",
        t.ReadResourceRequestParams(uri="docs://salaries"),
        t.INVALID_PARAMS,
    ),
    "seen resource": ("resources/read", t.ReadResourceRequestParams(uri="rooms://x"), None),
    "list": ("tools/list", t.ListToolsRequestParams(), None),
}


@pytest.mark.parametrize("case", CHECKED)
async def test_a_check_raises_what_a_first_request_would(case: str) -> None:
    """For whoever goes on with a call that began earlier."""
    method, params, code = CHECKED[case]
    x = exchange(method, params)
    x.caller = Caller(NEWEST, principal=who("guest"))
    server = office()
    if code is None:
        server.visibility.check(x)
        return
    with pytest.raises(McpError) as caught:
        server.visibility.check(x)
    assert caught.value.code == code
    with pytest.raises(McpError) as first:
        await server.handle(x)
    assert str(first.value) == str(caught.value)


async def test_a_check_asks_for_scopes() -> None:
    """The scopes are those of the token that comes now."""
    x = exchange("tools/call", t.CallToolRequestParams(name="fire"))
    x.caller = Caller(NEWEST, principal=who("staff"))
    with pytest.raises(McpError) as caught:
        office().visibility.check(x)
    assert caught.value.code == t.FORBIDDEN


# -- notices --------------------------------------------------------------------------------------


@BOTH_ERAS
async def test_only_those_who_see_a_feature_hear_that_it_came_or_went(revision: str) -> None:
    """A hidden feature comes, is replaced and goes without a notice; a seen one is told, once for
    each change.
    """
    server = office()

    async def feature() -> str:
        return ""

    async with (
        Client(server.transport(principal=who("guest")), revision=revision) as client,
        client.watch(tools=True, prompts=True, resources=True) as changes,
        asyncio.timeout(30),
    ):
        server.add_tool(feature, name="hidden")
        server.add_tool(feature, name="hidden", replace=True)
        server.remove_tool("hidden")
        server.add_prompt(feature, name="seen", tags=["guest"])
        assert (await anext(changes)).kind == "prompts"
        server.add_tool(feature, name="fading", tags=["guest"])
        assert (await anext(changes)).kind == "tools"
        server.add_tool(feature, name="fading", replace=True)  # seen before, hidden now
        assert (await anext(changes)).kind == "tools"
        assert "fading" not in {tool.name for tool in await client.list_tools()}
        server.remove_resource("docs://salaries")
        server.remove_resource("docs://menu")
        assert (await anext(changes)).kind == "resources"


@BOTH_ERAS
async def test_nobody_hears_of_a_resource_that_is_hidden_from_him(revision: str) -> None:
    """Neither of a part of what he watches."""
    server = Server("parts")
    server.add_resource("docs://all", "all")
    server.add_resource("docs://all/open", "open")
    server.add_resource("docs://all/secret", "secret", tags=["secret"])
    server.visible(lambda caller: caller.principal is not None)(
        lambda known, feature: known or "secret" not in feature.tags
    )
    for principal, received in (
        (None, ["docs://all/open", "docs://all"]),
        (who("ada"), ["docs://all/secret", "docs://all/open", "docs://all"]),
    ):
        async with (
            Client(server.transport(principal=principal), revision=revision) as client,
            client.watch(resources=["docs://all"]) as changes,
            asyncio.timeout(30),
        ):
            for uri in ("docs://all/secret", "docs://all/open", "docs://all"):
                server.updated(uri)
            assert [(await anext(changes)).uri for _ in received] == received


def by_plan(plans: dict[str, str]) -> Server:
    """A server whose hook depends on something besides the caller."""
    server = Server("plans")
    for name in ("basic", "pro"):
        server.add_tool(lambda: "", name=name, tags=[name])
    server.visible(lambda caller: plans[caller.principal.subject if caller.principal else "ada"])(
        lambda plan, feature: plan == "pro" or "pro" not in feature.tags
    )
    return server


@BOTH_ERAS
async def test_callers_hear_that_what_they_see_has_changed(revision: str) -> None:
    """Those with the key, now or before; all where no key is named; and lists are made anew."""
    plans = {"ada": "basic", "bob": "basic"}
    server = by_plan(plans)
    async with (
        Client(server.transport(principal=who("ada")), revision=revision) as ada,
        Client(server.transport(principal=who("bob")), revision=revision) as bob,
        ada.watch(tools=True) as of_ada,
        bob.watch(tools=True) as of_bob,
        asyncio.timeout(30),
    ):
        assert {tool.name for tool in await ada.list_tools()} == {"basic"}
        plans["ada"] = "pro"
        server.visibility_changed("pro")
        kinds = {(await anext(of_ada)).kind}
        assert "tools" in kinds
        assert {tool.name for tool in await ada.list_tools()} == {"basic", "pro"}
        assert {tool.name for tool in await bob.list_tools()} == {"basic"}
        server.visibility_changed()
        assert (await anext(of_bob)).kind == "tools"  # the first that he hears


async def test_another_worker_makes_its_lists_anew() -> None:
    """The notice travels over the bus that the workers share, and what they kept goes with it."""
    plan = {"basic": {"basic"}}
    one = Server("plans")
    other = Server("plans")
    other.bus = one.bus
    for server in (one, other):
        server.add_tool(lambda: "", name="basic", tags=["basic"])
        server.add_tool(lambda: "", name="pro", tags=["pro"])
        server.visible(lambda caller: "basic")(lambda key, feature: bool(feature.tags & plan[key]))
    async with Client(other, settings=ClientSettings(cache=False)) as client:
        assert {tool.name for tool in await client.list_tools()} == {"basic"}
        plan["basic"].add("pro")
        one.visibility_changed("basic")
        assert {tool.name for tool in await client.list_tools()} == {"basic", "pro"}


async def test_whoever_saw_nothing_may_find_something_after_a_change() -> None:
    """The kinds that a server has are offered from then on, so that clients ask for what they can
    see now.
    """
    server = Server("empty")
    server.add_tool(lambda: "", name="one")
    shown = {"now": False}
    server.visible(lambda caller: "")(lambda key, feature: shown["now"])
    assert server.capabilities(Caller(NEWEST)).tools is None
    shown["now"] = True
    server.visibility_changed()
    shown["now"] = False
    server.visibility.forget()
    assert server.capabilities(Caller(NEWEST)).tools is not None


# -- lists that are kept --------------------------------------------------------------------------


async def test_lists_are_kept_for_all_with_one_key() -> None:
    """The hook is asked for the key each time, and for the features only where there is no list for
    that key.
    """
    asked: list[str] = []
    server = Server("kept")
    for n in range(5):
        server.add_tool(lambda: "", name=f"t{n}", tags=["a"] if n % 2 else None)

    @server.visible(lambda caller: caller.principal.subject if caller.principal else "")
    def sees_tagged(key: str, feature: Feature) -> bool:
        asked.append(feature.name)
        return key in feature.tags

    pages = pages_of(server)
    for subject in ("a", "a", "b", "a"):
        audience = server.visibility.audience(Caller(NEWEST, principal=who(subject)))
        pages.page("tools", None, NEWEST, audience)
    assert len(asked) == 10
    for number in range(3000):
        audience = server.visibility.audience(Caller(NEWEST, principal=who(f"k{number}")))
        pages.page("tools", None, NEWEST, audience)
    assert len(pages._pages) <= 1024


async def test_kept_lists_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However large each of them is."""
    monkeypatch.setattr("interlock.server.catalogue.listing._MOST_BYTES", 100_000)
    server = Server("large")
    server.add_tool(lambda: "", name="tool", description="x" * 10_000)
    server.visible(lambda caller: caller.principal.subject if caller.principal else "")(
        lambda key, feature: True
    )
    pages = pages_of(server)
    for number in range(50):
        audience = server.visibility.audience(Caller(NEWEST, principal=who(f"k{number}")))
        pages.page("tools", None, NEWEST, audience)
        assert pages._pages.size <= 100_000
    assert 5 <= len(pages._pages) < 10


async def test_what_depends_on_the_caller_is_kept_by_nobody_else() -> None:
    """Lists and capabilities are private where there is a hook (`CAC-01`)."""
    for server, scope in ((office(), "private"), (office(hook=False, role_of="guest"), "public")):
        peer = await Peer.of(server, R5, principal=who("guest"))
        for method in ("server/discover", *LISTS):
            assert (await peer.ask(method))["result"]["cacheScope"] == scope
        await peer.aclose()


def test_a_key_is_the_same_on_every_worker() -> None:
    """Sets are in order, whatever the process; what is no plain data is refused with words."""
    assert name_of(frozenset({"b", "a", "c"})) == b'["a","b","c"]'
    assert name_of(True) != name_of(1)
    with pytest.raises(TypeError, match="plain data"):
        name_of(object())


# -- hooks that are wrong -------------------------------------------------------------------------


async def _later(*given: Any) -> bool:
    return True


def test_a_hook_that_would_show_everything_by_mistake_is_refused() -> None:
    """A coroutine is always true."""
    server = Server("wrong")
    with pytest.raises(TypeError, match="cannot wait"):
        server.visible(_later)(sees)
    with pytest.raises(TypeError, match="cannot wait"):
        server.visible(role)(_later)  # type: ignore[arg-type]  # on purpose
    server.visible(role)(sees)
    with pytest.raises(ValueError, match="a visibility hook already"):
        server.visible(role)(sees)


WRONG: dict[str, tuple[Any, Any]] = {
    "key raises": (lambda caller: 1 / 0, lambda key, feature: True),
    "key is no plain data": (lambda caller: object(), lambda key, feature: True),
    "answer raises": (lambda caller: "", lambda key, feature: 1 / 0),
    "answer is not a bool": (lambda caller: "", lambda key, feature: "yes"),
    "answer is a coroutine": (lambda caller: "", lambda key, feature: _later()),
}


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize("case", WRONG)
@EACH
async def test_a_hook_that_fails_shows_nothing(
    case: str, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever asks gets an error that says nothing; the log has the reason under the same reference
    (`ERR-20`).
    """
    by, answer = WRONG[case]
    server = office(hook=False)
    server.visible(by)(answer)
    requests = [
        ("tools/list", {}),
        ("tools/call", {"name": "greet", "arguments": {"name": "Ada"}}),
        ("resources/read", {"uri": "docs://menu"}),
    ]
    peer = await Peer.of(server, None)
    peer.revision = revision
    if revision == R5:
        requests.append(("server/discover", {}))
    else:
        hello = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "peer", "version": "1"},
        }
        requests = [("initialize", hello)]
    for method, params in requests:
        error = (await peer.ask(method, params))["error"]
        assert error["code"] == t.INTERNAL_ERROR
        reference = error["message"].removeprefix("Internal error (reference ").removesuffix(")")
        assert f"the visibility hook failed (reference {reference})" in caplog.text
    await peer.aclose()


def test_a_hook_that_fails_tells_of_no_change() -> None:
    """A listener whose hook fails hears nothing rather than too much."""
    fails = {"now": False}
    server = Server("failing")
    server.add_tool(lambda: "", name="one")

    def by(caller: Caller) -> str:
        if fails["now"]:
            raise RuntimeError("the directory is away")
        return ""

    server.visible(by)(lambda key, feature: True)
    concerns = server.visibility.concerns(Caller(NEWEST))
    assert concerns is not None
    assert concerns(Change("tools", feature="one"))
    fails["now"] = True
    assert not concerns(Change("tools", feature="one"))


def test_an_identity_for_strangers_is_another_one() -> None:
    """What a transport knows of its callers is not mixed into the server's own."""
    identity = Identity(
        t.Implementation(name="a", version="1"),
        lambda caller: t.ServerCapabilities(experimental={"stranger": {"is": caller.anonymous}}),
    )
    caller = Caller(NEWEST)
    other = identity.seen_by(lambda caller: Caller(caller.revision, anonymous=True))
    assert identity.capabilities(caller).experimental == {"stranger": {"is": False}}
    assert other.capabilities(caller).experimental == {"stranger": {"is": True}}
