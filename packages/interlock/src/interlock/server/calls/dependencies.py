"""Dependency injection: the graph of an author's dependency functions, and their values in a
call.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

from msgspec import Struct

from ...exchange import Caller, HttpRequest, Principal
from ...typed.depends import dependency_of
from ...typed.signature import is_context
from ...typed.type_hints import Unresolved, named, read_hints
from .session_state import SessionState

InThread = Callable[[Callable[[], Any]], asyncio.Future[Any]]
"""Runs a function in a thread of the server."""

_OF_THE_CALL: Mapping[Any, Callable[[Any], Any]] = {
    Caller: lambda context: context.caller,
    Principal: lambda context: context.principal,
    HttpRequest: lambda context: context.request,
    SessionState: lambda context: context.session_state,
}
"""What `Depends()` means for a type of the running call."""


class Dependency(Struct, frozen=True, eq=False):
    """One function that provides a value, and the dependencies that it takes itself.

    Attributes:
        provider: The function or class, which identifies the value in a call.
        kind: How it is called: at once, in a thread, awaited, or as a generator that cleans up.
        context: The parameter that takes the Context; None if there is none.
        needs: The dependencies by parameter.
    """

    provider: Any
    kind: Literal["direct", "plain", "async", "generator", "async generator"]
    context: str | None = None
    needs: Mapping[str, Dependency] = {}

    @property
    def takes_context(self) -> bool:
        """Whether it or one of its dependencies takes the Context."""
        return self.context is not None or any(
            needed.takes_context for needed in self.needs.values()
        )


def dependencies_of(
    injected: Mapping[str, Any], context_type: type[Any]
) -> Mapping[str, Dependency]:
    """Return the dependencies of a function's parameters.

    Args:
        injected: What provides each parameter.
        context_type: The class of the Context.

    Raises:
        TypeError: A dependency function cannot be called, or depends on itself.
    """
    return {name: _dependency(provider, context_type, ()) for name, provider in injected.items()}


def replacement_of(
    provider: Any, replacement: Callable[..., Any], context_type: type[Any]
) -> Dependency:
    """Return the dependency that stands for another one.

    Args:
        provider: The function or class that it replaces, which it must not need itself.
        replacement: The function or class.
        context_type: The class of the Context.

    Raises:
        TypeError: The replacement cannot be called.
    """
    return _dependency(replacement, context_type, (provider,))


def _dependency(provider: Any, context_type: type[Any], above: tuple[Any, ...]) -> Dependency:
    if provider in _OF_THE_CALL:
        return Dependency(provider, "direct")
    if any(provider is other for other in above):
        circle = " -> ".join(named(other) for other in (*above, provider))
        raise TypeError(f"a dependency needs itself: {circle}")
    context: str | None = None
    needs: dict[str, Dependency] = {}
    hints = read_hints(provider, {context_type.__name__: context_type})
    for name, parameter in hints.parameters.items():
        hint = hints.types.get(name, Any)
        where = f"the dependency {named(provider)}: the parameter {name!r}"
        if isinstance(hint, Unresolved):
            raise TypeError(f"{where} is annotated {hint.text!r}: {hint.reason}")
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        try:
            inner = dependency_of(parameter, hint)
        except TypeError as bad:
            raise TypeError(f"{where} cannot be used: {bad}") from None
        if inner is not None:
            needs[name] = _dependency(inner, context_type, (*above, provider))
        elif is_context(hint, context_type):
            context = name
        elif parameter.default is parameter.empty:
            raise TypeError(
                f"{where} is neither a Context nor marked with Depends(...), and has no default"
            )
    return Dependency(provider, _kind(provider), context, needs)


def _kind(provider: Any) -> Literal["plain", "async", "generator", "async generator"]:
    function = provider
    while isinstance(function, partial):
        function = function.func
    if not inspect.isroutine(function) and not inspect.isclass(function):
        function = getattr(function, "__call__", function)  # noqa: B004 - an object that can be called: its method says how
    if inspect.isasyncgenfunction(function):
        return "async generator"
    if inspect.isgeneratorfunction(function):
        return "generator"
    return "async" if inspect.iscoroutinefunction(function) else "plain"


class DependencyScope:
    """The values of dependencies in one call. Each is provided once, and cleaned up when the scope
    ends, the last one first.

    An error of the call, also its cancellation, is raised inside the generators. None of them can
    suppress it.

    Args:
        context: The Context of the call.
        in_thread: Runs plain functions.
        overrides: The replaced dependencies, by what they replace.
    """

    def __init__(
        self, context: Any, in_thread: InThread, overrides: Mapping[Any, Dependency]
    ) -> None:
        self._context = context
        self._in_thread = in_thread
        self._overrides = overrides
        self._values: dict[Any, Any] = {}
        self._cleanup = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._cleanup.__aexit__(kind, error, trace)

    async def values(self, wanted: Mapping[str, Dependency]) -> dict[str, Any]:
        """Return the values of dependencies, by parameter. Raises what a dependency raises."""
        return {name: await self._value(dependency) for name, dependency in wanted.items()}

    async def _value(self, dependency: Dependency) -> Any:
        provider = dependency.provider
        if provider not in self._values:
            replaced = self._overrides.get(provider, dependency)
            self._values[provider] = await self._provide(replaced)
        return self._values[provider]

    async def _provide(self, dependency: Dependency) -> Any:
        if dependency.kind == "direct":
            return _OF_THE_CALL[dependency.provider](self._context)
        values = await self.values(dependency.needs)
        if dependency.context is not None:
            values[dependency.context] = self._context
        call = partial(dependency.provider, **values)
        if dependency.kind == "async":
            return await call()
        if dependency.kind == "plain":
            return await self._in_thread(call)
        if dependency.kind == "async generator":
            manager = asynccontextmanager(call)()
            value = await manager.__aenter__()
            self._cleanup.push_async_exit(partial(_leave, manager.__aexit__))
            return value
        blocking = contextmanager(call)()
        entering = self._in_thread(blocking.__enter__)
        try:
            return await asyncio.shield(entering)
        finally:  # if the call is cancelled meanwhile, the thread goes on, and opens something
            self._cleanup.push_async_exit(partial(self._leave_blocking, entering, blocking))

    async def _leave_blocking(
        self, entering: asyncio.Future[Any], blocking: AbstractContextManager[Any], *raised: Any
    ) -> None:
        """Clean up a generator that runs in threads, once it has reached its `yield`."""
        await asyncio.wait({entering})
        if entering.exception() is None:
            await self._in_thread(partial(blocking.__exit__, *raised))


async def _leave(leave: Callable[..., Awaitable[Any]], *raised: Any) -> None:
    """Clean up. The result is dropped: a dependency does not decide whether a call fails."""
    await leave(*raised)
