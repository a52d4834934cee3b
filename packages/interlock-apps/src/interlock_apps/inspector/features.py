"""The features of one connection: what the panels use, and what a reload of the page must show
again.
"""

from __future__ import annotations

from typing import Any

from interlock.types import Tool

from .authorization import ServerAuthorization
from .calls import StartedCalls
from .events import Publish
from .questions import ConnectionQuestions
from .subscriptions import Subscriptions

MOST_TASKS = 200


class ConnectionFeatures:
    """The state of the feature panels of one connection.

    Args:
        connection: The name of the connection.
        url: The URL of the server; "" if it is not reached by one.
        account: The account of the stored login.
        publish: Publishes an event to the pages.

    Attributes:
        authorization: The login of the server.
        calls: The tool calls.
        subscriptions: The subscriptions.
        tools: The tools, as the server listed them last.
        tasks: The ids of the tasks that the user knows at the server, oldest first.
    """

    def __init__(self, connection: str, url: str, account: str, publish: Publish) -> None:
        self.authorization = ServerAuthorization(connection, url, publish, account=account)
        self.calls = StartedCalls(connection, publish)
        self.subscriptions = Subscriptions(connection, publish)
        self.tools: dict[str, Tool] = {}
        self.tasks: dict[str, None] = {}

    def remember_task(self, id: str) -> None:
        """Keep the id of a task, for the list of tasks."""
        self.tasks[id] = None
        while len(self.tasks) > MOST_TASKS:
            del self.tasks[next(iter(self.tasks))]

    def state(self, questions: ConnectionQuestions) -> dict[str, Any]:
        """The state as JSON values."""
        return {
            "calls": self.calls.state(),
            "subscriptions": self.subscriptions.state(),
            "rules": questions.rules,
            "roots": questions.roots,
            "authorization": self.authorization.state(),
        }
