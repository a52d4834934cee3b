"""Whatever arguments, answers, results and timings: nothing is called that was not shown whole and
allowed by the user, or by a rule, a plan or bounds that the user made.

The oracle knows only what the user was shown and answered. It reads the rules from the text that
the user saw, and decides with a matcher of its own.
"""

from __future__ import annotations

import asyncio
import posixpath
import re
import tomllib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.models.scripted import call
from interlock_apps.fleet.events import CallDecided, CallProposed, TaintCleared, Tainted
from interlock_apps.fleet.policy import Policy, Rule
from interlock_apps.fleet.questions import CallQuestion, Decision, NotAnswered, PlanQuestion
from interlock_apps.host import Bounds
from tests.host.consent_stage import ORDER, Recorded
from tests.host.scene import scene, turns

PATHS = ["/srv/a", "/srv/docs/b", "/srv/../etc/p", "/etc/p", "rel", "/work2/c", "~/n"]
MAILS = ["ada@example.com", "kim@example.com", "eve@evil.org", "eve@evil.org,ada@example.com"]
URLS = ["https://example.com/a", "https://example.com/order", "https://example.com@evil.org/"]
TEXTS = ["", "x", ORDER]

CALLS = st.one_of(
    st.builds(lambda path: ("files", "read", {"path": path}), st.sampled_from(PATHS)),
    st.builds(
        lambda path, text: ("files", "write", {"path": path, "text": text}),
        st.sampled_from(PATHS),
        st.sampled_from(TEXTS),
    ),
    st.builds(lambda path: ("files", "delete", {"path": path}), st.sampled_from(PATHS)),
    st.builds(lambda url: ("net", "fetch", {"url": url}), st.sampled_from(URLS)),
    st.builds(
        lambda to, body: ("net", "send", {"to": to, "body": body}),
        st.sampled_from(MAILS),
        st.sampled_from(TEXTS),
    ),
)
STEPS = st.lists(CALLS, min_size=1, max_size=4)
WRITTEN = st.lists(
    st.builds(
        Rule,
        decision=st.sampled_from(["allow", "ask", "deny"]),
        server=st.sampled_from(["*", "files", "net"]),
        tool=st.sampled_from(["*", "read", "write", "send", "fetch"]),
        arguments=st.sampled_from([{}, {"path": {"under": "/srv"}}, {"path": {"under": "/etc"}}]),
    ),
    max_size=3,
)
MODES = st.sampled_from(["ask", "read", "plan", "bounds"])
# What the user does at a question: an answer, with so many turns of the loop before it.
MOVES = st.tuples(
    st.sampled_from(["yes", "no", "nothing", "session", "always", "scope", "scope always", "edit"]),
    st.integers(0, 12),
    st.integers(0, 9),
)
# What the user does in between: a mode, or "clear", after so many questions.
CHANGES = st.lists(st.tuples(st.integers(0, 6), st.one_of(MODES, st.just("clear"))), max_size=3)


class Witness:
    """The user, who remembers everything that was shown and answered."""

    def __init__(self, moves: list[tuple[str, int, int]], changes: list[tuple[int, str]]) -> None:
        self.moves = moves
        self.changes = changes
        self.session: Any = None
        self.allowed: dict[str, list[dict[str, Any]]] = {}  # by call, what the user allowed
        self.rules: list[dict[str, Any]] = []
        self.steps: list[Any] = []
        self.bounds: list[int] = []  # the calls that bounds allow, one entry for each renewal
        self._count = 0

    async def answer(self, question: Any) -> Any:
        """See UserInterface."""
        self._count += 1
        for at, change in self.changes:
            if at == self._count:
                self.change(change)
        what, waits, place = self.moves[self._count % len(self.moves)]
        for _ in range(waits):
            await asyncio.sleep(0)
        if isinstance(question, PlanQuestion):
            return self._approve(question, what, place)
        assert isinstance(question, CallQuestion)
        if what == "nothing":
            return NotAnswered(words="away")
        if what == "no":
            return Decision(allow=False, remember="session" if place % 2 else "once")
        arguments = dict(question.arguments)
        if what == "edit":
            key = sorted(arguments)[0]
            arguments[key] = f"{arguments[key]}-edited"
            self.allowed.setdefault(question.call, []).append(arguments)
            return Decision(allow=True, arguments=arguments)
        self.allowed.setdefault(question.call, []).append(arguments)
        if what in ("session", "always"):
            if question.may_remember:
                self.rules.append({"server": question.server, "tool": question.tool})
            return Decision(allow=True, remember=what)  # type: ignore[arg-type]  # one of the two
        if what.startswith("scope") and question.scopes:
            scope = place % len(question.scopes)
            if question.may_remember:
                (rule,) = tomllib.loads(question.scopes[scope].toml)["rules"]
                self.rules.append(rule)
            remember: Any = "always" if what.endswith("always") else "session"
            return Decision(allow=True, remember=remember, scope=scope)
        return Decision(allow=True, renew=place % 2 == 0)

    def change(self, change: str) -> None:
        """Choose a mode, or clear the taint."""
        if change == "clear":
            self.session.consent.clear_taint()
        elif change == "bounds":
            self.session.bounds = Bounds(calls=2, folders=("/srv",))
        else:
            self.session.mode = change

    def _approve(self, question: PlanQuestion, what: str, place: int) -> Any:
        if what in ("no", "nothing"):
            return Decision(allow=False)
        only = [at for at in range(len(question.steps)) if what != "edit" or at == place]
        self.steps += [question.steps[at] for at in only]
        return Decision(allow=True, only=tuple(only))


def covers(
    rule: dict[str, Any], server: str, tool: str, arguments: dict[str, Any], reads: bool
) -> bool:
    """Whether a rule that the user saw allows a call: the oracle's own reading of its text."""
    if rule.get("server", "*") not in ("*", server) or rule.get("tool", "*") not in ("*", tool):
        return False
    if "read_only" in rule and rule["read_only"] != reads:
        return False
    for name, pattern in rule.get("arguments", {}).items():
        values = list(arguments.values()) if name == "*" else [arguments.get(name)]
        if pattern.get("given") is False:
            if arguments.get(name) is not None:
                return False
            continue
        if not all(value is not None and holds(pattern, value) for value in values):
            return False
    return True


def holds(pattern: dict[str, Any], value: Any) -> bool:
    """Whether a value is what a pattern says."""
    if "is" in pattern:
        return bool(value == pattern["is"])
    if "in" in pattern:
        return any(value == one for one in pattern["in"])
    if "matches" in pattern:
        return re.fullmatch(pattern["matches"], value) is not None
    folder = pattern["under"]
    whole = posixpath.normpath(value)
    return value.startswith("/") and (whole + "/").startswith(folder.rstrip("/") + "/")


def in_plan(step: Any, name: str, arguments: dict[str, Any]) -> bool:
    """Whether a call is an approved step."""
    return step.name == name and all(
        name in step.open or step.arguments.get(name) == value for name, value in arguments.items()
    )


async def play(
    steps: list[list[Any]],
    written: list[Rule],
    mode: str,
    moves: list[tuple[str, int, int]],
    changes: list[tuple[int, str]],
) -> None:
    """Run a conversation, and hold each call against what the user saw and decided."""
    recorded = Recorded()
    recorded.pages["https://example.com/order"] = ORDER
    witness = Witness(moves, changes)
    script: list[Any] = [
        [call(f"{server}__{tool}", **arguments) for server, tool, arguments in step]
        for step in steps
    ]
    plan = [
        {"tool": f"{server}__{tool}", "arguments": arguments}
        for server, tool, arguments in steps[-1]
    ]
    script.insert(0, [call("interlock__plan", steps=plan)])
    async with scene(
        recorded.servers,
        *script,
        "done",
        person=witness,
        policy=Policy(written),
        trusted=["files"],
    ) as one:
        session = witness.session = one.host.session()
        witness.change(mode)
        ended = await session.say("go")
        await turns(3)
        assert ended.reason == "done"
        check(one, recorded, witness, written)


def check(one: Any, recorded: Recorded, witness: Witness, written: list[Rule]) -> None:
    """Each call that ran has a decision of the user behind it."""
    proposed: dict[str, CallProposed] = {}
    ran: list[tuple[str, str, dict[str, Any]]] = []
    tainted = False
    for event in one.events:
        if isinstance(event, Tainted):
            tainted = True
        elif isinstance(event, TaintCleared):
            tainted = False
        elif isinstance(event, CallProposed):
            proposed[event.call] = event
        elif isinstance(event, CallDecided) and event.allow:
            about = proposed[event.call]
            arguments = about.arguments if event.arguments is None else event.arguments
            reads = (about.server, about.tool) == ("files", "read")
            own = (about.server, about.tool, arguments)
            ran.append(own)
            denied = any(
                rule.decision == "deny" and covers(_plain(rule), *own, reads) for rule in written
            )
            assert not denied, own
            if event.by == "person":
                assert arguments in witness.allowed.get(event.call, []), own
                continue
            assert not tainted or reads, f"{own} without a question after orders in a result"
            asks = any(
                rule.decision == "ask" and covers(_plain(rule), *own, reads) for rule in written
            )
            assert not asks, own
            if event.by == "plan":
                assert any(in_plan(step, about.name, arguments) for step in witness.steps), own
            elif event.by == "bounds":
                path = arguments.get("path", "/srv")
                assert holds({"under": "/srv"}, path), own
                assert about.tool != "delete", own
            else:
                allowed = [_plain(rule) for rule in written if rule.decision == "allow"]
                by_rule = any(covers(rule, *own, reads) for rule in [*allowed, *witness.rules])
                assert by_rule or reads, own
    left = list(ran)
    for made in recorded.calls:
        assert made in left, f"{made} was never allowed"
        left.remove(made)


def _plain(rule: Rule) -> dict[str, Any]:
    return {"server": rule.server, "tool": rule.tool, "arguments": rule.arguments}


STORY = given(
    st.lists(STEPS, min_size=1, max_size=3),
    WRITTEN,
    MODES,
    st.lists(MOVES, min_size=1, max_size=8),
    CHANGES,
)


@STORY
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_nothing_is_called_that_the_user_did_not_allow(
    steps: Any, written: Any, mode: Any, moves: Any, changes: Any
) -> None:
    """`TOL-24`: the host under a user who answers anything, in any order, at any time."""
    asyncio.run(play(steps, written, mode, moves, changes))


@pytest.mark.endurance(seconds=120)
@STORY
@settings(max_examples=1500, suppress_health_check=list(HealthCheck), deadline=None)
def test_nothing_is_called_that_the_user_did_not_allow_in_many_conversations(
    steps: Any, written: Any, mode: Any, moves: Any, changes: Any
) -> None:
    """The same, for long."""
    asyncio.run(play(steps, written, mode, moves, changes))
