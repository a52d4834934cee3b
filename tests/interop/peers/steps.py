"""The common part of the client programs: it reads steps as JSON lines, and writes the results of
each step as one line.

A step is `{"do": NAME, "with": {...}, "answers": {...}, "until": N}`: the action and its arguments,
the answers to the server's questions in the meantime, and the number of server messages that must
arrive before the step ends. The answer line has `saw` (the result of the call) or `error`, and the
messages `heard` and the questions `asked` since the previous step. A list of answers is used up one
after the other.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

PATIENCE = 20
"""Seconds after which an unfinished step is given up."""


class Steps:
    """The conversation with the test: received messages and questions, and the answers to give."""

    def __init__(self) -> None:
        self.heard: list[list[Any]] = []
        self.asked: list[list[Any]] = []
        self.answers: dict[str, Any] = {}
        self._stirred = anyio.Event()

    def hear(self, method: str, params: Any) -> None:
        """Record a notification of the server."""
        self.heard.append([method, plain(params)])
        self._stirred.set()

    def answer(self, method: str, params: Any) -> Any:
        """Record a question of the server; return the step's answer to it."""
        self.asked.append([method, plain(params)])
        answer = self.answers.get(method)
        return answer.pop(0) if isinstance(answer, list) and answer else answer

    async def first(self) -> dict[str, Any]:
        """The first step, which names the server and the transport."""
        return await self._next() or sys.exit("nothing to do")

    async def play(self, do: Callable[[str, dict[str, Any]], Awaitable[Any]]) -> None:
        """Report that the conversation is open, then run all steps in order."""
        self._say(saw="open")
        while step := await self._next():
            self.answers = step.get("answers", {})
            try:
                with anyio.fail_after(PATIENCE):
                    saw = plain(await do(step["do"], step.get("with", {})))
                    await self._wait_for(step.get("until", 0))
                self._say(saw=saw)
            except Exception as bad:
                error = getattr(bad, "error", bad)
                kind = type(bad).__name__
                code = getattr(error, "code", None)
                self._say(
                    error={
                        "kind": kind,
                        "code": code,
                        "message": str(bad),
                        "data": plain(getattr(error, "data", None)),
                    }
                )

    async def _next(self) -> Any:
        line = await anyio.to_thread.run_sync(sys.stdin.readline)
        return json.loads(line) if line else None

    async def _wait_for(self, count: int) -> None:
        while len(self.heard) < count:
            self._stirred = anyio.Event()
            await self._stirred.wait()

    def _say(self, **line: Any) -> None:
        print(json.dumps({**line, "heard": self.heard, "asked": self.asked}), flush=True)
        self.heard = []
        self.asked = []


def plain(value: Any) -> Any:
    """The JSON of a model of the SDK."""
    if hasattr(value, "model_dump"):
        return value.model_dump(by_alias=True, mode="json", exclude_none=True)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value
