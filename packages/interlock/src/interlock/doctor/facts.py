"""Facts: what the gatherers saw, as data for the rules. No field holds more than was seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from .. import types as t
from ..auth.diagnose import Finding
from ..configs import Entry, Problem


class HostFacts(Struct, frozen=True, kw_only=True):
    """The configuration file of a product.

    Attributes:
        title: The product, for people.
        file: The path of the file.
        exists: Whether the file exists.
        problems: The parts of it that cannot be read.
        entries: Its servers.
    """

    title: str
    file: str
    exists: bool
    problems: tuple[Problem, ...] = ()
    entries: tuple[Entry, ...] = ()


class EntryFacts(Struct, frozen=True, kw_only=True):
    """One server of a configuration.

    Attributes:
        entry: The server.
        title: The product that starts it, for people; empty if it is not known. A project's file
            names none, because its product starts the server in the folder of the project.
    """

    entry: Entry
    title: str = ""


class CommandFacts(Struct, frozen=True, kw_only=True):
    """The command of a server, before it is started.

    Attributes:
        command: The program and its arguments, without secrets.
        search_path: The PATH in which the program is searched.
        launch_path: The PATH that the product gives its servers, if it is known and differs from
            that of a shell; empty otherwise.
        folder: The working folder; empty for that of this process.
        folder_exists: Whether the folder exists.
        program: The file of the program; empty if there is none.
        is_executable: Whether the file may be executed.
        on_launch_path: Whether the program is found in `launch_path` too.
        head: The first bytes of the file, if it is not a binary program.
        interpreter: The interpreter that its first line names; empty if it names none.
        has_interpreter: Whether the interpreter exists.
        missing_script: The script among the arguments that does not exist; empty if it does.
    """

    command: tuple[str, ...]
    search_path: str = ""
    launch_path: str = ""
    folder: str = ""
    folder_exists: bool = True
    program: str = ""
    is_executable: bool = True
    on_launch_path: bool = True
    head: bytes = b""
    interpreter: str = ""
    has_interpreter: bool = True
    missing_script: str = ""


class StartFacts(Struct, frozen=True, kw_only=True):
    """What a started server did until it was closed.

    Attributes:
        opened: Whether it could be opened.
        exit_code: The exit code, if it ended before it was open.
        stderr: The last lines of its stderr.
        noise: The lines on its stdout that are not messages of the protocol.
        given: The names of the variables that it got.
        withheld: The names of the variables of this process that it did not get.
        probe_failed: Whether it had to be started again, because `server/discover` broke it.
        ended_after: How long it took to end once its stdin was closed, in seconds; None if it was
            not open.
        exit_seconds: See `ExamineOptions`.
    """

    opened: bool
    exit_code: int | None = None
    stderr: str = ""
    noise: tuple[str, ...] = ()
    given: frozenset[str] = frozenset()
    withheld: frozenset[str] = frozenset()
    probe_failed: bool = False
    ended_after: float | None = None
    exit_seconds: float = 5.0


class NetworkFacts(Struct, frozen=True, kw_only=True):
    """The way to the host of a URL.

    Attributes:
        url: The URL, without secrets.
        host: Its host and port.
        is_secure: Whether it is https.
        is_here: Whether the host is this machine.
        proxy: The proxy that is used, without secrets; empty for none.
        proxy_error: Why the proxy cannot be used.
        loopback_proxy: The variable whose proxy other clients may use even for this machine; empty
            if there is none.
        dns_error: Why the host has no address.
        tcp_error: Why there is no connection.
        tls_error: Why there is no TLS connection.
        certificate_error: The verification error of OpenSSL, as a number; 0 for none.
        days_left: How long the certificate is valid, in days; None if it is not known.
        expiry_days: See `ExamineOptions`.
    """

    url: str
    host: str
    is_secure: bool
    is_here: bool
    proxy: str = ""
    proxy_error: str = ""
    loopback_proxy: str = ""
    dns_error: str = ""
    tcp_error: str = ""
    tls_error: str = ""
    certificate_error: int = 0
    days_left: float | None = None
    expiry_days: float = 0.0


class HttpAnswer(Struct, frozen=True, kw_only=True):
    """The response to one HTTP request.

    Attributes:
        status: The status; 0 if there is no response.
        kind: The media type.
        location: The Location header.
        text: The beginning of the body.
        error: Why there is no response.
        session: The Mcp-Session-Id header.
    """

    status: int = 0
    kind: str = ""
    location: str = ""
    text: str = ""
    error: str = ""
    session: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether it is a successful response of an MCP endpoint."""
        return 200 <= self.status < 300 and self.kind in ("application/json", "text/event-stream")


class EndpointFacts(Struct, frozen=True, kw_only=True):
    """The endpoint at a URL, over HTTP.

    Attributes:
        url: The URL, without secrets.
        first: The response to the first request: the one of the newest revision, or that of the
            handshake if the first was refused.
        moved: The URL of the same host to which the URL redirects; empty if it does not.
        elsewhere: Other URLs of the same host that answer like an endpoint.
        has_sse: Whether a GET request returns the event stream of HTTP+SSE, the transport of
            2024-11-05, and POST requests are refused.
        foreign: The status of a request of another site, with its Host and Origin; None if it was
            not sent, because only servers on this machine are attacked in this way.
        session: The session id of the handshake; empty for none.
        unknown_session: The status of a request with an unknown session id; None without sessions.
        after_session: The response to a handshake after the end of a session; None without one.
        get: The response to a GET request of the session; None if it was not sent.
        watched: How long the event stream was watched, in seconds; None if there is none.
        quiet: The longest time without a byte, in seconds.
        stream_ended: Whether the server or a proxy ended it.
        idle_seconds: See `ExamineOptions`.
    """

    url: str
    first: HttpAnswer
    moved: str = ""
    elsewhere: tuple[str, ...] = ()
    has_sse: bool = False
    foreign: int | None = None
    session: str = ""
    unknown_session: int | None = None
    after_session: HttpAnswer | None = None
    get: HttpAnswer | None = None
    watched: float | None = None
    quiet: float = 0.0
    stream_ended: bool = False
    idle_seconds: float = 60.0


class AuthorizationFacts(Struct, frozen=True, kw_only=True):
    """The authorization of a URL that refuses requests without a token.

    Attributes:
        url: The URL, without secrets.
        findings: The findings of `interlock auth explain`.
        has_credentials: Whether the request had a token or an Authorization header.
    """

    url: str
    findings: tuple[Finding, ...]
    has_credentials: bool = False


class ConnectionFacts(Struct, frozen=True, kw_only=True):
    """The opening of a connection.

    Attributes:
        seconds: How long it took; None if it failed.
        error: Why it failed; empty if it did not, or if the process ended.
        timed_out: Whether there was no answer in time.
        limit: The time limit, in seconds.
        slow_seconds: See `ExamineOptions`.
        info: The name and version that the server gives.
        revision: The negotiated revision.
    """

    seconds: float | None = None
    error: str = ""
    timed_out: bool = False
    limit: float = 30.0
    slow_seconds: float = 10.0
    info: t.Implementation | None = None
    revision: str = ""


class PageFacts(Struct, frozen=True):
    """One page of a list: how many items it has, and its cache hints."""

    items: int
    ttl_ms: int | None
    cache_scope: str | None


class ListFacts(Struct, frozen=True, kw_only=True):
    """One list of a server.

    Attributes:
        method: The method.
        items: The items of all pages.
        pages: The pages.
        is_missing: Whether the server declares it, but does not have the method.
        error: The error with which the server answered.
        unreadable: Why the answer cannot be read.
        repeats: Whether the server gave the same cursor twice.
    """

    method: str
    items: tuple[Any, ...] = ()
    pages: tuple[PageFacts, ...] = ()
    is_missing: bool = False
    error: str = ""
    unreadable: str = ""
    repeats: bool = False


class CatalogueFacts(Struct, frozen=True, kw_only=True):
    """What a server offers.

    Attributes:
        lists: The lists that it declares, by their methods.
        revision: The negotiated revision.
        instructions: Its instructions for models.
        has_cache_hints: Whether the revision has cache hints.
        has_credentials: Whether the requests had a token.
        most_tokens: See `ExamineOptions`.
        most_tool_tokens: See `ExamineOptions`.
    """

    lists: Mapping[str, ListFacts]
    revision: str = ""
    instructions: str = ""
    has_cache_hints: bool = False
    has_credentials: bool = False
    most_tokens: int = 25_000
    most_tool_tokens: int = 3_000

    @property
    def tools(self) -> tuple[t.Tool, ...]:
        """The tools."""
        return self._items("tools/list")

    @property
    def resources(self) -> tuple[t.Resource, ...]:
        """The resources."""
        return self._items("resources/list")

    @property
    def templates(self) -> tuple[t.ResourceTemplate, ...]:
        """The resource templates."""
        return self._items("resources/templates/list")

    @property
    def prompts(self) -> tuple[t.Prompt, ...]:
        """The prompts."""
        return self._items("prompts/list")

    @property
    def items(self) -> tuple[t.Tool | t.Resource | t.ResourceTemplate | t.Prompt, ...]:
        """The items of all lists."""
        return (*self.tools, *self.resources, *self.templates, *self.prompts)

    def _items(self, method: str) -> tuple[Any, ...]:
        found = self.lists.get(method)
        return () if found is None else found.items


class LogFacts(Struct, frozen=True, kw_only=True):
    """The last errors about a server in the log of a product.

    Attributes:
        file: The file; empty if there is none.
        errors: The lines since the server was started last, the oldest first.
    """

    file: str = ""
    errors: tuple[str, ...] = ()
