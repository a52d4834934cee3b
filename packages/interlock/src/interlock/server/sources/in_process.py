"""A server in the same process as a source: its requests are handled by a call, not over a
connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...exchange import AnyResult, Exchange, Handler
from ...protocol.identity import Identity
from ...skills.entries import SkillEntry
from ...source import Offered, ToolTasks
from ..catalogue.catalogue import Catalogue
from ..catalogue.features import FeatureList

if TYPE_CHECKING:
    from ..extensions.skills import SkillFeature


class MountedServer(Protocol):
    """A server, as far as its source needs it."""

    @property
    def name(self) -> str:
        """The name of the server."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """The features."""
        ...

    @property
    def identity(self) -> Identity:
        """What the server says of itself."""
        ...

    @property
    def mounted_handler(self) -> Handler:
        """The handler of requests that come through the server that has mounted this one."""
        ...

    @property
    def asks_anywhere(self) -> bool:
        """Whether any request may ask a question, because there is middleware."""
        ...

    @property
    def skill_list(self) -> FeatureList[SkillFeature] | None:
        """The skills; None if the server has none."""
        ...

    @property
    def mounts(self) -> Sequence[Any]:
        """What is mounted in the server itself."""
        ...

    @property
    def dev(self) -> bool:
        """Whether responses to errors explain them."""
        ...

    @dev.setter
    def dev(self, on: bool) -> None: ...

    def settle_mounts(self) -> None:
        """Follow the changes of what is mounted in the server itself."""
        ...

    async def enter(self) -> None:
        """Start the lifespan."""
        ...

    async def leave(self) -> None:
        """End the lifespan."""
        ...


class ServerSource:
    """A `Server` as a source. Its middleware, lifespan, limits and visibility stay its own; the
    caller of the other server is its caller too.
    """

    def __init__(self, server: MountedServer) -> None:
        self.server = server
        self._offered: Offered | None = None

    @property
    def name(self) -> str:
        """The name of the server."""
        return self.server.name

    @property
    def offered(self) -> Offered:
        """The lists of the server."""
        self.server.settle_mounts()
        if self._offered is None:
            self._offered = self._read()
        return self._offered

    async def open(self) -> None:
        """Start the lifespan of the server."""
        await self.server.enter()

    async def aclose(self) -> None:
        """End the lifespan of the server."""
        await self.server.leave()

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        """Call `changed` whenever the features of the server have changed."""

        def observe() -> None:
            self._offered = None
            changed()

        return self.server.catalogue.observe(observe)

    def handle(self, x: Exchange, /) -> Awaitable[AnyResult]:
        """Handle a request."""
        return self.server.mounted_handler(x)

    def contains(self, server: object) -> bool:
        """Whether this is the source of a server, or of one that has mounted it."""
        inside = [mount.source for mount in self.server.mounts]
        return self.server is server or any(
            isinstance(source, ServerSource) and source.contains(server) for source in inside
        )

    def _read(self) -> Offered:
        catalogue = self.server.catalogue
        skills = self.server.skill_list
        rule = catalogue.visibility.rule
        scopes: dict[tuple[str, str], frozenset[str]] = {}

        def listed(features: FeatureList[Any]) -> list[Any]:
            for feature in features:
                if feature.scopes:
                    scopes[features.kind, feature.key] = feature.scopes
            return [feature.listing for feature in features]

        entries: list[SkillEntry] = [] if skills is None else listed(skills)
        return Offered(
            tools=listed(catalogue.tools),
            resources=listed(catalogue.resources),
            templates=listed(catalogue.templates),
            prompts=listed(catalogue.prompts),
            skills=entries,
            completions="completions" in catalogue.visibility.offered(None),
            instructions=self.server.identity.instructions,
            scopes=scopes,
            tasks={
                tool.key: ToolTasks(tool.task, tool.after)
                for tool in catalogue.tools
                if tool.task != "never"
            },
            visible=None if rule is None else (rule.by, rule.sees),
            never_ask=() if self.server.asks_anywhere else frozenset(_never_asking(catalogue)),
        )


def _never_asking(catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    """Yield the features whose functions take no Context, by which alone they could ask."""
    lists: tuple[FeatureList[Any], ...] = (
        catalogue.tools,
        catalogue.resources,
        catalogue.templates,
        catalogue.prompts,
    )
    for features in lists:
        for feature in features:
            call = feature.call
            if call is None or call.context is None:
                yield features.kind, feature.key
