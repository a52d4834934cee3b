"""A server that has mounted a server that has mounted a client, and a program of it."""

from __future__ import annotations

import sys
from typing import Any

from interlock import Client, Server


def mounted(target: Any) -> Server:
    """The server before a target of a client."""
    middle = Server("middle")
    middle.mount(Client(target))
    front = Server("gateway")
    front.mount(middle)
    return front


if __name__ == "__main__":
    mounted([sys.executable, "-m", "tests.wired.behind", sys.argv[1]]).run()
