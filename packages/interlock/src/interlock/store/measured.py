"""A store whose operations are measured: their durations, for metrics."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from time import perf_counter
from typing import Any, Final, cast

from ..observe.meters import Meters
from .interface import Store

_METRIC: Final = "interlock_store_operation_duration"
_PARTS: Final = ("sessions", "events", "changes", "notes", "rates", "records", "workers")


def measured_store(store: Store, meters: Meters) -> Store:
    """Return a store that records how long its operations take."""
    return cast(Store, MeasuredStore(store, meters))


class MeasuredStore:
    """A store that records how long its operations take, by part and operation, such as
    `records.swap`.

    Args:
        store: The store.
        meters: The metrics.
    """

    def __init__(self, store: Store, meters: Meters) -> None:
        self._store = store
        for name in _PARTS:
            setattr(self, name, _MeasuredPart(getattr(store, name), name, meters))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _MeasuredPart:
    """A part of a store. Its methods are wrapped when they are used first."""

    def __init__(self, part: Any, name: str, meters: Meters) -> None:
        self._part = part
        self._name = name
        self._meters = meters

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if not iscoroutinefunction(found):
            return found
        wrapped = _measured(found, (("operation", f"{self._name}.{name}"),), self._meters)
        setattr(self, name, wrapped)
        return wrapped


def _measured(
    operation: Callable[..., Any], labels: tuple[tuple[str, str], ...], meters: Meters
) -> Callable[..., Any]:
    async def run(*args: Any, **options: Any) -> Any:
        began = perf_counter()
        try:
            return await operation(*args, **options)
        finally:
            meters.record(_METRIC, perf_counter() - began, labels)

    return run
