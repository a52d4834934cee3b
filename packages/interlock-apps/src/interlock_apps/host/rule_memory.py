"""Remembered decisions: the person's answers as rules, which can be saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from ..fleet.event_bus import EventBus
from ..fleet.events import Notice, RuleRemembered
from ..fleet.policy import Policy, Rule


class RuleMemory:
    """Adds rules to a policy, and saves those that always hold.

    Args:
        policy: The policy.
        events: Where a remembered rule is published.
        save: Called with all saved rules whenever one is added or removed; None: nothing is saved.
    """

    def __init__(
        self,
        policy: Policy,
        events: EventBus,
        save: Callable[[Sequence[Rule]], None] | None,
    ) -> None:
        self._policy = policy
        self._events = events
        self._save = save

    def remember(self, rule: Rule, how: Literal["session", "always"], *, session: str) -> None:
        """Remember a rule after an answer in a conversation."""
        self._policy.remember(rule, how)
        self._events.publish(RuleRemembered(session=session, rule=rule, remember=how))
        if how == "always":
            self._save_all()

    def forget(self, rule: Rule) -> bool:
        """Remove a remembered rule; return whether it existed."""
        found = self._policy.forget(rule)
        if found:
            self._save_all()
        return found

    def _save_all(self) -> None:
        if self._save is None:
            return
        try:
            self._save(self._policy.saved)
        except OSError as bad:
            words = f"Your decision could not be saved and is valid until the host ends: {bad}"
            self._events.publish(Notice(level="warning", words=words))
