"""Approval of calls: rules, pins and the person decide whether a call may be made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from interlock.schema import SchemaError
from interlock.schema import compile as compile_schema
from interlock.types import Tool

from ..fleet import threat_scan
from ..fleet.event_bus import EventBus
from ..fleet.events import CallDecided, CallEnded
from ..fleet.hub import Hub
from ..fleet.policy import Choice, Policy, Verdict, rule_for
from ..fleet.questions import Answer, CallQuestion, Decision, NotAnswered, Warned
from ..fleet.toolbox import ServerTool, Toolbox, UnknownTool
from .call_request import CallRequest
from .feature_approvals import FeatureApprovals
from .loaded_skills import LoadedSkills
from .loop.builtin_tools import OF_SERVERS, RESOURCE_TOOL
from .prompter import Prompter
from .rule_memory import RuleMemory

MOST_PROBLEMS = 5
TRIES = 5  # attempts at editing arguments that do not match the schema

_AGAIN = (
    "The tool could not ask you its question, and the server was started again so that it can. "
    "What the tool did before its question may happen a second time."
)


class Approval(Struct, frozen=True):
    """Whether a call may be made.

    Attributes:
        arguments: The arguments to call with; the person may have edited them.
        refusal: Why it may not be made, in words for the model; "" where it may.
    """

    arguments: dict[str, Any]
    refusal: str = ""


class _OpenQuestion(Struct):
    """A call whose question is open. `verdict` or `gone` say why the question was withdrawn."""

    request: CallRequest
    arguments: dict[str, Any]
    trusted: bool
    verdict: Verdict | None = None
    gone: str = ""


class CallApproval:
    """Decides about calls, and publishes each decision."""

    def __init__(
        self,
        hub: Hub,
        toolbox: Toolbox,
        policy: Policy,
        rules: RuleMemory,
        features: FeatureApprovals,
        skills: LoadedSkills,
        prompter: Prompter,
        events: EventBus,
    ) -> None:
        self._hub = hub
        self._toolbox = toolbox
        self._policy = policy
        self._rules = rules
        self._features = features
        self._skills = skills
        self._prompter = prompter
        self._events = events
        self._open: dict[str, _OpenQuestion] = {}  # by the id of the question

    # -- tools -----------------------------------------------------------------------------------

    async def approve(self, request: CallRequest) -> Approval:
        """Decide about a call: by a rule if one applies, otherwise by asking the person."""
        item = request.item
        arguments = request.arguments
        if moved := self.why_gone(item):
            return self._refuse(request, arguments, "pin", moved)
        if problems := argument_problems(item.tool, arguments):
            return self._refuse(request, arguments, "host", problems)
        trusted = self._is_trusted(item)
        verdict = self._judge(request, arguments, trusted)
        if verdict.decision == "deny":
            return self._refuse(request, arguments, "rule", verdict.why)
        if verdict.decision == "allow":
            self._publish_allowed(request, "rule", verdict.why)
            return Approval(arguments)
        return await self._ask(request, verdict, trusted)

    async def approve_repeat(
        self, request: CallRequest, arguments: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Decide whether a call may be repeated after the server could not ask its question.

        The tool ran up to its question, so a repetition can have side effects twice. It is repeated
        only if a trusted server says that this is harmless, or if the person says so.

        Returns:
            The arguments of the second call; None if there is no second call.
        """
        item = request.item
        if self.why_gone(item):
            return None
        hints = item.tool.annotations
        says_harmless = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
        trusted = self._is_trusted(item)
        if trusted and says_harmless:
            return arguments
        flags = self._threats(item)
        question = self._question(
            request,
            arguments,
            warnings=(Warned(kind="again", words=_AGAIN), *flags),
            verdict=Verdict(decision="ask", why="it is called a second time", may_remember=False),
            trusted=trusted,
            flagged=bool(flags),
        )
        decision = await self._prompter.ask(question)
        if not isinstance(decision, Decision) or not decision.allow or self.why_gone(item):
            return None
        if decision.arguments is None:
            return arguments
        edited = decision.arguments
        verdict = self._policy.judge(item.server, item.tool, edited, trusted, request.session)
        if verdict.decision == "deny" or argument_problems(item.tool, edited):
            return None
        return edited

    def wants_review(self, request: CallRequest, arguments: Mapping[str, Any]) -> bool:
        """Return whether a rule requires the person to review the result of a call."""
        item = request.item
        trusted = self._is_trusted(item)
        verdict = self._policy.judge(item.server, item.tool, arguments, trusted, request.session)
        return verdict.review

    def why_gone(self, item: ServerTool) -> str:
        """Return why a tool differs from when it was chosen, or may not be called; else ""."""
        if item.name in OF_SERVERS:
            return ""
        server = self._hub.servers.get(item.server)
        if server is None:
            return f"{item.name} is no longer there: the server {item.server} was removed."
        try:
            now = self._toolbox.find(item.name)
        except UnknownTool:
            if server.state in ("off", "refused"):
                return f"The server {item.server} is stopped."
            return f"{item.name} is no longer there."
        if now.blocked:
            return now.blocked
        if now.tool != item.tool:
            return f"{item.name} has changed since it was chosen. Look at it again."
        return ""

    # -- skills ----------------------------------------------------------------------------------

    async def approve_skill(self, request: CallRequest) -> Approval:
        """Decide about loading a skill: the approval is for its content, not for the call."""
        approval = self._approve_by_rules(request)
        if approval.refusal:
            return approval
        words, by = await self._skills.admit(request)
        if words:
            return self._refuse(request, approval.arguments, by, words)
        self._publish_allowed(request, by)
        return approval

    async def approve_skill_file(self, request: CallRequest) -> Approval:
        """Decide about reading a file of a skill, which was approved with the skill."""
        approval = self._approve_by_rules(request)
        if not approval.refusal:
            self._publish_allowed(
                request, "pin", "only files of a skill that you approved are read"
            )
        return approval

    def _approve_by_rules(self, request: CallRequest) -> Approval:
        """Reject arguments that do not match the schema, and calls that a rule denies."""
        item = request.item
        arguments = request.arguments
        if problems := argument_problems(item.tool, arguments):
            return self._refuse(request, arguments, "host", problems)
        trusted = self._is_trusted(item)
        verdict = self._policy.judge(item.server, item.tool, arguments, trusted, request.session)
        if verdict.decision == "deny":
            return self._refuse(request, arguments, "rule", verdict.why)
        return Approval(arguments)

    # -- asking the person -------------------------------------------------------------------------

    async def _ask(self, request: CallRequest, verdict: Verdict, trusted: bool) -> Approval:
        item = request.item
        arguments = request.arguments
        threats = self._threats(item)
        warnings = threats
        problems = ""
        for _ in range(TRIES):
            question = self._question(
                request,
                arguments,
                warnings=warnings,
                verdict=verdict,
                trusted=trusted,
                flagged=bool(threats),
            )
            opened = self._open[question.id] = _OpenQuestion(request, arguments, trusted)
            try:
                decision = await self._prompter.ask(question)
            finally:
                del self._open[question.id]
            if opened.verdict is not None:
                return self._decided_by_rule(request, arguments, opened.verdict)
            if opened.gone:
                return self._refuse(request, arguments, "pin", opened.gone)
            if not isinstance(decision, Decision) or not decision.allow:
                return self._not_allowed(request, arguments, verdict, decision)
            if gone := self.why_gone(item):  # the tool may have changed while the question was open
                return self._refuse(request, arguments, "pin", gone)
            if decision.arguments is not None:
                arguments = decision.arguments
            again = self._policy.judge(item.server, item.tool, arguments, trusted, request.session)
            if again.decision == "deny":
                return self._refuse(request, arguments, "rule", again.why)
            problems = argument_problems(item.tool, arguments)
            if not problems:
                self._allow(request, arguments, verdict, decision, remember=not threats)
                return Approval(arguments)
            warnings = (Warned(kind="invalid", words=problems), *threats)
        edited = problems.replace("The arguments", "The edited arguments", 1)
        return self._refuse(request, arguments, "host", edited)

    def _allow(
        self,
        request: CallRequest,
        arguments: dict[str, Any],
        verdict: Verdict,
        decision: Decision,
        *,
        remember: bool,
    ) -> None:
        """Allow a call. An answer about a flagged tool is not remembered."""
        if remember:
            self._remember(request, verdict, decision, "allow")
        edited = arguments if arguments != request.arguments else None
        self._publish_allowed(request, "person", verdict.why, edited)

    def _not_allowed(
        self,
        request: CallRequest,
        arguments: dict[str, Any],
        verdict: Verdict,
        answer: Answer,
    ) -> Approval:
        if isinstance(answer, Decision):
            self._remember(request, verdict, answer, "deny")
            words = f"The user denied this call. {answer.reason}".strip()
            return self._refuse(request, arguments, "person", words)
        words = getattr(answer, "words", "") or "no answer"
        return self._refuse(request, arguments, "nobody", f"This call was not allowed: {words}")

    def _question(
        self,
        request: CallRequest,
        arguments: dict[str, Any],
        *,
        warnings: tuple[Warned, ...],
        verdict: Verdict,
        trusted: bool,
        flagged: bool,
    ) -> CallQuestion:
        item = request.item
        tool = item.tool
        return CallQuestion(
            id=self._prompter.new_id(),
            server=item.server,
            session=request.session,
            call=request.call,
            warnings=warnings,
            tool=tool.name,
            title=threat_scan.visible(tool.label),
            description=threat_scan.visible(tool.description or ""),
            arguments=dict(arguments),
            input_schema=tool.input_schema,
            annotations=tool.annotations,
            trusted=trusted,
            by=request.by,
            why=verdict.why,
            flagged=flagged,
            may_remember=verdict.may_remember and not flagged,
        )

    # -- open questions ----------------------------------------------------------------------------

    def release(self) -> None:
        """Decide again about calls whose questions are open, and withdraw questions that are moot.

        A newly remembered rule decides about equal calls. A call of a tool that is gone or has
        changed is refused.
        """
        for question, waiting in list(self._open.items()):
            item = waiting.request.item
            gone = self.why_gone(item)
            if item.tool is RESOURCE_TOOL and item.server not in self._hub.servers:
                gone = f"The server {item.server} was removed."
            if gone:
                waiting.gone = gone
                self._prompter.withdraw(question, NotAnswered(words=gone))
                continue
            verdict = self._judge(waiting.request, waiting.arguments, waiting.trusted)
            allowed = verdict.decision == "allow"
            if allowed and argument_problems(item.tool, waiting.arguments):
                continue  # the arguments were edited, and the person is asked again
            if verdict.decision != "ask":
                waiting.verdict = verdict
                self._prompter.withdraw(question, Decision(allow=allowed, reason=verdict.why))

    def _decided_by_rule(
        self, request: CallRequest, arguments: dict[str, Any], verdict: Verdict
    ) -> Approval:
        """Apply a rule that was remembered while the question about a call was open."""
        if verdict.decision == "deny":
            return self._refuse(request, arguments, "rule", verdict.why)
        if gone := self.why_gone(request.item):
            return self._refuse(request, arguments, "pin", gone)
        self._publish_allowed(request, "rule", verdict.why)
        return Approval(arguments)

    def _remember(
        self, request: CallRequest, verdict: Verdict, decision: Decision, choice: Choice
    ) -> None:
        if decision.remember == "once" or not verdict.may_remember:
            return
        rule = rule_for(
            request.item.server,
            request.item.tool,
            decision=choice,
            session=request.session if decision.remember == "session" else "",
            reason="your decision",
        )
        self._rules.remember(rule, decision.remember, session=request.session)
        self.release()

    # -- judging ---------------------------------------------------------------------------------

    def _judge(self, request: CallRequest, arguments: Mapping[str, Any], trusted: bool) -> Verdict:
        """The decision of the rules. A call that a loaded skill may have caused is asked about."""
        item = request.item
        verdict = self._policy.judge(item.server, item.tool, arguments, trusted, request.session)
        if verdict.decision != "allow":
            return verdict
        hints = item.tool.annotations
        is_believed = trusted or item.name in OF_SERVERS
        reads_only = is_believed and hints is not None and bool(hints.read_only_hint)
        why = self._skills.why_asked(request, reads_only)
        if not why:
            return verdict
        return Verdict(decision="ask", why=threat_scan.visible(why), review=verdict.review)

    def _is_trusted(self, item: ServerTool) -> bool:
        server = self._hub.servers.get(item.server)
        return server is not None and server.entry.trusted

    def _threats(self, item: ServerTool) -> tuple[Warned, ...]:
        """The threat scan's warnings about a tool, alone and beside other servers' tools."""
        found = (*threat_scan.of_tool(item.tool), *self._features.warnings_of(item))
        return tuple({(each.kind, each.where): each for each in found}.values())

    def _publish_allowed(
        self,
        request: CallRequest,
        by: str,
        why: str = "",
        arguments: dict[str, Any] | None = None,
    ) -> None:
        self._events.publish(
            CallDecided(
                session=request.session,
                call=request.call,
                allow=True,
                by=by,
                why=why,
                arguments=arguments,
            )
        )

    def _refuse(
        self, request: CallRequest, arguments: dict[str, Any], by: str, why: str
    ) -> Approval:
        self._events.publish(
            CallDecided(session=request.session, call=request.call, allow=False, by=by, why=why)
        )
        self._events.publish(
            CallEnded(
                session=request.session,
                call=request.call,
                server=request.item.server,
                tool=request.item.tool.name,
                error=why,
            )
        )
        return Approval(arguments, why)


def argument_problems(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with arguments by the tool's schema, in words for the model; else "".

    If the schema cannot be used, the tool checks them itself.
    """
    try:
        found = compile_schema(tool.input_schema).check(dict(arguments))
    except SchemaError:
        return ""
    if not found:
        return ""
    problems = "; ".join(
        f"{wrong.path or 'arguments'}: {wrong.message}" for wrong in found[:MOST_PROBLEMS]
    )
    return f"The arguments do not fit the tool: {problems}"
