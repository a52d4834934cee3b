"""The extensions of a client: their declaration, requests and notification handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from .. import types as t
from ..exchange import AnyResult, Caller, Exchange, Handler
from ..extension import CoreCapability, Extension, messages_of, unmet
from ..skills.messages import SKILLS
from ..tasks import CORE_REVISIONS, TASKS
from ..transport.conversation import ClientTransport, signed
from ..wire.revisions import Era
from .callbacks import Callbacks


class ClientExtensions:
    """The extensions of one client.

    Args:
        extensions: The extensions, in order.
        declared: The other capabilities of the client.

    Raises:
        ValueError: Two extensions conflict, or one is declared already.
    """

    def __init__(self, extensions: Sequence[Extension], declared: t.ClientCapabilities) -> None:
        self.all = tuple(extensions)
        self.messages = messages_of(_with_own(self.all, _run_by(declared)))
        self.capabilities = declared
        if self.all:
            entries = dict(declared.extensions or {})
            for extension in self.all:
                if extension.id in entries:
                    raise ValueError(
                        f"the extension {extension.id} is declared by answers= already"
                    )
                entries[extension.id] = extension.settings
            self.capabilities = replace(declared, extensions=entries)
        self._notified = {
            method: notified
            for extension in self.all
            for method, notified in extension.notified.items()
        }

    @property
    def runs_tasks(self) -> bool:
        """Whether the client can make tasks of questions."""
        return (self.capabilities.elicitation, self.capabilities.sampling) != (None, None)

    def check_requirements(self) -> None:
        """Check that the requirements of all extensions are met.

        Raises:
            ValueError: A requirement is not met; the message names it and its extension.
        """
        if self.all and (why := unmet(self.all, self.capabilities)):
            raise ValueError(why)

    def check_request(
        self, method: str, params: t.Params, caller: Caller, server: t.ServerCapabilities
    ) -> None:
        """Check that a request of an extension can be sent.

        Raises:
            ValueError: No extension of this client has the request.
            TypeError: The params have the wrong type.
            McpError: The server or the revision does not have the extension (-32601).
        """
        kind = self.messages.requests.get(method)
        if kind is None:
            raise ValueError(
                f"{method} is not a request that a client sends; if an extension has it, "
                "give the extension to the client: Client(..., extensions=[...])"
            )
        self._check(method, kind, params, caller, server)
        if not self.messages.asks(caller.revision, method):
            raise t.McpError(
                t.METHOD_NOT_FOUND,
                f"{method} does not exist in {caller.revision}, which this server speaks; it was "
                "not sent.",
            )

    def check_notification(
        self, method: str, params: t.Params, caller: Caller, server: t.ServerCapabilities
    ) -> None:
        """Check that a notification of an extension can be sent. Raises as `check_request` does."""
        kind = self.messages.notifications.get(method)
        if kind is None:
            raise ValueError(
                f"{method} is not a notification of an extension that was given to this client"
            )
        self._check(method, kind, params, caller, server)

    def filter_of(
        self,
        core: t.SubscriptionFilter,
        more: Mapping[str, Any],
        server: t.ServerCapabilities,
    ) -> t.SubscriptionFilter:
        """Return a listen filter with the keys of extensions. Raises as `check_request` does."""
        if not more:
            return core
        self._check_keys(list(more), server)
        fields = {field: getattr(core, field) for field in core.__struct_fields__}
        return self.messages.filter(**fields, **more)

    def _check_keys(self, keys: Sequence[str], server: t.ServerCapabilities) -> None:
        """Check that keys of the listen filter belong to extensions of both sides."""
        for extension in self.all:
            if any(key in extension.listens for key in keys):
                _check_offered(extension.id, f"the filter {', '.join(extension.listens)}", server)
        unknown = [key for key in keys if key not in self.messages.listens]
        if unknown:
            raise ValueError(
                f"no extension of this client defines {', '.join(unknown)} for the listen filter"
            )

    def _check(
        self,
        method: str,
        kind: type[t.Params],
        params: t.Params,
        caller: Caller,
        server: t.ServerCapabilities,
    ) -> None:
        if not isinstance(params, kind):
            raise TypeError(
                f"the params of {method} are {kind.__name__}, not {type(params).__name__}"
            )
        owner = self.messages.owners[method]
        if caller.revision not in self.messages.revisions[owner]:
            raise t.McpError(
                t.METHOD_NOT_FOUND,
                f"The extension {owner} does not exist in {caller.revision}, which this server "
                f"speaks; {method} was not sent.",
            )
        _check_offered(owner, method, server)

    def tasks_settings(self, server: t.ServerCapabilities, revision: str) -> t.JSONObject | None:
        """The settings with which a server offers tasks under a revision; None if it does not."""
        if revision not in self.messages.revisions[TASKS.id]:
            return None
        return TASKS.settings_in(server)

    def as_tasks_caller(self, caller: Caller) -> Caller:
        """Return the client's caller with the tasks extension declared (`TKX-01`)."""
        declared = caller.capabilities.extensions or {}
        if caller.era is Era.HANDSHAKE or TASKS.id in declared:
            return caller
        capabilities = replace(
            caller.capabilities, extensions={**declared, TASKS.id: TASKS.settings}
        )
        return replace(caller, capabilities=capabilities)

    def sending(self, transport: ClientTransport) -> Handler:
        """Return a handler that also sends the notifications of extensions, each as an exchange."""
        if not self.messages.notifications:
            return transport

        async def handle(x: Exchange) -> AnyResult:
            if x.method not in self.messages.notifications:
                return await transport(x)
            transport.send_notification(x.method, signed(x.params, x.caller))
            return t.EmptyResult()

        return handle

    def receive(
        self, method: str, params: Any, callbacks: Callbacks, caller: Callable[[], Caller]
    ) -> bool:
        """Call the handler of a server notification; False if there is none."""
        notified = self._notified.get(method)
        if notified is None:
            return False
        callbacks.call(lambda said: notified(Exchange(method, said, caller())), params)
        return True


def _with_own(
    extensions: tuple[Extension, ...], tasks: Mapping[str, CoreCapability]
) -> tuple[Extension, ...]:
    """Return the extensions of a client with those whose messages every client can read.

    A client does not declare skills, and declares tasks only in requests that can become one. It
    uses both at servers that declare them.

    Args:
        extensions: The extensions that were given to the client.
        tasks: How the client declares the tasks that it runs itself, by revision.
    """
    given = {extension.id for extension in extensions}
    return (
        *(e.with_handlers(core=tasks) if e.id == TASKS.id else e for e in extensions),
        *(own for own in (SKILLS,) if own.id not in given),
        *(own.with_handlers(core=tasks) for own in (TASKS,) if own.id not in given),
    )


def _run_by(declared: t.ClientCapabilities) -> dict[str, CoreCapability]:
    """How a client declares that it makes tasks of questions, by revision (`TK4-01`)."""
    requests: t.JSONObject = {}
    if declared.elicitation is not None:
        requests["elicitation"] = {"create": {}}
    if declared.sampling is not None:
        requests["sampling"] = {"createMessage": {}}
    settings = {"list": {}, "cancel": {}, "requests": requests}
    return {r: CoreCapability("tasks", settings) for r in CORE_REVISIONS}


def _check_offered(id: str, what: str, server: t.ServerCapabilities) -> None:
    if id not in (server.extensions or {}):
        raise t.McpError(
            t.METHOD_NOT_FOUND,
            f"The server does not offer the extension {id}; {what} was not sent.",
        )
