"""The floor of an ASGI server: it reads and writes JSON, runs the tool and detects when the client
disconnects. It checks nothing and uses no SDK."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec
from tools import catalogue, is_prose, serve_web

STAMP = {
    "resultType": "complete",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "floor", "version": "1.0.0"}},
}
GREETING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "floor", "version": "1.0.0"},
}
ACKNOWLEDGED = (
    b"data: "
    b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged",'
    b'"params":{"notifications":{}}}\r\n\r\n'
)
Send = Any


class Params(msgspec.Struct):
    """The parts of a call that matter here."""

    name: str = ""
    arguments: dict[str, Any] = {}


class Request(msgspec.Struct):
    """A request, or a notification if it has no id."""

    method: str
    id: int | str | None = None
    params: Params = msgspec.field(default_factory=Params)


class App:
    """The ASGI application."""

    def __init__(self, revision: str, name: str, mode: str) -> None:
        self.stamp = STAMP if revision >= "2026" else {}
        self.events = mode == "events"
        self.tools = {tool.__name__: tool for tool in catalogue(name)}
        self.prose = {tool.__name__ for tool in self.tools.values() if is_prose(tool)}
        self.list = self.encoded_list()
        self.decode = msgspec.json.Decoder(Request).decode
        self.encode = msgspec.json.Encoder().encode

    def encoded_list(self) -> msgspec.Raw:
        pair = {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        }
        tools = [
            {"name": name, "description": tool.__doc__, "inputSchema": pair}
            for name, tool in self.tools.items()
        ]
        return msgspec.Raw(msgspec.json.encode({"tools": tools, **self.stamp}))

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            return
        message = await receive()
        if scope["method"] == "GET":
            await self.listen(receive, send, b": open\r\n\r\n")
            return
        body = message["body"]
        while message["more_body"]:
            message = await receive()
            body += message["body"]
        request = self.decode(body)
        if request.id is None:
            await self.answer(send, 202, b"")
            return
        if request.method == "subscriptions/listen":
            await self.listen(receive, send, ACKNOWLEDGED)
            return
        running = asyncio.current_task()
        watch = asyncio.ensure_future(receive())
        watch.add_done_callback(lambda done: None if done.cancelled() else running.cancel())
        result = await self.result(request)
        watch.cancel()
        await self.answer(
            send, 200, self.encode({"jsonrpc": "2.0", "id": request.id, "result": result})
        )

    async def result(self, request: Request) -> Any:
        if request.method == "initialize":
            return GREETING
        if request.method == "tools/list":
            return self.list
        name = request.params.name
        value = self.tools[name](**request.params.arguments)
        if asyncio.iscoroutine(value):
            value = await value
        if name == "rows":
            data = self.encode(value)
            content = [{"type": "text", "text": data.decode()}]
            structured = {"result": msgspec.Raw(data)}
            return {"content": content, "structuredContent": structured, **self.stamp}
        content = [{"type": "text", "text": value if isinstance(value, str) else str(value)}]
        if name in self.prose:
            return {"content": content, **self.stamp}
        return {"content": content, "structuredContent": {"result": value}, **self.stamp}

    async def listen(self, receive: Any, send: Send, first: bytes) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/event-stream")],
            }
        )
        await send({"type": "http.response.body", "body": first, "more_body": True})
        await receive()

    async def answer(self, send: Send, status: int, body: bytes) -> None:
        if self.events and body:
            headers = [(b"content-type", b"text/event-stream")]  # without a length: in chunks
            body = b"event: message\r\ndata: " + body + b"\r\n\r\n"
        else:
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(body)),
            ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    _, revision, name, port, mode = sys.argv[1:]
    serve_web(App(revision, name, mode), int(port))
