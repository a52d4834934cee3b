"""Dependency injection: the marker of a parameter that the server fills in, and no caller sees."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any, get_args

from msgspec import Struct

from .annotations import is_union, unwrapped


class Depends(Struct, frozen=True):
    """Marks a parameter as a dependency: `db: Annotated[Database, Depends(open_database)]`.

    For each call the server calls the function, and passes its value. A caller neither sees the
    parameter nor can set it.

    The function may be plain (it runs in a thread), async, or a generator that yields the value
    once and then cleans up, when the call has ended in any way. Its own parameters are dependencies
    too: a Context, or parameters with this marker. In one call each function runs once.

    Attributes:
        function: The function. Without one, the type of the parameter decides: Caller, Principal,
            HttpRequest or SessionState is that of the call, and any other class is called.
    """

    function: Callable[..., Any] | None = None


def dependency_of(parameter: inspect.Parameter, annotation: Any) -> Any:
    """Return what provides the value of a parameter: a function or a class; None for an ordinary
    parameter.

    Raises:
        TypeError: The marker is in the wrong place, or there is no class to call.
    """
    if isinstance(parameter.default, Depends):
        raise TypeError(
            f"write the marker into the annotation: {parameter.name}: Annotated[..., Depends(...)]"
        )
    for marker in _metadata(annotation):
        if isinstance(marker, Depends):
            return marker.function or _class_of(annotation)
        if marker is Depends:
            raise TypeError("write Depends() or Depends(function), with brackets")
    return None


def _metadata(annotation: Any) -> Iterator[Any]:
    """The metadata of an annotation, also of one that a `type` statement names."""
    while type(annotation).__name__ == "TypeAliasType":
        annotation = annotation.__value__
    yield from getattr(annotation, "__metadata__", ())


def _class_of(annotation: Any) -> type[Any]:
    kind = unwrapped(annotation)
    if is_union(kind):
        members = [member for member in get_args(kind) if member is not NoneType]
        kind = unwrapped(members[0]) if len(members) == 1 else kind
    if not isinstance(kind, type):
        raise TypeError("Depends() without a function needs a class as the type of the parameter")
    return kind
