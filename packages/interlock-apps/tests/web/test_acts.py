"""What the page can do, and what it hears: acts and events of the web site, over real servers of
this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Context, Server, ToolAnnotations
from interlock.models.scripted import call
from interlock.types import Completion
from interlock_apps.fleet.log import SqliteLog
from interlock_apps.fleet.policy import Rule
from interlock_apps.host.app import Host
from interlock_apps.host.pages.site import HostSite
from interlock_apps.web.event_stream import MOST_WAITING, EventStream
from tests.web.asking import ORIGIN, Browser, host_of


def shop() -> Server:
    server = Server("shop", instructions="Buy\u200b little.")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def price(thing: str) -> int:
        """What a thing costs."""
        return len(thing)

    @server.tool
    async def buy(thing: str, ctx: Context) -> str:
        """Buy a thing."""
        return f"bought {thing}" if await ctx.confirm(f"Buy {thing}?") else "not bought"

    @server.resource("shop://list")
    def stock() -> str:
        """What there is."""
        return "bread, milk"

    @server.resource("shop://things/{name}")
    def thing(name: str) -> str:
        """One thing."""
        return f"a {name}"

    @server.completion("shop://things/{name}", "name")
    def names(value: str) -> list[str]:
        return [name for name in ("bread", "butter", "milk") if name.startswith(value)]

    @server.prompt
    def shopping(meal: str) -> str:
        """What to buy for a meal."""
        return f"What do I need for {meal}?"

    return server


class Page:
    """A page: a browser, and what its stream of events has told so far."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.site = HostSite(host, origin=ORIGIN)
        self.browser = Browser(self.site)
        self.states: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self._stirred = asyncio.Event()

    async def listen(self) -> None:
        async for piece in EventStream(self.site.feed, self.site.closing).stream():
            told = (
                msgspec.json.decode(piece.removeprefix(b"data: "))
                if piece.startswith(b"data: ")
                else {"kind": ""}
            )
            if told["kind"] == "state":
                self.states.append(told["state"])
            elif told["kind"] == "noted":
                self.events.append(told["noted"]["event"])
            self._stirred.set()

    async def until(self, seen: Callable[[], Any]) -> Any:
        """Wait until something was told; what it is."""
        async with asyncio.timeout(20):
            while not (found := seen()):
                self._stirred.clear()
                await self._stirred.wait()
        return found

    async def event(self, kind: str, place: int = 0) -> dict[str, Any]:
        """The event of a kind, the first one unless another place is wanted, once it is there."""
        return await self.until(
            lambda: (
                (found := [e for e in self.events if e["type"] == kind])[place:] and found[place]
            )
        )


@asynccontextmanager
async def page(*answers: Any, **servers: Server) -> AsyncIterator[Page]:
    async with host_of(*answers, **(servers or {"shop": shop()})) as host:
        made = Page(host)
        await made.browser.enter()
        listening = asyncio.create_task(made.listen())
        try:
            await made.until(lambda: made.states)
            yield made
        finally:
            made.site.close()
            await listening


async def test_a_conversation_with_a_call_and_a_form() -> None:
    """`TOL-24`, `ELI-32`: who is called with what is shown and decided first; a form says who asks
    and can be declined.
    """
    async with page(call("shop__buy", thing="bread"), "Done.") as it:
        session = (await it.browser.act("newSession"))["session"]
        await it.browser.act("say", session=session, text="Buy bread")
        question = (await it.event("asked"))["question"]
        assert (question["type"], question["server"], question["tool"], question["arguments"]) == (
            "call",
            "shop",
            "buy",
            {"thing": "bread"},
        )
        await it.browser.act(
            "answer", question=question["id"], answer={"type": "decision", "allow": True}
        )
        form = (await it.event("asked", 1))["question"]
        assert (form["type"], form["server"], form["message"], form["fields"][0]["kind"]) == (
            "form",
            "shop",
            "Buy bread?",
            "boolean",
        )
        content = {form["fields"][0]["name"]: True}
        await it.browser.act(
            "answer",
            question=form["id"],
            answer={"type": "filled", "action": "accept", "content": content},
        )
        assert (await it.event("callEnded"))["result"]["content"][0]["text"] == "bought bread"
        assert (await it.event("turnEnded"))["reason"] == "done"
        await it.until(
            lambda: [
                s
                for s in it.states
                if s["sessions"] and not s["sessions"][0]["running"] and s["sessions"][0]["title"]
            ]
        )
        assert it.states[-1]["questions"] == []
        history = await it.browser.act("openSession", session=session)
        assert [n["event"]["type"] for n in history["notes"]][:3] == [
            "sessionBegan",
            "personSaid",
            "modelAsked",
        ]
        again = await it.browser.tried(
            "answer", question=form["id"], answer={"type": "filled", "action": "decline"}
        )
        assert again == {"ok": False, "words": "This question is no longer open."}


async def test_a_denial_with_a_reason_reaches_the_model() -> None:
    async with page(call("shop__buy", thing="bread"), "Then not.") as it:
        session = (await it.browser.act("newSession"))["session"]
        await it.browser.act("say", session=session, text="Buy bread")
        question = (await it.event("asked"))["question"]
        await it.browser.act(
            "answer",
            question=question["id"],
            answer={"type": "decision", "allow": False, "reason": "too dear"},
        )
        assert "too dear" in (await it.event("callDecided"))["why"]
        await it.event("turnEnded")
        assert "too dear" in str(it.host.sessions[session].messages[-2])


async def test_cancel_withdraws_the_question() -> None:
    async with page(call("shop__buy", thing="bread"), "never said") as it:
        session = (await it.browser.act("newSession"))["session"]
        await it.browser.act("say", session=session, text="Buy bread")
        await it.event("asked")
        await it.browser.act("cancel", session=session)
        assert (await it.event("turnEnded"))["reason"] == "cancelled"
        assert (await it.event("answered"))["by"] == "nobody"
        assert it.host.questions == {}


async def test_the_state_shows_what_there_is() -> None:
    async with page("hi") as it:
        state = it.states[0]
        (server,) = state["servers"]
        assert (server["id"], server["state"], server["completions"]) == ("shop", "up", True)
        assert [tool["name"] for tool in server["tools"]] == ["shop__price", "shop__buy"]
        assert server["tools"][0]["annotations"] == {"readOnlyHint": True}
        assert server["prompts"][0]["arguments"][0]["name"] == "meal"
        assert [resource["uri"] for resource in server["resources"]] == ["shop://list"]
        assert [template["uriTemplate"] for template in server["templates"]] == [
            "shop://things/{name}"
        ]
        assert "\u200b" not in server["instructions"]
        assert state["models"][0]["remark"]


async def test_resources_prompts_and_completion() -> None:
    async with page("hi", "hello") as it:
        act = it.browser.act
        assert (await act("read", server="shop", uri="shop://list"))["contents"][0][
            "text"
        ] == "bread, milk"
        found = await act(
            "complete",
            server="shop",
            ref={"type": "ref/resource", "uri": "shop://things/{name}"},
            argument="name",
            value="b",
        )
        assert found["values"] == ["bread", "butter"]
        assert (await act("expand", template="shop://things/{name}", values={"name": "a b"}))[
            "uri"
        ] == "shop://things/a%20b"
        preview = await act("getPrompt", server="shop", name="shopping", arguments={"meal": "soup"})
        assert preview["messages"][0]["content"]["text"] == "What do I need for soup?"
        session = (await act("newSession"))["session"]
        attach = [{"server": "shop", "uri": "shop://list"}]
        await act(
            "prompt",
            session=session,
            server="shop",
            name="shopping",
            arguments={"meal": "soup"},
            attach=attach,
        )
        said = await it.event("personSaid")
        assert (said["prompt"], said["attached"][0]["uri"]) == ("shopping", "shop://list")
        assert "bread, milk" in str(said["messages"])


@pytest.mark.parametrize(
    "act, fields, words",
    [
        ("say", {"session": "s?", "text": "hi"}, "not open here"),
        ("cancel", {"session": "s?"}, "not open here"),
        ("openSession", {"session": "s?"}, None),
        ("resume", {"session": "s?"}, "s?"),
        ("newSession", {"model": "none"}, "no model"),
        ("read", {"server": "none", "uri": "x:y"}, "no server"),
        ("read", {"server": "shop", "uri": "shop://none"}, "shop://none"),
        ("getPrompt", {"server": "shop", "name": "none"}, "none"),
        ("expand", {"template": "{"}, ""),
        ("grant", {"folder": "/nowhere/at/all"}, "not a folder"),
        ("server", {"server": "none", "what": "stop"}, "no server"),
        ("forget", {"rule": "nothing"}, "no such rule"),
        ("callTool", {"session": "", "server": "none", "tool": "x"}, ""),
    ],
)
async def test_what_cannot_be_done_is_said(
    act: str, fields: dict[str, Any], words: str | None
) -> None:
    async with page("hi") as it:
        answer = await it.browser.tried(act, **fields)
        assert answer["ok"] is (words is None)
        assert words is None or words in answer["words"]


async def test_saying_nothing_and_a_resource_that_is_not_there() -> None:
    """What is wrong before a turn begins is said to who asked; nothing was said then."""
    async with page("hi") as it:
        session = (await it.browser.act("newSession"))["session"]
        assert not (await it.browser.tried("say", session=session, text="  "))["ok"]
        attach = [{"server": "shop", "uri": "shop://none"}]
        assert (
            "shop://none"
            in (await it.browser.tried("say", session=session, text="hi", attach=attach))["words"]
        )
        assert it.host.sessions[session].messages == []


async def test_roots_are_granted_and_taken_back(tmp_path: Path) -> None:
    async with page("hi") as it:
        await it.browser.act("grant", folder=str(tmp_path), server="shop")
        assert await it.until(
            lambda: [s for s in it.states if s["roots"] == {"shop": [str(tmp_path)]}]
        )
        assert [root.uri for root in it.host.roots.of("shop")] == [tmp_path.as_uri()]
        await it.browser.act("revoke", folder=str(tmp_path), server="shop")
        assert it.host.roots.of("shop") == []


async def test_rules_are_shown_and_forgotten() -> None:
    async with page(call("shop__buy", thing="a"), "ok") as it:
        session = (await it.browser.act("newSession"))["session"]
        await it.browser.act("say", session=session, text="x")
        question = (await it.event("asked"))["question"]
        await it.browser.act(
            "answer",
            question=question["id"],
            answer={"type": "decision", "allow": False, "remember": "always"},
        )
        state = await it.until(lambda: [s for s in it.states if s["rules"]])
        assert (state[0]["rules"][0]["decision"], state[0]["rules"][0]["tool"]) == ("deny", "buy")
        wanted = state[0]["rules"][0]["id"]
        await it.browser.act("forget", rule=wanted)
        assert it.host.policy.learned == ()
        again = await it.browser.tried("forget", rule=wanted)
        assert again == {"ok": False, "words": "There is no such rule."}


async def test_only_the_rule_that_the_page_shows_is_forgotten() -> None:
    """A page whose list is old, or a second click, lets go of no other rule."""
    async with page("ok") as it:
        for server in ("one", "two", "three"):
            it.host.policy.remember(Rule(decision="deny", server=server), "session")
        shown = it.site.feed.state()["rules"]
        await it.browser.act("forget", rule=shown[0]["id"])
        await it.browser.tried("forget", rule=shown[0]["id"])
        await it.browser.act("forget", rule=shown[1]["id"])
        assert [rule.server for rule in it.host.policy.learned] == ["three"]


async def test_servers_stop_and_start() -> None:
    async with page("hi") as it:
        await it.browser.act("server", server="shop", what="stop")
        await it.until(lambda: [s for s in it.states if s["servers"][0]["state"] == "off"])
        await it.browser.act("server", server="shop", what="start")
        await it.until(lambda: it.states[-1]["servers"][0]["state"] == "up")
        assert (await it.browser.act("serverLog", server="shop"))["lines"] == []


async def test_the_log_is_searched_and_exported() -> None:
    async with page("A fine answer.") as it:
        session = (await it.browser.act("newSession"))["session"]
        await it.browser.act("say", session=session, text="zebra")
        await it.event("turnEnded")
        found = await it.browser.act("searchLog", words="zebra", kinds=["personSaid"])
        assert [n["event"]["session"] for n in found["notes"]] == [session]
        lines = (await it.browser.ask("GET", f"/api/log.jsonl?session={session}")).body.splitlines()
        assert msgspec.json.decode(lines[-1])["event"]["type"] == "turnEnded"


async def test_texts_of_servers_show_what_is_invisible_in_them() -> None:
    """Names and values that are sent back are left as they are."""
    server = Server("odd")

    @server.tool
    async def trick() -> str:
        """Nothing\u200b to see\u202e here."""
        return "hidden\u200bword"

    @server.completion("odd://{x}", "x")
    def x(value: str) -> Completion:
        return Completion(values=["a\u200bb"])

    @server.resource("odd://{x}")
    def odd(x: str) -> str:
        return x

    async with page(call("odd__trick"), "ok", odd=server) as it:
        assert "\u200b" not in it.states[0]["servers"][0]["tools"][0]["description"]
        session = (await it.browser.act("newSession"))["session"]
        await it.browser.act("say", session=session, text="x")
        question = (await it.event("asked"))["question"]
        assert "\u202e" not in question["description"]
        await it.browser.act(
            "answer", question=question["id"], answer={"type": "decision", "allow": True}
        )
        assert "\u200b" not in (await it.event("callEnded"))["result"]["content"][0]["text"]
        found = await it.browser.act(
            "complete", server="odd", ref={"type": "ref/resource", "uri": "odd://{x}"}, argument="x"
        )
        assert found["values"] == ["a\u200bb"]


async def test_a_page_that_is_too_slow_begins_anew() -> None:
    """Its stream ends; the browser comes again, and gets the state first."""
    async with host_of("hi", shop=shop()) as host:
        site = HostSite(host, origin=ORIGIN)
        stream = EventStream(site.feed, site.closing).stream()
        assert b'"state"' in await anext(stream)
        session = host.session()
        from interlock_apps.fleet.events import Notice

        for _ in range(MOST_WAITING + 1):
            host.publish(Notice(level="info", words=session.id))
        pieces = [piece async for piece in stream]
        assert len(pieces) == 0
        site.close()


async def test_conversations_of_earlier_are_listed_and_go_on(tmp_path: Path) -> None:
    """Those that only the log has say so; taking one up again makes it one of now."""
    log = tmp_path / "log.db"
    async with host_of("First answer.", log=SqliteLog(log), shop=shop()) as host:
        session = host.session()
        await session.say("the first question")
    async with host_of("Second answer.", log=SqliteLog(log), shop=shop()) as host:
        browser = Browser(HostSite(host, origin=ORIGIN))
        await browser.enter()
        closing = asyncio.get_running_loop().call_soon(browser.site.close)
        stream = (await browser.ask("GET", "/api/events")).body.splitlines()
        closing.cancel()
        assert stream == []
        state = browser.site.feed.state()
        assert [(s["id"], s["title"], s["past"]) for s in state["sessions"]] == [
            (session.id, "the first question", True)
        ]
        assert not (await browser.act("openSession", session=session.id))["live"]
        assert (await browser.act("resume", session=session.id))["session"] == session.id
        assert [s["past"] for s in browser.site.feed.state()["sessions"]] == [False]
        await browser.act("say", session=session.id, text="and another")
        host.sessions[session.id].cancel()
