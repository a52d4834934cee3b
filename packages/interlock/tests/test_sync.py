"""The blocking client: the same answers and errors without await, from any thread, and nothing that
stays behind.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    Answers,
    Changed,
    Context,
    McpError,
    Server,
    TimedOut,
    ToolError,
    Unreachable,
    UnsupportedRevision,
)
from interlock import Client as AsyncClient
from interlock import types as t
from interlock.sync import Client
from interlock.wire.revisions import NEWEST, R4
from tests.client.conftest import bounded
from tests.client.peers import GREETER, ByHand, is_gone, script

BOTH = pytest.mark.parametrize("revision", [R4, NEWEST])
pytestmark = pytest.mark.usefixtures(bounded.__name__)
__all__ = ["bounded"]  # a fixture


def make_server() -> Server:
    """A server with one of everything."""
    server = Server("house", "2.0", instructions="Be kind.")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def fail() -> None:
        raise ToolError("not today")

    @server.tool
    async def book(ctx: Context) -> str:
        return await ctx.elicit("Which seat?", str)

    @server.tool
    async def touch(ctx: Context) -> None:
        ctx.updated("house://hall")
        ctx.log.info("touched")
        ctx.progress(1)

    @server.tool
    async def wait() -> None:
        await asyncio.Event().wait()

    @server.resource("house://hall")
    async def hall() -> str:
        return "empty"

    @server.resource("house://room/{name}")
    async def room(name: str) -> str:
        return name

    @server.prompt
    async def greet(name: str) -> str:
        return f"Greet {name}."

    @server.completion("greet", "name")
    async def names(value: str) -> list[str]:
        return [name for name in ("Ada", "Ben") if name.startswith(value)]

    return server


@pytest.fixture(autouse=True)
def nothing_is_left() -> Any:
    """No thread of ours outlives its client."""
    yield
    assert [
        thread.name for thread in threading.enumerate() if thread.name == "interlock-sync"
    ] == []


# -- all of its face ------------------------------------------------------------------------------


@BOTH
def test_everything_at_once(revision: str):
    """Each method gives what the one with await gives."""
    with Client(make_server(), revision=revision, answers=Answers(roots=["/srv"])) as client:
        assert client.revision == revision
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version, client.instructions) == (
            "house",
            "2.0",
            "Be kind.",
        )
        assert client.server_capabilities.tools is not None
        assert [tool.name for tool in client.list_tools()] == [
            "add",
            "fail",
            "book",
            "touch",
            "wait",
        ]
        assert client.call_tool("add", {"a": 1, "b": 2}).value() == 3
        assert [resource.uri for resource in client.list_resources(timeout=5)] == ["house://hall"]
        assert [template.uri_template for template in client.list_resource_templates()] == [
            "house://room/{name}"
        ]
        assert client.read_resource("house://room/blue").contents[0].text == "blue"
        assert [prompt.name for prompt in client.list_prompts()] == ["greet"]
        assert client.get_prompt("greet", {"name": "Ada"}).messages[0].content == t.TextContent(
            "Greet Ada."
        )
        assert client.complete("greet", "name", "A").values == ["Ada"]
        page = client.request("tools/list", t.ListToolsRequestParams())
        assert isinstance(page, t.ListToolsResult)
        client.ping()
        client.set_log_level("info")
        client.roots_changed()


def test_its_face_is_that_of_the_other_client():
    """What a user of one finds in the other, but for what is a matter of tasks and exchanges."""
    public = {name for name in vars(AsyncClient) if not name.startswith("_")}
    assert public - {name for name in vars(Client) if not name.startswith("_")} == {
        "aclose",
        "as_source",
        "caller",
        "connected",
        "list_limits",
        "open",
        "invalidate",
        "offers_tasks",
        "send",
        "send_call",
        "task_support",
        "token_refreshes",
    }
    for name in (
        "call_tool",
        "read_resource",
        "get_prompt",
        "complete",
        "request",
        "list_tools",
        "watch",
    ):
        ours, theirs = (
            inspect.signature(getattr(kind, name)).parameters for kind in (Client, AsyncClient)
        )
        shared = [parameter for parameter in ours if parameter != "options"]
        assert shared == list(theirs)[: len(shared)], name


@BOTH
def test_what_is_heard(revision: str):
    """Functions are called in the client's own thread, plain or async, while the caller waits."""
    threads: set[str] = set()
    logs: list[Any] = []
    done: list[float] = []

    def answer(params: t.ElicitRequestParams) -> dict[str, str]:
        threads.add(threading.current_thread().name)
        return {"value": "7B"}

    async def later(params: t.ElicitRequestParams) -> dict[str, str]:
        await asyncio.sleep(0)
        return answer(params)

    for elicit in (answer, later):
        with Client(
            make_server(), revision=revision, elicit=elicit, on_log=logs.append, log_level="info"
        ) as client:
            assert client.call_tool("book").text == "7B"
            client.call_tool("touch", on_progress=lambda params: done.append(params.progress))
    assert (threads, [log.data for log in logs], done) == (
        {"interlock-sync"},
        ["touched"] * 2,
        [1, 1],
    )


@BOTH
def test_watching(revision: str):
    """Changes come from an iterator, for as long as the block lasts."""
    server = make_server()
    with Client(server, revision=revision) as client:
        with client.watch(resources=["house://hall"]) as changes, client.watch(tools=True) as lists:
            client.call_tool("touch")
            assert next(changes) == Changed("resource", "house://hall")
            server.changed("tools")
            server.changed("prompts")
            assert next(lists) == Changed("tools")
        assert list(changes) == list(lists) == []
        with client.watch(resources="house://hall") as changes:
            client.call_tool("touch")
            assert next(changes).uri == "house://hall"


def test_watching_beyond_the_end():
    """The iterator of a client that was closed says so, and the end of the block does no harm."""
    with Client(make_server()) as client:
        watching = client.watch(tools=True)
        changes = watching.__enter__()
    with pytest.raises(Unreachable, match="not open"):
        next(changes)
    watching.__exit__(None, None, None)


def test_watching_what_is_lost(tmp_path: Path):
    """A server that goes away ends the listening."""
    path = script(
        tmp_path, GREETER + "greet({'tools': {'listChanged': True}})\nread()\nos._exit(3)"
    )
    with Client(path, revision=R4) as client, client.watch(tools=True) as changes:
        with pytest.raises(Unreachable):
            client.ping()
        with pytest.raises(Unreachable):
            next(changes)
    assert is_gone(tmp_path)


# -- errors ---------------------------------------------------------------------------------------


def test_errors_are_those_of_the_other_client():
    with Client(make_server()) as client:
        with pytest.raises(ToolError, match="not today"):
            client.call_tool("fail").value()
        with pytest.raises(McpError) as caught:
            client.call_tool("nobody")
        assert caught.value.code == t.INVALID_PARAMS
        with pytest.raises(TimedOut):
            client.call_tool("wait", timeout=0.01)
        with pytest.raises(TypeError):
            client.call_tool("add", {"a": object()})
        with pytest.raises(TypeError, match="nonsense"):
            client.call_tool("add", nonsense=1)
        with pytest.raises(ValueError, match="is not a request"):
            client.request("initialize me", t.Params())
        with pytest.raises(ZeroDivisionError), client.watch(tools=True):
            raise ZeroDivisionError
        assert client.call_tool("add", {"a": 1, "b": 2}).value() == 3


USES: dict[str, Any] = {
    "list_tools": lambda c: c.list_tools(),
    "call_tool": lambda c: c.call_tool("add"),
    "ping": lambda c: c.ping(),
    "roots_changed": lambda c: c.roots_changed(),
    "watch": lambda c: c.watch(tools=True).__enter__(),
    "revision": lambda c: c.revision,
    "server_info": lambda c: c.server_info,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_use_before_and_after(use: Any):
    """One clear error; and what was closed can be opened again."""
    client = Client(make_server())
    for _ in range(2):
        with pytest.raises(Unreachable, match="The client is not open; use it in `with"):
            use(client)
        with client:
            client.ping()


def test_a_client_that_is_never_opened():
    """It holds nothing: no loop, no thread, no file."""
    before = threading.active_count()
    Client(make_server())
    gc.collect()  # a loop that was not closed would complain here
    assert threading.active_count() == before


def test_opening_what_is_open():
    """It stays open for whoever opened it first."""
    with Client(make_server()) as client:
        with pytest.raises(RuntimeError, match="open already"):
            client.__enter__()
        client.ping()


def test_an_error_in_the_block():
    with pytest.raises(ZeroDivisionError), Client(make_server()):
        raise ZeroDivisionError


FAILING: dict[str, tuple[Any, dict[str, Any], type[Exception]]] = {
    "a target of no kind": (7, {}, TypeError),
    "a script that is not there": ("/nowhere/server.py", {}, ValueError),
    "a command that is not there": ("no-such-program-here", {}, Unreachable),
    "an option of no kind": (Server("x"), {"nonsense": 1}, TypeError),
    "a revision of no kind": (Server("x"), {"revision": "1999"}, ValueError),
    "a server that refuses": (
        Server("x", revisions=[R4]),
        {"revision": NEWEST},
        UnsupportedRevision,
    ),
}


@pytest.mark.parametrize("target, options, kind", FAILING.values(), ids=FAILING)
def test_an_opening_that_fails(target: Any, options: dict[str, Any], kind: type[Exception]):
    """Nothing is left of it, and it may be tried again."""
    client = Client(target, **options)
    for _ in range(2):
        with pytest.raises(kind):
            client.__enter__()
        with pytest.raises(Unreachable, match="not open"):
            client.ping()


def test_a_child_that_could_not_be_opened(tmp_path: Path):
    path = script(tmp_path, "import sys; sys.exit('no key')")
    with pytest.raises(Unreachable, match="no key"), Client([sys.executable, path]):
        raise AssertionError("it was opened")
    assert is_gone(tmp_path)


# -- loops and threads ----------------------------------------------------------------------------


async def test_inside_a_running_loop():
    """As in a notebook; the loop that runs is left alone."""
    loop = asyncio.get_running_loop()
    with Client(make_server()) as client:
        assert client.call_tool("add", {"a": 1, "b": 2}).value() == 3
        assert asyncio.get_running_loop() is loop
    assert await asyncio.to_thread(lambda: 7) == 7


def test_two_at_once():
    """Each has a loop of its own, and they may share a server in this process."""
    server = make_server()
    with (
        Client(server) as one,
        Client(server, revision=R4) as other,
        other.watch(resources="house://hall") as changes,
    ):
        assert (
            one.call_tool("add", {"a": 1, "b": 2}).value()
            == other.call_tool("add", {"a": 2, "b": 1}).value()
        )
        one.call_tool("touch")
        assert next(changes).uri == "house://hall"


def test_many_threads():
    """One client serves them all."""
    with Client(make_server()) as client, ThreadPoolExecutor(8) as pool:
        sums = pool.map(lambda n: client.call_tool("add", {"a": n, "b": 1}).value(), range(64))
        assert list(sums) == [n + 1 for n in range(64)]


def test_closing_while_another_thread_waits(tmp_path: Path):
    """Whoever waits is told why there is no answer."""
    path = script(
        tmp_path, GREETER + "greet()\nread()\nprint('asked', file=sys.stderr, flush=True)\nread()"
    )
    asked = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with Client(path, revision=R4, on_stderr=lambda line: asked.set()) as client:
            waiting = pool.submit(client.call_tool, "wait")
            asked.wait()
        with pytest.raises(Unreachable, match="The client was closed"):
            waiting.result()
    assert is_gone(tmp_path)


def test_use_from_a_function_that_the_client_calls():
    """It would wait for itself: it is told so."""
    said: list[str] = []

    def answer(params: t.ElicitRequestParams) -> bool:
        with pytest.raises(RuntimeError, match="cannot use it") as caught:
            client.ping()
        said.append(str(caught.value))
        return False

    with Client(make_server(), elicit=answer) as client:
        assert client.call_tool("book").is_error
    assert said


def interrupt() -> None:
    """What Ctrl-C does."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_an_interrupt_in_the_middle_of_a_call():
    """The caller gets it, the call is cancelled, and the client goes on."""
    ended = threading.Event()

    async def think(params: t.ElicitRequestParams) -> None:
        interrupt()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with Client(make_server(), elicit=think) as client:
        with pytest.raises(KeyboardInterrupt):
            client.call_tool("book")
        ended.wait()
        assert client.call_tool("add", {"a": 1, "b": 2}).value() == 3


def test_an_interrupt_in_the_middle_of_opening(tmp_path: Path):
    """The child is gone by the time that the caller goes on, though it takes its time to go."""
    body = """
    import sys, time
    print("up", file=sys.stderr, flush=True)
    sys.stdin.read()
    time.sleep(0.3)
    """
    with (
        pytest.raises(KeyboardInterrupt),
        Client(script(tmp_path, body), on_stderr=lambda line: interrupt()),
    ):
        raise AssertionError("it was opened")
    assert is_gone(tmp_path)


def test_an_interrupt_does_not_tear_a_transport_out_of_its_closing():
    """It is told to stop once, and may finish."""

    class Slow(ByHand):
        tidy = False

        async def aclose(self) -> None:
            for _ in range(1000):
                await asyncio.sleep(0)
            self.tidy = True

    async def opening() -> None:
        interrupt()
        await asyncio.Event().wait()

    transport = Slow(opening=opening)
    with pytest.raises(KeyboardInterrupt), Client(transport):
        raise AssertionError("it was opened")
    assert transport.tidy


def test_tasks_that_are_left_are_ended():
    """What a function of the author has started does not outlive the client, and may tidy up."""
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("tidy")

    async def answer(params: t.ElicitRequestParams) -> bool:
        tasks.append(asyncio.create_task(work()))
        await asyncio.sleep(0)
        return False

    tasks: list[asyncio.Task[None]] = []
    with Client(make_server(), elicit=answer) as client:
        client.call_tool("book")
    assert ended == ["tidy"]
    assert tasks[0].cancelled()


def test_skills():
    """They are listed, got, read and refreshed without await (SKL-43)."""
    server = Server("shop")
    text = "---\nname: refunds\ndescription: Refunds.\n---\n"
    server.add_skill("refunds", {"SKILL.md": text, "a/x.bin": b"\xff"})
    with Client(server) as client:
        [skill] = client.list_skills()
        assert (skill.uri, skill.name) == ("skill://refunds/SKILL.md", "refunds")
        assert skill.files == ["SKILL.md", "a/x.bin"]
        assert client.skill(skill.uri).refresh().read() == text
        assert skill.read_bytes("a/x.bin") == b"\xff"
        assert skill.directory("a") == ["x.bin"]
        assert [child.uri for child in client.read_directory("skill://refunds/a")] == [
            "skill://refunds/a/x.bin"
        ]
