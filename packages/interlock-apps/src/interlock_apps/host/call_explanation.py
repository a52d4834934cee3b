"""What would happen to a call: the decision, the reasons, and the rules behind it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..fleet.policy import Rule


class CallExplanation(Struct, frozen=True, kw_only=True, rename="camel"):
    """What would happen to a call.

    Attributes:
        decision: "blocked" if the call could not be made at all, otherwise that of the rules.
        why: The reason, in words.
        by: What decides: "rule", "mode", "plan", "bounds", "pin" or "host".
        rule: The rule that decides; None if none does.
        matching: All rules that fit the call; the strictest decides.
        risk: Why the advised answer is no; "" if nothing is known.
    """

    decision: Literal["allow", "ask", "deny", "blocked"]
    why: str
    by: str = "rule"
    rule: Rule | None = None
    matching: tuple[Rule, ...] = ()
    risk: str = ""
