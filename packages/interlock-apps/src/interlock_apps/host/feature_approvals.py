"""Approval of features: a tool or prompt that changed after its approval is blocked (rug pull)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal

from ..fleet import threat_scan
from ..fleet.events import Event, FeaturesChanged, Notice, Pinned
from ..fleet.hub import OfferedFeatures
from ..fleet.pins import BadPins, PinDifference, Pins, ServerFeatures
from ..fleet.questions import Decision, FeatureChange, NotAnswered, PinQuestion, Warned
from ..fleet.toolbox import ServerTool, Toolbox
from .prompter import Prompter

MOST_NOTICES = 10  # notices about one server in a row
MOST_WARNED = 3  # tools and prompts named in one notice


class FeatureApprovals:
    """Lets only approved features of servers into the toolbox.

    Attributes:
        instructions: The approved instructions, by server.
        blocked: Why a feature may not be used, by server, kind and name.
        warnings: The threat scan's warnings about tools and prompts, by server, kind and name.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        pins: Pins,
        prompter: Prompter,
        publish: Callable[[Event], None],
    ) -> None:
        self.instructions: dict[str, str] = {}
        self.blocked: dict[str, dict[tuple[str, str], str]] = {}
        self.warnings: dict[str, dict[tuple[str, str], tuple[Warned, ...]]] = {}
        self._toolbox = toolbox
        self._pins = pins
        self._prompter = prompter
        self._publish = publish
        self._servers: dict[str, OfferedFeatures] = {}
        self._open: dict[str, list[PinDifference]] = {}
        # The open question about each server, and the differences it shows.
        self._shown: dict[str, tuple[str, list[PinDifference]]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._noticed: dict[str, set[str]] = {}  # the words of the notices about each server
        # Differences that the person has denied.
        self._refused: dict[str, set[tuple[str, str, str]]] = {}

    def changed(self, features: OfferedFeatures) -> None:
        """Process the features that a server offers now."""
        try:
            self._apply(features)
        except BadPins as bad:
            self._offer_nothing(features, str(bad))

    def _apply(self, features: OfferedFeatures) -> None:
        server = features.server
        self._servers[server] = features
        if features.state in ("off", "refused"):
            self._toolbox.drop(server)
            self.instructions.pop(server, None)
            self._refused.pop(server, None)  # the next start asks the person again
            self._open.pop(server, None)
            self._withdraw_if_moot(server)
        if features.state != "up":
            # Its features are unknown now. Its tools keep their place in the meantime.
            self._publish(FeaturesChanged(server=server))
            return
        if self._pins.known(server):
            differences = self._pins.seen(server, _pinned_features(features))
        else:
            differences = self._pins.first(server, _pinned_features(features))
            self._publish(Pinned(server=server, kind="server", name=server, how="first"))
        self._add_approved_tools(features, differences)
        self._warn(features)
        asking = self._asking.get(server)
        if self._open[server] and (asking is None or asking.done()):
            task = asyncio.get_running_loop().create_task(self._ask(server))
            self._asking[server] = task

    def _offer_nothing(self, features: OfferedFeatures, words: str) -> None:
        """Block all features of a server whose approvals cannot be read."""
        server = features.server
        self._toolbox.drop(server)
        self.instructions.pop(server, None)
        self.blocked[server] = {("prompt", prompt.name): words for prompt in features.prompts}
        self._open.pop(server, None)
        words = f"Its tools are not offered: {words}"
        self._publish(Notice(level="error", server=server, words=words))
        self._publish(FeaturesChanged(server=server))

    def gone(self, server: str) -> None:
        """Forget a server that is no longer configured."""
        self._toolbox.drop(server)
        for table in (
            self._servers,
            self.instructions,
            self.blocked,
            self.warnings,
            self._open,
            self._noticed,
            self._refused,
        ):
            table.pop(server, None)
        if (asking := self._asking.pop(server, None)) is not None:
            asking.cancel()
        self._publish(FeaturesChanged(server=server))

    def warnings_of(self, item: ServerTool) -> tuple[Warned, ...]:
        """Return the threat scan's warnings about a tool, beside the tools of all servers."""
        return self.warnings.get(item.server, {}).get(("tool", item.tool.name), ())

    async def aclose(self) -> None:
        """Stop asking."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def _add_approved_tools(
        self, features: OfferedFeatures, differences: list[PinDifference]
    ) -> None:
        """Put a server's tools into the toolbox, and block what differs from its approval."""
        server = features.server
        # A removed feature is harmless; its approval stays.
        differences = [each for each in differences if each.how != "gone"]
        before = self.blocked.get(server, {}).keys()
        new = {(each.kind, each.name) for each in differences} - before
        self._open[server] = differences
        blocked = dict(self._pins.blocked(server))
        self.blocked[server] = {(kind, name): why for (kind, name), why in blocked.items()}
        is_blocked = ("instructions", "") in self.blocked[server]
        self.instructions[server] = "" if is_blocked else (features.instructions or "")
        self._withdraw_if_moot(server)
        refused = self._toolbox.put(
            server,
            features.tools,
            tools_globs=features.entry.tools,
            without=features.entry.without,
            blocked={name: why for (kind, name), why in blocked.items() if kind == "tool"},
        )
        for refusal in refused:
            self._notice_once(server, f"{refusal.tool}: {refusal.words}")
        for kind, name in sorted(new):
            self._publish(Pinned(server=server, kind=kind, name=name, how="blocked"))
        self._publish(FeaturesChanged(server=server))

    def _warn(self, features: OfferedFeatures) -> None:
        """Store the threat scan's warnings, and publish new ones in one notice."""
        server = features.server
        others = {id: other.tools for id, other in self._servers.items() if id != server}
        tools = threat_scan.of_tools(server, features.tools, others)
        prompts = {prompt.name: threat_scan.of_prompt(prompt) for prompt in features.prompts}
        found = {("tool", name): warnings for name, warnings in tools.items()}
        found |= {("prompt", name): warnings for name, warnings in prompts.items() if warnings}
        before = self.warnings.get(server, {})
        self.warnings[server] = found
        new = [key for key, warnings in found.items() if before.get(key) != warnings]
        lines = [_warning(*key, found[key]) for key in new[:MOST_WARNED]]
        if len(new) > len(lines):
            lines.append(f"{len(new) - len(lines)} more have warnings; see the server's panel.")
        if lines:
            self._notice_once(server, " ".join(lines))

    def _notice_once(self, server: str, words: str) -> None:
        noticed = self._noticed.setdefault(server, set())
        if words not in noticed and len(noticed) < MOST_NOTICES:
            noticed.add(words)
            words = threat_scan.visible(words)
            self._publish(Notice(level="warning", server=server, words=words))

    async def _ask(self, server: str) -> None:
        try:
            await self._ask_each(server)
        except BadPins as bad:
            features = self._servers.get(server)
            if features is not None:
                self._offer_nothing(features, str(bad))

    async def _ask_each(self, server: str) -> None:
        """Show all differences in one question. Later changes go into the next question."""
        seen: set[tuple[str, str, str]] = set()
        while True:
            done = seen | self._refused.get(server, set())
            waiting = [d for d in self._open.get(server, ()) if _mark(d) not in done]
            if not waiting:
                return
            seen |= {_mark(difference) for difference in waiting}
            shown = [(difference, self._change(server, difference)) for difference in waiting]
            shown.sort(key=lambda pair: not pair[1].warnings)  # flagged ones first
            question = PinQuestion(
                id=self._prompter.new_id(),
                server=server,
                changes=tuple(change for _, change in shown),
                warnings=_of_all([change for _, change in shown]),
            )
            self._shown[server] = (question.id, [difference for difference, _ in shown])
            try:
                answer = await self._prompter.ask(question)
            finally:
                self._shown.pop(server, None)
            if isinstance(answer, Decision):
                self._decided(server, [difference for difference, _ in shown], answer)

    def _change(self, server: str, difference: PinDifference) -> FeatureChange:
        known = self.warnings.get(server, {}).get((difference.kind, difference.name), ())
        found = (*threat_scan.of_text(difference.now), *known)
        return FeatureChange(
            kind=difference.kind,
            name=difference.name,
            was=threat_scan.visible(difference.was),
            now=threat_scan.visible(difference.now),
            warnings=tuple({each.words: each for each in found}.values()),
        )

    def _decided(self, server: str, shown: list[PinDifference], answer: Decision) -> None:
        """Approve what the person has chosen, and record the rest as denied."""
        wanted = range(len(shown)) if answer.only is None else answer.only
        chosen = [shown[at] for at in wanted if 0 <= at < len(shown)] if answer.allow else []
        approved = self._pins.approve_all(server, chosen)
        for difference in approved:
            self._publish_pin(server, difference, "approved")
        for difference in shown:
            if difference not in chosen:
                self._refused.setdefault(server, set()).add(_mark(difference))
                self._publish_pin(server, difference, "refused")
        features = self._servers.get(server)
        if approved and features is not None and features.state == "up":
            self._add_approved_tools(features, self._pins.seen(server, _pinned_features(features)))

    def _publish_pin(
        self, server: str, difference: PinDifference, how: Literal["approved", "refused"]
    ) -> None:
        self._publish(
            Pinned(
                server=server,
                kind=difference.kind,
                name=difference.name,
                how=how,
                digest=difference.digest,
            )
        )

    def _withdraw_if_moot(self, server: str) -> None:
        """Withdraw the open question about a server if none of its differences remains."""
        question, shown = self._shown.get(server, ("", []))
        left = {(each.kind, each.name) for each in self._open.get(server, ())}
        if shown and not any((each.kind, each.name) in left for each in shown):
            self._prompter.withdraw(
                question, NotAnswered(words="There is nothing left to approve.")
            )


def _of_all(changes: Sequence[FeatureChange]) -> tuple[Warned, ...]:
    """The warnings of a question: those of its only change, or how many changes are flagged."""
    if len(changes) == 1:
        return changes[0].warnings
    flagged = sum(bool(change.warnings) for change in changes)
    if not flagged:
        return ()
    words = f"{flagged} of {len(changes)} look dangerous. They come first, and are not selected."
    return (Warned(kind="flagged", words=words),)


def _warning(kind: str, name: str, warnings: tuple[Warned, ...]) -> str:
    """The warnings about a tool or prompt, in one line."""
    words = " ".join(dict.fromkeys(warned.words for warned in warnings))
    return f"The {kind} {name}: {words}"


def _mark(difference: PinDifference) -> tuple[str, str, str]:
    return difference.kind, difference.name, difference.digest


def _pinned_features(features: OfferedFeatures) -> ServerFeatures:
    return ServerFeatures(
        tools=tuple(features.tools),
        prompts=tuple(features.prompts),
        instructions=features.instructions,
    )
