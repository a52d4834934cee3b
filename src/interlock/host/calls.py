"""The one way on which tools are called: found, checked, judged, asked about, run, looked at; every step of it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from interlock.schema import SchemaError
from interlock.schema import compile as ready
from interlock.types import CallToolResult, InterlockError, ProgressNotificationParams, TextContent, TimedOut, Tool, Unreachable

from . import suspicions
from .desk import Desk
from .events import CallDecided, CallEnded, CallProgress, CallProposed, Event, ResourceRead, RuleRemembered
from .hub import Hub
from .loop.builtin import RESOURCE_TOOL
from .policy import Choice, Policy, Rule, Verdict, rule_for
from .questions import CallQuestion, Decision, ResultQuestion
from .toolbox import Item

MOST_PROBLEMS = 5


class Wanted(Struct, frozen=True, kw_only=True):
    """A call that somebody wants: `by` the model, an app or the person, in a conversation (or "")."""

    call: str
    session: str
    item: Item
    arguments: dict[str, Any]
    by: Any = "model"


class Outcome(Struct, frozen=True):
    """What came of it: the result, or in words why there is none."""

    result: CallToolResult | None
    words: str = ""


class Calls:
    """Calls tools. `running` has the calls under way at each server, for the questions that it asks meanwhile."""

    def __init__(
        self,
        hub: Hub,
        policy: Policy,
        desk: Desk,
        tell: Callable[[Event], None],
        remembered: Callable[[Rule], None],
        running: dict[str, list[Wanted]],
    ) -> None:
        self._hub, self._policy, self._desk, self._tell = hub, policy, desk, tell
        self._remembered, self.running = remembered, running

    async def call(self, wanted: Wanted) -> Outcome:
        """Carry a call through; whatever goes wrong is an Outcome with words, and only cancellation comes through."""
        item = wanted.item
        self._tell(
            CallProposed(
                session=wanted.session, call=wanted.call, name=item.name, server=item.server, tool=item.tool.name,
                title=suspicions.visible(item.tool.label), arguments=wanted.arguments, by=wanted.by,
            )
        )  # fmt: skip
        arguments, words = await self._admitted(wanted)
        if words:
            return Outcome(None, words)
        began = asyncio.get_running_loop().time()
        try:
            outcome = await self._run(wanted, arguments)
        except asyncio.CancelledError:
            self._ended(wanted, Outcome(None, "Cancelled."), began)
            raise
        self._ended(wanted, outcome, began)
        if outcome.result is not None:
            outcome = await self._reviewed(wanted, outcome.result, arguments)
        return outcome

    async def read(self, server: str, uri: str, session: str, call: str) -> Any:
        """Read a resource for a model, as the policy allows; its ReadResourceResult, or an Outcome with words."""
        item = Item(name=RESOURCE_TOOL.name, server=server, tool=RESOURCE_TOOL)
        wanted = Wanted(call=call, session=session, item=item, arguments={"server": server, "uri": uri})
        self._tell(
            CallProposed(
                session=session,
                call=call,
                name=item.name,
                server=server,
                tool=item.tool.name,
                title="Read a resource",
                arguments=wanted.arguments,
            )
        )
        arguments, words = await self._admitted(wanted)
        if words:
            return Outcome(None, words)
        link = self._hub.links.get(str(arguments.get("server")))
        began = asyncio.get_running_loop().time()
        try:
            if link is None:
                raise Unreachable(f"There is no server {server}.")
            result = await link.read(str(arguments.get("uri")))
        except InterlockError as bad:
            self._tell(ResourceRead(session=session, server=server, uri=uri, by="model", error=suspicions.visible(str(bad))))
            outcome = Outcome(None, f"The resource cannot be read: {bad}")
            self._ended(wanted, outcome, began)
            return outcome
        size = sum(len(part.text or part.blob or "") for part in result.contents)
        self._tell(ResourceRead(session=session, server=server, uri=uri, by="model", size=size))
        self._ended(wanted, Outcome(CallToolResult(content=[TextContent(text=f"{size} characters")])), began)
        return result

    # -- whether it may be --------------------------------------------------------------------------------------

    async def _admitted(self, wanted: Wanted) -> tuple[dict[str, Any], str]:
        """The arguments to call with, and why not, in words for the model; "" where it may be."""
        item, arguments = wanted.item, wanted.arguments
        if item.blocked:
            return arguments, self._refused(wanted, "pin", item.blocked)
        if problems := _problems(item.tool, arguments):
            return arguments, self._refused(wanted, "host", f"The arguments do not fit the tool: {problems}")
        link = self._hub.links.get(item.server)
        trusted = link is not None and link.entry.trusted
        verdict = self._policy.judge(item.server, item.tool, arguments, trusted, wanted.session)
        if verdict.decision == "deny":
            return arguments, self._refused(wanted, "rule", verdict.why)
        if verdict.decision == "allow":
            self._tell(CallDecided(session=wanted.session, call=wanted.call, allow=True, by="rule", why=verdict.why))
            return arguments, ""
        return await self._asked(wanted, verdict, trusted)

    async def _asked(self, wanted: Wanted, verdict: Verdict, trusted: bool) -> tuple[dict[str, Any], str]:
        item, arguments = wanted.item, wanted.arguments
        while True:
            question = CallQuestion(
                id=self._desk.name(), server=item.server, session=wanted.session, call=wanted.call,
                warnings=suspicions.of_tool(item.tool), tool=item.tool.name, title=suspicions.visible(item.tool.label),
                description=suspicions.visible(item.tool.description or ""), arguments=arguments, input_schema=item.tool.input_schema,
                annotations=item.tool.annotations, trusted=trusted, by=wanted.by, why=verdict.why, may_remember=verdict.may_remember,
            )  # fmt: skip
            decision = await self._desk.ask(question)
            if not isinstance(decision, Decision):
                return arguments, self._refused(
                    wanted, "nobody", "Nobody allowed this call: " + (getattr(decision, "words", "") or "no answer")
                )
            if not decision.allow:
                self._remember(wanted, verdict, decision, "deny")
                return arguments, self._refused(wanted, "person", f"The person does not allow this call. {decision.reason}".strip())
            edited = decision.arguments if decision.arguments is not None and decision.arguments != arguments else None
            if edited is None or not _problems(item.tool, edited):
                break
            arguments = edited  # what does not fit is asked about once more: the tool would refuse it
        self._remember(wanted, verdict, decision, "allow")
        self._tell(CallDecided(session=wanted.session, call=wanted.call, allow=True, by="person", why=verdict.why, arguments=edited))
        return edited if edited is not None else arguments, ""

    def _remember(self, wanted: Wanted, verdict: Verdict, decision: Decision, choice: Choice) -> None:
        if decision.remember == "once" or not verdict.may_remember:
            return
        session = wanted.session if decision.remember == "session" else ""
        rule = rule_for(wanted.item.server, wanted.item.tool, decision=choice, session=session, reason="so you decided")
        self._policy.remember(rule, decision.remember)
        self._tell(RuleRemembered(session=wanted.session, rule=rule, remember=decision.remember))
        if decision.remember == "always":
            self._remembered(rule)

    def _refused(self, wanted: Wanted, by: str, why: str) -> str:
        self._tell(CallDecided(session=wanted.session, call=wanted.call, allow=False, by=by, why=why))
        self._tell(CallEnded(session=wanted.session, call=wanted.call, server=wanted.item.server, tool=wanted.item.tool.name, error=why))
        return why

    # -- the call itself --------------------------------------------------------------------------------------------

    async def _run(self, wanted: Wanted, arguments: Mapping[str, Any]) -> Outcome:
        item = wanted.item
        link = self._hub.links.get(item.server)
        if link is None:
            return Outcome(None, f"The server {item.server} is no longer there.")

        def progress(params: ProgressNotificationParams) -> None:
            self._tell(
                CallProgress(
                    session=wanted.session, call=wanted.call, progress=params.progress, total=params.total,
                    message=suspicions.visible(params.message or ""),
                )
            )  # fmt: skip

        running = self.running.setdefault(item.server, [])
        running.append(wanted)
        try:
            return Outcome(await link.call(item.tool.name, arguments, on_progress=progress))
        except TimedOut as late:
            return Outcome(None, f"The tool gave no answer in time: {late}")
        except InterlockError as bad:
            return Outcome(None, f"The call failed: {bad}")
        finally:
            running.remove(wanted)

    def _ended(self, wanted: Wanted, outcome: Outcome, began: float) -> None:
        self._tell(
            CallEnded(
                session=wanted.session, call=wanted.call, server=wanted.item.server, tool=wanted.item.tool.name,
                result=outcome.result, error=outcome.words, seconds=round(asyncio.get_running_loop().time() - began, 3),
            )
        )  # fmt: skip

    async def _reviewed(self, wanted: Wanted, result: CallToolResult, arguments: dict[str, Any]) -> Outcome:
        """The result, where a rule wants it held for review as the person lets it pass."""
        item = wanted.item
        link = self._hub.links.get(item.server)
        trusted = link is not None and link.entry.trusted
        if not self._policy.judge(item.server, item.tool, arguments, trusted, wanted.session).review:
            return Outcome(result)
        warnings = suspicions.of_text(result.text)
        question = ResultQuestion(
            id=self._desk.name(), server=item.server, session=wanted.session, call=wanted.call, warnings=warnings,
            tool=item.tool.name, title=suspicions.visible(item.tool.label), result=result,
        )  # fmt: skip
        decision = await self._desk.decide(question)
        if not decision.allow:
            return Outcome(None, f"The person keeps the result back. {decision.reason}".strip())
        return Outcome(decision.result if decision.result is not None else result)


def _problems(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """What is wrong with arguments by the tool's own schema, in words for the model; the tool judges where the schema cannot be used."""
    try:
        found = ready(tool.input_schema).check(dict(arguments))
    except SchemaError:
        return ""
    return "; ".join(f"{wrong.path or 'arguments'}: {wrong.message}" for wrong in found[:MOST_PROBLEMS])
