"""Unknown keyword arguments are a TypeError that names the closest known one."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def check_keywords(given: Iterable[str], known: Collection[str], call: str) -> None:
    """Check keyword arguments by name.

    Args:
        given: The names in the call.
        known: The names of the function's parameters.
        call: The call as its author writes it, such as "Client()".

    Raises:
        TypeError: A name is unknown. The message contains it and the closest known name.
    """
    for name in given:
        if name in known:
            continue
        from difflib import get_close_matches  # late: only for this error

        close = get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise TypeError(f"{call} got an unexpected keyword argument {name!r}{hint}")
