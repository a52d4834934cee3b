"""Retries: the requests that may be sent again after a lost connection, because they are read-only
or idempotent.
"""

from __future__ import annotations

from interlock import types as t
from interlock.exchange import AnyResult, Exchange, RawResult

MOST_TRIES = 3  # attempts for one request
MOST_UNAVAILABLE_TRIES = 8  # attempts for an answer to a question, while the server has status 503
_METHODS = frozenset(
    {
        "server/discover",
        "ping",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
        "resources/read",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/get",
        "tasks/list",
        "tasks/result",
        "tasks/update",
        "tasks/cancel",
    }
)


def is_harmless(tool: t.Tool) -> bool:
    """Whether a tool declares itself read-only or idempotent."""
    hints = tool.annotations
    return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)


class RetryRules:
    """The knowledge about one server: its lists of tools say which tools may be called again.

    Args:
        allowed: Whether retries are enabled.
    """

    def __init__(self, *, allowed: bool = True) -> None:
        self._allowed = allowed
        self._harmless: set[str] = set()

    def learn(self, result: AnyResult) -> None:
        """Record the annotations in a list of tools."""
        if isinstance(result, RawResult):
            result = result.read or result
        if isinstance(result, t.ListToolsResult):
            for tool in result.tools:
                if is_harmless(tool):
                    self._harmless.add(tool.name)
                else:
                    self._harmless.discard(tool.name)

    def may(self, x: Exchange) -> bool:
        """Whether a lost request may be sent again."""
        if not self._allowed:
            return False
        return x.method in _METHODS or (
            x.method == "tools/call" and x.params.name in self._harmless
        )
