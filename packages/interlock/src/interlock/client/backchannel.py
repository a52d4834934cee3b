"""Servers that can ask questions only under a revision of the handshake era, and how a client goes
back to one for them.

The official Python SDK 2.3 and FastMCP 4.1 speak 2026-07-28, but a tool of theirs that asks by a
request of its own (elicitation, sampling, roots) fails there: that revision has no such requests,
and they do not turn them into results. The same server asks well under 2025-11-25.
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
"""Asked whether a call that failed half way may be made again, though its tool does not say that
this does no harm.
"""

# seconds in which the other requests under way have to end before the client is opened anew
_PATIENCE = 60.0
_LONGEST = 2_000  # characters of an error that are looked at
# The words of the Python SDK 2.x, as an error or within that of a tool, and those of FastMCP 4.x.
_WORDS = re.compile(
    r"has no back-channel for server-initiated requests"
    r"|via server-initiated requests is unavailable on \d{4}-\d\d-\d\d connections"
)


def lacks_back_channel(outcome: t.Result | t.McpError) -> bool:
    """Whether a request failed because the server cannot ask under the revision of the stateless
    era.
    """
    if isinstance(outcome, t.McpError):
        return _WORDS.search(outcome.message[:_LONGEST]) is not None
    if isinstance(outcome, t.CallToolResult) and outcome.is_error:
        return _WORDS.search(outcome.text[:_LONGEST]) is not None
    return False


class BackChannel:
    """Notices that a server cannot ask under the revision that is spoken, and takes the client back
    to an older one.

    Args:
        older: The older revision to go back to.
        can_ask: Whether the revision that is spoken now has requests of the server.
        reopen: Opens the client anew under a revision, and returns what `can_ask` is then. Nothing
            else is under way meanwhile.
        tools: Lists the tools, for what they say of themselves.
        say: Tells the user something, in words.
        may_repeat: See MayRepeat; None: nobody is asked.
        goes_back: Whether the client goes back by itself; otherwise it is only noticed.
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
        """Send a request; once more under the older revision where the server could not ask and it
        does no harm.

        Args:
            method: Its method.
            params: Its params.
            send: Sends it, under the revision of that time.

        Raises:
            What `send` raises.
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
        """Give up going back."""
        task = self._switching
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.wait({task})

    async def _switched(self) -> bool:
        """Wait until the client is open under the older revision; whether it is.

        Raises what opening it raises.
        """
        if self._switching is None:
            self._switching = asyncio.get_running_loop().create_task(self._switch())
        switching = self._switching
        await asyncio.wait({switching})
        if switching.cancelled():
            raise t.Unreachable("The client was closed.")
        return switching.result()

    async def _switch(self) -> bool:
        """Open the client anew as soon as nothing else is under way:

        other calls must not be cut off.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                while self._busy:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            self._switching = None  # the next call that fails tries again
            return False
        self._is_reopening = True
        try:
            return await self._reopen(self.older)
        except BaseException:
            self._switching = None  # whoever opens the client again finds out anew
            raise
        finally:
            self._is_reopening = False

    async def _is_safe(self, method: str, params: Any) -> bool:
        """Whether a request that has run half way may run again."""
        if method != "tools/call":
            return True  # prompts and resources are only read
        try:
            tools = await self._tools()
        except t.InterlockError as bad:
            log.info("what the tools say of themselves is not known: %s", bad)
            tools = []
        if any(tool.name == params.name and is_harmless(tool) for tool in tools):
            return True
        if self._may_repeat is None:
            return False
        answer = self._may_repeat(params)
        return bool(await answer if inspect.isawaitable(answer) else answer)

    def _notice(self, method: str, params: Any, *, is_safe: bool) -> str:
        """What happened, and what the user has to do."""
        words = f"The server can ask questions only under {self.older} or an older revision. "
        named = f"The call of {params.name}" if method == "tools/call" else method
        if is_safe:
            return f"{words}It is used under that one from now on. {named} is sent again."
        return (
            f"{words}It is used under that one from now on. {named} is not sent again, because the "
            "tool does not say that this does no harm; call it again if it may run twice."
        )
