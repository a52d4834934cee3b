"""Keeps the toolbox in step with the servers, and lets nothing into it that is not what the person has approved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Literal

from ..fleet import threat_scan
from ..fleet.events import Event, FeaturesChanged, Notice, Pinned
from ..fleet.hub import ManagedServer
from ..fleet.pins import BadPins, PinDifference, Pins, ServerFeatures
from ..fleet.questions import Decision, FeatureChange, NotAnswered, PinQuestion, Warned
from ..fleet.toolbox import ServerTool, Toolbox
from .prompter import Prompter

MOST_NOTICES = 10  # about one server at a time
MOST_WARNED = 3  # tools and prompts that one notice names with what is odd about them


class FeatureApprovals:
    """Takes in what servers offer.

    `instructions` has the approved ones, `blocked` what may not be used, by server, kind and name; `warnings` has those about tools
    and prompts, by server, kind and name.
    """

    def __init__(
        self, toolbox: Toolbox, pins: Pins, desk: Prompter, tell: Callable[[Event], None]
    ) -> None:
        self._toolbox, self._pins, self._desk, self._tell = toolbox, pins, desk, tell
        self.instructions: dict[str, str] = {}
        self.blocked: dict[str, dict[tuple[str, str], str]] = {}
        self.warnings: dict[str, dict[tuple[str, str], tuple[Warned, ...]]] = {}
        self._open: dict[str, list[PinDifference]] = {}
        # The question that is open about a server, and what it shows.
        self._shown: dict[str, tuple[str, list[PinDifference]]] = {}
        self._links: dict[str, ManagedServer] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._told: dict[str, set[str]] = {}
        self._refused: dict[
            str, set[tuple[str, str, str]]
        ] = {}  # differences to which the person has said no

    def changed(self, link: ManagedServer) -> None:
        """A server's lists are there, or are not as they were."""
        self._links[link.id] = link
        if link.state in ("off", "refused"):
            self._toolbox.drop(link.id)
            self.instructions.pop(link.id, None)
            self._refused.pop(link.id, None)  # who starts it again is asked again
            self._open.pop(link.id, None)
            self._take_back(link.id)
        if (
            link.state != "up"
        ):  # what it offers is not known now; its tools keep their place meanwhile
            self._tell(FeaturesChanged(server=link.id))
            return
        if self._pins.known(link.id):
            differences = self._pins.seen(link.id, _features(link))
        else:
            differences = self._pins.first(link.id, _features(link))
            self._tell(Pinned(server=link.id, kind="server", name=link.id, how="first"))
        self._take(link, differences)
        self._warn(link)
        if self._open[link.id]:
            asking = self._asking.get(link.id)
            if asking is None or asking.done():
                self._asking[link.id] = asyncio.get_running_loop().create_task(self._ask(link.id))

    def unusable(self, link: ManagedServer, words: str) -> None:
        """What was approved of a server cannot be known: nothing of it is offered."""
        self._toolbox.drop(link.id)
        self.instructions.pop(link.id, None)
        self.blocked[link.id] = {("prompt", prompt.name): words for prompt in link.prompts}
        self._open.pop(link.id, None)
        self._tell(
            Notice(level="error", server=link.id, words=f"Its tools are not offered: {words}")
        )
        self._tell(FeaturesChanged(server=link.id))

    def gone(self, server: str) -> None:
        """A server is no longer configured."""
        self._toolbox.drop(server)
        for book in (
            self._links,
            self.instructions,
            self.blocked,
            self.warnings,
            self._open,
            self._told,
            self._refused,
        ):
            book.pop(server, None)
        if (asking := self._asking.pop(server, None)) is not None:
            asking.cancel()
        self._tell(FeaturesChanged(server=server))

    def warnings_of(self, item: ServerTool) -> tuple[Warned, ...]:
        """What the threat scan says of a tool, beside the tools of all servers."""
        return self.warnings.get(item.server, {}).get(("tool", item.tool.name), ())

    async def aclose(self) -> None:
        """Ask no more."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    def _take(self, link: ManagedServer, differences: list[PinDifference]) -> None:
        differences = [
            d for d in differences if d.how != "gone"
        ]  # what is not there can do no harm; it stays approved
        new = {(d.kind, d.name) for d in differences} - self.blocked.get(link.id, {}).keys()
        self._open[link.id] = differences
        self.blocked[link.id] = {
            (kind, name): why for (kind, name), why in self._pins.blocked(link.id).items()
        }
        self.instructions[link.id] = (
            "" if ("instructions", "") in self.blocked[link.id] else (link.instructions or "")
        )
        self._take_back(link.id)
        tools = {name: why for (kind, name), why in self.blocked[link.id].items() if kind == "tool"}
        for refusal in self._toolbox.put(
            link.id,
            link.tools,
            tools_globs=link.entry.tools,
            without=link.entry.without,
            blocked=tools,
        ):
            self._once(link.id, f"{refusal.tool}: {refusal.words}")
        for kind, name in sorted(new):
            self._tell(Pinned(server=link.id, kind=kind, name=name, how="blocked"))
        self._tell(FeaturesChanged(server=link.id))

    def _warn(self, link: ManagedServer) -> None:
        """Keep the warnings about what a server offers, and tell of those that are new, all in one notice."""
        others = {server: other.tools for server, other in self._links.items() if server != link.id}
        tools = threat_scan.of_tools(link.id, link.tools, others)
        prompts = {prompt.name: threat_scan.of_prompt(prompt) for prompt in link.prompts}
        found = {("tool", name): warnings for name, warnings in tools.items()}
        found |= {("prompt", name): warnings for name, warnings in prompts.items() if warnings}
        before, self.warnings[link.id] = self.warnings.get(link.id, {}), found
        new = [key for key, warnings in found.items() if before.get(key) != warnings]
        lines = [_warning(*key, found[key]) for key in new[:MOST_WARNED]]
        if len(new) > len(lines):
            lines.append(f"{len(new) - len(lines)} more have warnings; see the server's panel.")
        if lines:
            self._once(link.id, " ".join(lines))

    def _once(self, server: str, words: str) -> None:
        told = self._told.setdefault(server, set())
        if words not in told and len(told) < MOST_NOTICES:
            told.add(words)
            self._tell(Notice(level="warning", server=server, words=threat_scan.visible(words)))

    async def _ask(self, server: str) -> None:
        try:
            await self._ask_each(server)
        except BadPins as bad:
            if (link := self._links.get(server)) is not None:
                self.unusable(link, str(bad))

    async def _ask_each(self, server: str) -> None:
        """Show the differences, all in one question; what changes meanwhile is shown in the next."""
        seen: set[tuple[str, str, str]] = set()
        while True:
            done = seen | self._refused.get(server, set())
            waiting = [d for d in self._open.get(server, ()) if _mark(d) not in done]
            if not waiting:
                return
            seen |= {_mark(difference) for difference in waiting}
            shown = [(difference, self._change(server, difference)) for difference in waiting]
            shown.sort(key=lambda pair: not pair[1].warnings)  # the flagged ones first
            question = PinQuestion(
                id=self._desk.name(),
                server=server,
                changes=tuple(change for _, change in shown),
                warnings=_of_all([change for _, change in shown]),
            )
            self._shown[server] = (question.id, [difference for difference, _ in shown])
            try:
                answer = await self._desk.ask(question)
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
        """Approve what the person has approved of what was shown, and remember the rest as refused."""
        wanted = range(len(shown)) if answer.only is None else answer.only
        chosen = [shown[at] for at in wanted if 0 <= at < len(shown)] if answer.allow else []
        approved = self._pins.approve_all(server, chosen)
        for difference in approved:
            self._tell_pinned(server, difference, "approved")
        for difference in shown:
            if difference not in chosen:
                self._refused.setdefault(server, set()).add(_mark(difference))
                self._tell_pinned(server, difference, "refused")
        link = self._links.get(server)
        if approved and link is not None and link.state == "up":
            self._take(link, self._pins.seen(server, _features(link)))

    def _tell_pinned(
        self, server: str, difference: PinDifference, how: Literal["approved", "refused"]
    ) -> None:
        self._tell(
            Pinned(
                server=server,
                kind=difference.kind,
                name=difference.name,
                how=how,
                digest=difference.digest,
            )
        )

    def _take_back(self, server: str) -> None:
        """Take the open question about a server back, where nothing that it shows is different any more."""
        question, shown = self._shown.get(server, ("", []))
        left = {(each.kind, each.name) for each in self._open.get(server, ())}
        if shown and not any((each.kind, each.name) in left for each in shown):
            self._desk.withdraw(
                question, NotAnswered(words="There is nothing to approve any more.")
            )


def _of_all(changes: Sequence[FeatureChange]) -> tuple[Warned, ...]:
    """The warnings above a question: those of the only change, or how many are flagged."""
    if len(changes) == 1:
        return changes[0].warnings
    flagged = sum(bool(change.warnings) for change in changes)
    if not flagged:
        return ()
    words = f"{flagged} of {len(changes)} look dangerous. They come first, and are not chosen."
    return (Warned(kind="flagged", words=words),)


def _warning(kind: str, name: str, warnings: tuple[Warned, ...]) -> str:
    """What is odd about a tool or prompt, in one line."""
    words = " ".join(dict.fromkeys(warned.words for warned in warnings))
    return f"The {kind} {name}: {words}"


def _mark(difference: PinDifference) -> tuple[str, str, str]:
    return difference.kind, difference.name, difference.digest


def _features(link: ManagedServer) -> ServerFeatures:
    return ServerFeatures(
        tools=tuple(link.tools), prompts=tuple(link.prompts), instructions=link.instructions
    )
