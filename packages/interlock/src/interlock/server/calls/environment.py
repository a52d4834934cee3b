"""The environment of running calls: the server as its functions see it, and the settings of
calls.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, Unpack

from ... import types as t
from ...exchange import Exchange
from ...observe.meters import Meters
from ..catalogue.feature_options import PromptOptions, ResourceOptions, ToolOptions
from ..catalogue.features import (
    FeatureList,
    PromptFeature,
    ResourceFeature,
    TemplateFeature,
    ToolFeature,
)
from ..server_options import QuestionSettings
from .dependencies import Dependency


class RunningServer(Protocol):
    """A server as a running call sees it (`ctx.server`). Features can be added and removed while it
    runs.
    """

    @property
    def name(self) -> str:
        """The name of the server."""
        ...

    @property
    def info(self) -> t.Implementation:
        """The name, version and description of the server."""
        ...

    @property
    def lifespan_state(self) -> Any:
        """The value that the lifespan yielded."""
        ...

    @property
    def tools(self) -> FeatureList[ToolFeature]:
        """The tools."""
        ...

    @property
    def resources(self) -> FeatureList[ResourceFeature]:
        """The resources with a fixed URI."""
        ...

    @property
    def templates(self) -> FeatureList[TemplateFeature]:
        """The resource templates."""
        ...

    @property
    def prompts(self) -> FeatureList[PromptFeature]:
        """The prompts."""
        ...

    def add_tool(
        self,
        function: Callable[..., Any],
        *,
        replace: bool = False,
        **options: Unpack[ToolOptions],
    ) -> None:
        """Add a tool; see Server."""
        ...

    def remove_tool(self, name: str) -> None:
        """Remove a tool. Raises KeyError."""
        ...

    def add_resource(
        self,
        uri: str,
        content: Callable[..., Any] | str | bytes | os.PathLike[str] | t.ResourceContents,
        *,
        replace: bool = False,
        **options: Unpack[ResourceOptions],
    ) -> None:
        """Add a resource or a resource template; see Server."""
        ...

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a resource template. Raises KeyError."""
        ...

    def add_prompt(
        self,
        function: Callable[..., Any],
        *,
        replace: bool = False,
        **options: Unpack[PromptOptions],
    ) -> None:
        """Add a prompt; see Server."""
        ...

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt. Raises KeyError."""
        ...

    def updated(self, uri: str) -> None:
        """Announce that the content of a resource has changed."""
        ...

    def changed(self, what: str) -> None:
        """Announce that a list has changed."""
        ...

    def visibility_changed(self, *keys: Any) -> None:
        """Announce that the visibility of features has changed."""
        ...


class CallEnvironment:
    """The environment that the calls of one server share.

    Attributes:
        server: The server, for `ctx.server`.
        questions: The fallback model of `ctx.sample`.
        session_state_bytes: The maximum size of `ctx.session_state` for one session, in bytes of
            JSON.
        read_resource: Reads a resource on behalf of an exchange, for `ctx.read_resource`.
        meters: The metrics of the server, for `ctx.count`.
        overrides: The replaced dependencies, by what they replace.
    """

    __slots__ = (
        "meters",
        "overrides",
        "questions",
        "read_resource",
        "server",
        "session_state_bytes",
    )

    def __init__(
        self,
        server: RunningServer,
        questions: QuestionSettings,
        session_state_bytes: int,
        read_resource: Callable[[str, Exchange], Awaitable[t.ReadResourceResult]],
        meters: Meters,
    ) -> None:
        self.server = server
        self.questions = questions
        self.session_state_bytes = session_state_bytes
        self.read_resource = read_resource
        self.meters = meters
        self.overrides: dict[Any, Dependency] = {}
