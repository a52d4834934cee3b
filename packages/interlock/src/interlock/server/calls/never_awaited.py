"""Detection of coroutines that a tool never awaited, such as a question that is never sent."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class Started:
    """The coroutines that one call has created, by the names of their methods."""

    def __init__(self) -> None:
        self._made: list[tuple[str, Coroutine[Any, Any, Any]]] = []

    def add(self, name: str, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Record a coroutine, and drop those that have been awaited since."""
        self._made = [*self.not_awaited(), (name, coroutine)]

    def not_awaited(self) -> list[tuple[str, Coroutine[Any, Any, Any]]]:
        """Return the coroutines that have not been awaited."""
        return [
            (name, coroutine)
            for name, coroutine in self._made
            if inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED
        ]


def to_be_awaited(
    method: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorate a method so that calls without `await` are found. The object needs a `Started` in
    its attribute `_started`.
    """

    @functools.wraps(method)
    def start(*args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        owner: Any = args[0]
        coroutine = method(*args, **kwargs)
        owner._started.add(f"{owner._path}.{method.__name__}", coroutine)
        return coroutine

    return start
