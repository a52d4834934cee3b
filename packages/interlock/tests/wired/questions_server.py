"""A server whose middleware, extension and tool ask: in this process or as a child (`python -m
tests.wired.questions_server [--replayed]`)."""

from __future__ import annotations

import sys

from interlock import Context, QuestionSettings, Server
from interlock import types as t
from interlock.exchange import AnyResult, Exchange, Handler
from interlock.extension import Extension, Method

FORM = {"type": "object", "properties": {"confirm": {"type": "boolean"}}}


class OrderParams(t.InputResponseParams, frozen=True, kw_only=True):
    """Params of the extension's method."""

    dish: str


class Ordered(t.Result, frozen=True, kw_only=True):
    """Its result."""

    said: str


async def ask(x: Exchange, message: str) -> bool:
    """Put a question on an exchange."""
    params = t.ElicitRequestParams(message=message, mode="form", requested_schema=FORM)
    answer = await x.asker.ask(t.ElicitRequest(params))
    return isinstance(answer, t.ElicitResult) and answer.action == "accept"


async def order(x: Exchange) -> Ordered:
    """The extension's method asks twice."""
    answers = [await ask(x, f"{x.params.dish}?"), await ask(x, "Sure?")]
    return Ordered(said=f"{x.params.dish} {answers}")


class Audit:
    """Middleware that notes each call once, and asks before the tool `guarded`."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method != "tools/call":
                return await handler(x)
            if not x.replayed:
                self.calls.append(x.params.name)
            if x.params.name == "guarded" and not await ask(x, "May it run?"):
                raise t.McpError(-32000, "The person said no.")
            return await handler(x)

        return handle


RESTAURANT = Extension(
    "com.example/restaurant",
    methods={"restaurant/order": Method(OrderParams, Ordered)},
)


def make_server(*, suspend: bool = True) -> Server:
    """The server, fresh; `suspend` as for Server."""
    audit = Audit()
    server = Server(
        "questions",
        middleware=[audit],
        extensions=[RESTAURANT.with_handlers({"restaurant/order": order})],
        questions=QuestionSettings(suspend=suspend),
    )
    ran: list[str] = []

    @server.tool
    async def guarded() -> str:
        """What the middleware asks about."""
        ran.append("guarded")
        return "ran"

    @server.tool
    async def asks(ctx: Context) -> str:
        """A tool that asks twice itself."""
        return f"{await ctx.confirm('One?')} {await ctx.confirm('Two?')}"

    @server.tool
    async def report() -> dict[str, list[str]]:
        """What the audit has noted, and how often the guarded tool has run."""
        return {"calls": audit.calls, "ran": ran}

    return server


if __name__ == "__main__":
    make_server(suspend="--replayed" not in sys.argv).run()
