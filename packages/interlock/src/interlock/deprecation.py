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
    """Warn about the use of a deprecated feature, once per process (`DEP-04`).

    Args:
        message: What is deprecated, since when, by which SEP, when it may be removed, and what to
            use.
        stacklevel: The number of stack frames between this function and the use; 2 means the caller
            of the caller.
    """
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)


if TYPE_CHECKING:
    from typing_extensions import deprecated as deprecated
else:

    def deprecated(message: str) -> Any:
        """Mark a function as deprecated with the attribute `__deprecated__`, as PEP 702 says
        (`DEP-03`).

        The decorator of the standard library exists since Python 3.13 only, and it warns at each
        call.
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
