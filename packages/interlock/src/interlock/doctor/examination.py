"""Examines a server, a host or a catalogue: gathers facts part by part, and applies the rules.

A part whose rule stops the examination leaves the later parts unchecked. The report says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from .. import types as t
from ..auth.diagnose import Report
from ..auth.diagnose import examine as diagnose
from ..auth.sender import HttpClients, perform
from ..client.app import Client
from ..client.options import ClientSettings
from ..configs import (
    PRODUCTS,
    Entry,
    Machine,
    confinement_of,
    load_config,
    this_machine,
)
from ..http11.headers import is_address
from ..redaction import (
    Redactor,
    secrets_in,
    secrets_in_command,
    secrets_in_url,
    shown_arguments,
    url_without_secrets,
)
from ..sandbox import Sandbox, mechanism_states, unavailable_reason
from ..transport.channel import Tap
from ..transport.conversation import ClientTransport
from ..transport.http.client.transport import Http
from ..transport.sockets import Socket
from ..transport.stdio import Stdio, inherited_environment
from ..untrusted.invisible import visible
from ..version import VERSION
from ..wire.jsonrpc import Frame
from .diagnostics import CheckedPart, Diagnostic, DiagnosticReport
from .facts import (
    AuthorizationFacts,
    CatalogueFacts,
    ConnectionFacts,
    EntryFacts,
    HostFacts,
    StartFacts,
)
from .gather.catalogue import catalogue_facts
from .gather.endpoint import ExaminedEndpoint, endpoint_facts
from .gather.host_logs import log_facts
from .gather.network import network_facts
from .gather.program import command_facts
from .options import ExamineOptions
from .rules.lists import catalogue_words, counted
from .table import PARTS

OnPart = Callable[[CheckedPart], object]
"""Called with each part as soon as it is checked."""

OnReport = Callable[[DiagnosticReport], object]
"""Called with a report when its examination begins."""

_MOST_NOISE = 20  # lines of stdout that are kept
_MOST_STDERR = 200  # lines
_LAUNCH_PATHS: Mapping[tuple[str, str], str] = {
    # Claude Desktop on a Mac is not started from a shell: it adds the folders of Homebrew only
    ("claude-desktop", "darwin"): (
        "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    ),
}


async def examine(
    target: str | Sequence[str] | Entry,
    options: ExamineOptions | None = None,
    *,
    on_part: OnPart | None = None,
    on_report: OnReport | None = None,
) -> DiagnosticReport:
    """Examine a server: everything between its command or URL and its catalogue.

    A started server runs with the rights of the user: ask before you start one that a project's
    file names.

    Args:
        target: An http, https, unix or tcp URL; a command as a list of words; or an entry of a
            configuration.
        options: Time limits, thresholds, variables, headers.
        on_part: Called with each part as soon as it is checked.
        on_report: Called with the report when the examination begins.

    Returns:
        The report. A server that cannot be started or reached raises no error: it is a finding.

    Raises:
        ValueError: The target is neither a URL nor a command.
    """
    options = options or ExamineOptions()
    examination = _Examination(_shown(target), options, on_part)
    if on_report is not None:
        on_report(examination.report)
    await examination.target(target)
    return examination.report


async def examine_host(
    product: str,
    options: ExamineOptions | None = None,
    *,
    machine: Machine | None = None,
    on_part: OnPart | None = None,
    on_report: OnReport | None = None,
) -> DiagnosticReport:
    """Examine an installed product: its configuration, each of its servers, and its logs.

    Its servers are started as the product starts them, unless `options.start` is False.

    Args:
        product: A name of `interlock.configs.PRODUCTS`, such as "cursor".
        options: Time limits and thresholds.
        machine: Where the product is installed; None for this machine. A server without a working
            folder is started in its home folder.
        on_part: Called with each part as soon as it is checked.
        on_report: Called with the report of the host, and of each server, when it begins.

    Returns:
        The report of the host, with one of each server.

    Raises:
        ValueError: There is no such product.
    """
    row = PRODUCTS.get(product)
    if row is None:
        raise ValueError(f"there is no product {product}; known are {', '.join(PRODUCTS)}")
    options = options or ExamineOptions()
    machine = machine or this_machine()
    path = row.path(machine)
    config = load_config(path, env=machine.env) if path.exists() else None
    host = _Examination(row.title, options, on_part)
    if on_report is not None:
        on_report(host.report)
    facts = HostFacts(
        title=row.title,
        file=str(path),
        exists=config is not None,
        problems=config.problems if config is not None else (),
        entries=config.entries if config is not None else (),
    )
    host.check("host", facts, f"{path}: {counted(len(facts.entries), 'server')}")
    for entry in facts.entries:
        server = _Examination(f"{entry.id}: {entry.shown}", options, on_part)
        server.launch_path = _LAUNCH_PATHS.get((product, machine.platform), "")
        host.report.servers.append(server.report)
        if on_report is not None:
            on_report(server.report)
        server.redact.add(*_secrets_of(entry))
        log = log_facts(product, machine, entry.id)
        server.check("log", log, log.file or f"{row.title} has no log of this server")
        if entry.cwd is None and machine.home.is_dir():
            server.folder = str(machine.home)
        await server.target(entry, title=row.title)
    return host.report


async def examine_catalogue(
    client: Client, options: ExamineOptions | None = None, *, on_part: OnPart | None = None
) -> DiagnosticReport:
    """Examine what a server lists: names, descriptions, schemas, pages, cache hints, tokens.

    Args:
        client: An open client of the server.
        options: Thresholds, and the time limit of each request.
        on_part: Called with the part when it is checked.

    Returns:
        The report, which has one part.

    Raises:
        Unreachable: The client is not open.
    """
    info = client.server_info
    name = f"{info.name} {info.version}".strip() if info is not None else "the server"
    examination = _Examination(name, options or ExamineOptions(), on_part)
    facts = await catalogue_facts(client, examination.options)
    examination.check("catalogue", facts, catalogue_words(facts))
    return examination.report


def installed_hosts(machine: Machine | None = None) -> tuple[str, ...]:
    """Return the names of the products whose configuration file exists.

    Args:
        machine: Where to look; None for this machine.
    """
    machine = machine or this_machine()
    return tuple(name for name, row in PRODUCTS.items() if row.path(machine).exists())


class _Examination:
    """An examination of one target, with its report.

    Attributes:
        options: The options.
        report: The report so far.
        redact: Takes the known secrets out of everything that is reported.
        launch_path: The PATH that the product gives its servers; empty if it is not known.
        folder: The working folder of a server whose entry names none; None for that of this
            process.
    """

    def __init__(self, target: str, options: ExamineOptions, on_part: OnPart | None) -> None:
        self.options = options
        self.report = DiagnosticReport(target=visible(target))
        self.launch_path = ""
        self.folder = None if options.folder is None else str(options.folder)
        self.redact = Redactor(
            secret
            for name, value in (*options.env.items(), *options.headers.items())
            for secret in secrets_in(name, value)
        )
        self._on_part = on_part

    def check(self, part: str, facts: Any, *seen: str) -> bool:
        """Apply the rules of a part, and report it. Returns whether later parts can be checked."""
        checked = CheckedPart(part=part, facts=[self._shown(words) for words in seen if words])
        goes_on = True
        for rule in PARTS[part]:
            for found in rule.check(facts):
                checked.diagnostics.append(
                    Diagnostic(
                        rule=rule.id,
                        severity=rule.severity,
                        words=self._shown(found.words),
                        where=self._shown(found.where),
                        advice=self._shown(found.advice or rule.advice),
                    )
                )
                goes_on = goes_on and not rule.stops
        self._add(checked)
        return goes_on

    def skip(self, parts: Iterable[str], why: str) -> None:
        """Report parts that cannot be checked."""
        for part in parts:
            self._add(CheckedPart(part=part, skipped=why))

    async def target(self, target: str | Sequence[str] | Entry, *, title: str = "") -> None:
        """Examine the target. Raises ValueError for an invalid one."""
        if isinstance(target, Entry):
            await self._entry(target, title)
        elif not isinstance(target, str):
            self.redact.add(*secrets_in_command(list(target)))
            await self._command(list(target), self.options.env, self.folder)
        elif is_address(target):
            await self._url(target, dict(self.options.headers), legacy_sse=False)
        else:
            await self._connect(_socket(target))

    async def _entry(self, entry: Entry, title: str) -> None:
        self.redact.add(*_secrets_of(entry))
        is_command = bool(entry.command)
        first = ("command", "start") if is_command else ("network", "http")
        later = (*first, "connection", "catalogue")
        if not self.check("configuration", EntryFacts(entry=entry, title=title), entry.shown):
            self.skip(later, "the server is disabled")
            return
        if entry.revision and self.options.revision is None:
            self.options = msgspec.structs.replace(self.options, revision=entry.revision)
        if is_command:
            folder = self.folder if entry.cwd is None else entry.cwd
            env = {**entry.env, **self.options.env}
            sandbox = confinement_of(entry).sandbox
            await self._command(list(entry.command), env, folder, sandbox)
        elif is_address(entry.url):
            headers = {**entry.headers, **self.options.headers}
            await self._url(entry.url, headers, legacy_sse=entry.legacy_sse)
        else:
            await self._connect(_socket(entry.url))

    # -- a command ---------------------------------------------------------------------------------

    async def _command(
        self,
        command: list[str],
        env: Mapping[str, str],
        folder: str | None,
        sandbox: Sandbox | None = None,
    ) -> None:
        """Check a command, start it as its entry says, and list what it offers."""
        inherit_env = self.options.inherit_env and sandbox is None
        inherited = dict(os.environ) if inherit_env else inherited_environment()
        whole = {**inherited, **env}
        # the server may print them
        self.redact.add(
            *(word for name, value in whole.items() for word in secrets_in(name, value))
        )
        facts = command_facts(command, whole, folder, self.launch_path)
        later = ("start", "connection", "catalogue")
        holds = _sandbox_words(sandbox) if facts.program else ""
        if not self.check("command", facts, facts.program, holds):
            self.skip(later, "the command cannot be started")
            return
        if not self.options.start:
            self.skip(later, "nothing is started")
            return
        stdout = _Stdout()
        lines: deque[str] = deque(maxlen=_MOST_STDERR)
        transport = Stdio(
            command,
            env=dict(env),
            inherit_env=inherit_env,
            cwd=folder,
            sandbox=sandbox,
            patience=self.options.exit_seconds,
            on_stderr=lines.append,
            tap=stdout.tap,
        )
        talk = await self._talk(transport, False)
        bad = talk.bad
        start = StartFacts(
            opened=talk.connection.seconds is not None,
            exit_code=bad.exit_code if bad is not None else None,
            stderr="\n".join(lines) or (bad.stderr if bad is not None else ""),
            noise=tuple(stdout.noise),
            given=frozenset(whole),
            withheld=frozenset(os.environ.keys() - whole.keys()),
            probe_failed=talk.probe_failed,
            ended_after=talk.closing_seconds if talk.catalogue is not None else None,
            exit_seconds=self.options.exit_seconds,
        )
        ended = start.exit_code is not None and not start.opened
        words = f"it ended with exit code {start.exit_code}" if ended else "it is running"
        if not self.check("start", start, words):
            self.skip(later[1:], "the server ended")
            return
        self._conclude(talk.connection, talk.catalogue)

    # -- a URL -------------------------------------------------------------------------------------

    async def _url(self, url: str, headers: Mapping[str, str], *, legacy_sse: bool) -> None:
        """Check the way to a URL, its endpoint and its authorization, and list what it offers."""
        self.redact.add(
            *secrets_in_url(url),
            *(secret for name, value in headers.items() for secret in secrets_in(name, value)),
        )
        later = ["network", "http", "connection", "catalogue"]
        if not self.options.start:
            self.skip(later, "nothing is contacted")
            return
        try:
            from ..http11.client import HttpFetch  # late: it needs an extra, and commands do not
        except ImportError as bad:
            self.skip(later, str(bad))
            return
        network = await network_facts(url, self.options)
        if not self.check("network", network, *_network_words(network)):
            self.skip(later[1:], "there is no connection")
            return
        options = msgspec.structs.replace(self.options, headers=headers)
        auth = options.auth
        fetch = HttpFetch(
            ca=options.ca, connect_seconds=options.connect_seconds, head_seconds=options.timeout
        )
        try:
            authorized = auth.to(url) if auth is not None else None
            endpoint = ExaminedEndpoint(url, fetch, options, authorized)
            has_credentials = await endpoint.has_credentials()
            facts = await endpoint_facts(endpoint)
            words = f"status {facts.first.status}" if facts.first.status else ""
            if not self.check("http", facts, words):
                self.skip(later[2:], "the endpoint does not answer")
                return
            refused = facts.first.status in (401, 403)
            if refused and not await self._authorization(url, has_credentials):
                self.skip(later[2:], "the server refuses the request")
                return
            transport = Http(
                url,
                headers=headers,
                auth=auth,
                fetch=fetch,
                legacy_sse=True if legacy_sse or facts.has_sse else None,
                listen=False,
            )
            await self._connect(transport, has_credentials=has_credentials)
        finally:
            await fetch.aclose()

    async def _authorization(self, url: str, has_credentials: bool) -> bool:
        """Diagnose the authorization of a server that refuses the request."""
        found = Report()
        clients = HttpClients(url, self.options.private_hosts)
        try:
            await perform(diagnose(url, found), clients)
        finally:
            await clients.aclose()
        facts = AuthorizationFacts(
            url=url_without_secrets(url),
            findings=tuple(found.findings),
            has_credentials=has_credentials,
        )
        return self.check("authorization", facts)

    # -- the conversation --------------------------------------------------------------------------

    async def _connect(self, transport: ClientTransport, *, has_credentials: bool = False) -> None:
        """Open a connection, and list what the server offers."""
        if not self.options.start:
            self.skip(("connection", "catalogue"), "nothing is contacted")
            return
        talk = await self._talk(transport, has_credentials)
        connection = talk.connection
        if talk.bad is not None:
            connection = msgspec.structs.replace(connection, error=str(talk.bad))
        self._conclude(connection, talk.catalogue)

    async def _talk(self, transport: ClientTransport, has_credentials: bool) -> _Talk:
        """Open a client, list what the server offers, and close the client."""
        client = Client(
            transport,
            info=t.Implementation(name="interlock-doctor", version=VERSION),
            revision=self.options.revision,
            timeout=self.options.timeout,
            settings=ClientSettings(cache=False),
        )
        talk = await self._converse(client, has_credentials)
        now = asyncio.get_running_loop().time
        began = now()
        with contextlib.suppress(t.InterlockError):  # the server has ended, or was never open
            await client.aclose()
        talk.closing_seconds = now() - began
        return talk

    async def _converse(self, client: Client, has_credentials: bool) -> _Talk:
        """Open a client, and list what the server offers. The client is left open."""
        options = self.options
        facts = ConnectionFacts(limit=options.timeout, slow_seconds=options.slow_seconds)
        now = asyncio.get_running_loop().time
        began = now()
        try:
            async with asyncio.timeout(options.timeout):
                await client.open()
            facts = msgspec.structs.replace(
                facts,
                seconds=now() - began,
                info=client.server_info,
                revision=client.revision,
            )
            catalogue = await catalogue_facts(client, options, has_credentials=has_credentials)
            return _Talk(facts, catalogue, probe_failed=client.probe_failed)
        except (TimeoutError, t.TimedOut):
            return _Talk(msgspec.structs.replace(facts, timed_out=True))
        except t.Unreachable as bad:
            error = "" if bad.exit_code is not None else str(bad.args[0])
            return _Talk(msgspec.structs.replace(facts, error=error), bad=bad)
        except t.InterlockError as bad:
            return _Talk(msgspec.structs.replace(facts, error=str(bad)))

    def _conclude(self, connection: ConnectionFacts, catalogue: CatalogueFacts | None) -> None:
        """Check the opening of the connection, and what the server offers."""
        if not self.check("connection", connection, *_connection_words(connection)):
            self.skip(("catalogue",), "there is no connection")
        elif catalogue is not None:
            self.check("catalogue", catalogue, catalogue_words(catalogue))

    def _shown(self, text: str) -> str:
        """A text without secrets, and without characters that nobody sees."""
        return visible(self.redact(text))

    def _add(self, checked: CheckedPart) -> None:
        self.report.parts.append(checked)
        if self._on_part is not None:
            self._on_part(checked)


class _Talk(msgspec.Struct):
    """A conversation with a server.

    Attributes:
        connection: The facts about its opening.
        catalogue: What the server offers; None if it was not opened.
        bad: The error of a server that cannot be reached.
        probe_failed: Whether `server/discover` broke the server.
        closing_seconds: How long it took to close the connection, in seconds.
    """

    connection: ConnectionFacts
    catalogue: CatalogueFacts | None = None
    bad: t.Unreachable | None = None
    probe_failed: bool = False
    closing_seconds: float = 0.0


class _Stdout:
    """Watches the stdout of a server for lines that are not messages."""

    def __init__(self) -> None:
        self.noise: list[str] = []
        self.tap: Tap = self._receive

    def _receive(self, sender: str, frame: Frame) -> None:
        if sender != "server" or len(self.noise) >= _MOST_NOISE:
            return
        line = bytes(frame).decode("utf-8", "replace")
        if line.strip() and not _is_message(line):
            self.noise.append(line)


def _is_message(line: str) -> bool:
    """Whether a line is a JSON-RPC message, or a batch of them."""
    try:
        data = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    first = data[0] if isinstance(data, list) and data else data
    return isinstance(first, dict) and "jsonrpc" in first


def _socket(url: str) -> Socket:
    """The transport to a Unix or TCP socket. Raises ValueError for any other target."""
    parts = urlsplit(url)
    if parts.scheme == "unix" and (path := parts.netloc + parts.path):
        return Socket(path)
    if parts.scheme == "tcp" and parts.hostname and parts.port:
        return Socket((parts.hostname, parts.port))
    raise ValueError(
        f"{url} is not a target; give https://host/path, unix:///path, tcp://host:port, or a "
        "command as a list"
    )


def _secrets_of(entry: Entry) -> set[str]:
    """The values of an entry that must not be shown."""
    named = {**entry.env, **entry.headers}
    found = {secret for name, value in named.items() for secret in secrets_in(name, value)}
    return found | entry.secrets


def _shown(target: str | Sequence[str] | Entry) -> str:
    if isinstance(target, Entry):
        return f"{target.id}: {target.shown}"
    if isinstance(target, str):
        return url_without_secrets(target)
    return " ".join(shown_arguments(list(target)))


def _network_words(facts: Any) -> list[str]:
    if facts.proxy:
        return [f"{facts.host} through the proxy {facts.proxy}"]
    left = facts.days_left
    return [facts.host, f"the certificate is valid for {left:.0f} days" if left else ""]


def _connection_words(facts: ConnectionFacts) -> list[str]:
    if facts.seconds is None:
        return []
    info = facts.info
    name = f"{info.name} {info.version}".strip() if info is not None else "the server"
    return [f"{name} answers after {facts.seconds:.1f} s, and speaks {facts.revision}"]


def _sandbox_words(sandbox: Sandbox | None) -> str:
    """Return which sandbox holds on this machine, and whether the server is started in it."""
    if reason := unavailable_reason():
        return f"no sandbox works here ({reason})"
    works = next(state for state in mechanism_states() if not state.problem)
    started = "it is started in a sandbox" if sandbox is not None else "a sandbox would hold here"
    return f"{started}: {works.name} ({works.holds})"
