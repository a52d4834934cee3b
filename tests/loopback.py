"""A web site of the standard library on a free port of loopback, for commands and servers in other
processes."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Quiet:
    """A mixin for a handler without a log: tests check the requests that the site records."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class Loopback:
    """The site, in a thread of its own until it is closed; `address` is its host and port, `root`
    its origin."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"127.0.0.1:{self._http.server_port}"
        self.root = f"http://{self.address}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the site."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
