"""The instructions of a server with mounts: its own, and those of its sources, labelled and cut.

A client puts instructions into the prompt of its model. The text of a source comes from another
author, so it says whose it is, and cannot crowd out the rest of the prompt.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...untrusted.invisible import clean, plain_line
from .mount import BETWEEN, Mount

MOST_OF_ONE = 2_000
"""The longest text of one source, in characters."""

MOST_OF_ALL = 10_000
"""The longest text of all sources together, in characters."""

_CUT = " [...]"


def joined(own: str | None, mounts: Iterable[Mount]) -> str | None:
    """Return the instructions of a server and of what it has mounted; None if nobody has any."""
    parts = [own] if own else []
    left = MOST_OF_ALL
    for mount in mounts:
        text = mount.instructions
        if text is None:
            continue
        part = f"{_label(mount)}\n{_limited(clean(text), MOST_OF_ONE)}"
        if len(part) > left:
            parts.append("(Instructions of further sources were left out.)")
            break
        left -= len(part)
        parts.append(part)
    return "\n\n".join(parts) or None


def _label(mount: Mount) -> str:
    name = plain_line(mount.source.name, 100)
    if mount.prefix is None:
        return f"Instructions of {name}:"
    return f"Instructions of {name}, whose tools begin with {mount.prefix}{BETWEEN}:"


def _limited(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - len(_CUT)] + _CUT
