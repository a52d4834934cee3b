"""The POSTs of sessions whose calls run on this worker, by session, by request and by stream."""

from __future__ import annotations

from collections.abc import Callable

from interlock import types as t

from ....store.worker_messages import WorkerMessages
from ...serve import Serving
from ..responses import ResponseWriter


class InFlightPost:
    """A POST whose calls run: its serving, and the writer of its response.

    Attributes:
        name: The name of its stream; None if it cannot be resumed.
        ids: The IDs of its requests.
        release: Releases what it holds of the quotas.
    """

    __slots__ = ("ids", "name", "release", "reply", "serving")

    def __init__(
        self,
        serving: Serving,
        reply: ResponseWriter,
        name: str | None,
        ids: list[t.RequestId],
        release: Callable[[], object],
    ) -> None:
        self.serving = serving
        self.reply = reply
        self.name = name
        self.ids = ids
        self.release = release


class InFlightPosts:
    """All POSTs with running calls on this worker."""

    def __init__(self, messages: WorkerMessages) -> None:
        self._messages = messages
        self._by_session: dict[str, set[InFlightPost]] = {}
        self._by_request: dict[tuple[str, t.RequestId], InFlightPost] = {}

    def add(self, session: str, post: InFlightPost) -> None:
        """Add a POST. Requests without a session ("") may have any IDs."""
        if session:
            self._by_request.update(((session, id), post) for id in post.ids)
        self._by_session.setdefault(session, set()).add(post)

    def discard(self, session: str, post: InFlightPost) -> None:
        """Remove a POST whose calls are all answered."""
        for id in post.ids:
            if self._by_request.get((session, id)) is post:
                del self._by_request[session, id]
        posts = self._by_session.get(session)
        if posts is not None and post in posts:
            posts.discard(post)
            post.release()
            if not posts:
                del self._by_session[session]

    def clear(self) -> None:
        """Remove all POSTs."""
        for session in list(self._by_session):
            for post in self.of(session):
                self.discard(session, post)

    def of(self, session: str) -> list[InFlightPost]:
        """Return the POSTs of a session."""
        return list(self._by_session.get(session, ()))

    @property
    def sessions(self) -> set[str]:
        """Return the sessions that have a POST."""
        return set(self._by_session)

    def servings(self) -> list[Serving]:
        """Return all servings."""
        return [post.serving for posts in self._by_session.values() for post in posts]

    def calls(self, session: str) -> int:
        """Return the number of running requests of a session."""
        posts = self._by_session.get(session)
        return sum(len(post.ids) for post in posts) if posts else 0

    def is_open(self, session: str, id: t.RequestId) -> bool:
        """Whether a request is neither answered nor cancelled."""
        post = self._by_request.get((session, id))
        return post is not None and post.serving.connection.is_open(id)

    def writer(self, session: str, stream: str) -> InFlightPost | None:
        """Return the POST that writes a stream."""
        return next((post for post in self.of(session) if post.name == stream), None)

    def is_ours(self, stream: str) -> bool:
        """Whether this worker has opened a stream."""
        return stream.partition(".")[0] == self._messages.worker

    async def is_written(self, session: str, stream: str) -> bool:
        """Whether a living worker may still write a stream."""
        if self.is_ours(stream):
            return self.writer(session, stream) is not None
        return await self._messages.is_alive(stream.partition(".")[0])
