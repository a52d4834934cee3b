"""Tasks that start eagerly, where Python has them (3.12 and later)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

if sys.version_info >= (3, 12):

    def start_task(
        work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop
    ) -> asyncio.Task[T]:
        """A task that begins at once: a call that never waits is answered in the turn of the loop in which it came."""
        return asyncio.Task(work, loop=loop, eager_start=True)

else:

    def start_task(
        work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop
    ) -> asyncio.Task[T]:
        """A task that begins in the next turn of the loop."""
        return loop.create_task(work)
