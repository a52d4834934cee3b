"""Remembered decisions: the person's answers as rules, which can be saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec.structs import replace

from ..fleet.event_bus import EventBus
from ..fleet.events import Notice, PolicyEdited, RuleRemembered
from ..fleet.policy import Policy, Rule
from ..fleet.policy_file import PolicyFile, difference, with_rule
from ..fleet.rulebook import BadPolicy, read_policy


class RuleMemory:
    """Adds rules to a policy, and saves those that always hold.

    Args:
        policy: The policy.
        events: Where a remembered rule is published.
        save: Called with all saved rules whenever one is added or removed; None: nothing is saved.
        file: The policy file; None: the written rules cannot be changed.

    Attributes:
        file: The policy file.
        changed: Called after a change of the written rules, which may decide about open questions.
    """

    def __init__(
        self,
        policy: Policy,
        events: EventBus,
        save: Callable[[Sequence[Rule]], None] | None,
        file: PolicyFile | None = None,
    ) -> None:
        self.file = file
        self.changed: Callable[[], None] = lambda: None
        self._policy = policy
        self._events = events
        self._save = save

    def remember(self, rule: Rule, how: Literal["session", "always"], *, session: str) -> None:
        """Remember a rule after an answer in a conversation."""
        self._policy.remember(rule, how)
        self._events.publish(RuleRemembered(session=session, rule=rule, remember=how))
        if how == "always":
            self._save_all()

    def write(self, rule: Rule, *, session: str) -> None:
        """Add a rule to the policy file after an answer in a conversation.

        Without a policy file, or if it cannot be written, the rule is remembered for always.
        """
        if self.file is None:
            self.remember(rule, "always", session=session)
            return
        try:
            before = self.file.read()
            self.edit(before, with_rule(before, replace(rule, session="", digest="")))
        except BadPolicy as bad:
            words = f"The rule is not in the policy file, but is remembered: {bad}"
            self._events.publish(Notice(level="warning", words=words))
            self.remember(rule, "always", session=session)

    def edit(self, before: str, after: str) -> None:
        """Replace the text of the policy file, and use its rules from now on.

        Args:
            before: The text that the change was made from.
            after: The new text.

        Raises:
            BadPolicy: There is no policy file, it has changed meanwhile, or the text is no policy.
        """
        if self.file is None:
            raise BadPolicy("This host has no policy file: start it with --policy FILE")
        self.file.write(before, after)
        self._policy.adopt(read_policy(after, str(self.file.path)))
        lines = tuple(difference(before, after))
        self._events.publish(PolicyEdited(path=str(self.file.path), lines=lines))
        self.changed()

    def reload(self) -> str:
        """Use the policy file as it is now, after an edit by hand; return its text.

        Raises:
            BadPolicy: There is no policy file, or it cannot be used. The rules stay as they are.
        """
        if self.file is None:
            raise BadPolicy("This host has no policy file: start it with --policy FILE")
        text = self.file.read()
        now = read_policy(text, str(self.file.path))
        known = self._policy
        if (now.rules, now.review, now.default, now.trusted_read_only) != (
            known.rules,
            known.review,
            known.default,
            known.trusted_read_only,
        ):
            known.adopt(now)
            self.changed()
        return text

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
