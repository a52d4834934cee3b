"""JSON in odd but valid spelling, and a server that answers with it; it notes the requests as they
came."""

from __future__ import annotations

import sys

from interlock import AnyResult, Exchange, Handler, RawResult, Server

ARGUMENTS = (
    rb'{"z": 1.0,"a":1e3, "\u0062":"\u00e9\/","big":123456789012345678901234567890,'
    rb'"minus":-0,"small":1E-2,"twice":1,"twice":2,"deep":[ {"k" :null} ]}'
)
"""The arguments of a call."""

MEMBERS = (
    rb'"later":{"b": 1.0,"a":[1e3,123456789012345678901234567890]},'
    rb'"content":[{"text":"\u00e9\/ \ud83d\ude00","later": 1E2,"type":"text"}],'
    rb'"structuredContent":{"z":1.00,"a":-0}'
)
"""The members of a result, without `_meta`."""


LIST = (
    rb'{"later":1.0,"tools":[{"later":1e3,"inputSchema":{"type":"object"},"name":"odd"}],'
    rb'"ttlMs":60000,"cacheScope":"public"}'
)
"""A list of tools that may be kept for a minute."""


def odd_server(revision: str, frames: list[bytes] | None = None) -> Server:
    """Answers every call of a tool with MEMBERS; a tool called `last` gives the message that came
    before."""
    seen: list[bytes] = frames if frames is not None else []

    def odd(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method == "tools/list":
                seen.append(b"list")
                return RawResult(LIST)
            if x.method != "tools/call":
                return await handler(x)
            frame = x.received.frame if x.received is not None else None
            seen.append(frame or b"")
            if x.params.name == "last":
                return await handler(x)
            return RawResult(b"{%b}" % MEMBERS)

        return handle

    server = Server("odd", revisions=revision, middleware=[odd])

    @server.tool
    async def last() -> str:
        """The message that came before this one."""
        return seen[-2].decode()

    return server


if __name__ == "__main__":
    odd_server(sys.argv[1]).run()
