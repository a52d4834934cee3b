"""The guard hook: a function of the operator that sees requests and answers, and decides."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ..fleet.policy import Verdict
from .asked import Asked
from .settings import HookMode

log = logging.getLogger("interlock_apps.gateway")

HookFunction = Callable[[Asked], Awaitable[Verdict]]

SECONDS = 5.0
"""The longest time that a hook may take, by default."""


class BadHook(ValueError):
    """A guard hook that cannot be used; the message says what to write instead."""


class GuardHook:
    """Calls the guard hook, and fails closed: a hook that fails, is late or returns something else
    than a Verdict denies.

    Args:
        function: `async (Asked) -> Verdict`. It is called with the request, and again with the
            answer of the server (`asked.phase`).
        mode: "enforce", or "audit": its verdicts are only recorded.
        seconds: The longest time that one call of it may take.
    """

    def __init__(
        self, function: HookFunction, *, mode: HookMode = "enforce", seconds: float = SECONDS
    ) -> None:
        self._function = function
        self._seconds = seconds
        self.enforces = mode == "enforce"

    async def judge(self, asked: Asked) -> Verdict:
        """Return the verdict about a request or an answer. Never raises, but for cancellation."""
        try:
            async with asyncio.timeout(self._seconds):
                verdict = await self._function(asked)
        except TimeoutError:
            return _failed(f"it took longer than {self._seconds:g} s", None)
        except Exception as bad:  # whatever the function raises, nothing passes
            return _failed(f"it raised {type(bad).__name__}", bad)
        if not isinstance(verdict, Verdict):
            return _failed(f"it returned {type(verdict).__name__}, and not a Verdict", None)
        if verdict.decision == "ask" and asked.phase == "response":
            return _failed("it asked about an answer, which can only pass or be withheld", None)
        return verdict


def _failed(why: str, bad: Exception | None) -> Verdict:
    """Return the verdict for a hook that failed. The caller does not learn the details."""
    log.error("the guard hook failed: %s", why, exc_info=bad)
    return Verdict(decision="deny", why="The guard of this gateway failed.")


def load_hook(text: str, folder: Path) -> HookFunction:
    """Load a hook.

    Args:
        text: `FILE.py:FUNCTION`, or `MODULE:FUNCTION`.
        folder: The folder that a relative path begins at.

    Raises:
        BadHook: There is no such function, or it is not async.
    """
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise BadHook(
            f"{text!r} is not a guard hook: write FILE.py:FUNCTION or MODULE:FUNCTION, as in "
            "checks.py:check"
        )
    try:
        module = _from_file(folder / place) if place.endswith(".py") else _module(place)
    except Exception as bad:  # the file of the operator may raise anything
        raise BadHook(f"{place} cannot be loaded: {type(bad).__name__}: {bad}") from bad
    function: Any = getattr(module, name, None)
    if function is None:
        raise BadHook(f"{place} has no function {name!r}")
    call = getattr(function, "__call__", None)  # noqa: B004  # an instance may be async too
    if not inspect.iscoroutinefunction(function) and not inspect.iscoroutinefunction(call):
        raise BadHook(f"{text} is not an async function: write async def {name}(asked)")
    loaded: HookFunction = function
    return loaded


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _from_file(path: Path) -> Any:
    """Load a Python file. Each load makes a new module: a reload reads the file again."""
    spec = importlib.util.spec_from_file_location(f"interlock_guard_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickles of the file look for it
    spec.loader.exec_module(module)
    return module
