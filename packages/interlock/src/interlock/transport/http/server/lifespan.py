"""The ASGI lifespan of an app: its startup before the first request, and its shutdown after the
last.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ....logs import limited

log = limited("interlock.server")


class LifespanApp:
    """An ASGI app that is opened and closed through its lifespan, if it has one.

    Attributes:
        state: The state that the app has set in its lifespan.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._answer: asyncio.Future[str] | None = None
        self._task: asyncio.Task[None] | None = None
        self.state: dict[str, Any] = {}

    async def open(self) -> None:
        """Start the app.

        Raises:
            RuntimeError: The app reports that it cannot start.
        """
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run())
        if words := await self._send_to_app("lifespan.startup"):
            raise RuntimeError(f"the app did not start: {words}")

    async def drain(self, grace: float) -> None:
        """Do nothing: the app gets no message before its requests have ended."""

    async def aclose(self) -> None:
        """Shut the app down. You can call it twice."""
        task = self._task
        if task is None:
            return
        self._task = None
        if not task.done():
            self._task = task
            if words := await self._send_to_app("lifespan.shutdown"):
                log.error("the app did not end well: %s", words)
            self._task = None
        await asyncio.wait({task})

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one ASGI connection."""
        await self._app(scope, receive, send)

    async def _send_to_app(self, kind: str) -> str:
        """Send a message to the app, and wait for its answer. Returns the app's error message, if
        it failed.
        """
        task = self._task
        assert task is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._messages.put_nowait({"type": kind})
        waiting: set[asyncio.Future[Any]] = {task, self._answer}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return self._answer.result() if self._answer.done() else ""

    async def _run(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": self.state}
        try:
            await self._app(scope, self._messages.get, self._send)
        except Exception:
            # By the ASGI specification, an app that raises here has no lifespan.
            if self._answer is not None and self._answer.done():
                log.exception("the lifespan of the app failed")

    async def _send(self, message: Any) -> None:
        if self._answer is not None and not self._answer.done():
            failed = message["type"].endswith(".failed")
            words = str(message.get("message", "")) or "it does not say why"
            self._answer.set_result(words if failed else "")
