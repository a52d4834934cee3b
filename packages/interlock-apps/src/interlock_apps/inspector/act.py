"""An act: one request of the inspector's page, with typed params and a function that runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from ..web.page_site import ActError
from .session import Inspector


class ActParams(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The params of an act; a subclass for each. Members are in camel case in JSON."""


class Act(NamedTuple):
    """One act.

    Attributes:
        params: The type of its params.
        run: Runs it, and returns a JSON value. Errors for the person are ActError, and all errors
            of the library.
    """

    params: type[ActParams]
    run: Callable[[Inspector, Any], Awaitable[Any]]


async def run_act(acts: Mapping[str, Act], inspector: Inspector, body: bytes) -> Any:
    """Run the act of a request: `{"act": NAME, ...params}`. Return its JSON value.

    Raises:
        msgspec.MsgspecError: The body is not an act.
        ActError: The act is unknown, or it failed; the message is for the person.
    """
    fields = msgspec.json.decode(body, type=dict[str, Raw])
    name = msgspec.json.decode(fields.pop("act", Raw(b'""')), type=str)
    act = acts.get(name)
    if act is None:
        raise ActError(f"The inspector has no act {name!r}.")
    params = msgspec.json.decode(msgspec.json.encode(fields), type=act.params)
    return await act.run(inspector, params)
