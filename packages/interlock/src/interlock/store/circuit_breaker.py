"""A circuit breaker: while a service fails, calls of it are refused at once."""

from __future__ import annotations

_FAILURES = 3
_PAUSE = 1.0
_LONGEST_PAUSE = 5.0


class CircuitBreaker:
    """Closed, open, half-open: a pure state machine. It has no clock: the caller passes the times
    in.

    Closed, it allows every call. After `failures` failures in a row it is open, and allows none for
    `pause` seconds. Then it is half-open: it allows one call, whose success closes it, and whose
    failure opens it for twice as long.

    Args:
        failures: The number of failures in a row that open it.
        pause: How long it is open at first, in seconds.
        longest: How long it is open at most, in seconds.
    """

    __slots__ = (
        "_failures",
        "_first_pause",
        "_is_trying",
        "_longest",
        "_most",
        "_pause",
        "_retry_at",
    )

    def __init__(
        self,
        *,
        failures: int = _FAILURES,
        pause: float = _PAUSE,
        longest: float = _LONGEST_PAUSE,
    ) -> None:
        self._most = failures
        self._first_pause = pause
        self._longest = longest
        self._failures = 0
        self._pause = pause
        self._retry_at = 0.0
        self._is_trying = False  # half-open, and its call is under way

    @property
    def is_open(self) -> bool:
        """Whether it refuses calls, except for one now and then."""
        return self._failures >= self._most

    def allows(self, now: float) -> bool:
        """Whether a call may be made now. If the breaker is half-open, the answer is True once in
        each pause.
        """
        if not self.is_open:
            return True
        if now < self._retry_at:
            return False
        self._is_trying = True
        self._retry_at = now + self._pause  # another one may try, should this one never end
        return True

    def wait(self, now: float) -> float:
        """Return the seconds until a call may be made; 0 if one may be made now."""
        return max(0.0, self._retry_at - now) if self.is_open else 0.0

    def succeeded(self) -> None:
        """A call has succeeded: the breaker is closed."""
        self._failures = 0
        self._pause = self._first_pause
        self._is_trying = False

    def failed(self, now: float) -> None:
        """A call has failed."""
        if not self.is_open:
            self._failures += 1
            if self.is_open:
                self._retry_at = now + self._pause
        elif self._is_trying:  # other calls began before the breaker was open
            self._is_trying = False
            self._pause = min(2 * self._pause, self._longest)
            self._retry_at = now + self._pause
