"""Ready-made middleware: request log, timing, response cache, retries, error messages, a size limit
and a rate limit.

Each function returns a middleware, for `Server(middleware=[...])`, for `Client(middleware=[...])`
and for `Transform(around=...)`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from typing import Any

from msgspec.structs import replace

from . import types as t
from .caches import BoundedCache
from .exchange import AnyResult, Exchange, Handler, Middleware, RawResult
from .quotas import RATE_LIMITED, holder_of_exchange
from .rates import TokenBucket
from .server.request_log import RequestEntry, RequestLog
from .wire.codec import encode

__all__ = ["RequestEntry", "cache", "error_text", "log", "max_size", "rate", "retry", "timing"]

_MOST_HOLDERS = 10_000  # callers whose rate is remembered
_MOST_CACHED_BYTES = 32 * 1024 * 1024
_READS = frozenset(
    {
        "completion/complete",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "tools/list",
    }
)


def log(logger: str | logging.Logger = "interlock.requests") -> Middleware:
    """Log each request with its outcome and duration, at INFO. Arguments and results are not
    logged.

    Args:
        logger: The logger, or its name.
    """
    target = logging.getLogger(logger) if isinstance(logger, str) else logger
    return RequestLog(lambda entry: target.info("%s", entry))


def timing(report: Callable[[RequestEntry], object]) -> Middleware:
    """Report how long each request took, and how it ended.

    Args:
        report: Called with each request that has ended: its method, name, caller, outcome and
            duration in milliseconds. It must not raise.
    """
    return RequestLog(lambda entry: _ignore(report(entry)))


def _ignore(value: object) -> None:
    """Drop the return value of an author's function."""


def cache(
    seconds: float,
    *tools: str,
    shared: bool = False,
    most: int = 1000,
    clock: Callable[[], float] = time.monotonic,
) -> Middleware:
    """Answer repeated calls of tools from a cache, in memory.

    Results that are errors, and results of calls that asked a question under 2026-07-28, are not
    cached. Hazard: cache only tools whose result depends on their arguments and their caller alone.

    Args:
        seconds: The time for which a result is used.
        tools: The names of the tools, or shell patterns of them.
        shared: Whether all callers get the same results. Otherwise each principal has its own, and
            callers without a principal have theirs together.
        most: The maximum number of results; 32 MiB in all.
        clock: Returns the time in seconds.

    Raises:
        ValueError: No tool is named.
    """
    if not tools:
        raise ValueError('name the tools to cache, as in cache(60, "search_*")')

    def layer(handler: Handler) -> Handler:
        kept: BoundedCache[tuple[Any, ...], tuple[float, AnyResult]] = BoundedCache(
            most, most_size=_MOST_CACHED_BYTES
        )

        async def handle(x: Exchange) -> AnyResult:
            if x.method != "tools/call" or x.params.task is not None or not _named(x, tools):
                return await handler(x)
            principal = x.caller.principal
            owner = None if shared or principal is None else principal.key
            anonymous = not shared and x.caller.anonymous
            arguments = bytes(x.params.arguments)
            key = (x.params.name, arguments, x.caller.revision, owner, anonymous)
            known = kept.get(key)
            if known is not None and clock() < known[0]:
                return known[1]
            result = await handler(x)
            if _may_be_cached(result, x):
                kept.put(key, (clock() + seconds, result), _size(result) + len(arguments))
            return result

        return handle

    return layer


def _may_be_cached(result: AnyResult, x: Exchange) -> bool:
    if getattr(x.asker, "has_answers", False):
        return False  # it depends on the answers
    if isinstance(result, RawResult):
        result = result.decode()
    return isinstance(result, t.CallToolResult) and not result.is_error


def retry(
    times: int = 2,
    *tools: str,
    pause: float = 0.2,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> Middleware:
    """Repeat requests that fail because a server behind is unreachable or late: requests that only
    read, and calls of the tools that you name.

    Args:
        times: The maximum number of repetitions.
        tools: The names of tools that may run twice, or shell patterns of them.
        pause: The time before the first repetition, in seconds. It doubles each time.
        sleep: Waits for a number of seconds.
    """

    def layer(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            may = x.method in _READS or (x.method == "tools/call" and _named(x, tools))
            for number in range(times if may else 0):
                try:
                    return await handler(x)
                except (t.Unreachable, t.TimedOut):
                    await sleep(pause * 2**number)
            return await handler(x)

        return handle

    return layer


def error_text(change: Callable[[str], str]) -> Middleware:
    """Change the text of every error: of tools that fail, and of error responses.

    Args:
        change: Gets the text, and returns the text for the caller, such as one without internal
            names.
    """

    def layer(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            try:
                result = await handler(x)
            except t.McpError as bad:
                words = change(bad.message)
                if words == bad.message:
                    raise
                raise t.McpError(bad.code, words, bad.data) from None
            read = result.decode() if isinstance(result, RawResult) else result
            if not isinstance(read, t.CallToolResult) or not read.is_error:
                return result
            content = [
                replace(block, text=change(block.text))
                if isinstance(block, t.TextContent)
                else block
                for block in read.content
            ]
            return replace(read, content=content)

        return handle

    return layer


def max_size(size: int) -> Middleware:
    """Replace results that are too large by an error that says so. Each result is encoded once more
    to measure it, unless it is encoded already.

    Args:
        size: The maximum size of a result in bytes of JSON.
    """

    def layer(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            result = await handler(x)
            found = _size(result)
            if found <= size or isinstance(result, t.InputRequiredResult):
                return result
            words = f"The result has {found:,} bytes; at most {size:,} are allowed. Ask for less."
            if x.method == "tools/call":
                return t.CallToolResult(content=[t.TextContent(words)], is_error=True)
            raise t.McpError(t.INTERNAL_ERROR, words)

        return handle

    return layer


def _size(result: AnyResult) -> int:
    return len(result.body if isinstance(result, RawResult) else encode(result))


def rate(
    per_second: float,
    *tools: str,
    burst: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Middleware:
    """Limit the requests of each caller, by principal or network address; further requests fail
    with an error that says when to try again. Subscriptions do not count.

    Each process counts for itself. For limits over all workers, see `http_app(limits=)`.

    Args:
        per_second: The number of requests in a second.
        tools: Count only calls of these tools: names, or shell patterns of them. All requests count
            by default.
        burst: The number of requests at once after a pause; twice `per_second` by default.
        clock: Returns the time in seconds.

    Raises:
        ValueError: A number is not positive.
    """
    most_at_once = burst if burst is not None else max(1, round(2 * per_second))
    if per_second <= 0 or most_at_once < 1:
        raise ValueError("a rate limit needs more than 0 requests in a second, and a burst of 1")

    def layer(handler: Handler) -> Handler:
        buckets: BoundedCache[str, TokenBucket] = BoundedCache(_MOST_HOLDERS)

        async def handle(x: Exchange) -> AnyResult:
            counts = x.method == "tools/call" and _named(x, tools) if tools else True
            if counts and x.method != "subscriptions/listen":
                holder = holder_of_exchange(x)
                bucket = buckets.get(holder)
                if bucket is None:
                    bucket = TokenBucket(rate=per_second, burst=most_at_once)
                    buckets.put(holder, bucket)
                wait = bucket.acquire(clock())
                if wait > 0.0:
                    seconds = math.ceil(wait)
                    raise t.McpError(
                        RATE_LIMITED,
                        f"Too many requests. Try again in {seconds} s.",
                        {"reason": "rate", "retryAfter": seconds},
                    )
            return await handler(x)

        return handle

    return layer


def _named(x: Exchange, tools: tuple[str, ...]) -> bool:
    name: str = x.params.name
    return any(fnmatchcase(name, pattern) for pattern in tools)
