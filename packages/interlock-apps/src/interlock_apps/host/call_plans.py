"""Plans: the calls that a model intends to make, which the user approves as a whole or in part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlock.types import Tool

from ..fleet import threat_scan
from ..fleet.questions import Answer, Decision, PlanQuestion, PlanStep
from ..fleet.toolbox import Toolbox, UnknownTool
from .consent import Consents
from .feature_approvals import FeatureApprovals
from .prompter import Prompter

MOST_STEPS = 100
MOST_TIMES = 50
MOST_WORDS = 500  # characters of what a step is for

NOT_NOW = (
    "The user does not plan now. Make the calls; the user is asked about each call that no rule "
    "decides."
)
PLAN_FIRST = (
    "The user wants to see a plan before anything is done. First call interlock__plan with the "
    "calls that you intend to make. The calls that the user approves run as planned; about every "
    "other call the user is asked. If you need more calls later, plan again."
)
"""What the system prompt says in the mode "plan"."""


class BadPlan(ValueError):
    """A plan that cannot be shown to the user; the message is for the model."""


class CallPlans:
    """Brings the plans of models to the user."""

    def __init__(
        self,
        toolbox: Toolbox,
        features: FeatureApprovals,
        prompter: Prompter,
        consents: Consents,
    ) -> None:
        self._toolbox = toolbox
        self._features = features
        self._prompter = prompter
        self._consents = consents

    async def propose(self, session: str, arguments: Mapping[str, Any]) -> str:
        """Ask the user about a plan, and return what the model gets.

        Raises:
            BadPlan: The plan has no steps, or a step cannot be made.
        """
        consent = self._consents.of(session)
        if consent.mode != "plan":
            return NOT_NOW
        steps, tools = self._read(arguments)
        question = PlanQuestion(id=self._prompter.new_id(), session=session, steps=tuple(steps))
        answer = await self._prompter.ask(question)
        chosen = _chosen(steps, answer)
        approved = []
        changed = []
        for at in chosen:
            if self._tool(steps[at].name) == tools[at]:
                approved.append(at)
            else:
                changed.append(at)
        if self._consents.of(session).mode == "plan":
            consent.approve([(steps[at], tools[at]) for at in approved])
        return _outcome(steps, approved, changed, answer)

    def _read(self, arguments: Mapping[str, Any]) -> tuple[list[PlanStep], list[Tool]]:
        listed = arguments.get("steps")
        if not isinstance(listed, list) or not listed:
            raise BadPlan("A plan needs `steps`, a list with at least one call.")
        if len(listed) > MOST_STEPS:
            raise BadPlan(f"A plan has at most {MOST_STEPS} steps.")
        steps = []
        tools = []
        for number, each in enumerate(listed, 1):
            step, tool = self._step(number, each)
            steps.append(step)
            tools.append(tool)
        return steps, tools

    def _step(self, number: int, given: Any) -> tuple[PlanStep, Tool]:
        if not isinstance(given, dict):
            raise BadPlan(f"Step {number} is not an object.")
        name = str(given.get("tool", ""))
        arguments = given.get("arguments", {})
        later = given.get("open", [])
        times = given.get("times", 1)
        if not isinstance(arguments, dict):
            raise BadPlan(f"Step {number}: `arguments` must be an object.")
        if not isinstance(later, list) or not all(isinstance(each, str) for each in later):
            raise BadPlan(f"Step {number}: `open` must be a list of names of arguments.")
        if not isinstance(times, int) or isinstance(times, bool) or not 1 <= times <= MOST_TIMES:
            raise BadPlan(f"Step {number}: `times` must be from 1 to {MOST_TIMES}.")
        try:
            item = self._toolbox.find(name)
        except UnknownTool as bad:
            raise BadPlan(f"Step {number}: {bad}") from None
        if item.blocked or not item.for_model:
            raise BadPlan(f"Step {number}: {item.blocked or f'{name} is not for models to call.'}")
        step = PlanStep(
            name=name,
            server=item.server,
            tool=item.tool.name,
            title=threat_scan.visible(item.tool.label),
            arguments=arguments,
            open=tuple(dict.fromkeys(later)),
            times=times,
            why=threat_scan.visible(str(given.get("why", ""))[:MOST_WORDS]),
            warnings=(*threat_scan.of_tool(item.tool), *self._features.warnings_of(item)),
        )
        return step, item.tool

    def _tool(self, name: str) -> Tool | None:
        try:
            return self._toolbox.find(name).tool
        except UnknownTool:
            return None


def _chosen(steps: Sequence[PlanStep], answer: Answer) -> list[int]:
    """The steps that the user approves."""
    if not isinstance(answer, Decision) or not answer.allow:
        return []
    if answer.only is None:
        return [at for at, step in enumerate(steps) if not step.warnings]
    return sorted({at for at in answer.only if 0 <= at < len(steps)})


def _outcome(
    steps: Sequence[PlanStep],
    approved: Sequence[int],
    changed: Sequence[int],
    answer: Answer,
) -> str:
    """What the model gets: which steps are approved."""
    reason = getattr(answer, "reason", "") or getattr(answer, "words", "")
    if not approved:
        words = "The user did not approve the plan."
    elif len(approved) == len(steps):
        words = "The user approved the whole plan. Make the calls as planned."
    else:
        numbers = ", ".join(str(at + 1) for at in approved)
        words = f"The user approved these steps, and no others: {numbers}."
    if changed:
        numbers = ", ".join(str(at + 1) for at in changed)
        words += f" The tools of these steps have changed meanwhile: {numbers}."
    if reason:
        words += f" The user says: {reason}"
    return words
