"""One value of any protocol type, with every field filled in."""

from __future__ import annotations

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Raw, Struct, UnsetType

from interlock import types as t
from interlock.wire import codec
from interlock.wire.revisions import METHODS

PLAIN: dict[Any, Any] = {str: "x:y", int: 1, float: 0.5, bool: True, Raw: Raw(b'{"x":1}')}
"""A string that is a URI and a URI template too."""

SCHEMA = {"type": "object", "properties": {}}
SAID_BY_SCHEMAS: dict[tuple[type[Any], str], list[Any]] = {
    (t.Tool, "input_schema"): [SCHEMA],
    (t.Tool, "output_schema"): [SCHEMA, {"type": "array"}],
    (t.CallToolResult, "structured_content"): [{"x": 1}, [1], None],
    (t.ToolResultContent, "structured_content"): [{"x": 1}, [1], None],
    (t.ElicitRequestParams, "requested_schema"): [SCHEMA],
    (t.ElicitResult, "content"): [{"x": "y"}],
    (t.InputResponseParams, "input_responses"): [{"x": Raw(b'{"action":"cancel"}')}],
    (t.SubscriptionsListenResult, "meta"): [{"io.modelcontextprotocol/subscriptionId": 1}],
}
"""Fields that hold plain JSON here, and that schemas know more about."""

REQUEST_PARAMS = {row.params for row in METHODS.values() if row.result}


def full(kind: Any, revision: str, turn: int = 0) -> Any:
    """A value of a type with every field set to something other than its default.

    Where there are alternatives, `turn` says which one to take; they may be such as the revision
    does not know.
    """
    value = every_field(kind, turn)
    if not issubclass(kind, t.Params):
        return value
    meta = every_field(t.RequestMeta if kind in REQUEST_PARAMS else t.NotificationMeta, turn)
    return msgspec.structs.replace(value, meta=Raw(codec.encode(meta, revision)))


def every_field(kind: Any, turn: int) -> Any:
    said = {
        name: values[turn % len(values)]
        for (owner, name), values in SAID_BY_SCHEMAS.items()
        if issubclass(kind, owner)
    }
    return kind(
        **{field.name: sample(field.type, turn) for field in msgspec.structs.fields(kind)} | said
    )


def sample(annotation: Any, turn: int) -> Any:
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin in (Union, UnionType):
        # A block of no known kind is valid under no schema.
        real = [one for one in arguments if one not in (type(None), UnsetType, t.UnknownContent)]
        return sample(real[turn % len(real)], turn)
    if annotation is Any:
        return {"x": 1}
    if origin is Literal:
        return arguments[turn % len(arguments)]
    if origin is list:
        return [sample(arguments[0], turn), sample(arguments[0], turn + 1)]
    if origin is dict:
        return {"x": sample(arguments[1], turn)}
    return (
        every_field(annotation, turn)
        if isinstance(annotation, type) and issubclass(annotation, Struct)
        else PLAIN[annotation]
    )
