"""The one way on which tools are called: found, checked, judged, asked about, run, looked at; every step of it is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from interlock import (
    Answers,
    CallToolResult,
    Client,
    EmbeddedResource,
    InterlockError,
    McpError,
    TimedOut,
    Unreachable,
)
from interlock.schema import SchemaError
from interlock.schema import compile as ready
from interlock.types import ProgressNotificationParams, Tool

from ..fleet import threat_scan
from ..fleet.events import (
    CallDecided,
    CallEnded,
    CallProgress,
    CallProposed,
    Event,
    ResourceRead,
    RuleRemembered,
)
from ..fleet.hub import Hub, ManagedServer
from ..fleet.policy import Choice, Policy, Rule, Verdict, rule_for
from ..fleet.questions import CallQuestion, Decision, NotAnswered, ResultQuestion, Warned
from ..fleet.toolbox import ServerTool, Toolbox, UnknownTool
from .loop.builtin_tools import OF_SERVERS, RESOURCE_TOOL
from .prompter import Prompter
from .skills.acting import LoadedSkills

MOST_PROBLEMS = 5
MOST_SCANNING = 0.5  # seconds for the threat scan of one result
MOST_PROGRESS = 1_000  # characters of what a server says of how far it is
TRIES = 5  # at arguments that the person edits and that do not fit


class CallRequest(Struct, frozen=True, kw_only=True):
    """A call that somebody wants: `by` the model, an app or the person, in a conversation (or "")."""

    call: str
    session: str
    item: ServerTool
    arguments: dict[str, Any]
    by: Any = "model"


class CallOutcome(Struct, frozen=True):
    """What came of it: the result, or in words why there is none; `said` is what the server says of it.

    `could_not_ask` says that the tool failed because its server cannot ask questions under the
    revision that was spoken.
    """

    result: CallToolResult | None
    words: str = ""
    said: str = ""
    could_not_ask: bool = False


class _Waiting(Struct):
    """A call whose question is open; `verdict` or `gone` say why the question was taken back."""

    wanted: CallRequest
    arguments: dict[str, Any]
    trusted: bool
    verdict: Verdict | None = None
    gone: str = ""


class ToolCalls:
    """Calls tools. `running` has the calls under way at each server, and `answers` who answers what it asks because of one."""

    def __init__(
        self,
        hub: Hub,
        toolbox: Toolbox,
        policy: Policy,
        desk: Prompter,
        tell: Callable[[Event], None],
        remembered: Callable[[Rule], None],
        running: dict[str, list[CallRequest]],
        answers: Callable[[str, CallRequest], Answers],
        unlogged: Callable[[], Awaitable[str]],
        scanned: Callable[[ServerTool], Sequence[Warned]],
        skills: LoadedSkills,
    ) -> None:
        self._hub, self._toolbox, self._policy, self._desk, self._tell = (
            hub,
            toolbox,
            policy,
            desk,
            tell,
        )
        self._remembered, self.running, self._answers = remembered, running, answers
        self._unlogged = unlogged  # why nothing may be called, as the log cannot be written
        self._skills = skills
        self._scanned = scanned  # what the threat scan of the whole server says of a tool
        # Not the loop's time: uvloop keeps that for a whole turn, so that calls which are answered in
        # one turn would all have taken as long as the longest.
        self.clock: Callable[[], float] = time.perf_counter
        self._waiting: dict[str, _Waiting] = {}  # for an answer, by the id of the question

    async def call(self, wanted: CallRequest) -> CallOutcome:
        """Carry a call through; whatever goes wrong is an CallOutcome with words, and only cancellation comes through."""
        return await self._carried(wanted, self._run)

    async def read(self, wanted: CallRequest) -> CallOutcome:
        """Read a resource for a model, which is a call like any other: judged, asked about, and looked at."""
        return await self._carried(wanted, self._fetch)

    async def load_skill(self, wanted: CallRequest) -> CallOutcome:
        """Load a skill for a model: the person is asked unless it is approved as it is."""
        return await self._carried(wanted, self._of_skill(self._skills.load), self._admitted_skill)

    async def read_skill(self, wanted: CallRequest) -> CallOutcome:
        """Read a file of a skill that is loaded, at the skill's own server."""
        return await self._carried(wanted, self._of_skill(self._skills.read), self._admitted_file)

    async def _carried(
        self,
        wanted: CallRequest,
        do: Callable[[CallRequest, dict[str, Any]], Awaitable[CallOutcome]],
        admit: Callable[[CallRequest], Awaitable[tuple[dict[str, Any], str]]] | None = None,
    ) -> CallOutcome:
        item = wanted.item
        self._tell(
            CallProposed(
                session=wanted.session,
                call=wanted.call,
                name=item.name,
                server=item.server,
                tool=item.tool.name,
                title=threat_scan.visible(item.tool.label),
                arguments=wanted.arguments,
                by=wanted.by,
            )
        )
        began: float | None = None
        try:
            arguments, words = await (admit or self._admitted)(wanted)
            if words:
                return CallOutcome(None, words)
            if words := await self._unlogged():
                unmade = CallOutcome(None, words)
                self._ended(wanted, unmade, None)
                return unmade
            began = self.clock() - self._desk.asked_seconds(wanted.call)
            outcome = await do(wanted, arguments)
            over = self.clock()
            warnings = await self._orders_in(outcome.result)
        except asyncio.CancelledError:
            self._ended(wanted, CallOutcome(None, "Cancelled."), began)
            raise
        self._ended(wanted, outcome, began, over, warnings)
        if outcome.result is None:
            return outcome
        return await self._reviewed(wanted, outcome.result, arguments, warnings)

    # -- whether it may be --------------------------------------------------------------------------------------

    async def _admitted(self, wanted: CallRequest) -> tuple[dict[str, Any], str]:
        """The arguments to call with, and why not, in words for the model; "" where it may be."""
        item, arguments = wanted.item, wanted.arguments
        if moved := self._moved(item):
            return arguments, self._refused(wanted, "pin", moved)
        if problems := _problems(item.tool, arguments):
            return arguments, self._refused(
                wanted, "host", f"The arguments do not fit the tool: {problems}"
            )
        link = self._hub.links.get(item.server)
        trusted = link is not None and link.entry.trusted
        verdict = self._judged(wanted, arguments, trusted)
        if verdict.decision == "deny":
            return arguments, self._refused(wanted, "rule", verdict.why)
        if verdict.decision == "allow":
            self._tell(
                CallDecided(
                    session=wanted.session, call=wanted.call, allow=True, by="rule", why=verdict.why
                )
            )
            return arguments, ""
        return await self._asked(wanted, verdict, trusted)

    def _judged(self, wanted: CallRequest, arguments: Mapping[str, Any], trusted: bool) -> Verdict:
        """What the rules say of a call. What a skill may have led to is asked about all the same."""
        item = wanted.item
        verdict = self._policy.judge(item.server, item.tool, arguments, trusted, wanted.session)
        if verdict.decision != "allow":
            return verdict
        hints = item.tool.annotations
        is_own = item.name in OF_SERVERS
        reads_only = (trusted or is_own) and hints is not None and bool(hints.read_only_hint)
        why = self._skills.why_asked(wanted, reads_only)
        if not why:
            return verdict
        return Verdict(decision="ask", why=threat_scan.visible(why), review=verdict.review)

    async def _admitted_skill(self, wanted: CallRequest) -> tuple[dict[str, Any], str]:
        """As `_admitted`, for a skill: its approval is of its content, not of the call."""
        arguments, words = await self._admitted_file(wanted, decided=False)
        if words:
            return arguments, words
        words, by = await self._skills.admit(wanted)
        if words:
            return arguments, self._refused(wanted, by, words)
        self._tell(CallDecided(session=wanted.session, call=wanted.call, allow=True, by=by))
        return arguments, ""

    async def _admitted_file(
        self, wanted: CallRequest, *, decided: bool = True
    ) -> tuple[dict[str, Any], str]:
        """As `_admitted`, for a file of a skill: it was approved with the skill, and rules can deny it."""
        item, arguments = wanted.item, wanted.arguments
        if problems := _problems(item.tool, arguments):
            return arguments, self._refused(
                wanted, "host", f"The arguments do not fit the tool: {problems}"
            )
        link = self._hub.links.get(item.server)
        trusted = link is not None and link.entry.trusted
        verdict = self._policy.judge(item.server, item.tool, arguments, trusted, wanted.session)
        if verdict.decision == "deny":
            return arguments, self._refused(wanted, "rule", verdict.why)
        if decided:
            self._tell(
                CallDecided(
                    session=wanted.session,
                    call=wanted.call,
                    allow=True,
                    by="pin",
                    why="only files of a skill that you approved are read",
                )
            )
        return arguments, ""

    def _of_skill(
        self, do: Callable[[CallRequest], Awaitable[CallToolResult]]
    ) -> Callable[[CallRequest, dict[str, Any]], Awaitable[CallOutcome]]:
        async def done(wanted: CallRequest, arguments: dict[str, Any]) -> CallOutcome:
            try:
                return CallOutcome(await do(wanted))
            except InterlockError as bad:
                return CallOutcome(None, "The skill cannot be used.", str(bad))

        return done

    def _flags(self, item: ServerTool) -> tuple[Warned, ...]:
        """What the threat scan says of a tool: by itself, and beside the tools of other servers."""
        found = (*threat_scan.of_tool(item.tool), *self._scanned(item))
        return tuple({(each.kind, each.where): each for each in found}.values())

    def _moved(self, item: ServerTool) -> str:
        """Why this tool may not be called, or is not any more what was chosen; "" where it is."""
        if item.name in OF_SERVERS:
            return ""
        link = self._hub.links.get(item.server)
        if link is None:
            return f"{item.name} is no longer there: the server {item.server} was removed."
        try:
            now = self._toolbox.find(item.name)
        except UnknownTool:
            if link.state in ("off", "refused"):
                return f"The server {item.server} is stopped."
            return f"{item.name} is no longer there."
        return now.blocked or (
            ""
            if now.tool == item.tool
            else f"{item.name} has changed since it was chosen; look at it anew."
        )

    async def _asked(
        self, wanted: CallRequest, verdict: Verdict, trusted: bool
    ) -> tuple[dict[str, Any], str]:
        item, arguments = wanted.item, wanted.arguments
        flags = self._flags(item)
        warnings, problems = flags, ""
        for _ in range(TRIES):
            question = CallQuestion(
                id=self._desk.name(),
                server=item.server,
                session=wanted.session,
                call=wanted.call,
                warnings=warnings,
                tool=item.tool.name,
                title=threat_scan.visible(item.tool.label),
                description=threat_scan.visible(item.tool.description or ""),
                arguments=arguments,
                input_schema=item.tool.input_schema,
                annotations=item.tool.annotations,
                trusted=trusted,
                by=wanted.by,
                why=verdict.why,
                flagged=bool(flags),
                may_remember=verdict.may_remember and not flags,
            )
            waiting = self._waiting[question.id] = _Waiting(wanted, arguments, trusted)
            try:
                decision = await self._desk.ask(question)
            finally:
                del self._waiting[question.id]
            if waiting.verdict is not None:
                return arguments, self._ruled(wanted, waiting.verdict)
            if waiting.gone:
                return arguments, self._refused(wanted, "pin", waiting.gone)
            if not isinstance(decision, Decision):
                return arguments, self._refused(
                    wanted,
                    "nobody",
                    "Nobody allowed this call: " + (getattr(decision, "words", "") or "no answer"),
                )
            if not decision.allow:
                self._remember(wanted, verdict, decision, "deny")
                return arguments, self._refused(
                    wanted,
                    "person",
                    f"The person does not allow this call. {decision.reason}".strip(),
                )
            if moved := self._moved(item):  # while the question was open
                return arguments, self._refused(wanted, "pin", moved)
            arguments = arguments if decision.arguments is None else decision.arguments
            edited = arguments if arguments != wanted.arguments else None
            again = self._policy.judge(item.server, item.tool, arguments, trusted, wanted.session)
            if again.decision == "deny":
                return arguments, self._refused(wanted, "rule", again.why)
            if not (problems := _problems(item.tool, arguments)):
                break
            invalid = f"The arguments do not fit the tool: {problems}"
            warnings = (Warned(kind="invalid", words=invalid), *flags)
        else:
            return arguments, self._refused(
                wanted, "host", f"The arguments as they were edited do not fit the tool: {problems}"
            )
        if not flags:  # a tool that looks dangerous is looked at each time
            self._remember(wanted, verdict, decision, "allow")
        self._tell(
            CallDecided(
                session=wanted.session,
                call=wanted.call,
                allow=True,
                by="person",
                why=verdict.why,
                arguments=edited,
            )
        )
        return arguments, ""

    def release(self) -> None:
        """Judge the calls again that wait for an answer, and take back the questions that need none any more.

        After a rule was remembered it decides for equal calls; a call of a tool that is gone, or is
        not what it was, is refused.
        """
        for question, waiting in list(self._waiting.items()):
            item = waiting.wanted.item
            gone = self._moved(item)
            if item.tool is RESOURCE_TOOL and item.server not in self._hub.links:
                gone = f"The server {item.server} was removed."
            if gone:
                waiting.gone = gone
                self._desk.withdraw(question, NotAnswered(words=gone))
                continue
            verdict = self._judged(waiting.wanted, waiting.arguments, waiting.trusted)
            allowed = verdict.decision == "allow"
            if allowed and _problems(item.tool, waiting.arguments):
                continue  # they were edited, and the person is asked for others
            if verdict.decision != "ask":
                waiting.verdict = verdict
                self._desk.withdraw(question, Decision(allow=allowed, reason=verdict.why))

    def _ruled(self, wanted: CallRequest, verdict: Verdict) -> str:
        """Why a rule does not let a call be that waited for an answer; "" where it does."""
        if verdict.decision == "deny":
            return self._refused(wanted, "rule", verdict.why)
        if moved := self._moved(wanted.item):
            return self._refused(wanted, "pin", moved)
        self._tell(
            CallDecided(
                session=wanted.session, call=wanted.call, allow=True, by="rule", why=verdict.why
            )
        )
        return ""

    def _remember(
        self, wanted: CallRequest, verdict: Verdict, decision: Decision, choice: Choice
    ) -> None:
        if decision.remember == "once" or not verdict.may_remember:
            return
        session = wanted.session if decision.remember == "session" else ""
        rule = rule_for(
            wanted.item.server,
            wanted.item.tool,
            decision=choice,
            session=session,
            reason="so you decided",
        )
        self._policy.remember(rule, decision.remember)
        self._tell(RuleRemembered(session=wanted.session, rule=rule, remember=decision.remember))
        if decision.remember == "always":
            self._remembered(rule)
        self.release()

    def _refused(self, wanted: CallRequest, by: str, why: str) -> str:
        self._tell(
            CallDecided(session=wanted.session, call=wanted.call, allow=False, by=by, why=why)
        )
        self._tell(
            CallEnded(
                session=wanted.session,
                call=wanted.call,
                server=wanted.item.server,
                tool=wanted.item.tool.name,
                error=why,
            )
        )
        return why

    # -- the call itself --------------------------------------------------------------------------------------------

    async def _run(self, wanted: CallRequest, arguments: Mapping[str, Any]) -> CallOutcome:
        item = wanted.item
        link = self._hub.links.get(item.server)
        if link is None:
            return CallOutcome(None, f"The server {item.server} is no longer there.")
        outcome = await self._run_once(link, wanted, arguments)
        if not outcome.could_not_ask:
            return outcome
        again = await self._admitted_again(link, wanted, arguments)
        return outcome if again is None else await self._run_once(link, wanted, again)

    async def _admitted_again(
        self, link: ManagedServer, wanted: CallRequest, arguments: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """The arguments for a second try of a call that ended at its question; None: there is none.

        Its server runs under a revision where it can ask by then. The tool has run up to its
        question. So it runs again only where it says, and is believed, that this does no harm, or
        where the person says so.
        """
        item, hints = wanted.item, wanted.item.tool.annotations
        if not await link.gone_back() or self._moved(item):
            return None
        says_harmless = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
        if link.entry.trusted and says_harmless:
            return arguments
        words = (
            "The tool could not ask you its question, and the server was started again so that it can. "
            "What the tool did before its question may happen a second time."
        )
        flags = self._flags(item)
        question = CallQuestion(
            id=self._desk.name(),
            server=item.server,
            session=wanted.session,
            call=wanted.call,
            warnings=(Warned(kind="again", words=words), *flags),
            flagged=bool(flags),
            tool=item.tool.name,
            title=threat_scan.visible(item.tool.label),
            description=threat_scan.visible(item.tool.description or ""),
            arguments=dict(arguments),
            input_schema=item.tool.input_schema,
            annotations=hints,
            trusted=link.entry.trusted,
            by=wanted.by,
            why="it is called a second time",
            may_remember=False,
        )
        decision = await self._desk.ask(question)
        if not isinstance(decision, Decision) or not decision.allow or self._moved(item):
            return None
        if decision.arguments is None:
            return arguments
        judged = self._policy.judge(
            item.server, item.tool, decision.arguments, link.entry.trusted, wanted.session
        )
        if judged.decision == "deny" or _problems(item.tool, decision.arguments):
            return None
        return decision.arguments

    async def _run_once(
        self, link: ManagedServer, wanted: CallRequest, arguments: Mapping[str, Any]
    ) -> CallOutcome:
        item = wanted.item

        def progress(params: ProgressNotificationParams) -> None:
            self._tell(
                CallProgress(
                    session=wanted.session,
                    call=wanted.call,
                    progress=params.progress,
                    total=params.total,
                    message=threat_scan.visible((params.message or "")[:MOST_PROGRESS]),
                )
            )

        running = self.running.setdefault(item.server, [])
        running.append(wanted)
        try:
            asker = self._answers(item.server, wanted)
            result = await link.call(item.tool.name, arguments, on_progress=progress, asker=asker)
            return CallOutcome(result, could_not_ask=Client.could_not_ask(result))
        except TimedOut as late:
            return CallOutcome(None, "The tool gave no answer in time.", str(late))
        except McpError as bad:
            could_not_ask = Client.could_not_ask(bad)
            return CallOutcome(None, "The call failed.", str(bad), could_not_ask)
        except InterlockError as bad:
            return CallOutcome(None, "The call failed.", str(bad))
        finally:
            running.remove(wanted)

    async def _fetch(self, wanted: CallRequest, arguments: Mapping[str, Any]) -> CallOutcome:
        server, uri = wanted.item.server, str(arguments["uri"])
        try:
            link = self._hub.links.get(server)
            if link is None or arguments["server"] != server:
                raise Unreachable(
                    f"There is no server {server}."
                    if link is None
                    else "At another server it would be another call."
                )
            read = await link.read(uri, asker=self._answers(server, wanted))
        except InterlockError as bad:
            self._tell(
                ResourceRead(
                    session=wanted.session,
                    server=server,
                    uri=uri,
                    by="model",
                    error=threat_scan.visible(str(bad)),
                )
            )
            return CallOutcome(None, "The resource cannot be read.", str(bad))
        size = sum(len(part.text or part.blob or "") for part in read.contents)
        self._tell(
            ResourceRead(session=wanted.session, server=server, uri=uri, by="model", size=size)
        )
        return CallOutcome(
            CallToolResult(content=[EmbeddedResource(resource=part) for part in read.contents])
        )

    async def _orders_in(self, result: CallToolResult | None) -> tuple[Warned, ...]:
        """What the threat scan says of a result; it pauses for others, and looks for a limited time."""
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

    def _ended(
        self,
        wanted: CallRequest,
        outcome: CallOutcome,
        began: float | None,
        over: float | None = None,
        warnings: tuple[Warned, ...] = (),
    ) -> None:
        """It is over; `began` is None where it never began, and `over` None where it ends now."""
        asked = self._desk.forget_seconds(wanted.call)  # the person's time is not the tool's
        seconds = 0.0 if began is None else round((over or self.clock()) - asked - began, 3)
        error = threat_scan.visible(f"{outcome.words} {outcome.said}".strip())
        item = wanted.item
        self._tell(
            CallEnded(
                session=wanted.session,
                call=wanted.call,
                server=item.server,
                tool=item.tool.name,
                result=outcome.result,
                error=error,
                seconds=seconds,
                warnings=warnings,
            )
        )

    async def _reviewed(
        self,
        wanted: CallRequest,
        result: CallToolResult,
        arguments: dict[str, Any],
        warnings: tuple[Warned, ...],
    ) -> CallOutcome:
        """The result, where a rule wants it held for review as the person lets it pass."""
        item = wanted.item
        link = self._hub.links.get(item.server)
        trusted = link is not None and link.entry.trusted
        if not self._policy.judge(
            item.server, item.tool, arguments, trusted, wanted.session
        ).review:
            return CallOutcome(result)
        question = ResultQuestion(
            id=self._desk.name(),
            server=item.server,
            session=wanted.session,
            call=wanted.call,
            warnings=warnings,
            tool=item.tool.name,
            title=threat_scan.visible(item.tool.label),
            result=result,
        )
        decision = await self._desk.decide(question)
        if not decision.allow:
            return CallOutcome(None, f"The person keeps the result back. {decision.reason}".strip())
        return CallOutcome(decision.result if decision.result is not None else result)


def _problems(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """What is wrong with arguments by the tool's own schema, in words for the model; the tool judges where the schema cannot be used."""
    try:
        found = ready(tool.input_schema).check(dict(arguments))
    except SchemaError:
        return ""
    return "; ".join(
        f"{wrong.path or 'arguments'}: {wrong.message}" for wrong in found[:MOST_PROBLEMS]
    )
