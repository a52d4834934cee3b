"""Settings and limits of the fetch server. Each can be set by an environment variable."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

PREFIX = "INTERLOCK_FETCH_"


class FetchSettings(Struct, frozen=True, kw_only=True):
    """Sizes are in bytes, times in seconds, pages in characters.

    `INTERLOCK_FETCH_BYTES` sets `bytes`, and so on.

    `hosts` are the only ones to be asked where it names any, `never` those that are not: names,
    "*.example.com" for all below one, addresses. `networks` ("10.1.0.0/16") are your own that may
    be reached. `loopback` lets this machine itself be asked, for development.
    """

    user_agent: Annotated[str, Meta(pattern=r"^[\x20-\x7e]+$")] = "InterlockFetch/1.0"
    robots: Literal["ask", "ignore"] = "ask"
    plain_http: bool = True
    loopback: bool = False
    hosts: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    bytes: int = 10 * 1024 * 1024  # of a body, once it is unpacked
    media: int = 5 * 1024 * 1024  # of a picture or a sound
    seconds: float = 30.0  # for an answer to the end, redirects and robots.txt included
    redirects: int = 10
    page: int = 20_000  # of a document that is longer
    largest_page: int = 200_000  # that may be asked for
    converting: float = 20.0  # seconds to make text of HTML or a PDF
    memory: int = 1024 * 1024 * 1024  # for that, where the platform can bound it
    at_once: int = 2  # requests to one host
    kept: int = 200  # answers
    kept_bytes: int = 64 * 1024 * 1024

    @property
    def token(self) -> str:
        """The name under which robots.txt files know this server (RFC 9309, 2.2.1)."""
        found = re.match(r"[A-Za-z_-]+", self.user_agent)
        return found[0] if found else "InterlockFetch"
