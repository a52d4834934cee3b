"""The expiry of sessions: which ones are prolonged, and which calls end with their session."""

from __future__ import annotations

from interlock.store import MemoryStore
from interlock.store.worker_messages import WorkerMessages
from interlock.testing.contracts.sessions import session
from interlock.transport.http.legacy.session_expiry import _MOST_WAIT, SessionExpiry
from interlock.transport.http.limits import Limits

NOW = 1e9


async def test_a_call_ends_soon_after_its_session() -> None:
    """A clock that was ahead for a moment has ended the session: its client was told so, and does
    not answer the question of the call.
    """
    store = MemoryStore()
    messages = WorkerMessages(store)
    ended: list[str] = []
    messages.on("ended", lambda session, _: ended.append(session))
    expiry = SessionExpiry(store, Limits(), messages)
    expiry.add_active(lambda: ["gone", "there"])
    for id in ("gone", "there"):
        await store.sessions.create(session(id, created=NOW), most=9, now=NOW)
    await store.sessions.end("gone")
    await expiry._check(NOW + 1)
    assert ended == ["gone"]
    assert _MOST_WAIT <= 15.0  # seconds, half of what a client waits for an answer


async def test_sessions_in_use_are_seldom_written() -> None:
    """Each check reads a session; it is prolonged once its end is off by a twentieth."""
    store = MemoryStore()
    expiry = SessionExpiry(store, Limits(idle_seconds=1000.0), WorkerMessages(store))
    expiry.add_active(lambda: ["s"])
    await store.sessions.create(session("s", created=NOW), most=9, now=NOW)
    await store.sessions.prolong("s", NOW + 1000.0)
    ends: list[float] = []
    for seconds in (15, 30, 45, 60, 75):
        await expiry._check(NOW + seconds)
        kept = await store.sessions.load("s", now=NOW)
        assert kept is not None
        ends.append(kept.until - NOW)
    assert ends == [1000.0, 1000.0, 1000.0, 1060.0, 1060.0]
