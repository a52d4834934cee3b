"""The protections around each server behind a gateway: policy, pins, guard hook, limits, audit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from interlock import (
    AnyResult,
    Caller,
    CallToolResult,
    Exchange,
    Feature,
    InputRequiredResult,
    McpError,
    Offered,
    Rate,
    Source,
    TextContent,
)
from interlock.caches import BoundedCache
from interlock.store import MemoryStore, RateStore, StoreError, data_folder
from interlock.types import INTERNAL_ERROR, INVALID_PARAMS, Tool

from ..fleet.pins import BadPins, Pins
from ..fleet.policy import Choice, Policy, Requester, Rule, Verdict, fits_requester
from ..fleet.rulebook import load_policy
from .approval_question import approved_by_caller
from .asked import Asked, asked_of, client_of, requester_of
from .audit import AuditedRequest, AuditOptions, GatewayAudit
from .call_limits import CallLimits, CallQueue, CallRates, OwnRates, size_of
from .guard_hook import GuardHook, load_hook
from .pinned_features import PinnedFeatures
from .settings import BadSettings, Settings, rate_of
from .state import PendingApproval

_MOST_CALLERS = 10_000  # callers whose visibility keys are remembered
_UNNAMED = frozenset({"subscriptions/listen"})  # requests that last, and take no slot
_encode = msgspec.json.encode


class Denial(McpError):
    """A request that the gateway does not pass on, or whose answer it withholds.

    Args:
        why: The reason in words.
    """

    def __init__(self, why: str) -> None:
        super().__init__(INVALID_PARAMS, f"Denied by the gateway: {why}", {"reason": "policy"})


class Explanation(NamedTuple):
    """What the protections would do with a call, for `interlock gateway explain`.

    Attributes:
        visible: Whether the caller sees the tool.
        decision: "allow", "ask" or "deny".
        why: The reason in words.
        rule: The rule behind it; None if no rule decides.
    """

    visible: bool
    decision: Choice
    why: str
    rule: Rule | None


class Protections:
    """The protections of a gateway. `protect` puts them around the source of a server.

    They stand at the source and not at the view, so that no way to a server leads around them: a
    tool that is called by its name, one that is found by searching, a task, a resource that no list
    has.

    Args:
        policy: The rules; None allows every request.
        pins: The pins of all servers; None pins nothing.
        hook: The guard hook.
        limits: The limits.
        rates: The buckets of the rates; in memory by default.
        audit: The record of requests.
        trusted: The servers whose annotations ("read-only") the policy believes.
    """

    def __init__(
        self,
        *,
        policy: Policy | None = None,
        pins: Pins | None = None,
        hook: GuardHook | None = None,
        limits: CallLimits | None = None,
        rates: RateStore | None = None,
        audit: GatewayAudit | None = None,
        trusted: frozenset[str] = frozenset(),
    ) -> None:
        self.policy = policy
        self.hook = hook
        self.limits = limits or CallLimits()
        self.audit = audit or GatewayAudit()
        self.pinned = PinnedFeatures(pins, self.audit)
        self.trusted = trusted
        self.rates: CallRates | None = None
        self.rate_store: RateStore | None = None
        if self.limits.rates:
            self.rate_store = rates or MemoryStore().rates
            self.rates = CallRates(self.limits, self.rate_store)
        if isinstance(self.rate_store, OwnRates):
            self.rate_store.acquire_use()
        self._queues: dict[str, CallQueue] = {}
        self._caller_rules = () if policy is None else policy.caller_rules()

    def protect(
        self, source: Source, *, server: str, view: str = "", prefix: str | None = None
    ) -> ProtectedSource:
        """Return a source with these protections around it.

        Args:
            source: The source of a server.
            server: The name of the server in the settings.
            view: The view that mounts it.
            prefix: The prefix of its tools and prompts in the view; None for none.
        """
        return ProtectedSource(source, self, server=server, view=view, prefix=prefix)

    def queue_of(self, server: str) -> CallQueue:
        """Return the queue of a server, which all its connections and all views share."""
        queue = self._queues.get(server)
        if queue is None:
            limits = self.limits
            queue = CallQueue(server, limits.concurrency, limits.queue, limits.queue_seconds)
            self._queues[server] = queue
        return queue

    def explain(
        self, server: str, tool: Tool, arguments: Mapping[str, Any] | None, requester: Requester
    ) -> Explanation:
        """Say what would happen to a call of a tool."""
        if self.policy is None:
            return Explanation(True, "allow", "There is no policy.", None)
        trusted = server in self.trusted
        verdict = self.policy.judge(server, tool, arguments, trusted, requester=requester)
        hidden = self.policy.hides(server, tool, trusted, requester)
        return Explanation(not hidden, verdict.decision, verdict.why, verdict.rule)

    def approvals(self) -> Sequence[PendingApproval]:
        """Return the features that are withheld."""
        return [
            PendingApproval(
                id=each.id,
                server=each.server,
                kind=each.difference.kind,
                name=each.difference.name,
                why=each.why,
                before=each.difference.was,
                after=each.difference.now,
            )
            for each in self.pinned.withheld()
        ]

    def approve(self, ids: Sequence[str], by: str = "") -> int:
        """Approve withheld features; see `PinnedFeatures.approve`."""
        return self.pinned.approve(ids, by)

    def refresh(self) -> None:
        """Look again at what other processes may have approved."""
        self.pinned.refresh()

    def caller_key(self, view: str, caller: Caller) -> str:
        """Return what decides about the visibility of features for a caller: which rules with
        conditions about callers hold.
        """
        requester = requester_of(caller, view)
        return "".join(
            "1" if fits_requester(rule, requester) else "0" for rule in self._caller_rules
        )

    async def aclose(self) -> None:
        """Write all entries of the audit that wait, and close what no other protections use."""
        await self.pinned.scanned()
        await self.audit.aclose()
        if isinstance(self.rate_store, OwnRates):
            await self.rate_store.release_use()


class ProtectedSource:
    """A source with the protections of a gateway around it. `Protections.protect` makes it."""

    def __init__(
        self,
        source: Source,
        protections: Protections,
        *,
        server: str,
        view: str,
        prefix: str | None,
    ) -> None:
        self._source = source
        self._protections = protections
        self._server = server
        self._view = view
        self._prefix = prefix
        self._tools: dict[str, Tool] = {}
        self._prompts: frozenset[str] = frozenset()
        self._read: Offered | None = None
        self._shown: Offered | None = None
        # A representative of each set of callers for whom the same rules hold.
        self._requesters: BoundedCache[str, Requester] = BoundedCache(_MOST_CALLERS)
        self._keys: BoundedCache[tuple[str, frozenset[str], str], str] = BoundedCache(_MOST_CALLERS)

    def __repr__(self) -> str:
        return f"ProtectedSource({self._server!r}, view={self._view!r})"

    # -- the lists ---------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """See Source."""
        return self._source.name

    @property
    def offered(self) -> Offered | None:
        """The lists of the source, without what is withheld."""
        offered = self._source.offered
        if offered is None:
            return None
        if offered is not self._read:
            self._shown = self._protected(offered)
            self._read = offered
            self._tools = {tool.name: tool for tool in self._shown.tools}
            self._prompts = frozenset(prompt.name for prompt in self._shown.prompts)
        return self._shown

    async def open(self) -> None:
        """See Source."""
        await self._source.open()

    async def aclose(self) -> None:
        """See Source."""
        self._protections.pinned.forget(self)
        await self._source.aclose()

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        """See Source. An approval changes the lists too."""

        def approved() -> None:
            self._read = None
            changed()

        stop_source = self._source.listen(changed)
        stop_pins = self._protections.pinned.on_change(approved)

        def stop() -> None:
            stop_source()
            stop_pins()

        return stop

    def _protected(self, offered: Offered) -> Offered:
        try:
            admitted = self._protections.pinned.admitted(self, self._server, offered)
        except BadPins as bad:
            self._protections.audit.note(
                "withheld", {"server": self._server, "kind": "all", "name": "", "why": str(bad)}
            )
            return Offered()  # nothing is known to be unchanged
        policy = self._protections.policy
        if policy is None:
            return admitted
        theirs = admitted.visible
        if theirs is None:
            visible: Any = (self._key, self._sees)
        else:
            by, sees = theirs

            def both_by(caller: Caller) -> Any:
                return self._key(caller), by(caller)

            def both_see(keys: Any, feature: Feature) -> bool:
                mine, other = keys
                return self._sees(mine, feature) and bool(sees(other, feature))

            visible = both_by, both_see
        # A rule may ask before any request, so no request counts as one that never asks.
        return replace(admitted, never_ask=(), visible=visible)

    def _key(self, caller: Caller) -> str:
        """Return the visibility key of a caller."""
        principal = caller.principal
        who = "" if principal is None else principal.key
        scopes: frozenset[str] = frozenset() if principal is None else principal.scopes
        known = (who, scopes, client_of(caller))
        key = self._keys.get(known)
        if key is None:
            key = self._protections.caller_key(self._view, caller)
            self._keys.put(known, key)
        if self._requesters.get(key) is None:
            self._requesters.put(key, requester_of(caller, self._view))
        return key

    def _sees(self, key: str, feature: Feature) -> bool:
        """Whether callers with a key see a feature, as the source names it."""
        policy = self._protections.policy
        requester = self._requesters.get(key)
        if policy is None or requester is None:
            return policy is None
        if feature.kind == "tool":
            tool = self._tools.get(feature.name, feature.listing)
            trusted = self._server in self._protections.trusted
            return not policy.hides(self._server, tool, trusted, requester)
        return policy.judge_reading(self._server, requester).decision != "deny"

    # -- requests ----------------------------------------------------------------------------------

    def handle(self, x: Exchange, /) -> Awaitable[AnyResult]:
        """Handle a request for a feature, with every protection."""
        asked = asked_of(x, view=self._view, server=self._server, prefix=self._prefix)
        if asked is None:
            return self._source.handle(x)
        return self._handle(x, asked)

    async def _handle(self, x: Exchange, asked: Asked) -> AnyResult:
        protections = self._protections
        record = protections.audit.start(asked)
        if protections.audit.is_required:
            await record.write_start()
        outcome = "cancelled"
        is_passed_on = False
        try:
            try:
                await self._admit(x, asked, record)
                if x.method in _UNNAMED:
                    is_passed_on = True
                    result = await self._source.handle(x)
                else:
                    queue = protections.queue_of(self._server)
                    holder = await queue.acquire(x)
                    try:
                        is_passed_on = True
                        result = await self._source.handle(x)
                    finally:
                        queue.release(holder)
                await self._admit_result(asked, result, record)
            except Denial as denied:
                outcome = "denied"
                if asked.method != "tools/call":
                    raise
                return CallToolResult(content=[TextContent(denied.message)], is_error=True)
            record.note_result(result)
            outcome = _outcome(result)
            return result
        except McpError as bad:
            if outcome != "denied":
                outcome = f"error {bad.code}"
                if not is_passed_on:
                    record.decide("limits", "deny", bad.message)
            raise
        except Exception as bad:
            outcome = type(bad).__name__
            raise
        finally:
            record.end(outcome)

    async def _admit(self, x: Exchange, asked: Asked, record: AuditedRequest) -> None:
        """Decide about a request. Raises Denial, and McpError beyond a rate."""
        protections = self._protections
        if self._is_gone(asked):
            words = f"The {asked.kind} is not offered any more."
            record.decide("pins", "deny", words)
            raise Denial(words)
        if protections.rates is not None and not asked.replayed:
            await protections.rates.acquire(x, asked)
        questions: list[str] = []
        is_judged = protections.policy is not None or protections.hook is not None
        if is_judged and asked.arguments_problem:
            record.decide("policy", "deny", asked.arguments_problem)
            raise Denial(asked.arguments_problem)
        if protections.policy is not None:
            verdict = self._judge(protections.policy, asked)
            record.decide("policy", verdict.decision, verdict.why)
            self._follow(verdict, questions)
        if protections.hook is not None:
            verdict = await protections.hook.judge(asked)
            if protections.hook.enforces:
                record.decide("hook", verdict.decision, verdict.why)
                self._follow(verdict, questions)
            else:
                record.entry.update(hookDecision=verdict.decision, hookWhy=verdict.why[:500])
        if questions:
            allowed, words = await approved_by_caller(x, asked, " ".join(questions))
            record.decide("caller", "ask" if allowed else "deny", words)
            if not allowed:
                raise Denial(words)

    def _judge(self, policy: Policy, asked: Asked) -> Verdict:
        if asked.kind != "tool":
            return policy.judge_reading(asked.server, asked.requester)
        tool = self._tools[asked.name]
        trusted = asked.server in self._protections.trusted
        return policy.judge(asked.server, tool, asked.arguments, trusted, "", asked.requester)

    def _is_gone(self, asked: Asked) -> bool:
        """Whether a tool or prompt was removed, or withheld, while the request was on its way."""
        if self.offered is None and self._read is None:
            return True
        if asked.kind == "tool":
            return asked.name not in self._tools
        return asked.method == "prompts/get" and asked.name not in self._prompts

    @staticmethod
    def _follow(verdict: Verdict, questions: list[str]) -> None:
        if verdict.decision == "deny":
            raise Denial(verdict.why)
        if verdict.decision == "ask":
            questions.append(verdict.why)

    async def _admit_result(self, asked: Asked, result: AnyResult, record: AuditedRequest) -> None:
        """Decide about an answer. Raises Denial, and McpError for one that is too large."""
        protections = self._protections
        if isinstance(result, InputRequiredResult):
            return
        most = protections.limits.result
        if most is not None:
            size = size_of(result)
            if size is None:
                size = len(_encode(result))
            if size > most:
                words = f"The result has {size:,} bytes; this gateway passes on {most:,} at most."
                raise McpError(INTERNAL_ERROR, words, {"reason": "size"})
        if protections.hook is not None:
            verdict = await protections.hook.judge(asked.answered(result))
            if protections.hook.enforces:
                record.decide("hook", verdict.decision, verdict.why)
                if verdict.decision != "allow":
                    raise Denial(verdict.why)
            elif verdict.decision != "allow":
                record.entry.update(hookDecision=verdict.decision, hookWhy=verdict.why[:500])


def _outcome(result: AnyResult) -> str:
    if isinstance(result, InputRequiredResult):
        return "input required"
    return "tool error" if getattr(result, "is_error", False) else "ok"


# -- from settings ---------------------------------------------------------------------------------


def protections_of(settings: Settings, before: object = None) -> Protections:
    """Return the protections that settings describe. Everything is read and checked here, so that a
    reload fails before it has changed anything.

    Args:
        settings: The settings.
        before: The protections until now. Their audit and their rates go on, if the settings are
            the same.

    Raises:
        BadPolicy, BadPins, BadHook: A file of the settings cannot be used; the message names it.
        BadSettings: Two settings contradict each other.
    """
    folder = settings.folder
    policy = None
    if settings.policy.file:
        policy = load_policy(folder / settings.policy.file, gateway=True)
    pins = None
    if settings.policy.lock:
        pins = Pins(folder / settings.policy.lock)
        pins.known("")  # the file is read here, and any fault in it is raised
    hook = None
    if settings.policy.hook:
        hook = GuardHook(load_hook(settings.policy.hook, folder), mode=settings.policy.hook_mode)
    limits = CallLimits(
        rates={key: _rate(text) for key, text in settings.limits.rates.items()},
        queue=settings.limits.queue,
        result=settings.limits.size_bytes,
    )
    required = policy is not None and policy.log_required
    options = AuditOptions(
        path=audit_path(settings), required=required, arguments=settings.audit.arguments
    )
    if required and options.path is None:
        raise BadSettings(
            f"{settings.policy.file} has log_required, and the audit is off: set file under"
            " [audit] to the path of a file"
        )
    audit = GatewayAudit(options)
    rates: RateStore = OwnRates(settings.listen.store)
    if isinstance(before, Protections):
        if before.audit.options == options:
            audit = before.audit
        known = before.rate_store
        if isinstance(known, OwnRates) and known.url == settings.listen.store:
            rates = known
    return Protections(
        policy=policy,
        pins=pins,
        hook=hook,
        limits=limits,
        rates=rates,
        audit=audit,
        trusted=frozenset(name for name, entry in settings.entries.items() if entry.trusted),
    )


def audit_path(settings: Settings) -> Path | None:
    """Return the path of the audit log of settings; None for none.

    Raises:
        BadSettings: Its folder cannot be created.
    """
    if settings.audit.file == "off":
        return None
    if settings.audit.file:
        return settings.folder / settings.audit.file
    try:
        path = data_folder().parent / "gateway" / "audit.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, StoreError) as bad:
        raise BadSettings(
            f"The folder of the audit log cannot be created: {bad}. Set file under [audit] to the"
            " path of a file, or to off."
        ) from None
    return path


def _rate(text: str) -> Rate:
    count, seconds = rate_of(text)
    return Rate(per_second=count / seconds, burst=count)
