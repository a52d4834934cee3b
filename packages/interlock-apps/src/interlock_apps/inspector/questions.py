"""Questions of servers that wait for an answer: elicitation, sampling and roots."""

from __future__ import annotations

from typing import Any

from interlock import Answers

from .events import Publish


class ConnectionQuestions:
    """The questions of one connection.

    Args:
        connection: The name of the connection.
        publish: Publishes an event to the pages.
    """

    def __init__(self, connection: str, publish: Publish) -> None:
        self._connection = connection
        self._publish = publish

    @property
    def answers(self) -> Answers:
        """The functions that answer the questions, for a client."""
        return Answers()

    def state(self) -> list[dict[str, Any]]:
        """The questions that wait for an answer, as JSON values, oldest first."""
        return []

    def cancel(self) -> None:
        """Cancel the waiting questions, because the connection ends."""
