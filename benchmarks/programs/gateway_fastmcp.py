"""FastMCP's proxy, for `python -m benchmarks.gateway`: `URL PORT`. FastMCP's Python runs it."""

from __future__ import annotations

import sys

from fastmcp import FastMCP
from fastmcp.server import create_proxy


def main() -> None:
    """Serve the proxy."""
    front = FastMCP("front")
    front.mount(create_proxy(sys.argv[1]), namespace="k")
    front.run(
        transport="http",
        host="127.0.0.1",
        port=int(sys.argv[2]),
        show_banner=False,
        uvicorn_config={"log_level": "error"},
    )


if __name__ == "__main__":
    main()
