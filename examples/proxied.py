"""A proxy before somebody else's server: it hides arguments, renames tools, and limits, repeats,
caches and logs calls.

    python examples/proxied.py uvx some-server
    python examples/proxied.py https://people.example/mcp
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from interlock import Client, Server, Target, ToolAnnotations, Transform, middleware

PRIVATE = "/var/lib/people"


def proxied(
    target: Target | Client,
    *,
    timing: Callable[[middleware.RequestEntry], object] = print,
    clock: Callable[[], float] = time.monotonic,
) -> Server:
    """Return the proxy.

    Args:
        target: The server behind.
        timing: Called with each request that has ended.
        clock: Returns the time in seconds, for the rate limit.
    """
    server = Server(
        "people-proxy",
        middleware=[
            middleware.log("people.requests"),
            middleware.timing(timing),
            middleware.rate(5, "people__search", burst=3, clock=clock),
            middleware.max_size(50_000),
            middleware.error_text(lambda words: words.replace(PRIVATE, "the store")),
            middleware.retry(2, "people__*"),
        ],
    )
    server.mount(
        target,
        prefix="people",
        tools=["find_people", "get_profile", "long_report"],
        change={
            "find_people": Transform(
                name="search",
                description="Search people by name.",
                annotations=ToolAnnotations(read_only_hint=True),
                rename={"q": "name"},
                fix={"limit": 20},
                hide=["session_cookie", "debug"],
                around=middleware.cache(300, "find_people"),
            )
        },
    )
    return server


if __name__ == "__main__":
    given = sys.argv[1:]
    proxied(given[0] if len(given) == 1 else given, timing=lambda entry: None).run()
