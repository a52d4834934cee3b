"""Approval of calls: rules, pins and the person decide whether a call may be made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from interlock.schema import SchemaError
from interlock.schema import compile as compile_schema
from interlock.types import Tool

from ..fleet import threat_scan
from ..fleet.answer_scopes import ScopedRule, scopes_of
from ..fleet.event_bus import EventBus
from ..fleet.events import CallDecided, CallEnded
from ..fleet.hub import Hub
from ..fleet.pins import digest_of
from ..fleet.policy import Choice, Policy, Verdict, rule_for
from ..fleet.questions import (
    Answer,
    AnswerScope,
    CallQuestion,
    Decision,
    NotAnswered,
    Warned,
)
from ..fleet.rule_text import rule_toml
from ..fleet.toolbox import ServerTool, Toolbox, UnknownTool
from .call_explanation import CallExplanation
from .call_request import CallRequest
from .call_risk import risk_of
from .consent import Consents, Taint
from .feature_approvals import FeatureApprovals
from .loaded_skills import LoadedSkills
from .loop.builtin_tools import OF_SERVERS, RESOURCE_TOOL
from .prompter import Prompter
from .roots import GrantedRoots
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
        by: What allowed it: "rule", "person", "plan" or "bounds".
    """

    arguments: dict[str, Any]
    refusal: str = ""
    by: str = "rule"


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
        consents: Consents,
        roots: GrantedRoots,
    ) -> None:
        self._hub = hub
        self._toolbox = toolbox
        self._policy = policy
        self._rules = rules
        self._features = features
        self._skills = skills
        self._prompter = prompter
        self._events = events
        self._consents = consents
        self._roots = roots
        self._open: dict[str, _OpenQuestion] = {}  # by the id of the question

    # -- tools -----------------------------------------------------------------------------------

    async def approve(self, request: CallRequest) -> Approval:
        """Decide about a call: by a rule if one applies, otherwise by asking the person.

        The person is asked at once; a rule decides when it is the turn of the call, because an
        earlier call of the step may change what holds.
        """
        item = request.item
        arguments = request.arguments
        if moved := self.why_gone(item):
            return self._refuse(request, arguments, "pin", moved)
        if problems := argument_problems(item.tool, arguments):
            return self._refuse(request, arguments, "host", problems)
        trusted = self.is_trusted(item)
        verdict = self._judge(request, arguments, trusted)
        if verdict.decision == "deny":
            return self._refuse(request, arguments, "rule", verdict.why)
        if verdict.decision == "allow":
            return await self._by_rule(request, arguments, trusted)
        return await self._ask(request, verdict, trusted)

    async def _by_rule(
        self, request: CallRequest, arguments: dict[str, Any], trusted: bool
    ) -> Approval:
        """Wait for the turn of a call, and decide by the rules that hold then."""
        await request.turn()
        item = request.item
        if gone := self.why_gone(item):
            return self._refuse(request, arguments, "pin", gone)
        verdict = self._judge(request, arguments, trusted)
        if verdict.decision == "deny":
            return self._refuse(request, arguments, "rule", verdict.why)
        if verdict.decision == "ask":
            return await self._ask(request, verdict, trusted)
        consent = self._consents.of(request.session)
        consent.take(verdict.by, item.name, item.tool, arguments)
        self._publish_allowed(request, verdict.by, verdict.why)
        return Approval(arguments, by=verdict.by)

    async def _by_person(
        self, request: CallRequest, arguments: dict[str, Any], seen: Taint | None
    ) -> Approval:
        """Wait for the turn of a call that the person allowed, and check that nothing changed.

        `seen` is the taint that the conversation had when the person was asked.
        """
        await request.turn()
        item = request.item
        if gone := self.why_gone(item):
            return self._refuse(request, arguments, "pin", gone)
        trusted = self.is_trusted(item)
        verdict = self._judge(request, arguments, trusted)
        if verdict.decision == "deny":
            return self._refuse(request, arguments, "rule", verdict.why)
        taint = self._consents.of(request.session).taint
        if taint not in (None, seen) and not self.reads_only(request, trusted):
            # An earlier call of the step returned orders to the model after the person's answer.
            return await self._ask(request, verdict, trusted, arguments)
        return Approval(arguments, by="person")

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
        trusted = self.is_trusted(item)
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
        trusted = self.is_trusted(item)
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
        await request.turn()
        self._publish_allowed(request, by)
        return approval

    async def approve_skill_file(self, request: CallRequest) -> Approval:
        """Decide about reading a file of a skill, which was approved with the skill."""
        approval = self._approve_by_rules(request)
        if not approval.refusal:
            await request.turn()
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
        trusted = self.is_trusted(item)
        verdict = self._policy.judge(item.server, item.tool, arguments, trusted, request.session)
        if verdict.decision == "deny":
            return self._refuse(request, arguments, "rule", verdict.why)
        return Approval(arguments)

    # -- asking the person -------------------------------------------------------------------------

    async def _ask(
        self,
        request: CallRequest,
        verdict: Verdict,
        trusted: bool,
        edited: dict[str, Any] | None = None,
    ) -> Approval:
        """Ask the person about a call; `edited` are the arguments if they were edited before."""
        item = request.item
        arguments = request.arguments if edited is None else edited
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
            scopes = self._scopes(request, arguments, trusted) if question.may_remember else []
            question = replace(question, scopes=_shown(scopes))
            opened = self._open[question.id] = _OpenQuestion(request, arguments, trusted)
            seen = self._consents.of(request.session).taint
            try:
                decision = await self._prompter.ask(question)
            finally:
                del self._open[question.id]
            if opened.verdict is not None:
                return await self._decided_by_rule(request, arguments, opened.verdict, trusted)
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
                self._allow(request, arguments, verdict, decision, scopes)
                return await self._by_person(request, arguments, seen)
            warnings = (Warned(kind="invalid", words=problems), *threats)
        words = problems.replace("The arguments", "The edited arguments", 1)
        return self._refuse(request, arguments, "host", words)

    def _allow(
        self,
        request: CallRequest,
        arguments: dict[str, Any],
        verdict: Verdict,
        decision: Decision,
        scopes: list[ScopedRule],
    ) -> None:
        """Allow a call, and remember the answer as far as it may be."""
        if decision.renew and verdict.bounded:
            self._consents.of(request.session).renew()
        if not self._threats(request.item):
            self._remember(request, verdict, decision, "allow", scopes)
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
            self._remember(request, verdict, answer, "deny", [])
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
            risk=threat_scan.visible(self._risk(request, arguments, trusted)),
            group=request.group,
            bounded=verdict.bounded,
        )

    def _risk(self, request: CallRequest, arguments: dict[str, Any], trusted: bool) -> str:
        """What is risky about a call, in words for the person; "" if nothing is known."""
        taint = self._consents.of(request.session).taint
        if taint is not None and not self.reads_only(request, trusted):
            return _tainted(taint.server, taint.tool)
        return risk_of(
            request.item,
            arguments,
            trusted,
            policy=self._policy,
            session=request.session,
            folders=self._roots.granted_to(request.item.server),
        )

    def _scopes(
        self, request: CallRequest, arguments: dict[str, Any], trusted: bool
    ) -> list[ScopedRule]:
        """The scopes that an answer about a call may have."""
        item = request.item
        if item.name in OF_SERVERS:
            return []
        folders = self._roots.granted_to(item.server)
        return scopes_of(item.server, item.tool, arguments, trusted, folders)

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

    async def _decided_by_rule(
        self, request: CallRequest, arguments: dict[str, Any], verdict: Verdict, trusted: bool
    ) -> Approval:
        """Apply a rule that was remembered while the question about a call was open."""
        if verdict.decision == "deny":
            return self._refuse(request, arguments, "rule", verdict.why)
        return await self._by_rule(request, arguments, trusted)

    def _remember(
        self,
        request: CallRequest,
        verdict: Verdict,
        decision: Decision,
        choice: Choice,
        scopes: list[ScopedRule],
    ) -> None:
        if decision.remember == "once" or not verdict.may_remember:
            return
        session = request.session if decision.remember == "session" else ""
        if decision.scope is not None:
            if not 0 <= decision.scope < len(scopes):
                return
            scoped = scopes[decision.scope].rule
            # A rule about one tool holds until that tool changes.
            digest = "" if scoped.tool == "*" else digest_of(request.item.tool)
            rule = replace(scoped, session=session, digest=digest)
            if decision.remember == "always":
                self._rules.write(rule, session=request.session)
            else:
                self._rules.remember(rule, "session", session=request.session)
        else:
            rule = rule_for(
                request.item.server,
                request.item.tool,
                decision=choice,
                session=session,
                reason="your decision",
            )
            self._rules.remember(rule, decision.remember, session=request.session)
        self.release()

    # -- explaining --------------------------------------------------------------------------------

    def explain(
        self, server: str, tool: str, arguments: dict[str, Any], session: str
    ) -> CallExplanation:
        """Return what would happen to a call of a tool, without making it."""
        found = next(
            (
                each
                for each in self._toolbox.items
                if each.server == server and each.tool.name == tool
            ),
            None,
        )
        if found is None:
            words = f"{server} has no tool {tool}, or is not running."
            return CallExplanation(decision="blocked", why=threat_scan.visible(words), by="host")
        trusted = self.is_trusted(found)
        matching = tuple(self._policy.matching(server, found.tool, arguments, trusted, session))
        if gone := self.why_gone(found):
            return CallExplanation(decision="blocked", why=gone, by="pin", matching=matching)
        if problems := argument_problems(found.tool, arguments):
            return CallExplanation(decision="blocked", why=problems, by="host", matching=matching)
        request = CallRequest(call="", session=session, item=found, arguments=arguments)
        verdict = self._judge(request, arguments, trusted)
        by: str = verdict.by
        if by == "rule" and verdict.rule is None:
            by = "mode"
        risk = self._risk(request, arguments, trusted)
        return CallExplanation(
            decision=verdict.decision,
            why=verdict.why,
            by=by,
            rule=verdict.rule,
            matching=matching,
            risk=threat_scan.visible(risk),
        )

    # -- judging ---------------------------------------------------------------------------------

    def _judge(self, request: CallRequest, arguments: Mapping[str, Any], trusted: bool) -> Verdict:
        """The decision of the rules and of the consent of the conversation.

        A call that writes is asked about while the conversation is tainted, and a call that a
        loaded skill may have caused is asked about too.
        """
        item = request.item
        verdict = self._policy.judge(item.server, item.tool, arguments, trusted, request.session)
        if verdict.decision == "deny":
            return verdict
        reads_only = self.reads_only(request, trusted)
        taint = self._consents.of(request.session).taint
        if taint is not None and not reads_only:
            why = _tainted(taint.server, taint.tool)
            return Verdict(decision="ask", why=threat_scan.visible(why), review=verdict.review)
        if verdict.rule is None:
            by_mode = self._by_mode(request, arguments, verdict, reads_only)
            # A tool with a threat warning runs by a rule or by the person, never by a mode.
            widens = verdict.decision == "ask" and by_mode.decision == "allow"
            verdict = verdict if widens and self._threats(item) else by_mode
        if verdict.decision != "allow" or verdict.by == "plan":
            return verdict
        why = self._skills.why_asked(request, reads_only)
        if not why:
            return verdict
        return Verdict(decision="ask", why=threat_scan.visible(why), review=verdict.review)

    def _by_mode(
        self,
        request: CallRequest,
        arguments: Mapping[str, Any],
        verdict: Verdict,
        reads_only: bool,
    ) -> Verdict:
        """The decision of the mode about a call that no rule decides."""
        item = request.item
        consent = self._consents.of(request.session)
        if consent.mode != "read" and verdict.decision == "allow" and consent.chosen:
            why = "No rule allows this, and you chose to be asked."
            verdict = Verdict(decision="ask", why=why, review=verdict.review, may_remember=True)
        if verdict.decision != "ask":
            return verdict
        if consent.mode == "read" and reads_only and self.is_trusted(item):
            why = "The tool is read-only, according to a server that you trust."
            return replace(verdict, decision="allow", why=why)
        if consent.planned(item.name, item.tool, arguments):
            why = "It is in the plan that you approved."
            return replace(verdict, decision="allow", why=why, by="plan")
        if consent.mode == "bounds":
            beyond, renewable = consent.beyond(item.tool, arguments)
            if beyond:
                return replace(verdict, why=threat_scan.visible(beyond), bounded=renewable)
            why = "It is within the bounds of this conversation."
            return replace(verdict, decision="allow", why=why, by="bounds")
        return verdict

    def reads_only(self, request: CallRequest, trusted: bool) -> bool:
        """Return whether a call is read-only, as far as its server is believed."""
        hints = request.item.tool.annotations
        is_believed = trusted or request.item.name in OF_SERVERS
        return is_believed and hints is not None and bool(hints.read_only_hint)

    def is_trusted(self, item: ServerTool) -> bool:
        """Return whether the user trusts the server of a tool, so that its hints are believed."""
        server = self._hub.servers.get(item.server)
        return server is not None and server.entry.trusted

    def is_local(self, item: ServerTool) -> bool:
        """Return whether the server of a tool runs on this machine."""
        server = self._hub.servers.get(item.server)
        return server is not None and not server.entry.url

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


def _shown(scopes: list[ScopedRule]) -> tuple[AnswerScope, ...]:
    return tuple(AnswerScope(words=each.words, toml=rule_toml(each.rule)) for each in scopes)


def _tainted(server: str, tool: str) -> str:
    return (
        f"A result of {tool} of {server} seems to give orders to the model. Until you clear this, "
        "you are asked about every call that writes."
    )


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
