"""Tool calls, from the request over approval, execution and threat scan to the review."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from interlock import CallToolResult, InterlockError

from ..fleet import threat_scan
from ..fleet.event_bus import EventBus
from ..fleet.events import CallEnded, CallProposed, TaskEnded
from ..fleet.questions import ResultQuestion, Warned
from .call_approval import Approval, CallApproval
from .call_request import CallOutcome, CallRequest
from .call_runner import CallRunner
from .consent import Consents
from .done_calls import DoneCalls
from .file_copies import FileCopies
from .loaded_skills import LoadedSkills
from .prompter import Prompter

MOST_SCANNING = 0.5  # seconds for the threat scan of one result

_Approve = Callable[[CallRequest], Awaitable[Approval]]
_Run = Callable[[CallRequest, dict[str, Any]], Awaitable[CallOutcome]]


class ToolCalls:
    """Runs calls, all in the same steps."""

    def __init__(
        self,
        approval: CallApproval,
        runner: CallRunner,
        skills: LoadedSkills,
        prompter: Prompter,
        events: EventBus,
        consents: Consents,
        copies: FileCopies,
        done: DoneCalls,
        folders_of: Callable[[str], Sequence[str]],
    ) -> None:
        self._consents = consents
        self._copies = copies
        self._done = done
        self._folders_of = folders_of
        self._approval = approval
        self._runner = runner
        self._skills = skills
        self._prompter = prompter
        self._events = events
        # Not the loop's time: uvloop's clock stands still during an iteration, so all calls
        # answered in one iteration would seem to take as long as the longest.
        self.clock: Callable[[], float] = time.perf_counter

    async def call(self, request: CallRequest) -> CallOutcome:
        """Call a tool. Every error is returned as an outcome; only cancellation is raised."""
        return await self._carry_out(request, self._approval.approve, self._runner.call)

    async def read(self, request: CallRequest) -> CallOutcome:
        """Read a resource for a model. It is approved and scanned like a call."""
        return await self._carry_out(request, self._approval.approve, self._runner.read)

    async def load_skill(self, request: CallRequest) -> CallOutcome:
        """Load a skill for a model. The person is asked unless its current form is approved."""
        run = _skill_runner(self._skills.load)
        return await self._carry_out(request, self._approval.approve_skill, run)

    async def read_skill(self, request: CallRequest) -> CallOutcome:
        """Read a file of a loaded skill from the skill's own server."""
        run = _skill_runner(self._skills.read)
        return await self._carry_out(request, self._approval.approve_skill_file, run)

    async def _carry_out(self, request: CallRequest, approve: _Approve, run: _Run) -> CallOutcome:
        item = request.item
        self._events.publish(
            CallProposed(
                session=request.session,
                call=request.call,
                name=item.name,
                server=item.server,
                tool=item.tool.name,
                title=threat_scan.visible(item.tool.label),
                arguments=request.arguments,
                by=request.by,
            )
        )
        began: float | None = None
        try:
            approval = await approve(request)
            if approval.refusal:
                return CallOutcome(None, approval.refusal)
            if words := await self._events.why_not_logged():
                unmade = CallOutcome(None, words)
                self._publish_end(request, unmade, None)
                return unmade
            trusted = self._approval.is_trusted(item)
            self._done.add(request, trusted, approval.by)
            copies = await self._before(request, approval.arguments, trusted)
            began = self.clock() - self._prompter.asked_seconds(request.call)
            try:
                outcome = await run(request, approval.arguments)
            finally:
                over = self.clock()
                await self._copies.after(request, copies)
            warnings = await self._scan(outcome.result)
        except asyncio.CancelledError:
            self._publish_end(request, CallOutcome(None, "Cancelled."), began)
            raise
        self._publish_end(request, outcome, began, over, warnings)
        self._taint(request, warnings)
        if outcome.goes_on:  # the result of the task is reviewed
            return outcome
        if outcome.result is None or not self._approval.wants_review(request, approval.arguments):
            return outcome
        return await self._review(request, outcome.result, warnings)

    async def end_task(
        self, request: CallRequest, arguments: dict[str, Any], outcome: CallOutcome
    ) -> TaskEnded:
        """Scan and review the outcome of a task like that of a call, and publish it."""
        warnings = await self._scan(outcome.result)
        if outcome.result is not None and self._approval.wants_review(request, arguments):
            outcome = await self._review(request, outcome.result, warnings)
        ended = TaskEnded(
            session=request.session,
            call=request.call,
            server=request.item.server,
            tool=request.item.tool.name,
            result=outcome.result,
            error=threat_scan.visible(f"{outcome.words} {outcome.said}".strip()),
            warnings=warnings,
        )
        self._events.publish(ended)
        self._taint(request, warnings)
        return ended

    async def _before(
        self, request: CallRequest, arguments: dict[str, Any], trusted: bool
    ) -> tuple[Any, ...]:
        """Keep copies of the files that a call may change, if it may change any here."""
        if self._approval.reads_only(request, trusted) or not self._approval.is_local(request.item):
            return ()
        folders = self._folders_of(request.item.server)
        return await self._copies.before(request, arguments, folders)

    def _taint(self, request: CallRequest, warnings: tuple[Warned, ...]) -> None:
        """Taint the conversation if the result of its call has orders to the model."""
        if warnings and request.session:
            consent = self._consents.of(request.session)
            consent.tainted(request.call, request.item.server, request.item.tool.name)

    async def _scan(self, result: CallToolResult | None) -> tuple[Warned, ...]:
        """Scan a result for prompt injection, with pauses for other tasks and a time limit."""
        if result is None:
            return ()
        found: dict[str, Warned] = {}
        until = self.clock() + MOST_SCANNING
        for number, warnings in enumerate(threat_scan.in_result(result)):
            for warned in warnings:
                found.setdefault(warned.kind, warned)
            if number:
                await asyncio.sleep(0)
                if self.clock() > until:
                    break
        return tuple(found.values())

    def _publish_end(
        self,
        request: CallRequest,
        outcome: CallOutcome,
        began: float | None,
        over: float | None = None,
        warnings: tuple[Warned, ...] = (),
    ) -> None:
        """Publish the end of a call. `began` is None if it never started; `over` is now if None."""
        asked = self._prompter.forget_seconds(request.call)  # time of questions does not count
        seconds = 0.0
        if began is not None:
            seconds = round((over or self.clock()) - asked - began, 3)
        self._events.publish(
            CallEnded(
                session=request.session,
                call=request.call,
                server=request.item.server,
                tool=request.item.tool.name,
                result=outcome.result,
                error=threat_scan.visible(f"{outcome.words} {outcome.said}".strip()),
                seconds=seconds,
                warnings=warnings,
            )
        )

    async def _review(
        self, request: CallRequest, result: CallToolResult, warnings: tuple[Warned, ...]
    ) -> CallOutcome:
        """Let the person review a result before the model gets it."""
        item = request.item
        question = ResultQuestion(
            id=self._prompter.new_id(),
            server=item.server,
            session=request.session,
            call=request.call,
            warnings=warnings,
            tool=item.tool.name,
            title=threat_scan.visible(item.tool.label),
            result=result,
        )
        decision = await self._prompter.decide(question)
        if not decision.allow:
            words = f"The user withheld the result. {decision.reason}".strip()
            return CallOutcome(None, words)
        return CallOutcome(result if decision.result is None else decision.result)


def _skill_runner(read: Callable[[CallRequest], Awaitable[CallToolResult]]) -> _Run:
    """Return a function that runs a call that reads a skill."""

    async def run(request: CallRequest, _: dict[str, Any]) -> CallOutcome:
        try:
            return CallOutcome(await read(request))
        except InterlockError as bad:
            return CallOutcome(None, "The skill cannot be used.", str(bad))

    return run
