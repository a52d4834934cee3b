"""Pinned tools, prompts and instructions of the servers behind a gateway: what has changed is
withheld.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from interlock import Offered
from interlock.caches import BoundedCache
from interlock.types import Prompt, Tool
from interlock.untrusted.invisible import visible_line

from ..fleet.pins import PinDifference, Pins, ServerFeatures, digest_of
from ..fleet.questions import Warned
from ..fleet.threat_scan import of_prompt, of_tools
from .audit import GatewayAudit

log = logging.getLogger("interlock_apps.gateway")

_MOST_NOTED = 20_000  # features that are known to have been scanned, or to be withheld
_MOST_LISTS = 64  # lists whose admitted part is remembered: several views and principals share them
_WHY = "It has changed since it was pinned."


class WithheldFeature(Struct, frozen=True, kw_only=True):
    """A tool or prompt that is withheld until someone approves it.

    Attributes:
        id: Identifies the feature in exactly this form.
        server: The server.
        features: The feature, as the server offers it now.
        difference: What differs from the pinned form.
        why: Why it is withheld, in a sentence.
    """

    id: str
    server: str
    features: ServerFeatures
    difference: PinDifference
    why: str


class _Admitted(Struct, frozen=True):
    """What was admitted of the lists of a server, and what was withheld."""

    offered: Offered
    generation: int
    admitted: Offered
    withheld: dict[str, WithheldFeature]


class PinnedFeatures:
    """Pins each tool, each prompt and the instructions of a server when they are first seen, and
    withholds what differs from that until it is approved.

    The first sight is trusted: pins show changes, and do not show that a server was honest from the
    beginning. A tool that is added later is pinned then, and recorded in the audit: what a server
    offers may depend on the user and on the time. What the threat scan suspects is recorded in the
    audit once, and is not withheld.

    Args:
        pins: The pins of all servers; None to pin nothing.
        audit: Where changes and suspicions are recorded.
    """

    def __init__(self, pins: Pins | None, audit: GatewayAudit) -> None:
        self._pins = pins
        self._audit = audit
        self._withheld: dict[object, dict[str, WithheldFeature]] = {}
        self._tools: dict[str, Sequence[Tool]] = {}
        self._noted: BoundedCache[str, bool] = BoundedCache(_MOST_NOTED)
        self._scans: set[asyncio.Future[None]] = set()
        self._listeners: list[Callable[[], None]] = []
        self._generation = 0
        self._lists: BoundedCache[tuple[str, int], _Admitted] = BoundedCache(_MOST_LISTS)

    def on_change(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call a function when something was approved, until the returned function is called."""
        self._listeners.append(changed)

        def stop() -> None:
            if changed in self._listeners:
                self._listeners.remove(changed)

        return stop

    def admitted(self, holder: object, server: str, offered: Offered) -> Offered:
        """Return what a server offers, without what is withheld.

        Args:
            holder: The connection whose lists these are; a server may have several.
            server: The server.
            offered: Its lists.

        Raises:
            BadPins: The file of pins cannot be used. Then nothing is known to be unchanged.
        """
        known = self._lists.get((server, id(offered)))  # which keeps the lists, and so their id
        if known is None or known.generation != self._generation:
            known = self._compared(server, offered)
            self._lists.put((server, id(offered)), known)
        if known.withheld:
            self._withheld[holder] = known.withheld
        else:
            self._withheld.pop(holder, None)
        return known.admitted

    def _compared(self, server: str, offered: Offered) -> _Admitted:
        self._scan(server, offered)
        self._tools[server] = offered.tools
        if self._pins is None:
            return _Admitted(offered, self._generation, offered, {})
        features = ServerFeatures(
            tools=offered.tools, prompts=offered.prompts, instructions=offered.instructions
        )
        find = self._pins.seen if self._pins.known(server) else self._pins.first
        found = find(server, features)
        if added := [each for each in found if each.how == "added"]:
            for each in self._pins.approve_all(server, added):
                self._audit.note("pinned", _entry(server, each))
        differences = [each for each in found if each.how == "changed"]
        if not differences:
            return _Admitted(offered, self._generation, offered, {})
        withheld = [_withheld(server, each, offered) for each in differences]
        for feature in withheld:
            self._note(feature)
        blocked = {(each.kind, each.name) for each in differences}
        admitted = replace(
            offered,
            tools=[tool for tool in offered.tools if ("tool", tool.name) not in blocked],
            prompts=[each for each in offered.prompts if ("prompt", each.name) not in blocked],
            instructions=None if ("instructions", "") in blocked else offered.instructions,
        )
        by_id = {feature.id: feature for feature in withheld}
        return _Admitted(offered, self._generation, admitted, by_id)

    def withheld(self) -> Sequence[WithheldFeature]:
        """Return all features that are withheld."""
        found: dict[str, WithheldFeature] = {}
        for features in self._withheld.values():
            found |= features
        return list(found.values())

    def approve(self, ids: Sequence[str], by: str = "") -> int:
        """Approve features in the form in which they were shown.

        Args:
            ids: The features.
            by: Who approves, for the audit.

        Returns:
            How many of them are approved now. One that has changed again has another id.

        Raises:
            BadPins: The file of pins cannot be used.
        """
        pins = self._pins
        count = 0
        for feature in self.withheld():
            if pins is None or feature.id not in ids:
                continue
            pins.seen(feature.server, feature.features)
            if pins.approve(feature.server, feature.difference):
                count += 1
                entry = _entry(feature.server, feature.difference)
                self._audit.note("approved", {**entry, "by": by})
        if count:
            self.refresh()
        return count

    def refresh(self) -> None:
        """Look at the pins again, after another process may have approved something."""
        self._generation += 1
        for changed in list(self._listeners):
            changed()

    def forget(self, holder: object) -> None:
        """Forget the lists of a connection that has ended; the pins stay."""
        self._withheld.pop(holder, None)

    def _note(self, feature: WithheldFeature) -> None:
        if self._noted.get(feature.id) is None:
            self._noted.put(feature.id, True)
            log.warning(
                "the %s %s of %s is withheld: %s To approve it: interlock gateway approve",
                feature.difference.kind,
                visible_line(feature.difference.name),
                feature.server,
                feature.why,
            )
            entry = _entry(feature.server, feature.difference)
            self._audit.note("withheld", {**entry, "why": feature.why})

    # -- the threat scan ---------------------------------------------------------------------------

    def _scan(self, server: str, offered: Offered) -> None:
        """Scan the texts that were not scanned before: in a thread, if an event loop would wait."""
        tools = [tool for tool in offered.tools if self._is_new(server, tool)]
        prompts = [prompt for prompt in offered.prompts if self._is_new(server, prompt)]
        if not tools and not prompts:
            return
        others = {name: theirs for name, theirs in self._tools.items() if name != server}
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._note_suspicions(server, _suspicions(server, tools, prompts, others))
            return

        async def scan() -> None:
            found = await asyncio.to_thread(_suspicions, server, tools, prompts, others)
            self._note_suspicions(server, found)

        task = loop.create_task(scan())
        self._scans.add(task)
        task.add_done_callback(self._scans.discard)

    async def scanned(self) -> None:
        """Wait until all scans have ended."""
        while self._scans:
            await asyncio.wait(self._scans)

    def _note_suspicions(self, server: str, found: Mapping[str, Sequence[Warned]]) -> None:
        for name, warnings in found.items():
            for warned in warnings:
                entry = {
                    "server": server,
                    "name": name,
                    "suspicion": warned.kind,
                    "why": warned.words,
                    "where": warned.where,
                }
                self._audit.note("suspicion", entry)

    def _is_new(self, server: str, feature: Tool | Prompt) -> bool:
        """Whether a feature was not scanned in this form before."""
        key = f"{server} {type(feature).__name__} {digest_of(feature)}"
        if self._noted.get(key):
            return False
        self._noted.put(key, True)
        return True


def _suspicions(
    server: str,
    tools: Sequence[Tool],
    prompts: Sequence[Prompt],
    others: Mapping[str, Sequence[Tool]],
) -> dict[str, tuple[Warned, ...]]:
    found = of_tools(server, tools, others)
    for prompt in prompts:
        if warnings := of_prompt(prompt):
            found[prompt.name] = (*found.get(prompt.name, ()), *warnings)
    return found


def _withheld(server: str, difference: PinDifference, offered: Offered) -> WithheldFeature:
    parts = (server, difference.kind, difference.name, difference.digest)
    name = difference.name
    features = ServerFeatures(
        tools=[each for each in offered.tools if difference.kind == "tool" and each.name == name],
        prompts=[
            each for each in offered.prompts if difference.kind == "prompt" and each.name == name
        ],
        instructions=offered.instructions if difference.kind == "instructions" else None,
    )
    return WithheldFeature(
        id=hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()[:16],
        server=server,
        features=features,
        difference=difference,
        why=_WHY,
    )


def _entry(server: str, difference: PinDifference) -> dict[str, str]:
    return {
        "server": server,
        "kind": difference.kind,
        "name": difference.name,
        "digest": difference.digest,
    }
