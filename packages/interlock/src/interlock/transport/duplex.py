"""A client's transport over any channel of frames."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from .. import types as t
from ..exchange import AnyResult, Exchange
from ..protocol.opening import Opened
from ..wire.jsonrpc import Frame
from .channel import Channel, Tap, pump
from .conversation import Conversation, Hello


class Duplex:
    """Sends exchanges over one channel, and closes it at the end. `tap` is called with every
    frame.
    """

    def __init__(self, channel: Channel, *, tap: Tap | None = None) -> None:
        self.channel = channel
        self.tap = tap
        self._conversation: Conversation | None = None
        self._pump: asyncio.Task[None] | None = None

    async def open(self, hello: Hello) -> Opened:
        """Negotiate a revision with the server."""
        return await self.start().open(hello)

    def start(self) -> Conversation:
        """Start to receive without sending anything."""
        self._conversation = Conversation(
            self.channel.send if self.tap is None else self._send_tapped
        )
        self._pump = asyncio.create_task(self._receive(self._conversation))
        return self._conversation

    async def __call__(self, exchange: Exchange) -> AnyResult:
        """Send one exchange and return its result."""
        if self._conversation is None:
            raise t.Unreachable("The connection was not opened.")
        return await self._conversation.carry(exchange)

    def send_notification(self, method: str, params: Any) -> None:
        """Send a notification that belongs to no request."""
        if self._conversation is not None:
            self._conversation.send_notification(method, params)

    def pause_timeout(self) -> contextlib.AbstractContextManager[None]:
        """Pause the timeouts of all waiting calls."""
        return (
            contextlib.nullcontext()
            if self._conversation is None
            else self._conversation.pause_timeout()
        )

    @property
    def is_broken(self) -> bool:
        """Whether no more responses can arrive, although this side has not closed the
        connection.
        """
        return self._conversation is not None and self._conversation.broken is not None

    def hang_up(self, why: t.Unreachable) -> None:
        """Fail all waiting requests with a reason: no more responses can arrive, although the
        channel has not ended.
        """
        if self._conversation is not None:
            self._conversation.fail_all(why)

    async def aclose(self) -> None:
        """Close the channel and the connection."""
        conversation = self._conversation
        self._conversation = None
        if conversation is not None:
            conversation.flush()
            await conversation.close(t.Unreachable("The client was closed."))
        await self.channel.aclose()
        if self._pump is not None:
            self._pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._pump

    def _send_tapped(self, frames: list[Frame]) -> None:
        if self.tap is not None:
            for frame in frames:
                self.tap("client", frame)
        self.channel.send(frames)

    async def _receive(self, conversation: Conversation) -> None:
        why: Exception = t.Unreachable("The server has closed the connection.")

        def receive(frames: list[Frame]) -> None:
            nonlocal why
            for frame in frames:
                if self.tap is not None:
                    self.tap("server", frame)
                conversation.receive(frame)
            if lost := self.channel.lost:  # the frame may have been the response of any call
                why = t.Unreachable(f"A message of the server was lost: {lost}.")
                conversation.fail_all(why)

        try:
            await pump(self.channel, receive, patient=False)
        except Exception as bad:
            why = t.Unreachable(f"The connection to the server broke: {bad}")
            why.__cause__ = bad
        finally:
            await conversation.close(why)
