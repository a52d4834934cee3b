"""Fallback to an older revision for servers that can ask questions only under a revision of the
handshake era.

With the official Python SDK 2.3 and FastMCP 4.1, a tool that asks by a request (elicitation,
sampling, roots) fails under 2026-07-28: the revision has no such requests, and these libraries do
not turn them into results. Under 2025-11-25 the same server can ask.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from .. import types as t
from ..logs import limited
from ..transport.http.client.retries import is_harmless
from ..wire.revisions import INPUT_REQUIRED_METHODS

log = limited("interlock.client")
R = TypeVar("R", bound=t.Result)

MayRepeat = Callable[[t.CallToolRequestParams], bool | Awaitable[bool]]
"""Decides whether a partly executed call may be repeated, although its tool is not declared
idempotent.
"""

# seconds that the other running requests have to end before the client reconnects
_PATIENCE = 60.0
_LONGEST = 2_000  # characters of an error that are searched
# The error messages of the Python SDK 2.x (also as the error of a tool) and of FastMCP 4.x.
_WORDS = re.compile(
    r"has no back-channel for server-initiated requests"
    r"|via server-initiated requests is unavailable on \d{4}-\d\d-\d\d connections"
)


def lacks_back_channel(outcome: t.Result | t.McpError) -> bool:
    """Whether a request failed because the server cannot ask under a revision of the stateless
    era.
    """
    if isinstance(outcome, t.McpError):
        return _WORDS.search(outcome.message[:_LONGEST]) is not None
    if isinstance(outcome, t.CallToolResult) and outcome.is_error:
        return _WORDS.search(outcome.text[:_LONGEST]) is not None
    return False


class BackChannel:
    """Detects that a server cannot ask under the current revision, and switches the client to an
    older one.

    Args:
        older: The older revision.
        can_ask: Whether the current revision has server requests.
        reopen: Reconnects under a revision, and returns the new value of `can_ask`. No other
            request runs meanwhile.
        tools: Lists the tools, for their annotations.
        say: Sends a message to the user.
        may_repeat: See MayRepeat; None to repeat no such call.
        goes_back: Whether the client switches by itself. Otherwise it only records that the server
            cannot ask.
    """

    def __init__(
        self,
        older: str,
        *,
        can_ask: Callable[[], bool],
        reopen: Callable[[str], Awaitable[bool]],
        tools: Callable[[], Awaitable[list[t.Tool]]],
        say: Callable[[str], None],
        may_repeat: MayRepeat | None,
        goes_back: bool,
    ) -> None:
        self.older = older
        self.missing = False
        self._can_ask = can_ask
        self._reopen = reopen
        self._tools = tools
        self._say = say
        self._may_repeat = may_repeat
        self._goes_back = goes_back
        self._busy = 0
        self._idle = asyncio.Event()
        self._switching: asyncio.Task[bool] | None = None
        self._is_reopening = False

    async def carry(self, method: str, params: Any, send: Callable[[], Awaitable[R]]) -> R:
        """Send a request. Repeat it under the older revision if the server could not ask and a
        repetition is safe.

        Args:
            method: The method.
            params: The params.
            send: Sends the request under the revision of that moment.

        Raises:
            Whatever `send` raises.
        """
        if self._is_reopening and asyncio.current_task() is not self._switching:
            await self._switched()
        could_ask = self._can_ask()
        self._busy += 1
        outcome: R | t.McpError
        try:
            outcome = await send()
        except t.McpError as bad:
            outcome = bad
        finally:
            self._busy -= 1
            if not self._busy:
                self._idle.set()
        asks = method in INPUT_REQUIRED_METHODS and not could_ask
        if asks and lacks_back_channel(outcome):
            self.missing = True
            if self._goes_back and await self._switched():
                is_safe = await self._is_safe(method, params)
                self._say(self._notice(method, params, is_safe=is_safe))
                if is_safe:
                    return await send()
        if isinstance(outcome, t.McpError):
            raise outcome
        return outcome

    async def aclose(self) -> None:
        """Cancel a switch to the older revision."""
        task = self._switching
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.wait({task})

    async def _switched(self) -> bool:
        """Wait until the client is open under the older revision. Returns whether it is.

        Raises whatever opening it raises.
        """
        if self._switching is None:
            self._switching = asyncio.get_running_loop().create_task(self._switch())
        switching = self._switching
        await asyncio.wait({switching})
        if switching.cancelled():
            raise t.Unreachable("The client was closed.")
        return switching.result()

    async def _switch(self) -> bool:
        """Reconnect as soon as no other request is running, because other calls must not be
        interrupted.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                while self._busy:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            self._switching = None  # the next failed call tries again
            return False
        self._is_reopening = True
        try:
            return await self._reopen(self.older)
        except BaseException:
            self._switching = None  # a client that is opened again may switch again
            raise
        finally:
            self._is_reopening = False

    async def _is_safe(self, method: str, params: Any) -> bool:
        """Whether a partly executed request may run again."""
        if method != "tools/call":
            return True  # prompts and resources are read-only
        try:
            tools = await self._tools()
        except t.InterlockError as bad:
            log.info("the annotations of the tools are not known: %s", bad)
            tools = []
        if any(tool.name == params.name and is_harmless(tool) for tool in tools):
            return True
        if self._may_repeat is None:
            return False
        answer = self._may_repeat(params)
        return bool(await answer if inspect.isawaitable(answer) else answer)

    def _notice(self, method: str, params: Any, *, is_safe: bool) -> str:
        """Return the message for the user: what happened, and what to do."""
        words = f"The server can ask questions only under {self.older} or an older revision. "
        named = f"The call of {params.name}" if method == "tools/call" else method
        if is_safe:
            return f"{words}The client uses that revision from now on. {named} is sent again."
        return (
            f"{words}The client uses that revision from now on. {named} is not sent "
            "again, because the tool is not declared idempotent. Call it again if it may "
            "run twice."
        )
