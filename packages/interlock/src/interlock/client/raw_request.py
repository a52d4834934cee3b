"""Raw requests: params that are sent as they were written, also members that this client does not
know and values of a wrong type. For inspectors and for tests of servers.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from .. import types as t
from ..exchange import Asker, Caller, Exchange
from ..wire.codec import decode
from ..wire.jsonrpc import READ_ERRORS, Malformed
from ..wire.revisions import METHODS

_members = msgspec.json.Decoder(dict[str, Raw]).decode


class _Written(Struct, frozen=True):
    """A request as it was written, in the place of one that a peer sent."""

    method: str
    params: Any
    caller: Caller
    frame: bytes


def raw_exchange(method: str, params: bytes, caller: Caller, asker: Asker) -> Exchange:
    """Return the exchange of a request whose params are sent as they are.

    The keys of the protocol in `_meta` are set by the client. The other keys are sent as they are.

    Args:
        method: The method; it may be unknown.
        params: A JSON object.
        caller: The caller of the client.
        asker: Answers the questions of the request.

    Raises:
        ValueError: The params are not a JSON object.
    """
    try:
        members = _members(params)
    except READ_ERRORS as bad:
        raise ValueError(f"the params are not a JSON object: {bad}") from None
    row = METHODS.get(method)
    kind = row.params if row is not None else t.Params
    try:
        typed = decode(params, kind)
    except Malformed:
        typed = _stand_in(kind, members)
    # One line: a message ends at a line break.
    frame = b'{"params":%b}' % msgspec.json.format(params, indent=-1)
    return Exchange(
        method, typed, caller, asker=asker, received=_Written(method, typed, caller, frame)
    )


def _stand_in(kind: type[t.Params], members: dict[str, Raw]) -> t.Params:
    """Params of a type that have its required members, whatever was written. Only headers of HTTP
    are made from them.
    """
    given: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.required:
            value = msgspec.json.decode(members.get(field.encode_name, Raw(b'""')))
            given[field.name] = value if isinstance(value, str) else str(value)
    if "_meta" in members:
        given["meta"] = members["_meta"]
    return kind(**given)
