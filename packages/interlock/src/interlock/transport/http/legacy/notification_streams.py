"""The notification stream of a session: changes as events of a GET stream (2025-11-25, "Listening
for Messages").

Its event IDs are positions in the topic of changes, so that a client can resume it at any worker
without losing events.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from interlock import types as t
from interlock.exchange import Exchange, Handler, Principal
from interlock.logs import limited
from interlock.meta_keys import POSITION, SINCE
from interlock.store.errors import StoreError
from interlock.store.interface import Session
from interlock.wire import jsonrpc
from interlock.wire.codec import encode
from interlock.wire.revisions import speaks, supports
from interlock.wire.sse import event

from ..authorization import ExpiryTimer
from ..responses import ResponseWriter
from ..shutdown import Shutdown

log = limited("interlock.server")

CHANGES = "changes."
"""The prefix of the event IDs of these streams."""


_NONE: frozenset[str] = frozenset()


class NotificationStream:
    """One notification stream. Its listening exchange starts again whenever the session's
    subscriptions change.

    Attributes:
        session: The session at the start of the current exchange.
        reply: The response.
        token: The name of this stream among all streams of the session.
        announced: Whether the other workers know of it. Their later announcements are newer then.
        received: Done once this worker has received its own announcement.
    """

    __slots__ = (
        "_handler",
        "_missed",
        "_on_close",
        "_primed",
        "_principal",
        "_shutdown",
        "_since",
        "_task",
        "_term",
        "announced",
        "received",
        "reply",
        "session",
        "token",
    )

    def __init__(
        self,
        handler: Handler,
        shutdown: Shutdown,
        session: Session,
        principal: Principal | None,
        reply: ResponseWriter,
        since: str | None,
        on_close: Callable[[NotificationStream], None],
    ) -> None:
        """`since` is the position that the client resumes from. `on_close` is called once the
        stream has ended.
        """
        self.session = session
        self.reply = reply
        self.token = os.urandom(8).hex()
        self.announced = False
        self.received: asyncio.Future[None] | None = None
        self._handler = handler
        self._shutdown = shutdown
        self._principal = principal
        self._since = since
        self._on_close = on_close
        self._task: asyncio.Task[None] | None = None
        self._term = None if principal is None else ExpiryTimer(principal, self.stop)
        self._primed = False
        self._missed: frozenset[str] = _NONE  # subscribed to since the exchange has started

    def start(self, session: Session) -> None:
        """Listen to the current subscriptions of the session."""
        if self._task is not None:
            self._task.cancel()
            self._missed |= frozenset(session.subscriptions) - frozenset(self.session.subscriptions)
        self.session = session
        # One name for all: asyncio would make one for each.
        work = self._listen(session)
        self._task = asyncio.get_running_loop().create_task(work, name="notifications")

    def stop(self) -> None:
        """End the stream. Its client may open another one."""
        if self._task is not None:
            self._task.cancel()
        self.reply.close()

    def close(self) -> None:
        """Clean up after the stream has ended."""
        if self._term is not None:
            self._term.over()
        self._on_close(self)
        self.reply.lose()
        self.stop()

    async def _listen(self, session: Session) -> None:
        caller = session.caller(self._principal)
        wanted = t.SubscriptionFilter(
            tools_list_changed=True,
            prompts_list_changed=True,
            resources_list_changed=True,
            resource_subscriptions=list(session.subscriptions) or None,
        )
        meta = t.NOTHING if self._since is None else Raw(msgspec.json.encode({SINCE: self._since}))
        params = t.SubscriptionsListenRequestParams(notifications=wanted, meta=meta)
        exchange = Exchange(
            "subscriptions/listen", params, caller, notify=self._notify, drain=self.reply.drain
        )
        try:
            await self._handler(exchange)
        except t.McpError:
            pass  # a client that is not allowed to listen gets a silent stream
        except StoreError:
            self.reply.close()  # the missed changes are unknown now; the client resumes later
        except Exception:
            log.exception("the notifications of a session failed")
            self.reply.close()
        else:
            if exchange.params is params and self._shutdown.is_draining:
                self.reply.close()

    def _notify(self, method: str, params: Any) -> None:
        meta: dict[str, Any] = msgspec.json.decode(params.meta)
        position = str(meta.get(POSITION, ""))
        if method == "notifications/subscriptions/acknowledged":
            missed = self._missed
            self._missed = _NONE
            if not position:
                # A gateway has no positions to resume from, so the missed changes are unknown.
                for uri in missed.intersection(params.notifications.resource_subscriptions or ()):
                    changed = t.ResourceUpdatedNotificationParams(uri=uri)
                    self._notify("notifications/resources/updated", changed)
            if not self._primed and position:
                self._primed = True
                if self._since is None:  # otherwise the missed changes still have to be sent
                    self._since = position
                if supports(self.session.revision, "primed_streams"):
                    self.reply.push(event(b"", id=f"{CHANGES}{self._since}"))
            return
        if not speaks(self.session.revision, method):
            return
        self._since = position or self._since
        frame = jsonrpc.notification(
            method, encode(replace(params, meta=t.NOTHING), self.session.revision)
        )
        self.reply.push(event(frame, id=f"{CHANGES}{position}" if position else None))
