"""Retries: the requests that may be sent again after they were lost, because they only read."""

from __future__ import annotations

from interlock import types as t
from interlock.exchange import AnyResult, Exchange, RawResult

MOST_TRIES = 3  # of one request
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
    }
)


def is_harmless(tool: t.Tool) -> bool:
    """Whether a tool says that it only reads, or that calling it twice is as calling it once."""
    hints = tool.annotations
    return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)


class RetryRules:
    """What is known of one server: its lists say which tools may be called again.

    Args:
        allowed: Whether anything may be sent again at all.
    """

    def __init__(self, *, allowed: bool = True) -> None:
        self._allowed = allowed
        self._harmless: set[str] = set()

    def learn(self, result: AnyResult) -> None:
        """Note what a list of tools says."""
        if isinstance(result, RawResult):
            result = result.read or result
        if isinstance(result, t.ListToolsResult):
            for tool in result.tools:
                if is_harmless(tool):
                    self._harmless.add(tool.name)
                else:
                    self._harmless.discard(tool.name)

    def may(self, x: Exchange) -> bool:
        """Whether a request that was lost may be sent again."""
        if not self._allowed:
            return False
        return x.method in _METHODS or (
            x.method == "tools/call" and x.params.name in self._harmless
        )
