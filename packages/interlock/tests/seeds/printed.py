"""What a text prints, sorted into messages and parts of messages; where a text and the
specification disagree, the specification wins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.seeds.literals import literals

# What each kind of object has; the first that fits it is its kind.
_KINDS: tuple[tuple[str, frozenset[str]], ...] = tuple(
    (kind, frozenset(keys.split()))
    for kind, keys in {
        "message": "jsonrpc",
        "request": "method",  # without its envelope
        "tool": "name inputSchema",
        "template": "uriTemplate name",
        "invocation": "prompt arguments",  # what a person chose, as a host might note it
        "prompt": "name arguments",
        "configuration": "mcpServers",
        "sampling": "messages maxTokens",
        "prompt result": "messages",
        "prompt message": "role content",
        "tools": "tools",
        "resources": "resources",
        "prompts": "prompts",
        "roots": "roots",
        "root": "uri name",
        "implementation": "name version",
        "offer": "capabilities",
        "list capability": "listChanged",
    }.items()
)

_RENAMED = {
    "sampling/complete": "sampling/createMessage",
    "sampling/create": "sampling/createMessage",
    "elicitation/request": "elicitation/create",
    "elicitation/requestInput": "elicitation/create",
}


class Printed(NamedTuple):
    """One object of a text: what it is, and where it stands."""

    kind: str
    value: dict[str, Any]
    where: str


def printed(path: Path) -> list[Printed]:
    """All that a text prints. Raises ValueError for an object of no known kind."""
    return [
        Printed(kind_of(value), value, f"{path.name[:3]}:{line}")
        for value, line in literals(path.read_text(encoding="utf-8"))
        if value
    ]


def kind_of(value: dict[str, Any]) -> str:
    """What an object is, by what it has."""
    for kind, keys in _KINDS:
        if keys <= value.keys():
            return kind
    if all(isinstance(item, dict) and item.get("name") == name for name, item in value.items()):
        return "prompt table"
    raise ValueError(f"there is no knowing what this is: {sorted(value)}")


def sessions(items: Sequence[Printed]) -> list[list[Printed]]:
    """The conversations of a text: each begins where a client introduces itself."""
    found: list[list[Printed]] = []
    for item in items:
        if item.kind != "message":
            continue
        if item.value.get("method") == "initialize" or not found:
            found.append([])
        found[-1].append(item)
    return found


def as_specified(request: dict[str, Any]) -> dict[str, Any]:
    """A request with the names and shapes of the specification, where a text has others."""
    request = {**request, "method": _RENAMED.get(request["method"], request["method"])}
    params = dict(request.get("params", {}))
    if request["method"] == "elicitation/create" and "schema" in params:
        params["requestedSchema"] = params.pop("schema")
    if request["method"] == "sampling/createMessage":
        params = sampling_as_specified(params)
    return {**request, "params": params}


def sampling_as_specified(params: dict[str, Any]) -> dict[str, Any]:
    """Sampling params whose messages hold content blocks, where a text has plain strings."""
    messages = [
        {**message, "content": {"type": "text", "text": message["content"]}}
        if isinstance(message["content"], str)
        else message
        for message in params["messages"]
    ]
    return {**params, "messages": messages}


def plain(value: Any) -> Any:
    """A value without what only says that there is nothing: a null,
    an argument that need not be given.

    An argument of a prompt is always a string to the specification, so its type is left out too.
    """
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(made.get("arguments"), list):
        made["arguments"] = [
            {
                key: item
                for key, item in argument.items()
                if key in ("name", "title", "description") or item is True
            }
            for argument in made["arguments"]
        ]
    return made
