"""Settings and limits of the fetch server. Each can be set by an environment variable."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

PREFIX = "INTERLOCK_FETCH_"


class FetchSettings(Struct, frozen=True, kw_only=True):
    """Sizes are in bytes, times in seconds, pages in characters.

    `INTERLOCK_FETCH_BYTES` sets `bytes`, and so on.

    `hosts` are the only hosts that may be fetched, if it is not empty; `never` are hosts that may
    not: names, "*.example.com" for all names below one, or addresses. `networks` ("10.1.0.0/16")
    are private networks that may be reached. `loopback` allows this machine itself, for
    development.
    """

    user_agent: Annotated[str, Meta(pattern=r"^[\x20-\x7e]+$")] = "InterlockFetch/1.0"
    robots: Literal["ask", "ignore"] = "ask"
    plain_http: bool = True
    loopback: bool = False
    hosts: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    bytes: int = 10 * 1024 * 1024  # of a decompressed body
    media: int = 5 * 1024 * 1024  # of an image or audio
    seconds: float = 30.0  # for a whole response, including redirects and robots.txt
    redirects: int = 10
    page: int = 20_000  # the default length of a page
    largest_page: int = 200_000  # the largest length that a call may ask for
    converting: float = 20.0  # seconds for converting HTML or a PDF
    memory: int = 1024 * 1024 * 1024  # for the conversion, if the platform can limit it
    at_once: int = 2  # requests to one host
    kept: int = 200  # cached responses
    kept_bytes: int = 64 * 1024 * 1024

    @property
    def token(self) -> str:
        """The name of this server in robots.txt files (RFC 9309, 2.2.1)."""
        found = re.match(r"[A-Za-z_-]+", self.user_agent)
        return found[0] if found else "InterlockFetch"
