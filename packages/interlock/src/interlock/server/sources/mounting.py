"""What a mount is made of: the source of a target, and the options of a mount."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...lazy_names import public_name
from ...source import Source, is_source
from ..catalogue.visibility import rule_of
from .in_process import MountedServer, ServerSource
from .mount import MountOptions
from .selection import selection_of
from .transform import Transform


def source_of(given: Any, server: MountedServer) -> Source:
    """Return the source that `server` mounts.

    Args:
        given: A source, something that has one, or a target of a client.
        server: The server.

    Raises:
        TypeError, ValueError: It is not a source, or it is or contains the server itself.
    """
    if is_source(given):
        source: Source = given
    elif hasattr(given, "as_source"):
        source = given.as_source()
    else:
        source = public_name("Client")(given).as_source()
    if isinstance(source, ServerSource) and source.contains(server):
        raise ValueError(
            f"{source.name} cannot be mounted in {server.name}: it is that server, or has mounted"
            " it"
        )
    return source


def options_of(
    prefix: str | None,
    tools: str | Iterable[str] | None,
    without: str | Iterable[str],
    with_tags: str | Iterable[str] | None,
    without_tags: str | Iterable[str],
    change: Mapping[str, Transform],
    visible: tuple[Callable[..., Any], Callable[..., Any]] | None,
    versions: str | None = None,
    instructions: bool | str = True,
) -> MountOptions:
    """Return the options of a mount. Raises ValueError, and TypeError for unsuitable types."""
    for name, transform in change.items():
        if not isinstance(transform, Transform):
            raise TypeError(f"change= maps names to Transform(...); {name!r} has {transform!r}")
    if visible is not None and len(visible) != 2:
        raise TypeError("visible= is a pair of functions: (by, sees), as for Server.visible")
    return MountOptions(
        prefix,
        selection_of(tools, without, with_tags, without_tags, versions),
        dict(change),
        None if visible is None else rule_of(*visible),
        instructions,
    )
