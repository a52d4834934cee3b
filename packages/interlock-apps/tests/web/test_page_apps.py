"""Apps of servers in a real browser: the one that comes with us, and hostile ones (MCP Apps,
2026-01-26).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock import Csp, ResourceContents, Server
from interlock.cli.new.command import new
from interlock.cli.run.loading import load_server
from interlock.models.scripted import call
from interlock.types import APP_MIME_TYPE
from interlock_apps.fleet.events import CallEnded, CallProposed, PersonSaid
from interlock_apps.fleet.policy import Policy, Rule
from interlock_servers.everything import dice
from tests.web.stage import TELEPHONE, Stage, say, shot, staged

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

BOARD = "ui://lab/board"
META = {
    "ui": {
        "csp": {
            "resourceDomains": ["https://cdn.example.com"],
            "connectDomains": ["https://api.example.com"],
        },
        "permissions": {"geolocation": {}},
    }
}
GREETING = {
    "appInfo": {"name": "board", "version": "1"},
    "appCapabilities": {"availableDisplayModes": ["inline", "fullscreen"]},
    "protocolVersion": "2026-01-26",
}

# An app that does what a test tells it to: it keeps what it hears, and can ask.
LAB = """<!doctype html><meta charset="utf-8"><title>lab</title><p id="words">An app</p><script>
window.heard = []; window.waiting = new Map(); window.count = 0;
window.post = (message) => window.parent.postMessage(message, "*");
window.ask = (method, params = {}) => new Promise((done) => {
  const id = ++count;
  waiting.set(id, done);
  post({ jsonrpc: "2.0", id, method, params });
});
window.tell = (method, params = {}) => post({ jsonrpc: "2.0", method, params });
window.addEventListener("message", ({ data }) => {
  if (data?.method) {
    heard.push(data);
    if (data.method === "ui/resource-teardown") {
      post({ jsonrpc: "2.0", id: data.id, result: { ended: true } });
    }
  } else if (waiting.has(data?.id)) {
    waiting.get(data.id)(data.error ?? data.result);
  }
});
</script>"""


def game() -> Server:
    """A server with the dice and nothing else."""
    server = Server("game")
    dice.offer(server)
    return server


def lab() -> Server:
    """A server whose app does anything; a tool for it, and one that is not."""
    server = Server("lab")

    @server.tool(meta={"ui": {"resourceUri": BOARD}})
    async def board(text: str = "") -> str:
        """Show the board."""
        return f"shown {text}"

    @server.tool(meta={"ui": {"resourceUri": BOARD}})
    async def wait() -> str:
        """Show the board, and take long."""
        await asyncio.get_running_loop().create_future()
        return "never"

    @server.tool(meta={"ui": {"visibility": ["model"]}})
    async def secret() -> str:
        """Not for apps."""
        return "secret"

    @server.resource(BOARD, mime_type=APP_MIME_TYPE)
    def page() -> ResourceContents:
        return ResourceContents(uri=BOARD, mime_type=APP_MIME_TYPE, text=LAB, meta=META)

    return server


def bank() -> Server:
    """Another server."""
    server = Server("bank")

    @server.tool
    async def transfer() -> str:
        """Money."""
        return "gone"

    return server


ALLOWED = Rule(decision="allow", server="lab", tool="*")


@asynccontextmanager
async def laboratory(
    chromium: Any,
    *answers: Any,
    rule: Rule = ALLOWED,
    noisy: bool = False,
    made: Callable[[], Server] = lab,
    **options: Any,
) -> AsyncIterator[tuple[Stage, Any, Any]]:
    """A conversation that shows the app: the stage, the page and the frame of the app.

    `noisy`: the browser may complain.
    """
    said = answers or (call("lab__board", text="it"), "Here it is.")
    async with staged(
        chromium,
        *said,
        *["Well."] * 5,
        servers={"lab": made, "bank": bank},
        policy=Policy([rule]),
        **options,
    ) as stage:
        page = await stage.page()
        await say(page, "Show the board")
        await app_of(page).get_by_text("An app").wait_for()
        yield stage, page, next(frame for frame in page.frames if frame.url == "about:srcdoc")
        if noisy:
            await stage.aclose()
            stage.troubles.clear()


def app_of(page: Any) -> Any:
    """What is in the frame in the frame."""
    return page.frame_locator("iframe.app-window").frame_locator("iframe")


async def greet(frame: Any, greeting: Any = GREETING) -> Any:
    """Say hello as the app, and that it is ready."""
    answer = await frame.evaluate("greeting => ask('ui/initialize', greeting)", greeting)
    await frame.evaluate("tell('ui/notifications/initialized')")
    return answer


async def ask(frame: Any, method: str, **params: Any) -> Any:
    """Ask the host for something, as the app; the result or the error."""
    return await frame.evaluate("([method, params]) => ask(method, params)", [method, params])


async def until(frame: Any, condition: str) -> None:
    """Wait until something holds in the app. Its policy forbids what Playwright would wait with."""
    async with asyncio.timeout(60):  # only a guard against waiting for ever
        while not await frame.evaluate(condition):
            await frame.evaluate("new Promise(requestAnimationFrame)")


async def test_an_app_shows_its_call_and_calls_with_approval(chromium: Any) -> None:
    """Nothing of it is loaded before its call is allowed; then it has input and result, and its own
    call is asked about
    (`APP-10`, `APP-11`, `APP-12`, `APP-23`, `APP-24`, `APP-26`, `APP-30`); what it shows goes with
    the next words (`APP-29`)."""
    async with staged(
        chromium, call("game__roll_dice", count=3), "Done.", "Fine.", servers={"game": game}
    ) as stage:
        page = await stage.page()
        await say(page, "Roll three dice")
        await page.get_by_role("button", name="Allow once").wait_for()
        assert await page.locator("iframe").count() == 0
        await page.locator("[data-question] button:not([disabled])", has_text="Allow once").click()
        await app_of(page).get_by_text("in all").wait_for()
        frame = page.locator("iframe.app-window")
        assert await frame.get_attribute("sandbox") == "allow-scripts allow-same-origin"
        assert (
            await page.frame_locator("iframe.app-window").locator("iframe").get_attribute("sandbox")
            == "allow-scripts"
        )
        ended = next(
            note.event for note in await stage.host.log.read() if isinstance(note.event, CallEnded)
        )
        before = ", ".join(map(str, ended.result.structured_content["dice"]))
        assert await app_of(page).locator("#dice").get_attribute("aria-label") == before
        assert (await page.locator(".app-place").bounding_box())["height"] < 300
        await shot(page, "app")
        await app_of(page).get_by_role("button", name="Roll again").click()
        question = page.locator("[data-question]", has_text="An app")
        await question.wait_for()
        await question.scroll_into_view_if_needed()  # as long as it is out of view, it is not seen
        await question.locator("button:not([disabled])", has_text="Allow once").click()
        await (
            app_of(page)
            .get_by_role("button", name="Roll again")
            .and_(app_of(page).locator(":not([disabled])"))
            .wait_for()
        )
        assert (
            await page.locator("iframe.app-window").count() == 1
        )  # an app's own calls show no further app
        await shot(page, "app-called")
        events = [note.event for note in await stage.host.log.read()]
        assert [event.by for event in events if isinstance(event, CallProposed)] == ["model", "app"]
        await say(page, "What do they show?")
        await page.get_by_text("Fine.").wait_for()
        said = [
            note.event for note in await stage.host.log.read() if isinstance(note.event, PersonSaid)
        ][-1]
        now = await app_of(page).locator("#dice").get_attribute("aria-label")
        assert f"The dice show {now}." in said.messages[0].content[0].text


def started(folder: Path) -> Server:
    """The server of a project that `interlock new --app` has written."""
    done = CliRunner().invoke(new, [str(folder / "hello"), "--app"])
    assert done.exit_code == 0, done.output
    return load_server(folder / "hello" / "src" / "hello" / "server.py", None)


async def test_the_app_of_a_new_project(chromium: Any, tmp_path: Path) -> None:
    """The page of `server.app` as `interlock new --app` writes it: it shows the greeting, and its
    button greets again.
    """
    async with staged(
        chromium,
        call("hello__greet", name="Ada"),
        "Done.",
        servers={"hello": lambda: started(tmp_path)},
        policy=Policy([Rule(decision="allow", server="hello", tool="*")]),
    ) as stage:
        page = await stage.page()
        await say(page, "Greet Ada")
        await app_of(page).get_by_text("Hello, Ada!", exact=True).wait_for()
        await app_of(page).get_by_role("button", name="Louder").click()
        await app_of(page).get_by_text("HELLO, ADA!", exact=True).wait_for()
        assert (await page.locator(".app-place").bounding_box())["height"] < 300
        await shot(page, "app-new-project")


WISHES: dict[str, Any] = {
    "csp": Csp(connect=["https://api.example.com"], resource=["https://cdn.example.com"]),
    "permissions": ("geolocation",),
}


async def test_what_an_author_declares_reaches_the_frame(chromium: Any, tmp_path: Path) -> None:
    """Origins of `Csp` stand in the policy of the frame and before the person, permissions are
    asked for; a tool
    that is for the page alone is not offered to the model, and the page calls it (`APP-08`,
    `APP-15`, `APP-19`, `APP-35`)."""
    (tmp_path / "board.html").write_text(LAB, encoding="utf-8")

    def authored() -> Server:
        server = Server("lab")

        @server.tool
        async def board(text: str = "") -> str:
            """Show the board."""
            return f"shown {text}"

        @server.tool
        async def refresh() -> str:
            """Refresh the board."""
            return "fresh"

        app = server.app(tmp_path / "board.html", tool=board, **WISHES)
        app.link(refresh, visibility=("app",))
        return server

    async with laboratory(chromium, noisy=True, made=authored) as (stage, page, frame):
        await greet(frame)
        outside = page.frame_locator("iframe.app-window").locator("iframe")
        assert await outside.get_attribute("sandbox") == "allow-scripts"
        assert await frame.evaluate("document.featurePolicy.allowsFeature('geolocation')") is False
        await page.get_by_role("button", name="Allow and restart the app").wait_for()
        await page.get_by_text("https://api.example.com").first.wait_for()
        assert (await ask(frame, "tools/call", name="refresh"))["content"][0]["text"] == "fresh"
        blocked = await frame.evaluate(
            "new Promise((done) => { document.addEventListener('securitypolicyviolation', (event) "
            "=> done(event.originalPolicy)); fetch('https://other.example.com').catch(() => {}) })"
        )
        assert "connect-src https://api.example.com;" in blocked
        assert "script-src 'self' 'unsafe-inline' https://cdn.example.com;" in blocked
        offered = [item.tool.name for item in stage.host.toolbox.items if item.for_model]
        assert offered == ["board", "transfer"]


async def test_a_call_that_ends_while_its_app_is_loading(chromium: Any) -> None:
    """The app gets the result that came between the request for its page and the answer."""
    requested, ended = asyncio.Event(), asyncio.Event()

    def slow() -> Server:
        server = Server("lab")

        @server.tool(meta={"ui": {"resourceUri": BOARD}})
        async def board(text: str) -> str:
            """Show the board."""
            await requested.wait()
            return f"shown {text}"

        @server.resource(BOARD, mime_type=APP_MIME_TYPE)
        async def page() -> ResourceContents:
            requested.set()
            await ended.wait()
            return ResourceContents(uri=BOARD, mime_type=APP_MIME_TYPE, text=LAB)

        return server

    async with staged(
        chromium,
        call("lab__board", text="it"),
        "Here it is.",
        servers={"lab": slow},
        policy=Policy([ALLOWED]),
    ) as stage:
        page = await stage.page()
        await say(page, "Show the board")
        await page.get_by_text("Here it is.").wait_for()
        ended.set()
        await app_of(page).get_by_text("An app").wait_for()
        frame = next(frame for frame in page.frames if frame.url == "about:srcdoc")
        await greet(frame)
        await until(frame, "heard.some(({ method }) => method.endsWith('tool-result'))")


async def test_the_order_of_things(chromium: Any) -> None:
    """Nothing before `initialized`; then the arguments once, then the result once; what is asked
    too early is refused
    (`APP-20`, `APP-21`, `APP-22`, `APP-23`, `APP-24`)."""
    async with laboratory(chromium) as (_, page, frame):
        early = await ask(frame, "tools/call", name="board")
        assert early["code"] == -32600
        assert await ask(frame, "ping") == {}
        answer = await frame.evaluate("greeting => ask('ui/initialize', greeting)", GREETING)
        assert await frame.evaluate("heard") == []
        await frame.evaluate("tell('ui/notifications/initialized')")
        await until(frame, "heard.length >= 2")
        await frame.evaluate("tell('ui/notifications/initialized')")
        assert answer["protocolVersion"] == "2026-01-26"
        assert answer["hostInfo"]["name"] == "interlock-host"
        assert answer["hostCapabilities"]["serverTools"] == {}
        context = answer["hostContext"]
        assert (context["theme"], context["displayMode"], context["locale"]) == (
            "light",
            "inline",
            "en-US",
        )
        assert context["containerDimensions"]["width"] > 300
        assert context["toolInfo"]["tool"]["name"] == "board"
        await page.get_by_role("button", name="Appearance").click()
        await until(frame, "heard.length >= 3")
        methods = [
            message["method"].removeprefix("ui/notifications/")
            for message in await frame.evaluate("heard")
        ]
        assert methods == ["tool-input", "tool-result", "host-context-changed"]
        given, result, _ = await frame.evaluate("heard")
        assert given["params"] == {"arguments": {"text": "it"}}
        assert result["params"]["content"][0]["text"] == "shown it"
        assert (await ask(frame, "ui/initialize", **GREETING))["code"] == -32600


async def test_a_call_that_is_cancelled(chromium: Any) -> None:
    """The app of a call that never came to an end is told so, after its arguments (`APP-24`)."""
    async with laboratory(chromium, call("lab__wait"), "Well.") as (stage, _, frame):
        await greet(frame)
        await until(frame, "heard.length === 1")
        next(iter(stage.host.sessions.values())).cancel()
        await until(frame, "heard.length === 2")
        methods = [
            message["method"].removeprefix("ui/notifications/")
            for message in await frame.evaluate("heard")
        ]
        assert methods == ["tool-input", "tool-cancelled"]


async def test_what_is_no_message_is_dropped(chromium: Any) -> None:
    """Junk gets no answer and does no harm; what nobody knows is refused; what is reserved never
    passes
    (`APP-13`, `APP-14`, `APP-30`, `APP-31`)."""
    async with laboratory(chromium) as (_, page, frame):
        await page.evaluate(
            "window.passed = []; window.addEventListener('message', (event) => "
            "passed.push(event.data))"
        )
        await frame.evaluate(
            "for (const junk of [1, 'x', null, [], {}, {jsonrpc: '2.0'}, {jsonrpc: '1.0', id: 1, "
            "method: 'ping'}, {jsonrpc: '2.0', id: {}, method: 'ping'},"
            " {jsonrpc: '2.0', id: 5, method: 7}, {jsonrpc: '2.0', id: 6, method: 'ping', params: "
            "'x'}, {jsonrpc: '2.0', id: 'host-1', result: {}},"
            " {jsonrpc: '2.0', method: 'ui/notifications/sandbox-proxy-ready', params: {}}, "
            "{jsonrpc: '2.0', method: 'ui/notifications/sandbox-x'}]) post(junk)"
        )
        assert (await ask(frame, "resources/list"))["code"] == -32600
        await greet(frame)
        for method, params in [
            ("resources/list", {}),
            ("sampling/createMessage", {}),
            ("ui/unknown", {}),
            ("__proto__", {}),
        ]:
            assert (await ask(frame, method, **params))["code"] == -32601
        for method, params in [
            ("tools/call", {"name": 7}),
            ("tools/call", {"name": "board", "arguments": []}),
            ("resources/read", {}),
            ("ui/open-link", {"url": "javascript:alert(1)"}),
            ("ui/message", {"role": "assistant", "content": {"type": "text", "text": "x"}}),
            ("ui/message", {"role": "user", "content": {"type": "image"}}),
        ]:
            assert (await ask(frame, method, **params))["code"] in (-32602, -32000)
        assert not [each for each in await page.evaluate("passed") if "sandbox-" in str(each)]
        requests = [
            each["method"]
            for each in await page.evaluate("passed")
            if isinstance(each, dict) and isinstance(each.get("id"), int) and "method" in each
        ]
        # Every request that reached the page is one of the app: the frame between them adds none.
        assert requests.count("resources/list") == 2
        assert requests.count("ui/initialize") == 1
        assert requests.count("tools/call") == 2
        assert requests.count("ui/message") == 2
        assert set(requests) <= {
            "resources/list",
            "ui/initialize",
            "sampling/createMessage",
            "ui/unknown",
            "__proto__",
            "tools/call",
            "resources/read",
            "ui/open-link",
            "ui/message",
            "ping",
            7,
        }


async def test_size_and_mode(chromium: Any) -> None:
    """The frame is as high as the app says, within bounds; it fills the page only if the app said
    that it can (`APP-26`, `APP-27`).
    """
    async with laboratory(chromium) as (_, page, frame):
        await greet(frame)
        place = page.locator(".app-place")
        for asked, height in [(333, 333), (1, 60), (10**9, 720), (222, 222)]:
            await frame.evaluate(
                "height => tell('ui/notifications/size-changed', { width: 5000, height })", asked
            )
            await page.wait_for_function(
                (
                    "height => Math.abs(document.querySelector('.app-place').clientHeight - "
                    "height) < 2"
                ),
                arg=height,
            )
        await frame.evaluate(
            "for (const height of ['x', -5, "
            "null]) tell('ui/notifications/size-changed', { height })"
        )
        assert await ask(frame, "ui/request-display-mode", mode="pip") == {"mode": "inline"}
        assert await ask(frame, "ui/request-display-mode", mode="fullscreen") == {
            "mode": "fullscreen"
        }
        await page.wait_for_function(
            "() => document.querySelector('.app-place').clientHeight > 700"
        )
        assert (await page.locator(".app-bar").bounding_box())[
            "y"
        ] < 5  # whose app it is stands above it all the same
        await shot(page, "app-full")
        await page.get_by_role("button", name="Back to the conversation").click()
        await until(frame, "heard.some((message) => message.params.displayMode === 'inline')")
        assert (await place.bounding_box())["height"] < 300


async def test_a_mode_that_the_app_did_not_name(chromium: Any) -> None:
    """It stays as it is (`APP-27`)."""
    async with laboratory(chromium) as (_, page, frame):
        await greet(frame, {**GREETING, "appCapabilities": {}})
        assert await ask(frame, "ui/request-display-mode", mode="fullscreen") == {"mode": "inline"}
        assert await page.locator(".app-box.is-full").count() == 0


async def test_links_and_words_go_past_the_person(chromium: Any) -> None:
    """A page opens after the person has seen its whole address; words are said after they agreed to
    them (`APP-29`).
    """
    async with laboratory(chromium) as (stage, page, frame):
        await greet(frame)
        waiting = asyncio.create_task(
            ask(frame, "ui/open-link", url="https://pay.example.com/order?id=7")
        )
        box = page.locator("[data-question]")
        assert (
            await box.get_by_label("The whole address").inner_text()
            == "https://pay.example.com/order?id=7"
        )
        await (
            box.get_by_role("button", name="Decline").and_(box.locator(":not([disabled])")).click()
        )
        assert (await waiting)["code"] == -32000
        text = "Book the flight.\u202e"
        for label, yes in [("Do not send", False), ("Send", True)]:
            waiting = asyncio.create_task(
                ask(frame, "ui/message", role="user", content={"type": "text", "text": text})
            )
            wish = page.get_by_role("group", name="The app wants to send a message")
            await wish.get_by_text("U+202E").wait_for()
            assert (
                await ask(
                    frame, "ui/message", role="user", content={"type": "text", "text": "another"}
                )
            )["code"] == -32000
            await shot(page, "app-wish")
            await wish.get_by_role("button", name=label, exact=True).click()
            answer = await waiting
            assert (answer == {}) == yes
        await page.locator("article.said", has_text="Book the flight.").wait_for()
        said = [
            note.event for note in await stage.host.log.read() if isinstance(note.event, PersonSaid)
        ]
        assert len(said) == 2


async def test_an_app_is_told_before_it_goes(chromium: Any) -> None:
    """Closed, or left with its conversation: it hears of it and can end its work (`APP-25`)."""
    async with laboratory(chromium) as (_, page, frame):
        await page.evaluate(
            "window.passed = []; window.addEventListener('message', (event) => "
            "passed.push(event.data))"
        )
        ended = "passed.filter((one) => one.result?.ended).length"
        await greet(frame)
        await page.get_by_role("button", name="Close the app").click()
        await page.wait_for_function(f"() => {ended} === 1")
        await page.get_by_text("The app is closed.").wait_for()
        await page.wait_for_function("() => document.querySelectorAll('iframe').length === 0")
        await page.get_by_role("button", name="Show it again").click()
        await app_of(page).get_by_text("An app").wait_for()
        await greet(next(frame for frame in page.frames if frame.url == "about:srcdoc"))
        await page.get_by_role("button", name="New conversation").first.click()
        await page.wait_for_function(f"() => {ended} === 2")
        await page.wait_for_function("() => document.querySelectorAll('iframe').length === 0")


async def test_what_a_hostile_app_can_reach(chromium: Any) -> None:
    """Neither our page, nor cookies or storage, nor acts, nor the top of the window (`APP-10`,
    `APP-11`).
    """
    async with laboratory(chromium, noisy=True) as (stage, page, frame):
        await page.evaluate("localStorage.setItem('interlock-test', 'secret')")
        tries = {
            "page": "parent.parent.document.title",
            "proxy": "parent.document.title",
            "top": "top.location.href",
            "cookie": "document.cookie",
            "storage": "localStorage.length",
            "database": "indexedDB.open('x').readyState && 'ok'",
            "token": "top.document.querySelector('meta')",
        }
        for name, code in tries.items():
            assert await frame.evaluate(
                (
                    "code => { try { return String(globalThis.eval(code)) } catch "
                    "(bad) { return bad.name } }"
                ),
                code,
            ) in ("SecurityError", "EvalError", "InvalidStateError"), name
        for name, does in {
            "page": "() => parent.parent.document.title",
            "proxy": "() => parent.document.title",
            "top": "() => top.location.href",
            "cookie": "() => document.cookie",
            "storage": "() => localStorage.length",
            "database": "() => indexedDB.open('x')",
            "session": "() => sessionStorage.length",
        }.items():
            assert (
                await frame.evaluate(
                    f"() => {{ try {{ return String(({does})()) }} catch (bad) "
                    "{ return bad.name } }"
                )
                == "SecurityError"
            ), name
        assert await frame.evaluate("window.origin") == "null"
        for target in (stage.site.origin, stage.site.apps_origin):
            outcome = await frame.evaluate(
                (
                    "target => fetch(target + '/api/act', { method: 'POST', credentials: "
                    "'include', mode: 'no-cors', body: '{\"act\":\"newSession\"}' }).then(() => "
                    "'went', (bad) => bad.name)"
                ),
                target,
            )
            assert outcome == "TypeError"
        before = page.url
        await frame.evaluate("try { top.location = 'https://evil.example/' } catch {}")
        await frame.evaluate("try { window.open('https://evil.example/') } catch {}")
        await frame.evaluate(
            "const link = document.createElement('a'); link.href = 'https://evil.example/'; "
            "link.target = '_top'; document.body.append(link); link.click()"
        )
        await frame.evaluate(
            "const form = document.createElement('form'); form.action = 'https://evil.example/'; "
            "form.target = '_top'; document.body.append(form); form.submit()"
        )
        assert await frame.evaluate("alert(1)") is None
        assert len(page.context.pages) == 1
        assert page.url == before
        assert len(stage.host.sessions) == 1
        assert not [words for words in stage.troubles if words.startswith("a dialog")]


async def test_what_a_hostile_app_can_load(chromium: Any) -> None:
    """What was declared, for what it was declared for; nothing else, and leaving for another page
    is no way out (`APP-15`, `APP-16`).
    """
    async with laboratory(chromium, noisy=True) as (_, page, frame):
        gone: list[str] = []

        async def meet(route: Any) -> None:
            gone.append(route.request.url)
            await route.fulfill(
                status=200,
                headers={"access-control-allow-origin": "*", "content-type": "image/svg+xml"},
                body="<svg xmlns='http://www.w3.org/2000/svg'/>",
            )

        await page.context.route("**/*.example*/**", meet)
        image = (
            "url => new Promise((done) => { const image = new Image(); image.onload = () => "
            "done('ok'); image.onerror = () => done('no'); image.src = url })"
        )
        fetched = "url => fetch(url).then(() => 'ok', () => 'no')"
        for how, url, outcome in [
            (image, "https://cdn.example.com/a.svg", "ok"),
            (fetched, "https://api.example.com/a", "ok"),
            (image, "https://api.example.com/b.svg", "no"),
            (fetched, "https://cdn.example.com/b", "no"),
            (image, "https://evil.example/c.svg", "no"),
            (fetched, "https://evil.example/c", "no"),
        ]:
            assert await frame.evaluate(how, url) == outcome, url
        await frame.evaluate(
            "const inner = document.createElement('iframe'); inner.src = "
            "'https://evil.example/frame'; document.body.append(inner)"
        )
        await frame.evaluate(
            "const link = document.createElement('link'); link.rel = 'prefetch'; link.href = "
            "'https://evil.example/prefetch'; document.head.append(link)"
        )
        await frame.evaluate(
            "void new Worker(URL.createObjectURL(new Blob(['fetch(\"https://evil.example/worker\")'])))"
        )
        await frame.evaluate("setTimeout(() => { location.href = 'https://evil.example/?leak=1' })")
        await page.frame_locator("iframe.app-window").locator("iframe").wait_for(state="detached")
        assert gone == ["https://cdn.example.com/a.svg", "https://api.example.com/a"]


async def test_what_a_hostile_app_can_call(chromium: Any) -> None:
    """Its own server's tools for apps; not hidden ones, not those of others, whatever it writes
    (`APP-08`, `APP-09`).
    """
    async with laboratory(chromium) as (stage, _, frame):
        await greet(frame)
        assert (await ask(frame, "tools/call", name="board", arguments={"text": "mine"}))[
            "content"
        ][0]["text"] == "shown mine"
        for name in ("secret", "transfer", "bank__transfer", "lab__board"):
            assert (await ask(frame, "tools/call", name=name, server="bank", app="x"))[
                "code"
            ] == -32000
        assert (await ask(frame, "resources/read", uri="file:///etc/passwd"))["code"] == -32000
        assert (await ask(frame, "resources/read", uri=BOARD))["contents"][0]["text"] == LAB
        called = [
            note.event.tool
            for note in await stage.host.log.read()
            if isinstance(note.event, CallProposed)
        ]
        assert called == ["board", "board"]


async def test_a_flood_does_not_freeze_the_page(chromium: Any) -> None:
    """Ten thousand messages, and then no end: the person goes on, is told, and can close it
    (`APP-30`).
    """
    async with laboratory(chromium) as (_, page, frame):
        await page.evaluate(
            "window.passed = 0; window.addEventListener('message', () => { passed += 1 })"
        )
        await greet(frame)
        await frame.evaluate(
            "for (let at = 0; at < 10000; at += 1) post({ jsonrpc: '2.0', id: "
            "'f' + at, method: 'ping' })"
        )
        await page.get_by_text("sends too many messages").wait_for()
        assert await page.evaluate("passed") < 500
        await frame.evaluate(
            "setTimeout(() => { for (;;) post({ jsonrpc: '2.0', method: 'ping' }) })"
        )
        field = page.get_by_label("Your message")
        await field.fill("still here")
        assert await field.input_value() == "still here"
        await page.get_by_role("button", name="Close the app").click()
        await page.wait_for_function("() => document.querySelectorAll('iframe').length === 0")


async def test_permissions_are_lent_by_the_person(chromium: Any) -> None:
    """None at first, whatever the app asks for; what is allowed is allowed to the frame alone
    (`APP-19`).
    """
    async with laboratory(chromium) as (_, page, frame):
        allowed = "document.featurePolicy.allowsFeature('geolocation')"
        assert await frame.evaluate(allowed) is False
        assert await page.locator("iframe.app-window").get_attribute("allow") == ""
        await page.get_by_role("button", name="Allow and restart the app").click()
        await page.locator("iframe.app-window[allow=geolocation]").wait_for()
        await app_of(page).get_by_text("An app").wait_for()
        assert (
            await next(frame for frame in page.frames if frame.url == "about:srcdoc").evaluate(
                allowed
            )
            is True
        )


async def test_an_app_on_a_telephone(chromium: Any) -> None:
    """It is as wide as the card, and the page does not move sideways."""
    async with laboratory(chromium) as (stage, _, _):
        page = await stage.page(size=TELEPHONE)
        await page.evaluate(
            "session => { location.hash = session; location.reload() }",
            next(iter(stage.host.sessions)),
        )
        await app_of(page).get_by_text("An app").wait_for()
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await shot(page, "app-telephone")


async def test_an_app_does_not_get_what_is_typed_elsewhere(chromium: Any) -> None:
    """Who takes the focus from under the person's fingers loses its place; who clicks into an app
    is in it.
    """
    async with laboratory(chromium) as (_, page, frame):
        await frame.evaluate(
            "() => { window.field = document.createElement('input'); document.body.append(field) }"
        )
        field = page.get_by_label("Your message")
        await field.fill("a")
        await app_of(page).locator("input").click()
        await page.keyboard.type("mine")
        assert await frame.evaluate("field.value") == "mine"
        await frame.evaluate(
            "() => { field.value = ''; field.blur(); setInterval(() => { field.focus(); "
            "window.focus() }, 5) }"
        )
        async with asyncio.timeout(300):  # only a guard against waiting for ever
            while not await page.get_by_text("it took the focus").count():
                await field.focus()
                await page.keyboard.type("x")
        await page.wait_for_function("() => document.activeElement?.matches('textarea')")
        before = await field.input_value()
        await page.keyboard.type("and more")
        assert await field.input_value() == f"{before}and more"


def shop() -> Server:
    """A server whose app is the laboratory, with a tool that no rule allows."""
    server = Server("lab")

    @server.tool(meta={"ui": {"resourceUri": BOARD}})
    async def board(text: str = "") -> str:
        """Show the board."""
        return f"shown {text}"

    @server.tool
    async def pay(to: str, amount: int) -> str:
        """Pay."""
        return f"paid {amount} to {to}"

    @server.resource(BOARD, mime_type=APP_MIME_TYPE)
    def page() -> ResourceContents:
        return ResourceContents(uri=BOARD, mime_type=APP_MIME_TYPE, text=LAB)

    return server


BOARD_ONLY = Rule(decision="allow", server="lab", tool="board")
PAY = "void ask('tools/call', { name: 'pay', arguments: { to: 'Mallory', amount: 7 } })"


async def test_what_is_typed_in_an_app_answers_no_question(chromium: Any) -> None:
    """An app asks for a call while the person writes in it: the letters stay in the app
    (`APP-30`).
    """
    async with laboratory(chromium, rule=BOARD_ONLY, made=shop) as (stage, page, frame):
        await greet(frame)
        await frame.evaluate(
            "() => { window.field = document.createElement('input'); document.body.append(field) }"
        )
        await app_of(page).locator("input").click()
        await page.keyboard.type("m")
        await frame.evaluate(PAY)
        question = page.locator("[data-question]")
        await question.wait_for()
        await question.scroll_into_view_if_needed()
        await question.locator("button:not([disabled])", has_text="Allow once").wait_for()
        await page.keyboard.type("a and d")
        assert await frame.evaluate("field.value") == "ma and d"
        assert await question.count() == 1
        events = [note.event for note in await stage.host.log.read()]
        assert sum(isinstance(event, CallEnded) for event in events) == 1


async def test_an_app_that_fills_the_page_covers_no_question(chromium: Any) -> None:
    """It goes back into its place when a question comes, and does not fill the page while one is
    open (`APP-27`, `APP-30`).
    """
    async with laboratory(chromium, rule=BOARD_ONLY, made=shop) as (_, page, frame):
        await greet(frame)
        assert await ask(frame, "ui/request-display-mode", mode="fullscreen") == {
            "mode": "fullscreen"
        }
        await page.locator(".app-box.is-full").wait_for()
        await frame.evaluate(PAY)
        question = page.locator("[data-question]")
        await question.wait_for()
        await page.locator(".app-box.is-full").wait_for(state="detached")
        assert await ask(frame, "ui/request-display-mode", mode="fullscreen") == {"mode": "inline"}
        await question.locator("button:not([disabled])", has_text="Deny").click()
        await page.get_by_role("button", name="Deny").click()
        await question.wait_for(state="detached")
        assert await ask(frame, "ui/request-display-mode", mode="fullscreen") == {
            "mode": "fullscreen"
        }
