"""Deprecated features of the protocol: marks for type checkers, and one DeprecationWarning each at
run time (SEP-2596).

The registry is the page "Deprecated Features" of 2026-07-28. A deprecated feature keeps working
under every revision.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import TYPE_CHECKING, Any

_warned: set[str] = set()


def warn_deprecated(message: str, stacklevel: int = 2) -> None:
    """Warn of the use of a deprecated feature, once in a process (`DEP-04`).

    Args:
        message: What is deprecated, since when, by which SEP, when it may be removed, and what to
        use.
        stacklevel: How many frames up the use stands; 2 is the caller of whoever calls this.
    """
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)


if TYPE_CHECKING:
    from typing_extensions import deprecated as deprecated
else:

    def deprecated(message: str) -> Any:
        """Mark a function as deprecated, as PEP 702 says: the mark is `__deprecated__` (`DEP-03`).

        Python has such a decorator from 3.13 on only, and it warns of each call.
        """

        def mark(function: Any) -> Any:
            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def call(*args: Any, **kwargs: Any) -> Any:
                    warn_deprecated(message, 2)
                    return await function(*args, **kwargs)

            else:

                @functools.wraps(function)
                def call(*args: Any, **kwargs: Any) -> Any:
                    warn_deprecated(message, 2)
                    return function(*args, **kwargs)

            call.__deprecated__ = message
            return call

        return mark
