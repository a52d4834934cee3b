"""The policy: rules and remembered answers decide whether a tool may be called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from interlock import ToolAnnotations
from interlock.types import Tool

from .patterns import BadPattern, Pattern, check_glob, check_pattern, matches
from .pins import digest_of

Choice = Literal["allow", "ask", "deny"]  # the decision about a call
HINTS = ("read_only", "destructive", "idempotent", "open_world")
_STRICTEST_FIRST: tuple[Choice, ...] = ("deny", "ask", "allow")
_VERBS: Mapping[Choice, str] = {"deny": "denies", "ask": "asks", "allow": "allows"}
CALLER_CONDITIONS = ("principal", "scope", "view", "client")
"""The conditions of a rule about the caller; only a gateway has more than one caller."""


class Requester(Struct, frozen=True, kw_only=True):
    """The caller of a gateway, as far as rules can name it.

    Attributes:
        principal: The subject, as the guard verified it; empty for a caller without a principal.
        issuer: The authorization server that vouches for the subject.
        scopes: The scopes that the caller was granted.
        view: The view that the caller uses.
        client: The OAuth client that the guard verified; without a guard the name that the program
            gives itself, which proves nothing.
    """

    principal: str = ""
    issuer: str = ""
    scopes: frozenset[str] = frozenset()
    view: str = ""
    client: str = ""


NOBODY = Requester()
"""The person at this machine: the caller of a host."""


class Rule(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A decision about some calls.

    `server` and `tool` are globs over the server's configured id and the tool's name. `arguments`
    are patterns by dotted path, which must all match (see `patterns.matches`). The hints match the
    tool's annotations, which are believed of trusted servers only: any other tool counts as not
    read-only, destructive, not idempotent and open world (`TOL-04`). `session` limits the rule to
    one conversation, `digest` to a tool that has not changed (see `pins.digest_of`). `reason` is
    shown to the person, and to the model if the rule denies.

    A gateway's rule may also have conditions about the caller, all of them globs (see `Requester`).
    `principal` with a space is an issuer and a subject, otherwise a subject of any issuer. `scope`
    fits if any scope of the caller does.
    """

    decision: Choice
    server: str = "*"
    tool: str = "*"
    principal: str = "*"
    scope: str = "*"
    view: str = "*"
    client: str = "*"
    arguments: dict[str, Pattern] = {}
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    session: str = ""
    digest: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        """Reject invalid patterns. Raises BadPattern (a ValueError)."""
        for name in ("server", "tool", *CALLER_CONDITIONS):
            check_glob(getattr(self, name))
        for path, pattern in self.arguments.items():
            check_pattern(path, pattern)


class Verdict(Struct, frozen=True, kw_only=True, rename="camel"):
    """The decision about a call, the rule behind it, and the reason in words.

    `rule` is None if no rule applies. With `review` the person sees the result before the model
    does. `may_remember` says whether an answer may be remembered; it may not if a written rule asks
    each time. `by` says what allows the call if it is no rule: the plan or the bounds of the
    conversation. With `bounded` the person is asked because a bound is reached.
    """

    decision: Choice
    why: str
    rule: Rule | None = None
    review: bool = False
    may_remember: bool = False
    by: Literal["rule", "plan", "bounds"] = "rule"
    bounded: bool = False


class ConversationRules(Struct, frozen=True):
    """Rules of a conversation, in addition to those of the policy.

    `default` replaces the policy's default; None: it does not.
    """

    rules: tuple[Rule, ...] = ()
    review: tuple[Rule, ...] = ()
    default: Choice | None = None


_NO_MORE = ConversationRules()


class Policy:
    """The rules, in no order: the strictest matching rule decides.

    The order is: any rule that denies; any written rule that asks, whatever was remembered; any
    rule that allows, written or remembered; `trusted_read_only` for read-only tools of trusted
    servers; `default`. If it is unknown whether a denying rule matches (a relative path and a
    forbidden folder), the person is asked. In `review`, only the conditions of the rules count.
    With `log_required` a tool is called only after the decision was written to the log.
    """

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        *,
        default: Choice = "ask",
        trusted_read_only: Choice = "allow",
        review: Iterable[Rule] = (),
        log_required: bool = False,
    ) -> None:
        self.rules = tuple(rules)
        self.default: Choice = default
        self.trusted_read_only: Choice = trusted_read_only
        self.review = tuple(review)
        self.log_required = log_required
        self._always: list[Rule] = []
        self._session: list[Rule] = []
        self._of_conversations: dict[str, ConversationRules] = {}

    def assign(self, session: str, more: ConversationRules) -> None:
        """Add rules to those that apply to a conversation, until `end`."""
        self._of_conversations[session] = more

    def judge(
        self,
        server: str,
        tool: Tool,
        arguments: Mapping[str, Any] | None,
        trusted: bool,
        session: str = "",
        requester: Requester = NOBODY,
    ) -> Verdict:
        """Decide about a call.

        `trusted` says whether the server's hints are believed. `requester` is the caller of a
        gateway. Never raises.
        """
        given = arguments or {}

        def fits(rule: Rule) -> bool | None:
            return _fits(rule, server, tool, given, trusted, session, requester)

        more = self._of_conversations.get(session, _NO_MORE)
        review = any(fits(rule) is not False for rule in (*self.review, *more.review))
        written = [(rule, fits(rule)) for rule in (*self.rules, *more.rules)]
        learned = [(rule, fits(rule)) for rule in (*self._session, *self._always)]
        for rule, fit in (*written, *learned):
            if rule.decision == "deny" and fit:
                return Verdict(decision="deny", rule=rule, why=_why("denies", rule))
        for rule, fit in written:
            if rule.decision == "ask" and fit is not False:
                return Verdict(decision="ask", rule=rule, why=_why("asks", rule), review=review)
        for rule, fit in (*written, *learned):
            if rule.decision == "deny" and fit is None:
                why = "It is not certain whether a rule denies this" + (
                    f": {rule.reason}" if rule.reason else "."
                )
                return Verdict(decision="ask", rule=rule, why=why, review=review)
        for rule, fit in (*written, *learned):
            if rule.decision == "allow" and fit:
                return Verdict(decision="allow", rule=rule, why=_why("allows", rule), review=review)
        if trusted and hints(tool.annotations)["read_only"] and self.trusted_read_only != "ask":
            return Verdict(
                decision=self.trusted_read_only,
                why="The tool is read-only, according to a server that you trust.",
                review=review,
            )
        default = more.default or self.default
        asks = default == "ask"
        why = {
            "ask": "No rule decides this.",
            "allow": "No rule denies this.",
            "deny": "No rule allows this.",
        }[default]
        return Verdict(decision=default, why=why, review=review, may_remember=asks)

    def narrower(
        self,
        server: str,
        tool: Tool,
        arguments: Mapping[str, Any],
        trusted: bool,
        session: str = "",
    ) -> Rule | None:
        """Return a rule that allows calls of this tool with other arguments; None if a rule covers
        this call, or none is about the arguments of the tool. Never raises.
        """
        found = None
        for rule in self._rules_of(session):
            if rule.decision != "allow":
                continue
            if _fits(rule, server, tool, arguments, trusted, session, NOBODY):
                return None
            # Unknown without the arguments: the rule is about them.
            if _fits(rule, server, tool, None, trusted, session, NOBODY) is None:
                found = found or rule
        return found

    def matching(
        self,
        server: str,
        tool: Tool,
        arguments: Mapping[str, Any],
        trusted: bool,
        session: str = "",
    ) -> list[Rule]:
        """Return the rules that fit a call, written ones first. Never raises."""
        return [
            rule
            for rule in self._rules_of(session)
            if _fits(rule, server, tool, arguments, trusted, session, NOBODY)
        ]

    def _rules_of(self, session: str) -> tuple[Rule, ...]:
        """All rules of a conversation, written ones first."""
        more = self._of_conversations.get(session, _NO_MORE)
        return (*self.rules, *more.rules, *self.learned)

    def adopt(self, other: Policy) -> None:
        """Take over the written rules and settings of another policy. What was remembered stays."""
        self.rules = other.rules
        self.default = other.default
        self.trusted_read_only = other.trusted_read_only
        self.review = other.review

    def hides(self, server: str, tool: Tool, trusted: bool, requester: Requester = NOBODY) -> bool:
        """Whether every call of a tool is denied, whatever its arguments. Never raises."""
        fits = [
            (rule.decision, _fits(rule, server, tool, None, trusted, "", requester))
            for rule in (*self.rules, *self.learned)
        ]
        if any(decision == "deny" and fit for decision, fit in fits):
            return True
        if any(decision != "deny" and fit is not False for decision, fit in fits):
            return False
        if trusted and hints(tool.annotations)["read_only"] and self.trusted_read_only != "ask":
            return self.trusted_read_only == "deny"
        return self.default == "deny"

    def judge_reading(self, server: str, requester: Requester = NOBODY) -> Verdict:
        """Decide about a prompt, a resource or a skill of a server, by the rules that name no tool.

        Without such a rule it is allowed, unless the default is "deny": it reads. Never raises.
        """
        found: dict[Choice, Rule] = {}
        for rule in self.rules:
            if _is_about_servers(rule) and _fits_caller(rule, server, requester):
                found.setdefault(rule.decision, rule)
        for decision in _STRICTEST_FIRST:
            if decision in found:
                rule = found[decision]
                why = _why(_VERBS[decision], rule)
                return Verdict(decision=decision, rule=rule, why=why)
        if self.default == "deny":
            return Verdict(decision="deny", why="No rule allows this.")
        return Verdict(decision="allow", why="It reads, and no rule denies this.")

    def caller_rules(self) -> tuple[Rule, ...]:
        """The rules with a condition about the caller."""
        return tuple(
            rule
            for rule in self.rules
            if any(getattr(rule, name) != "*" for name in CALLER_CONDITIONS)
        )

    def remember(self, rule: Rule, how: Literal["session", "always"]) -> None:
        """Add a rule.

        "session": for its `session`, or until the policy is dropped if it names none. "always": it
        is saved, and belongs to no conversation. See `rule_for`.
        """
        rule = replace(rule, session="") if how == "always" else rule
        self.forget(rule)
        (self._session if how == "session" else self._always).append(rule)

    @property
    def learned(self) -> tuple[Rule, ...]:
        """The remembered rules: first those that are saved, then those of sessions."""
        return (*self._always, *self._session)

    @property
    def saved(self) -> tuple[Rule, ...]:
        """The remembered rules that always hold and are saved in a file."""
        return tuple(self._always)

    def forget(self, rule: Rule) -> bool:
        """Remove a remembered rule; return whether it existed."""
        for kept in (self._always, self._session):
            if rule in kept:
                kept.remove(rule)
                return True
        return False

    def end(self, session: str) -> None:
        """Drop the rules remembered for a conversation that has ended."""
        self._session = [rule for rule in self._session if not session or rule.session != session]
        self._of_conversations.pop(session, None)


def rule_for(
    server: str, tool: Tool, *, decision: Choice = "allow", session: str = "", reason: str = ""
) -> Rule:
    """The rule for a remembered answer: for exactly this tool, until the tool changes."""
    return Rule(
        decision=decision,
        server=exactly(server),
        tool=exactly(tool.name),
        session=session,
        digest=digest_of(tool),
        reason=reason,
    )


def exactly(name: str) -> str:
    """The glob that matches only this name."""
    return re.sub(r"[*?\[]", r"[\g<0>]", name)


def hints(annotations: ToolAnnotations | None) -> dict[str, bool]:
    """A tool's annotations, with the protocol's defaults for missing ones (2026-07-28,
    "ToolAnnotations"; `TOL-04`).
    """
    says = annotations or ToolAnnotations()
    reads = says.read_only_hint is True
    return {
        "read_only": reads,
        "destructive": not reads and says.destructive_hint is not False,
        "idempotent": reads or says.idempotent_hint is True,
        "open_world": says.open_world_hint is not False,
    }


def fits_requester(rule: Rule, requester: Requester) -> bool:
    """Whether the conditions of a rule about the caller hold."""
    if rule.principal != "*":
        who = requester.principal
        if " " in rule.principal:
            who = f"{requester.issuer} {requester.principal}"
        if not _named(who, rule.principal):
            return False
    if rule.scope != "*" and not any(_named(scope, rule.scope) for scope in requester.scopes):
        return False
    return (rule.view == "*" or _named(requester.view, rule.view)) and (
        rule.client == "*" or _named(requester.client, rule.client)
    )


def _fits_caller(rule: Rule, server: str, requester: Requester) -> bool:
    return _named(server, rule.server) and fits_requester(rule, requester)


def _is_about_servers(rule: Rule) -> bool:
    """Whether a rule has no condition about a tool."""
    return (
        rule.tool == "*"
        and not rule.arguments
        and not rule.digest
        and all(getattr(rule, hint) is None for hint in HINTS)
    )


def _fits(
    rule: Rule,
    server: str,
    tool: Tool,
    arguments: Mapping[str, Any] | None,
    trusted: bool,
    session: str,
    requester: Requester,
) -> bool | None:
    """Whether a rule fits a call; None if that is unknown. Without `arguments`: for any of them."""
    if rule.session and rule.session != session:
        return False
    if not _fits_caller(rule, server, requester) or not _named(tool.name, rule.tool):
        return False
    says = hints(tool.annotations if trusted else None)
    if any(getattr(rule, hint) not in (None, says[hint]) for hint in HINTS):
        return False
    if rule.digest and rule.digest != digest_of(tool):
        return False
    if arguments is None:
        return None if rule.arguments else True
    verdicts = [
        matches(path, pattern, arguments, every=rule.decision == "allow")
        for path, pattern in rule.arguments.items()
    ]
    if False in verdicts:
        return False
    if None in verdicts:
        return None
    return True


def _named(name: str, glob: str) -> bool:
    return (name == glob and not re.search(r"[*?\[]", glob)) or fnmatchcase(name, glob)


def _why(does: str, rule: Rule) -> str:
    if rule.reason:
        return f"A rule {does} this: {rule.reason}"
    parts = [
        f"{key} {value}"
        for key in ("server", "tool", *CALLER_CONDITIONS)
        if (value := getattr(rule, key)) != "*"
    ]
    parts += [
        f"{hint.replace('_', ' ')} {str(getattr(rule, hint)).lower()}"
        for hint in HINTS
        if getattr(rule, hint) is not None
    ]
    parts += sorted(rule.arguments)
    return f"A rule {does} this ({', '.join(parts)})." if parts else f"A rule {does} everything."


__all__ = [
    "BadPattern",
    "CALLER_CONDITIONS",
    "Choice",
    "ConversationRules",
    "NOBODY",
    "Policy",
    "Requester",
    "Rule",
    "Verdict",
    "exactly",
    "fits_requester",
    "hints",
    "rule_for",
]
