"""Access to the servers for the person: prompts, resources and completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from interlock import InterlockError, McpError, Template, Unreachable
from interlock.types import Completion, GetPromptResult, ReadResourceResult

from ..fleet import threat_scan
from ..fleet.event_bus import EventBus
from ..fleet.events import PromptFetched, ResourceRead
from ..fleet.hub import Hub, ManagedServer
from .feature_approvals import FeatureApprovals

_INVALID_PARAMS = -32602


class ServerAccess:
    """Requests to the servers of a hub; each is published."""

    def __init__(self, hub: Hub, features: FeatureApprovals, events: EventBus) -> None:
        self._hub = hub
        self._features = features
        self._events = events

    def server(self, id: str) -> ManagedServer:
        """Return a server by its id. Raises Unreachable for one that is not configured."""
        found = self._hub.servers.get(id)
        if found is None:
            known = ", ".join(self._hub.servers) or "none"
            raise Unreachable(f"There is no server {id}. Configured servers: {known}.")
        return found

    async def read(
        self, server: str, uri: str, *, session: str = "", by: Literal["person", "app"] = "person"
    ) -> ReadResourceResult:
        """Read a resource for the person, or for an app of that server.

        Raises:
            McpError: The server answered with an error.
            Unreachable: The server is not there.
        """
        try:
            result = await self.server(server).read(uri)
        except InterlockError as bad:
            error = threat_scan.visible(str(bad))
            self._events.publish(
                ResourceRead(session=session, server=server, uri=uri, by=by, error=error)
            )
            raise
        size = sum(len(part.text or part.blob or "") for part in result.contents)
        self._events.publish(
            ResourceRead(session=session, server=server, uri=uri, by=by, size=size)
        )
        return result

    async def get_prompt(
        self, server: str, name: str, arguments: Mapping[str, str]
    ) -> GetPromptResult:
        """Fetch a prompt for the person.

        Raises:
            McpError: The prompt is blocked, or the server answered with an error.
            Unreachable: The server is not there.
        """
        given = dict(arguments)
        try:
            if why := self._features.blocked.get(server, {}).get(("prompt", name)):
                raise McpError(_INVALID_PARAMS, f"{name} is blocked: {why}")
            result = await self.server(server).get_prompt(name, given)
        except InterlockError as bad:
            error = threat_scan.visible(str(bad))
            self._events.publish(
                PromptFetched(server=server, prompt=name, arguments=given, error=error)
            )
            raise
        self._events.publish(PromptFetched(server=server, prompt=name, arguments=given))
        return result

    async def complete(
        self,
        server: str,
        ref: Any,
        argument: str,
        value: str,
        arguments: Mapping[str, str] | None = None,
    ) -> Completion:
        """Return suggestions for an argument. Raises McpError, Unreachable."""
        return await self.server(server).complete(ref, argument, value, arguments)


def expand(template: str, values: Mapping[str, str]) -> str:
    """Expand a URI template. Raises ValueError for an invalid template."""
    return Template(template).expand({name: value for name, value in values.items() if value})
