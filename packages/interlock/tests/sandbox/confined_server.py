"""A server whose tools try what a sandbox decides; run by the tests."""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

from interlock import Server

server = Server("confined")


@server.tool
def read(path: str) -> str:
    """Read a file; say on stderr why it fails."""
    try:
        return Path(path).read_text()
    except OSError as bad:
        print(f"{bad}", file=sys.stderr, flush=True)
        return type(bad).__name__


@server.tool
def write(path: str) -> str:
    """Write a file."""
    try:
        Path(path).write_text("written")
    except OSError as bad:
        return type(bad).__name__
    return "written"


@server.tool
def fetch(url: str) -> str:
    """Fetch a URL through the proxy, also from this machine."""
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ""
    try:
        return str(urllib.request.urlopen(url, timeout=20).read().decode())
    except urllib.error.HTTPError as bad:
        return f"{bad.code} {bad.read().decode()}"
    except OSError as bad:
        return repr(bad)


@server.tool
def variables() -> str:
    """The names of the variables."""
    return " ".join(sorted(os.environ))


@server.tool
def home() -> str:
    """The home folder."""
    return os.path.expanduser("~")


if __name__ == "__main__":
    server.run()
