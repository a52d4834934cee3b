"""A small server over stdio, for gateways that start it as a program."""

from __future__ import annotations

import os

from interlock import Server

server = Server("small")


@server.tool
async def echo(text: str) -> str:
    """Say the same again."""
    return text


@server.tool
async def pid() -> int:
    """The process of this server."""
    return os.getpid()


if __name__ == "__main__":
    server.run()
