"""A site on loopback that speaks the interfaces of three providers: it says what it was told to,
and goes wrong as it was told to.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

Call = tuple[str, dict[str, Any]]


@dataclass
class Asked:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Answer:
    """What the model says: parts in their order (text, or calls as name and arguments), after
    `thought` if there is one.

    A part of bytes is the raw JSON text of a call's arguments, as broken as it may be, for a tool
    called `broken`.
    """

    parts: tuple[str | Call | bytes, ...] = ()
    thought: str = ""
    stop: str = ""
    ids: bool = True
    usage: tuple[int, int, int] = (7, 5, 2)  # in, out, of the cache


@dataclass
class Act:
    """How the site answers one request.

    `cut` and `stall` count the events after which it breaks off or falls silent.
    """

    answer: Answer = field(default_factory=Answer)
    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    stall: int | None = None
    stream: Iterable[bytes] | None = None  # in place of the answer's events
    hang: bool = False  # not even the head of an answer


class Site:
    """The site.

    `acts` are taken one after the other; the last one stays. `asked` is what came, `gone` counts
    clients that hung up early.
    """

    def __init__(self, *acts: Act | Answer | str) -> None:
        self.acts = [_act(act) for act in acts]
        self.asked: list[Asked] = []
        self.gone = 0
        self.left = asyncio.Event()  # set when a client hung up early
        self.begun = asyncio.Event()  # set when a request has come
        self._writers: set[asyncio.StreamWriter] = set()

    def add(self, *acts: Act | Answer | str) -> None:
        """More to answer."""
        self.acts += [_act(act) for act in acts]

    async def __aenter__(self) -> Site:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.root = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self.openai = f"{self.root}/v1"
        self.anthropic = self.root
        self.gemini = f"{self.root}/v1beta"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        bad: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for writer in list(self._writers):
            writer.close()
        await asyncio.gather(
            *(asyncio.wait_for(writer.wait_closed(), 5) for writer in list(self._writers)),
            return_exceptions=True,
        )
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        path = head[0].split()[1]
        headers = dict(
            line.lower().split(": ", 1) if "authorization" not in line.lower() else _pair(line)
            for line in head[1:]
            if line
        )
        body = json.loads(
            await reader.readexactly(int(headers.get("content-length", "0"))) or b"{}"
        )
        self.asked.append(Asked(path, headers, body))
        self.begun.set()
        act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
        if act.hang:
            return await self._wait(reader)
        if act.status != 200 or act.body is not None:
            data = act.body if isinstance(act.body, bytes) else json.dumps(act.body).encode()
            writer.write(
                _head(
                    act.status,
                    {
                        "content-type": "application/json",
                        "content-length": str(len(data)),
                        **act.headers,
                    },
                )
                + data
            )
            await writer.drain()
            return True
        speaks, streamed = _speaks(path, body)
        if not streamed:
            data = json.dumps(WHOLE[speaks](act.answer)).encode()
            sent = data[: act.cut] if act.cut is not None else data
            writer.write(
                _head(
                    200,
                    {
                        "content-type": "application/json",
                        "content-length": str(len(data)),
                        **act.headers,
                    },
                )
                + sent
            )
            await writer.drain()
            return act.cut is None
        writer.write(
            _head(
                200,
                {
                    "content-type": "text/event-stream",
                    "transfer-encoding": "chunked",
                    **act.headers,
                },
            )
        )
        events = list(act.stream) if act.stream is not None else STREAMED[speaks](act.answer)
        for number, event in enumerate(events):
            if act.cut == number:
                return False
            if act.stall == number:
                return await self._wait(reader)
            writer.write(b"%x\r\n%s\r\n" % (len(event), event) if event else b"")
            await writer.drain()
        if act.cut is not None or act.stall is not None:
            return act.cut is None and await self._wait(reader)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _wait(self, reader: asyncio.StreamReader) -> bool:
        """Say nothing until the client hangs up."""
        await reader.read(1)
        self.gone += 1
        self.left.set()
        return False


def _act(act: Act | Answer | str) -> Act:
    if isinstance(act, str):
        act = Answer((act,))
    return Act(act) if isinstance(act, Answer) else act


def _pair(line: str) -> tuple[str, str]:
    name, value = line.split(": ", 1)
    return name.lower(), value


def _head(status: int, headers: dict[str, str]) -> bytes:
    return (
        f"HTTP/1.1 {status} So\r\n"
        + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        + "\r\n"
    ).encode()


def _speaks(path: str, body: dict[str, Any]) -> tuple[str, bool]:
    if path.endswith("/chat/completions"):
        return "openai", bool(body.get("stream"))
    if path.endswith("/messages"):
        return "anthropic", bool(body.get("stream"))
    return "gemini", ":streamGenerateContent" in path


def event(data: Any, name: str = "") -> bytes:
    """One event of a stream."""
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def _words(text: str) -> list[str]:
    return [word + " " for word in text.split(" ")[:-1]] + [text.split(" ")[-1]]


def _stop(answer: Answer, plain: str, tools: str) -> str:
    return answer.stop or (plain if all(isinstance(part, str) for part in answer.parts) else tools)


def _call(part: Call | bytes) -> tuple[str, str]:
    return ("broken", part.decode()) if isinstance(part, bytes) else (part[0], json.dumps(part[1]))


# -- chat completions ------------------------------------------------------------------------------


def openai_streamed(answer: Answer) -> list[bytes]:
    """The chunks of an answer."""

    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return event(
            {"id": "c1", "object": "chat.completion.chunk", "model": "model-1", "choices": [choice]}
        )

    events = [chunk({"role": "assistant", "content": ""})]
    events += [
        chunk({"reasoning_content": word}) for word in _words(answer.thought) if answer.thought
    ]
    number = 0
    for part in answer.parts:
        if isinstance(part, str):
            events += [chunk({"content": word}) for word in _words(part)]
            continue
        name, arguments = _call(part)
        first = {"index": number, "type": "function", "function": {"name": name, "arguments": ""}}
        events.append(
            chunk({"tool_calls": [first | ({"id": f"call_{name}_{number}"} if answer.ids else {})]})
        )
        half = len(arguments) // 2
        for piece in (arguments[:half], arguments[half:]):
            events.append(
                chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
            )
        number += 1
    events.append(chunk({}, _stop(answer, "stop", "tool_calls")))
    events.append(
        event(
            {
                "object": "chat.completion.chunk",
                "model": "model-1",
                "choices": [],
                "usage": _openai_usage(answer),
            }
        )
    )
    return [*events, event("[DONE]")]


def _openai_usage(answer: Answer) -> dict[str, Any]:
    went_in, out, kept = answer.usage
    return {
        "prompt_tokens": went_in,
        "completion_tokens": out,
        "prompt_tokens_details": {"cached_tokens": kept},
    }


def openai_whole(answer: Answer) -> dict[str, Any]:
    """The answer in one."""
    text = "".join(part for part in answer.parts if isinstance(part, str))
    calls = [
        {
            "id": f"call_{_call(part)[0]}_{at}",
            "type": "function",
            "function": dict(zip(("name", "arguments"), _call(part), strict=True)),
        }
        for at, part in enumerate(part for part in answer.parts if not isinstance(part, str))
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    if answer.thought:
        message["reasoning_content"] = answer.thought
    choice = {"index": 0, "message": message, "finish_reason": _stop(answer, "stop", "tool_calls")}
    return {
        "object": "chat.completion",
        "model": "model-1",
        "choices": [choice],
        "usage": _openai_usage(answer),
    }


# -- messages --------------------------------------------------------------------------------------


def anthropic_streamed(answer: Answer) -> list[bytes]:
    """The events of an answer."""
    went_in, out, kept = answer.usage
    usage = {
        "input_tokens": went_in - kept,
        "cache_read_input_tokens": kept,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    started = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "model-1",
        "content": [],
        "usage": usage,
    }
    events = [
        event({"type": "message_start", "message": started}, "message_start"),
        event({"type": "ping"}, "ping"),
    ]
    for index, block in enumerate(_anthropic_blocks(answer)):
        kind = block["type"]
        if kind == "text":
            start = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": word} for word in _words(block["text"])]
        elif kind == "thinking":
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": word} for word in _words(block["thinking"])
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        else:
            raw = block["raw"]
            start = {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
            deltas = [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in ("", raw[: len(raw) // 2], raw[len(raw) // 2 :])
            ]
        events.append(
            event(
                {"type": "content_block_start", "index": index, "content_block": start},
                "content_block_start",
            )
        )
        events += [
            event(
                {"type": "content_block_delta", "index": index, "delta": delta},
                "content_block_delta",
            )
            for delta in deltas
        ]
        events.append(event({"type": "content_block_stop", "index": index}, "content_block_stop"))
    ended = {"stop_reason": _stop(answer, "end_turn", "tool_use"), "stop_sequence": None}
    events.append(
        event(
            {"type": "message_delta", "delta": ended, "usage": {"output_tokens": out}},
            "message_delta",
        )
    )
    return [*events, event({"type": "message_stop"}, "message_stop")]


def _anthropic_blocks(answer: Answer) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answer.thought:
        blocks.append({"type": "thinking", "thinking": answer.thought, "signature": "SIGNED"})
    for number, part in enumerate(answer.parts):
        if isinstance(part, str):
            blocks.append({"type": "text", "text": part})
        else:
            name, raw = _call(part)
            blocks.append(
                {
                    "type": "tool_use",
                    "id": f"toolu_{number}" if answer.ids else "",
                    "name": name,
                    "raw": raw,
                }
            )
    return blocks


def anthropic_whole(answer: Answer) -> dict[str, Any]:
    """The answer in one; a call's arguments are an object here, so that they cannot be broken."""
    went_in, out, kept = answer.usage
    content = [
        {name: value for name, value in block.items() if name != "raw"}
        | ({"input": json.loads(block["raw"])} if "raw" in block else {})
        for block in _anthropic_blocks(answer)
    ]
    usage = {"input_tokens": went_in - kept, "cache_read_input_tokens": kept, "output_tokens": out}
    stop = _stop(answer, "end_turn", "tool_use")
    return {
        "type": "message",
        "role": "assistant",
        "model": "model-1",
        "content": content,
        "stop_reason": stop,
        "usage": usage,
    }


# -- generateContent -------------------------------------------------------------------------------


def _gemini_parts(answer: Answer, words: bool) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if answer.thought:
        parts += [
            {"text": word, "thought": True}
            for word in (_words(answer.thought) if words else [answer.thought])
        ]
    for number, part in enumerate(answer.parts):
        if isinstance(part, str):
            parts += [{"text": word} for word in (_words(part) if words else [part])]
        else:
            name, raw = _call(part)
            call = {"name": name, "args": json.loads(raw)} | (
                {"id": f"fc_{number}"} if answer.ids else {}
            )
            parts.append(
                {"functionCall": call} | ({"thoughtSignature": "SIGNED"} if answer.thought else {})
            )
    return parts


def _gemini(parts: list[dict[str, Any]], answer: Answer, stop: str = "") -> dict[str, Any]:
    went_in, out, kept = answer.usage
    usage = {
        "promptTokenCount": went_in,
        "candidatesTokenCount": out - 1,
        "thoughtsTokenCount": 1,
        "cachedContentTokenCount": kept,
    }
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if stop:
        candidate["finishReason"] = stop
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "model-1"}


def gemini_streamed(answer: Answer) -> list[bytes]:
    """The pieces of an answer."""
    parts = _gemini_parts(answer, True)
    return [
        *(event(_gemini([part], answer)) for part in parts),
        event(_gemini([{"text": ""}], answer, answer.stop or "STOP")),
    ]


def gemini_whole(answer: Answer) -> dict[str, Any]:
    """The answer in one."""
    return _gemini(_gemini_parts(answer, False), answer, answer.stop or "STOP")


STREAMED = {"openai": openai_streamed, "anthropic": anthropic_streamed, "gemini": gemini_streamed}
WHOLE = {"openai": openai_whole, "anthropic": anthropic_whole, "gemini": gemini_whole}
