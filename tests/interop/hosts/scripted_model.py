"""A model on loopback for hosts of other makers: it speaks their providers' interfaces, calls one
tool, and then repeats what the tool returned."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.models.providers import STREAMED, WHOLE, Answer, event


class ScriptedModel:
    """The model.

    Args:
        tool: The tool that it calls, as soon as a request offers one whose name ends like this.
        arguments: The arguments of the call.

    Attributes:
        bodies: The requests as they came.
    """

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        self.tool = tool
        self.arguments = arguments
        self.bodies: list[dict[str, Any]] = []
        self.url = ""

    @contextmanager
    def serving(self) -> Iterator[ScriptedModel]:
        """Serve on a free port of the loopback address; `url` is the address."""
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.respond({"object": "list", "data": [], "models": []}, "application/json")

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                body = json.loads(self.rfile.read(length) or b"{}")
                model.bodies.append(body)
                self.respond(*model.response(self.path, body))

            def respond(self, content: Any, kind: str) -> None:
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """The access log of the class would mix with the output of the tests."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.url = f"http://127.0.0.1:{server.server_address[1]}"
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()

    def response(self, path: str, body: dict[str, Any]) -> tuple[Any, str]:
        """The content of the response, and its type."""
        answer = self.answer(body)
        if path.endswith("/responses"):
            return b"".join(responses_streamed(answer)), "text/event-stream"
        if path.endswith("/chat/completions"):
            kind, is_streamed = "openai", bool(body.get("stream"))
        else:
            kind, is_streamed = "gemini", ":streamGenerateContent" in path
        if is_streamed:
            return b"".join(STREAMED[kind](answer)), "text/event-stream"
        return WHOLE[kind](answer), "application/json"

    def answer(self, body: dict[str, Any]) -> Answer:
        """A call of the tool; once a result of it is there, the result in words."""
        text = json.dumps(body)
        if found := re.search(r"Hello, \w+!", text):
            return Answer((f"The server says: {found[0]}",))
        for space in body.get("tools", []):  # Codex: the tools of a server are in a namespace
            if space.get("type") == "namespace":
                for tool in space["tools"]:
                    if tool["name"] == self.tool:
                        return Answer(((f"{space['name']}/{self.tool}", self.arguments),))
        names = re.findall(rf'"name": "([\w.-]*{self.tool})"', text)
        if names:
            return Answer(((names[0], self.arguments),))
        return Answer(("{}",))


def responses_streamed(answer: Answer) -> list[bytes]:
    """The events of OpenAI's interface `responses`."""
    output: list[dict[str, Any]] = []
    for number, part in enumerate(answer.parts):
        if isinstance(part, str):
            content = [{"type": "output_text", "text": part, "annotations": []}]
            output.append(
                {"type": "message", "role": "assistant", "id": f"m{number}", "content": content}
            )
        else:
            assert isinstance(part, tuple)
            space, _, name = part[0].rpartition("/")
            output.append(
                {
                    "type": "function_call",
                    "id": f"f{number}",
                    "call_id": f"call_{number}",
                    "name": name,
                    **({"namespace": space} if space else {}),
                    "arguments": json.dumps(part[1]),
                }
            )
    usage = {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 12,
    }
    done = {"id": "r1", "object": "response", "status": "completed", "output": output}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r1"}}]
    events += [
        {"type": "response.output_item.done", "output_index": number, "item": item}
        for number, item in enumerate(output)
    ]
    events.append({"type": "response.completed", "response": {**done, "usage": usage}})
    return [event(one, one["type"]) for one in events]
