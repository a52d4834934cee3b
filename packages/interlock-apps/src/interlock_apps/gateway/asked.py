"""What a caller asks of a server behind the gateway, as policy, guard hook and audit see it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from interlock import AnyResult, Caller, Exchange, RawResult
from interlock.untrusted.invisible import visible_line

from ..fleet.policy import Requester

FeatureKindAsked = Literal["tool", "prompt", "resource", "skill"]
Phase = Literal["request", "response"]

BETWEEN = "__"
"""Stands between the name of a server and the name of its tool or prompt."""

_KINDS: Mapping[str, FeatureKindAsked] = {
    "tools/call": "tool",
    "prompts/get": "prompt",
    "resources/read": "resource",
    "subscriptions/listen": "resource",
    "skills/get": "skill",
    "resources/directory/read": "skill",
}
_MOST_CLIENT = 200  # characters of a name that a program gives itself


class _NameRepeated(Exception):
    """An object has the same name twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises _NameRepeated."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _NameRepeated(name)
            seen.add(name)
    return found


class Asked(Struct, frozen=True, kw_only=True, dict=True):
    """One request of a caller for one feature of one server.

    Attributes:
        view: The view that the caller uses.
        server: The server behind the gateway, by its name in the settings.
        kind: The kind of the feature.
        method: The method of the request.
        name: The name or URI as the server knows it. For a subscription the URIs, one a line.
        public_name: The name or URI as the caller knows it.
        raw_arguments: The arguments as the caller sent them: JSON.
        principal: The key of the caller's principal; empty without one.
        subject: The subject of the principal; empty without one.
        issuer: The authorization server of the principal; empty without one.
        scopes: The scopes that the caller was granted.
        client: The OAuth client that the guard verified; otherwise the name that the program gives
            itself.
        revision: The revision of the caller.
        replayed: Whether the request runs again from the top, with the answers to its questions.
        phase: Whether the server has answered.
        result: The answer of the server, in the phase "response"; use `decoded_result`.
    """

    view: str
    server: str
    kind: FeatureKindAsked
    method: str
    name: str
    public_name: str
    raw_arguments: bytes
    principal: str
    subject: str
    issuer: str
    scopes: frozenset[str]
    client: str
    revision: str
    replayed: bool = False
    phase: Phase = "request"
    result: AnyResult | None = None

    @cached_property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments, decoded; empty if they cannot be judged (`arguments_problem`)."""
        return self._read_arguments[0]

    @property
    def arguments_problem(self) -> str:
        """Why the arguments cannot be judged, in words; empty if they can. Of a name that appears
        twice, the server may use the other value.
        """
        return self._read_arguments[1]

    @cached_property
    def _read_arguments(self) -> tuple[Mapping[str, Any], str]:
        if not self.raw_arguments:
            return {}, ""
        try:
            found = json.loads(self.raw_arguments, object_pairs_hook=_object)
        except _NameRepeated as bad:
            return {}, f"The arguments have the name {visible_line(str(bad)[:100])!r} twice."
        except (ValueError, RecursionError):
            return {}, "The arguments cannot be read."
        if not isinstance(found, dict):
            return {}, "The arguments are not an object."
        return found, ""

    @cached_property
    def digest(self) -> str:
        """The digest of exactly this request: the caller, the feature and the arguments."""
        parts = (self.view, self.server, self.method, self.name, self.principal)
        whole = hashlib.sha256(msgspec.json.encode(parts))
        whole.update(self.raw_arguments)
        return whole.hexdigest()

    @property
    def requester(self) -> Requester:
        """The caller, as far as rules can name it."""
        return Requester(
            principal=self.subject,
            issuer=self.issuer,
            scopes=self.scopes,
            view=self.view,
            client=self.client,
        )

    @property
    def decoded_result(self) -> Any:
        """The answer of the server as a result of the protocol; None before there is one."""
        return self.result.decode() if isinstance(self.result, RawResult) else self.result

    def answered(self, result: AnyResult) -> Asked:
        """Return the same request in the phase "response"."""
        return replace(self, phase="response", result=result)


def requester_of(caller: Caller, view: str) -> Requester:
    """Return the caller of a request, as far as rules can name it."""
    principal = caller.principal
    if principal is None:
        return Requester(view=view, client=client_of(caller))
    return Requester(
        principal=principal.subject,
        issuer=principal.issuer,
        scopes=principal.scopes,
        view=view,
        client=client_of(caller),
    )


def client_of(caller: Caller) -> str:
    """Return the OAuth client of a caller, or else the name that its program gives itself."""
    if caller.principal is not None and caller.principal.client:
        return caller.principal.client
    return "" if caller.info is None else caller.info.name[:_MOST_CLIENT]


def asked_of(x: Exchange, *, view: str, server: str, prefix: str | None) -> Asked | None:
    """Return what a request to a server asks for; None if it names no feature.

    Args:
        x: The request, under the names of the server.
        view: The view that it came through.
        server: The name of the server in the settings.
        prefix: The prefix of the server's tools and prompts in the view; None for none.
    """
    params = x.params
    kind = _KINDS.get(x.method)
    arguments = b""
    if kind is None:
        if x.method != "completion/complete":
            return None
        name = getattr(params.ref, "name", None)
        kind = "resource" if name is None else "prompt"
        name = params.ref.uri if name is None else name
    elif x.method == "tools/call":
        name = params.name
        arguments = bytes(params.arguments)
    elif x.method == "prompts/get":
        name = params.name
        arguments = msgspec.json.encode(params.arguments or {})
    elif x.method == "subscriptions/listen":
        name = "\n".join(params.notifications.resource_subscriptions or ())
    else:
        name = params.uri
    caller = x.caller
    principal = caller.principal
    is_prefixed = prefix is not None and kind in ("tool", "prompt")
    return Asked(
        view=view,
        server=server,
        kind=kind,
        method=x.method,
        name=name,
        public_name=f"{prefix}{BETWEEN}{name}" if is_prefixed else name,
        raw_arguments=arguments,
        principal="" if principal is None else principal.key,
        subject="" if principal is None else principal.subject,
        issuer="" if principal is None else principal.issuer,
        scopes=frozenset() if principal is None else principal.scopes,
        client=client_of(caller),
        revision=caller.revision,
        replayed=x.replayed,
    )
