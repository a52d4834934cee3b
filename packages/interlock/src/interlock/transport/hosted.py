"""Whether the web server around a mounted endpoint is about to end.

uvicorn waits then until every response is complete, and tells the application only after that: streams that listen would keep it for ever.
"""

from __future__ import annotations

import signal

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def is_ending() -> bool:
    """Whether a uvicorn in this process was told to end; it hears that as a method of its own, and has no other sign of it."""
    return any(
        getattr(getattr(signal.getsignal(number), "__self__", None), "should_exit", False) is True
        for number in _SIGNALS
    )
