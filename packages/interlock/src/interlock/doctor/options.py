"""Options of an examination: time limits, thresholds, and how the server is started or reached."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ..http11.fetch import Authorizer


class ExamineOptions(Struct, frozen=True, kw_only=True):
    """Options of `examine`, `examine_host` and `examine_catalogue`.

    Attributes:
        start: Whether servers are started and contacted. False: only configurations, files and
            logs are read.
        timeout: The time limit of the first answer and of each request, in seconds.
        slow_seconds: The time for the first answer above which the start counts as slow. Hosts give
            up after 10 to 60 seconds.
        exit_seconds: How long a started server may take to end once its stdin is closed. After that
            it is terminated.
        connect_seconds: The time limit of a TCP connection or a TLS handshake, in seconds.
        keep_alive_seconds: How long an event stream is watched, in seconds; 0 to skip it. A watch
            that is shorter than `idle_seconds` finds only streams that are cut.
        idle_seconds: The time after which proxies cut a silent stream, in seconds.
        expiry_days: How many days before its expiry a certificate is reported.
        most_tokens: The estimated tokens of a catalogue above which it is reported.
        most_tool_tokens: The same for one tool.
        env: Variables for a started server, in addition to a few harmless ones.
        inherit_env: Whether a started server gets all variables of this process.
        folder: The working folder of a started server; None for that of this process.
        headers: Headers of every request to a URL.
        auth: Authorizes the requests to a URL, such as `interlock.auth.OAuth`.
        private_hosts: Hosts of authorization servers that may have private addresses.
        ca: The certificate authorities to trust: a file or a folder; None for the system's.
        revision: The only revision to use; None to negotiate it.
    """

    start: bool = True
    timeout: float = 30.0
    slow_seconds: float = 10.0
    exit_seconds: float = 5.0
    connect_seconds: float = 10.0
    keep_alive_seconds: float = 10.0
    idle_seconds: float = 60.0
    expiry_days: float = 14.0
    most_tokens: int = 25_000
    most_tool_tokens: int = 3_000
    env: Mapping[str, str] = {}
    inherit_env: bool = False
    folder: Path | None = None
    headers: Mapping[str, str] = {}
    auth: Authorizer | None = None
    private_hosts: tuple[str, ...] = ()
    ca: str | Path | None = None
    revision: str | None = None
