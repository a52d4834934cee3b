"""The server of the matrix: every feature once, in this process or as a child (`python -m
tests.wired.server [--replayed]`)."""

from __future__ import annotations

import sys

import msgspec

from interlock import CallToolResult, QuestionSettings, Server, ServerInfo, ServerLimits
from interlock.exchange import AnyResult, Exchange, Handler
from tests.wired.asking import add_questions
from tests.wired.offers import add_prompts, add_resources
from tests.wired.scopes import add_scoped
from tests.wired.state import lifespan
from tests.wired.telling import add_changing, add_telling
from tests.wired.tools import add_failures, add_kinds


def marking(handler: Handler) -> Handler:
    """Middleware: who sends `example.com/mark` gets it back in the result of a tool call."""

    async def handle(x: Exchange) -> AnyResult:
        result = await handler(x)
        mark = (
            msgspec.json.decode(x.params.meta).get("example.com/mark")
            if x.method == "tools/call"
            else None
        )
        if mark is not None and isinstance(result, CallToolResult):
            return msgspec.structs.replace(
                result, meta={**(result.meta or {}), "example.com/mark": mark}
            )
        return result

    return handle


def make_server(*, suspend: bool = True) -> Server:
    """The server, fresh; `suspend` as for Server."""
    server = Server(
        "wired",
        "1.2.3",
        info=ServerInfo(title="The wired server"),
        instructions="Everything once.",
        lifespan=lifespan,
        middleware=[marking],
        questions=QuestionSettings(
            suspend=suspend, timeout=60, state_keys=[b"a key that every worker of the matrix has"]
        ),
        limits=ServerLimits(page_size=7, calls_per_peer=100),
    )
    for add in (
        add_kinds,
        add_failures,
        add_telling,
        add_questions,
        add_changing,
        add_resources,
        add_prompts,
        add_scoped,
    ):
        add(server)
    return server


if __name__ == "__main__":
    make_server(suspend="--replayed" not in sys.argv).run()
