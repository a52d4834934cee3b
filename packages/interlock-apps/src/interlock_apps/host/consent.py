"""The consent of each conversation: its mode, its approved plan, its bounds, and its taint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from interlock.models.interface import Usage
from interlock.types import Tool

from ..fleet.argument_paths import paths_in
from ..fleet.events import ConsentChanged, Event, ModeChanged, TaintCleared, Tainted
from ..fleet.patterns import under
from ..fleet.pins import digest_of
from ..fleet.questions import PlanStep

Mode = Literal["ask", "read", "plan", "bounds"]
MODES: Mapping[Mode, str] = {
    "ask": "Ask about every call that no rule allows",
    "read": "Run read-only tools of trusted servers, ask about the rest",
    "plan": "Let the model plan first, and run what you approve",
    "bounds": "Run calls without asking until a bound is reached",
}


class Bounds(Struct, frozen=True, kw_only=True, rename="camel"):
    """The bounds within which calls of a conversation run without a question.

    Attributes:
        calls: The number of such calls.
        seconds: The time in seconds since the bounds were set.
        tokens: The tokens that the model uses, input and output, since the bounds were set.
        cost: The price of those tokens in US dollars, for models whose price is known.
        folders: The folders that calls may name. None: any folder, also none.
        destructive: Whether calls run whose tool says that it is destructive.
    """

    calls: int | None = 20
    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None
    folders: tuple[str, ...] | None = None
    destructive: bool = False


class Taint(Struct, frozen=True, kw_only=True, rename="camel"):
    """The result that made a conversation tainted: the call and its tool."""

    call: str
    server: str
    tool: str


class _ApprovedStep(Struct):
    """An approved step of a plan: the digest of its tool, and how many calls are left."""

    step: PlanStep
    digest: str
    left: int


class ConversationConsent:
    """What the user has decided for one conversation.

    Attributes:
        mode: Which calls run without a question.
        chosen: Whether the user chose the mode; otherwise the policy alone decides.
        bounds: The bounds of the mode "bounds".
        calls: The calls that ran because of the bounds.
        tokens: The tokens used since the bounds were set.
        cost: Their price in US dollars, as far as it is known.
        unpriced: Whether an answer has no known price.
        taint: The result with orders to the model, until the user clears it.
    """

    def __init__(
        self,
        session: str,
        mode: Mode,
        publish: Callable[[Event], None],
        changed: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self.mode: Mode = mode
        self.chosen = False
        self.bounds = Bounds()
        self.calls = 0
        self.tokens = 0
        self.cost = 0.0
        self.unpriced = False
        self.taint: Taint | None = None
        self._session = session
        self._publish = publish
        self._changed = changed
        self._clock = clock
        self._since = clock()
        self._plan: list[_ApprovedStep] = []

    # -- what the user decides ---------------------------------------------------------------------

    def choose(self, mode: Mode, bounds: Bounds | None = None) -> None:
        """Choose the mode. Bounds are counted from zero, and an approved plan ends."""
        if mode not in MODES:
            raise ValueError(f"There is no mode {mode}. Modes: {', '.join(MODES)}.")
        self.mode = mode
        self.chosen = True
        if bounds is not None:
            self.bounds = bounds
        self._plan.clear()
        self._publish(
            ModeChanged(
                session=self._session,
                mode=mode,
                bounds=self.bounds if mode == "bounds" else None,
            )
        )
        self.renew()

    def renew(self) -> None:
        """Count the bounds from zero again."""
        self.calls = 0
        self.tokens = 0
        self.cost = 0.0
        self.unpriced = False
        self._since = self._clock()
        self.publish()
        self._changed()

    def approve(self, steps: Sequence[tuple[PlanStep, Tool]]) -> None:
        """Approve steps of a plan, in addition to those that were approved before."""
        self._plan += [_ApprovedStep(step, digest_of(tool), step.times) for step, tool in steps]
        self.publish()
        self._changed()

    def clear_taint(self) -> bool:
        """Let the rules decide again about calls that write; return whether that is a change."""
        if self.taint is None:
            return False
        self.taint = None
        self._publish(TaintCleared(session=self._session))
        self.publish()
        self._changed()
        return True

    # -- what happens ------------------------------------------------------------------------------

    def restore_taint(self, taint: Taint | None) -> None:
        """Restore the taint of a conversation that is resumed."""
        self.taint = taint

    def tainted(self, call: str, server: str, tool: str) -> None:
        """Record that the model gets a result with orders to it."""
        if self.taint is not None:
            return
        self.taint = Taint(call=call, server=server, tool=tool)
        self._publish(Tainted(session=self._session, call=call, server=server, tool=tool))
        self.publish()
        self._changed()

    def used(self, usage: Usage, cost: float | None) -> None:
        """Count the tokens of an answer of the model, and their price if it is known."""
        self.tokens += usage.input + usage.output
        self.cost += cost or 0.0
        self.unpriced = self.unpriced or cost is None
        if self.mode == "bounds":
            self.publish()

    # -- what it allows ----------------------------------------------------------------------------

    def planned(self, name: str, tool: Tool, arguments: Mapping[str, Any]) -> bool:
        """Whether an approved step of the plan covers a call."""
        return self._step(name, tool, arguments) is not None

    def beyond(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Return what keeps a call from being within the bounds, in words; "" if nothing does.

        The second value says whether that is a count, which the user may renew.
        """
        bounds = self.bounds
        if bounds.calls is not None and self.calls >= bounds.calls:
            return f"The bound of {bounds.calls} calls is reached.", True
        if bounds.seconds is not None and self.seconds >= bounds.seconds:
            return f"The bound of {bounds.seconds:g} seconds is reached.", True
        if bounds.tokens is not None and self.tokens >= bounds.tokens:
            return f"The bound of {bounds.tokens:,} tokens is reached.", True
        if bounds.cost is not None and self.cost >= bounds.cost:
            return f"The bound of ${bounds.cost:g} is reached.", True
        if bounds.cost is not None and self.unpriced:
            return (
                "The price of the model is not known, so the bound in dollars does not hold.",
                True,
            )
        if not bounds.destructive and says_destructive(tool):
            return "The tool says that it is destructive.", False
        if bounds.folders is None:
            return "", False
        for path in paths_in(arguments):
            if not any(under(path.value, folder) for folder in bounds.folders):
                words = f"{path.value} is not known to be in the folders of the bounds."
                return words, False
        return "", False

    def take(self, by: str, name: str, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Count a call that the plan or the bounds have allowed."""
        if by == "bounds":
            self.calls += 1
            self.publish()
        elif by == "plan" and (found := self._step(name, tool, arguments)) is not None:
            found.left -= 1
            self.publish()

    def used_in_words(self) -> str:
        """What was used of the bounds, in words."""
        bounds = self.bounds
        parts = [f"{self.calls} of {bounds.calls} calls" if bounds.calls else f"{self.calls} calls"]
        if bounds.seconds is not None:
            parts.append(f"{self.seconds:.0f} of {bounds.seconds:g} seconds")
        if bounds.tokens is not None:
            parts.append(f"{self.tokens:,} of {bounds.tokens:,} tokens")
        if bounds.cost is not None:
            parts.append(f"${self.cost:.2f} of ${bounds.cost:g}")
        if bounds.folders is not None:
            parts.append(f"in {', '.join(bounds.folders) or 'no folder'}")
        return ", ".join(parts)

    @property
    def seconds(self) -> float:
        """The time in seconds since the bounds were set."""
        return self._clock() - self._since

    @property
    def left(self) -> int:
        """The number of calls that the approved plan still covers."""
        return sum(each.left for each in self._plan)

    def publish(self) -> None:
        """Publish the state for user interfaces."""
        self._publish(ConsentChanged(session=self._session, consent=self.state()))

    def state(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        taint = self.taint
        bounds = self.bounds
        return {
            "mode": self.mode,
            "bounds": {
                "calls": bounds.calls,
                "seconds": bounds.seconds,
                "tokens": bounds.tokens,
                "cost": bounds.cost,
                "folders": None if bounds.folders is None else list(bounds.folders),
                "destructive": bounds.destructive,
            },
            "calls": self.calls,
            "tokens": self.tokens,
            "cost": round(self.cost, 4),
            "seconds": round(self.seconds, 1),
            "planned": self.left,
            "taint": None if taint is None else {"server": taint.server, "tool": taint.tool},
        }

    def _step(self, name: str, tool: Tool, arguments: Mapping[str, Any]) -> _ApprovedStep | None:
        if self.mode != "plan":
            return None
        return next(
            (
                each
                for each in self._plan
                if each.left > 0
                and fits(each.step, name, arguments)
                and each.digest == digest_of(tool)
            ),
            None,
        )


class Consents:
    """The consent of every conversation.

    Args:
        mode: The mode of a new conversation.
        publish: Receives events.
        clock: The time in seconds.

    Attributes:
        mode: The mode of a new conversation.
        changed: Called after a change that may decide about open questions.
    """

    def __init__(
        self, mode: Mode, publish: Callable[[Event], None], clock: Callable[[], float]
    ) -> None:
        self.mode: Mode = mode
        self._publish = publish
        self._clock = clock
        self._of: dict[str, ConversationConsent] = {}
        self.changed: Callable[[], None] = lambda: None

    def of(self, session: str) -> ConversationConsent:
        """Return the consent of a conversation."""
        found = self._of.get(session)
        if found is None:
            found = self._of[session] = ConversationConsent(
                session, self.mode, self._publish, lambda: self.changed(), self._clock
            )
        return found

    def end(self, session: str) -> None:
        """Forget a conversation that has ended."""
        self._of.pop(session, None)


def fits(step: PlanStep, name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a call is what a step of a plan says: this tool, with the planned values.

    Arguments that the step leaves open may have any value, or none.
    """
    if step.name != name:
        return False
    planned = {key: value for key, value in step.arguments.items() if key not in step.open}
    given = {key: value for key, value in arguments.items() if key not in step.open}
    return _same(planned, given)


def _same(one: Any, other: Any) -> bool:
    """Equality of JSON values: 1 is not true."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def says_destructive(tool: Tool) -> bool:
    """Whether a tool says of itself that it is destructive, which is believed of any server."""
    return tool.annotations is not None and tool.annotations.destructive_hint is True
