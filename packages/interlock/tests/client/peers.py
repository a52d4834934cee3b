"""The other sides that the tests of the client play: a server on the wire, a transport made by
hand, and scripts for child processes.
"""

from __future__ import annotations

import asyncio
import json
import os
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from interlock import Exchange, McpError
from interlock import types as t
from interlock.protocol.opening import Opened
from interlock.testing import channel_pair
from interlock.transport.conversation import Hello
from interlock.wire.revisions import NEWEST, STATELESS_REVISIONS

SECONDS = 50  # after which a test that waits has failed; nothing ever waits that long
KEY = "io.modelcontextprotocol/"
EVERYTHING = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "logging": {},
    "completions": {},
}
SILENCE = object()
"""In place of an answer: there is none."""


class Peer:
    """A server on the wire.

    What the client says is kept in `received`; `on` has an answer for each method.

    An answer is a result as a dict, an McpError, SILENCE, a list of answers to be given in turn, or
    a function of the message.
    """

    def __init__(
        self,
        on: dict[str, Any] | None = None,
        revision: str = NEWEST,
        *,
        capabilities: dict[str, Any] | None = None,
    ) -> None:
        self.revision = revision
        self.channel, self.own = channel_pair()
        self.received: list[dict[str, Any]] = []
        self._stirred = asyncio.Condition()
        offered = EVERYTHING if capabilities is None else capabilities
        if revision in STATELESS_REVISIONS:
            greeting: dict[str, Any] = {
                "server/discover": complete(supportedVersions=[revision], capabilities=offered)
            }
        else:
            said = {
                "protocolVersion": revision,
                "capabilities": offered,
                "serverInfo": {"name": "peer", "version": "1"},
            }
            greeting = {"initialize": said, "server/discover": McpError(-32601, "no such method")}
        self.on: dict[str, Any] = {**greeting, "ping": {}, "logging/setLevel": {}, **(on or {})}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Peer:
        self._task = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._task is not None
        await self.own.aclose()
        async with asyncio.timeout(SECONDS):
            await self._task

    async def _listen(self) -> None:
        while frames := await self.own.receive():
            for frame in frames:
                message = json.loads(frame)
                self.received.append(message)
                if "method" in message and "id" in message:
                    self._answer(message)
            async with self._stirred:
                self._stirred.notify_all()

    def _answer(self, message: dict[str, Any]) -> None:
        answer = self.on.get(
            message["method"], McpError(-32601, f"Method not found: {message['method']}")
        )
        if isinstance(answer, list):
            answer = answer.pop(0)
        if callable(answer):
            answer = answer(message)
        if isinstance(answer, McpError):
            self.say(
                id=message["id"],
                error={"code": answer.code, "message": answer.message, "data": answer.data},
            )
        elif answer is not SILENCE:
            self.say(id=message["id"], result=answer)

    def say(self, **message: Any) -> None:
        """Send a message."""
        self.own.send([json.dumps({"jsonrpc": "2.0", **message}).encode()])

    def tell(
        self, method: str, params: dict[str, Any] | None = None, *, subscription: Any = None
    ) -> None:
        """Send a notification, of a subscription where one is named."""
        meta = {} if subscription is None else {"_meta": {f"{KEY}subscriptionId": subscription}}
        self.say(method=method, params={**(params or {}), **meta})

    def acknowledge(self, message: dict[str, Any], **less: Any) -> object:
        """An answer to `subscriptions/listen`: all that was wished is granted, but what is
        `less`.
        """
        wished = {**message["params"]["notifications"], **less}
        granted = {
            "notifications": {name: value for name, value in wished.items() if value is not None}
        }
        self.tell("notifications/subscriptions/acknowledged", granted, subscription=message["id"])
        return SILENCE

    def all(self, method: str) -> list[dict[str, Any]]:
        """What was heard of a method, so far."""
        return [message for message in self.received if message.get("method") == method]

    def count(self, method: str) -> int:
        """How often a method was heard, so far."""
        return len(self.all(method))

    async def until(self, method: str, count: int = 1) -> dict[str, Any]:
        """Wait until a method was heard so often; returns the last message of it."""
        return await self.until_received(lambda m: m.get("method") == method, count)

    async def until_received(
        self, wanted: Callable[[dict[str, Any]], bool], count: int = 1
    ) -> dict[str, Any]:
        """Wait until so many messages were heard that are wanted; returns the last of them."""
        async with asyncio.timeout(SECONDS), self._stirred:
            await self._stirred.wait_for(lambda: sum(map(wanted, self.received)) >= count)
        return [message for message in self.received if wanted(message)][count - 1]


class ByHand:
    """A client's transport that is a handler and no more; it keeps the exchanges that it has
    seen.
    """

    def __init__(
        self,
        handler: Callable[[Exchange], Awaitable[Any]] | None = None,
        *,
        revision: str = NEWEST,
        capabilities: t.ServerCapabilities | None = None,
        opening: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._handler = handler
        self._opening = opening
        self.opened = Opened(revision, None, capabilities or t.ServerCapabilities(), None)
        self.seen: list[Exchange] = []
        self.told: list[str] = []
        self.hello: Hello | None = None
        self.opens = 0
        self.closes = 0

    async def open(self, hello: Hello) -> Opened:
        self.hello = hello
        self.opens += 1
        if self._opening is not None:
            await self._opening()
        return self.opened

    async def __call__(self, exchange: Exchange) -> Any:
        self.seen.append(exchange)
        assert self._handler is not None
        return await self._handler(exchange)

    def send_notification(self, method: str, params: Any) -> None:
        self.told.append(method)

    async def aclose(self) -> None:
        self.closes += 1


async def eventually(condition: Callable[[], bool]) -> None:
    """Let the others run until something is so."""
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it has not come to be")


def complete(**result: Any) -> dict[str, Any]:
    """A result of the stateless era."""
    return {"resultType": "complete", **result}


def text(words: str = "done", **more: Any) -> dict[str, Any]:
    """The result of a tool that says something."""
    return complete(content=[{"type": "text", "text": words}], **more)


def form(message: str = "Which?", **properties: Any) -> dict[str, Any]:
    """An input request: a form."""
    schema = {"type": "object", "properties": properties or {"value": {"type": "string"}}}
    return {
        "method": "elicitation/create",
        "params": {"message": message, "requestedSchema": schema},
    }


def asks(state: str | None = None, **requests: Any) -> dict[str, Any]:
    """A result that is questions, or a state, or both."""
    return {
        "resultType": "input_required",
        **({"inputRequests": requests} if requests else {}),
        **({"requestState": state} if state is not None else {}),
    }


def script(folder: Path, body: str, name: str = "server.py") -> Path:
    """A script in a folder, whose first act is to write down its process id."""
    path = folder / name
    note = f"import os\nopen({str(folder / 'pid')!r}, 'w').write(str(os.getpid()))\n"
    path.write_text(note + textwrap.dedent(body))
    return path


def is_gone(folder: Path) -> bool:
    """Whether the process of a script has ended; it must have begun."""
    try:
        os.kill(int((folder / "pid").read_text()), 0)
    except ProcessLookupError:
        return True
    return False


GREETER = """
import json, sys
def answer(id, **said):
    print(json.dumps({"jsonrpc": "2.0", "id": id, **said}), flush=True)
def read():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)
def greet(capabilities=None):
    while True:
        message = read()
        if message["method"] == "initialize":
            answer(message["id"], result={"protocolVersion": message["params"]["protocolVersion"],
                   "capabilities": capabilities or {},
                   "serverInfo": {"name": "script", "version": "1"}})
        elif message["method"] == "notifications/initialized":
            return
        else:
            answer(message["id"], error={"code": -32601, "message": "no such method"})
"""
"""A script's own small way to open a conversation of the handshake era; it stands on nothing but
the standard library.
"""

TASK_SERVER = (
    GREETER
    + """
import pathlib
place = pathlib.Path(__file__).with_suffix(".json")
tasks = json.loads(place.read_text()) if place.exists() else {}
greet({"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}})
TOOL = {"name": "crunch", "inputSchema": {"type": "object"},
        "execution": {"taskSupport": "required"}}
def text(words):
    return {"content": [{"type": "text", "text": words}]}
while True:
    message = read()
    method, params = message["method"], message.get("params", {})
    if "id" not in message:
        continue
    task = tasks.get(params.get("taskId"))
    if method == "tools/list":
        said = {"tools": [TOOL, {**TOOL, "name": "plain", "execution": {}}]}
    elif method == "tools/call" and "task" in params:
        task = {"taskId": f"T{len(tasks)}", "status": "working",
                "createdAt": "2026-01-01T00:00:00Z",
                "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": None, "pollInterval": 20}
        tasks[task["taskId"]] = task
        said = {"task": task}
    elif method == "tools/call":
        said = text("at once")
    elif method == "tasks/list":
        said = {"tasks": list(tasks.values())}
    elif task is None:
        answer(message["id"], error={"code": -32602, "message": "Task not found"})
        continue
    elif method == "tasks/get":
        said = dict(task)
        if place.with_suffix(".hold").exists():
            task["statusMessage"] = "counting"
        elif task["status"] == "working":
            task.update(status="completed", statusMessage="counted")
    elif method == "tasks/cancel":
        task["status"] = "cancelled"
        said = task
    else:
        said = text("42")
    place.write_text(json.dumps(tasks))
    answer(message["id"], result=said)
"""
)
"""A script with the tool `crunch`, which only runs as a task (2025-11-25). Its tasks are kept in a
file beside it. They end at the second poll, or once there is no file with the suffix `.hold`.
"""
