"""The gateway as a program: its servers, views and endpoints, and how it follows new settings."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from interlock import (
    Client,
    Http,
    Implementation,
    QuestionSettings,
    Server,
    Stdio,
    __version__,
    listening_socket,
    serve_http,
)
from interlock.configs import Entry
from interlock.store import RedisStore, Store, Vault, open_vault

from ..fleet.confinement import unattended_sandbox
from .audit import GatewayAudit
from .control import ControlRequest, ControlResponse, ControlSocket
from .front import ASGIApp, GatewayFront
from .identity import Accounts, UserAccount, without_credentials
from .settings import (
    BadSettings,
    ServerSettings,
    Settings,
    check_exposure,
    with_options,
)
from .state import PendingApproval, ProtectsSources, UpstreamState, ViewState
from .upstreams import (
    PATIENCE,
    PersonalUpstreams,
    SharedUpstream,
    Upstream,
    Upstreams,
    state_of,
)
from .views import NAME, View

if TYPE_CHECKING:
    from interlock.auth import Guard

    from .connect_page import ConnectPage
    from .person_login import PersonLogin

log = logging.getLogger("interlock_apps.gateway")

MakeProtections = Callable[[Settings, ProtectsSources | None], ProtectsSources | None]
"""Returns the protections of settings, from the settings and the protections until now. Raises
ValueError if they cannot be used; nothing has changed then.
"""

STATE_KEY_VARIABLE = "INTERLOCK_STATE_KEY"
_VAULT_VARIABLE = "INTERLOCK_VAULT"
_KEYS = "gateway state key"  # the kind of the record with the key that several machines share
_REAP_SECONDS = 5.0
_GRACE = 10.0  # seconds for the running calls of a removed view
_SHARED_STORES = ("redis:", "rediss:", "unix:")
_SCHEMES = ("http://", "https://")


def no_protections(settings: Settings, before: ProtectsSources | None) -> None:
    """Protect nothing, for tests of the rest."""


def vault_of(settings: Settings) -> Vault:
    """Return the vault of tokens: that of the variable INTERLOCK_VAULT, else the shared store if it
    is Redis, else the user's own.

    Raises:
        ValueError, StoreError: It cannot be used.
    """
    store = settings.listen.store
    if os.environ.get(_VAULT_VARIABLE) or not store.startswith(_SHARED_STORES):
        return open_vault(None)
    return open_vault(store)


async def shared_questions(settings: Settings) -> QuestionSettings:
    """Return how calls ask, with the key that seals what travels through clients. Machines that
    share a store share the key too.

    Raises:
        StoreError: The vault cannot be used.
    """
    if os.environ.get(STATE_KEY_VARIABLE):
        return QuestionSettings()
    key = secrets.token_bytes(32)
    if settings.listen.store.startswith(_SHARED_STORES):
        vault = vault_of(settings)
        try:
            if not await vault.add(_KEYS, NAME, key):
                key = await vault.get(_KEYS, NAME) or key
        finally:
            await vault.aclose()
    return QuestionSettings(state_keys=[key])


class Gateway:
    """A gateway in one process. It implements `GatewayState`.

    Args:
        settings: The settings.
        read: Reads the settings again, for a reload and when the process starts; None if they
            cannot change. Raises BadSettings.
        questions: How calls ask, and the keys that seal what travels through clients. All workers
            share them.
        protections: Makes the protections of settings.
        vault: Stores the tokens of users; None for the vault of the settings.
        control: The folder of the control sockets; None for none.
        transports: Returns the target of a server in place of its command or URL, for tests; None
            for that of the entry.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        read: Callable[[], Settings] | None = None,
        questions: QuestionSettings | None = None,
        protections: MakeProtections = no_protections,
        vault: Vault | None = None,
        control: Path | None = None,
        transports: Callable[[Entry], Any] = lambda entry: None,
    ) -> None:
        self._settings = settings
        self._read = read
        self._questions = questions or QuestionSettings(state_keys=[secrets.token_bytes(32)])
        self._make_protections = protections
        self._given_vault = vault
        self._control_folder = control
        self._transports = transports
        self._started = time.time()
        self._views: dict[str, View] = {}
        self._apps: dict[str, Any] = {}
        self._guards: dict[str, Guard] = {}
        self._upstreams: dict[str, Upstreams] = {}
        self._protections: ProtectsSources | None = None
        self._accounts: Accounts | None = None
        self._connect_page: ConnectPage | None = None
        self._own_vault: Vault | None = None
        self._control: ControlSocket | None = None
        self._reaping: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._draining: set[asyncio.Task[Any]] = set()
        self._users = 0
        self._lock = asyncio.Lock()
        self._reloading = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._serves_http = False
        self._no_audit = GatewayAudit()
        self.has_own_connect_page = False
        """Whether the connect page gets a listener of its own, because nothing else serves HTTP."""
        self._connect_listener: asyncio.Task[None] | None = None
        self.page: Any = None
        """The ASGI app of the page of the gateway, with its `place`; None without a page."""
        self.view("")

    # -- views and their servers -------------------------------------------------------------------

    def view(self, name: str) -> View:
        """Return a view; the default view has the name "". Raises KeyError."""
        view = self._views.get(name)
        if view is None:
            if name not in self._settings.views:
                raise KeyError(name)
            view = self._views[name] = View(
                name, lifespan=self.lifespan, questions=self._questions, tasks=self._tasks_of(name)
            )
        return view

    def _tasks_of(self, view: str) -> str | Store:
        """Return the store of the tasks of a view. Each view has its own, because a worker that
        takes over tasks of a store runs them in its view.
        """
        url = self._settings.listen.store
        if not view or url.startswith("memory:"):
            return url
        if url.startswith("sqlite:"):
            return f"{url}.{view}"
        return RedisStore(url, prefix=f"interlock:{view}:")

    @asynccontextmanager
    async def lifespan(self, server: Server) -> AsyncIterator[Gateway]:
        """Run the gateway while any of its views is served."""
        async with self._lock:
            if not self._users:
                await self._start()
            self._users += 1
        try:
            yield self
        finally:
            if server is self.server:  # which the endpoints of the other views stand beside
                for name in list(self._apps):
                    await self._close_app(name, 0.0)
            async with self._lock:
                self._users -= 1
                if not self._users:
                    await self._stop()

    async def _start(self) -> None:
        self._stopping.clear()
        if self._read is not None:
            self._settings = self._read()  # a worker that replaces another reads the newest ones
        try:
            await self._apply(self._settings)
            self._reaping = asyncio.create_task(self._reap())
            if self.page is not None:
                self._following = asyncio.create_task(self.page.follow())
            if self._control_folder is not None:
                self._control = ControlSocket(self._control_folder, self.answer)
                try:
                    await self._control.open()
                except OSError as bad:
                    log.warning("this process has no control socket: %s", bad)
        except BaseException:
            await self._stop()
            raise
        if self._serves_http:
            self._follow_signal(True)
        if self.has_own_connect_page and self._connect_page is not None:
            self._listen_for_logins(self._connect_page)

    def _listen_for_logins(self, page: ConnectPage) -> None:
        """Serve the connect page at the address of the settings. If it is taken, logins fail and
        everything else works.
        """
        try:
            sock = listening_socket(*self._settings.address)
        except OSError as bad:
            log.error("the connect page cannot be served: %s", bad)
            return
        self._connect_listener = asyncio.create_task(serve_http(page, sock, grace=0.0))

    def _follow_signal(self, on: bool) -> None:
        """Reload at SIGHUP, where this process has no supervisor that uses it otherwise."""
        if self._settings.listen.workers > 1 or not hasattr(signal, "SIGHUP"):
            return
        loop = asyncio.get_running_loop()
        with contextlib.suppress(RuntimeError, ValueError):  # not the main thread
            if on:
                loop.add_signal_handler(signal.SIGHUP, self._reload_soon)
            else:
                loop.remove_signal_handler(signal.SIGHUP)

    def _reload_soon(self) -> None:
        self._spawn(self._reload_and_log())

    async def _reload_and_log(self) -> None:
        try:
            for words in await self.reload():
                log.info("reloaded: %s", words)
        except ValueError as bad:
            log.error("not reloaded: %s", bad)

    async def _stop(self) -> None:
        self._stopping.set()
        if self._serves_http:
            self._follow_signal(False)
        if self._control is not None:
            await self._control.aclose()
            self._control = None
        for task in (self._reaping, self._following):
            if task is not None:
                task.cancel()
        self._reaping = None
        self._following = None
        if self._connect_listener is not None:
            self._connect_listener.cancel()
            await asyncio.wait({self._connect_listener})
            self._connect_listener = None
        if self._draining:
            await asyncio.wait(self._draining)
        for view in self._views.values():
            await view.aclose()
        if self._connect_page is not None:
            await self._connect_page.aclose()
            self._connect_page = None
        if self._accounts is not None:
            await self._accounts.aclose()
            self._accounts = None
        await asyncio.gather(
            *(one.close() for upstreams in self._upstreams.values() for one in upstreams.all())
        )
        self._upstreams = {}
        if self._protections is not None:
            await self._protections.aclose()
            self._protections = None
        if self._own_vault is not None:
            await self._own_vault.aclose()
            self._own_vault = None

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(_REAP_SECONDS)
            for upstreams in list(self._upstreams.values()):
                await upstreams.reap()

    # -- settings ----------------------------------------------------------------------------------

    async def reload(self) -> Sequence[str]:
        """Read the settings again, check them whole, and use them without dropping a call.

        Returns what has changed, in words.

        Raises:
            BadSettings: The new settings cannot be used; the old ones stay in use.
        """
        if self._read is None:
            raise BadSettings("These settings come from no file, so they cannot be read again.")
        async with self._reloading:
            new = self._read()
            check_exposure(new)
            words = changes_of(self._settings, new)
            await self._apply(new)
            return words

    async def _apply(self, settings: Settings) -> None:
        """Use settings: everything that can fail happens before the first change."""
        protections = self._make_protections(settings, self._protections)
        upstreams: dict[str, Upstreams] = {}
        for name, entry in settings.entries.items():
            known = self._upstreams.get(name)
            of_server = settings.servers[name]
            if known is not None and (known.entry, known.settings) == (entry, of_server):
                upstreams[name] = known
            else:
                upstreams[name] = self._made(entry, of_server)
        removed = [one for name, one in self._upstreams.items() if upstreams.get(name) is not one]
        if any(server.identity == "user" for server in settings.servers.values()):
            self._all_accounts()  # any worker shows the connect page
        old_protections = self._protections
        self._settings = settings
        self._upstreams = upstreams
        self._protections = protections
        for name in settings.views:
            await self.view(name).apply(settings, upstreams, protections)
            if name in self._guards:
                self._guards[name].scopes = settings.views[name].scopes
        for name in [name for name in self._views if name not in settings.views]:
            self._guards.pop(name, None)
            self._spawn(self._remove_view(name, self._views.pop(name)))
        if self._serves_http:
            await self._open_apps()
        for one in removed:
            self._spawn(one.drain())
        if old_protections is not None and old_protections is not protections:
            self._spawn(self._close_later(old_protections, removed))
        for one in upstreams.values():
            if one.settings.required and not one.settings.is_personal:
                self._spawn(one.of("").ensure())

    async def _close_later(
        self, protections: ProtectsSources, removed: Sequence[Upstreams]
    ) -> None:
        """Close old protections once the calls through them have had time to end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await self._stopping.wait()
        await protections.aclose()

    async def _remove_view(self, name: str, view: View) -> None:
        await self._close_app(name, _GRACE)
        await view.aclose()

    # -- servers behind ----------------------------------------------------------------------------

    def _made(self, entry: Entry, settings: ServerSettings) -> Upstreams:
        if not settings.is_personal:
            return SharedUpstream(
                entry, settings, self._upstream(entry, partial(self._client, entry, settings))
            )
        return PersonalUpstreams(entry, settings, partial(self._personal, entry, settings))

    def _personal(self, entry: Entry, settings: ServerSettings, principal: str) -> Upstream:
        account = None
        if settings.identity == "user":
            account = self._all_accounts().of(entry, principal)
        make = partial(self._client, entry, settings, account)
        return self._upstream(entry, make, account)

    def _upstream(
        self, entry: Entry, make: Callable[[], Client], account: UserAccount | None = None
    ) -> Upstream:
        return Upstream(
            entry.id,
            make,
            account=account,
            patience=entry.start_seconds or PATIENCE,
            timeout=entry.timeout,
        )

    def _client(
        self, entry: Entry, settings: ServerSettings, account: UserAccount | None = None
    ) -> Client:
        """Return a client of a server. It gets the credentials of the settings, and nothing of the
        gateway's callers.
        """
        return Client(
            self._transports(entry) or _transport(entry, settings, account),
            info=Implementation(name=NAME, version=__version__),
            revision=entry.revision or None,
        )

    def _all_accounts(self) -> Accounts:
        if self._accounts is None:
            from .connect_page import ConnectPage  # late: few gateways have accounts of users

            vault = self._given_vault
            if vault is None:
                vault = self._own_vault = vault_of(self._settings)
            accounts = self._accounts = Accounts(vault, self._settings.public_url)
            login = self._person_login(accounts)
            self._connect_page = ConnectPage(accounts.records, accounts.public_url, login)
        return self._accounts

    def _person_login(self, accounts: Accounts) -> PersonLogin | None:
        """Return what identifies persons on the connect page; None without a guard."""
        settings = self._settings
        if not settings.listen.guard:
            return None
        from .person_login import (  # late: as ConnectPage
            CLIENT_ID_VARIABLE,
            CLIENT_SECRET_VARIABLE,
            PersonLogin,
        )

        return PersonLogin(
            accounts.records,
            accounts.vault,
            issuer=settings.listen.guard,
            resource=f"{settings.public_url}{settings.path_of('')}",
            public_url=settings.public_url,
            client_id=os.environ.get(CLIENT_ID_VARIABLE, ""),
            client_secret=os.environ.get(CLIENT_SECRET_VARIABLE, ""),
        )

    # -- endpoints ---------------------------------------------------------------------------------

    @property
    def server(self) -> Server:
        """The server of the default view."""
        return self.view("").server

    def front(self) -> GatewayFront:
        """Return the front, which the endpoint of the default view gets as its guard."""
        self._serves_http = True
        return GatewayFront(self, self._guard(""))

    def _guard(self, view: str) -> Guard | None:
        settings = self._settings
        if not settings.listen.guard:
            return None
        from interlock.auth import Guard  # late: a gateway on loopback verifies no tokens
        from interlock.auth.tokens import Jwt  # late: as above

        guard = self._guards[view] = Guard(
            Jwt(settings.listen.guard),
            resource=f"{settings.public_url}{settings.path_of(view)}",
            scopes=settings.views[view].scopes,
            name=f"{NAME} {view}".strip(),
        )
        return guard

    async def _open_apps(self) -> None:
        """Open the endpoint of each view but the default one."""
        for name, view in self._views.items():
            if name and name in self._settings.views and name not in self._apps:
                guard: Any = self._guard(name)
                app = view.server.http_app(
                    self._settings.path_of(name),
                    guard=guard,
                    store=self._settings.listen.store,
                    hosts=hosts_of(self._settings),
                    health=None,
                )
                self._apps[name] = app

    async def _close_app(self, name: str, grace: float) -> None:
        app = self._apps.pop(name, None)
        if app is not None:
            await app.drain(grace)
            await app.aclose()

    def view_app(self, view: str) -> ASGIApp | None:
        """Return the app of a view, with its guard; None if there is no such view."""
        return self._apps.get(view)

    @property
    def connect_app(self) -> ASGIApp | None:
        """The connect page; None if no server needs one."""
        return self._connect_page

    def page_app(self, path: str) -> ASGIApp | None:
        """Return the page of the gateway, if a path is its."""
        page: Any = self.page
        if page is not None and (path == "/" or path.startswith(f"{page.place}/")):
            app: ASGIApp = page
            return app
        return None

    def unready(self) -> Sequence[str]:
        """Return the required servers that cannot be used."""
        return [
            state.name for state in self.upstreams() if state.required and state.condition != "up"
        ]

    async def drain_views(self, grace: float) -> None:
        """Let the running calls of all views but the default one end."""
        if self.page is not None:
            self.page.close()  # the event streams of its pages
        await asyncio.gather(*(app.drain(grace) for app in self._apps.values()))

    # -- state -------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        """The settings in use."""
        return self._settings

    @property
    def protections(self) -> ProtectsSources | None:
        """The protections in use."""
        return self._protections

    def audit(self) -> GatewayAudit:
        """Return the audit in use."""
        audit = getattr(self._protections, "audit", None)
        return audit if isinstance(audit, GatewayAudit) else self._no_audit

    @property
    def started(self) -> float:
        """When the process started, in seconds of the wall clock."""
        return self._started

    def upstreams(self) -> Sequence[UpstreamState]:
        """Return the state of every server."""
        return [state_of(one) for one in self._upstreams.values()]

    def upstream(self, name: str, principal: str = "") -> Upstream:
        """Return the connection to a server that a principal uses. Raises KeyError."""
        return self._upstreams[name].of(principal)

    def views(self) -> Sequence[ViewState]:
        """Return the state of every view."""
        return [
            self._views[name].state(self._settings)
            for name in self._settings.views
            if name in self._views
        ]

    def counters(self) -> dict[str, float]:
        """Return counters of this process by name."""
        states = self.upstreams()
        return {
            "servers": len(states),
            "connections": sum(state.connections for state in states),
            "running calls": sum(state.calls for state in states),
            "principals": sum(state.principals for state in self.views()),
        }

    def approvals(self) -> Sequence[PendingApproval]:
        """Return the features that are withheld."""
        return () if self._protections is None else self._protections.approvals()

    async def approve(self, ids: Sequence[str]) -> int:
        """Approve withheld features. Returns how many there were."""
        if self._protections is None:
            return 0
        count = self._protections.approve(ids)
        if not count:
            self._protections.refresh()  # another process may have approved them
        return count

    async def answer(self, request: ControlRequest) -> ControlResponse:
        """Answer a request on the control socket."""
        done: Sequence[str] = ()
        match request.command:
            case "reload":
                done = await self.reload() or ["nothing has changed"]
            case "approve":
                count = await self.approve(request.ids)
                done = [f"approved {count}"]
        return ControlResponse(
            pid=os.getpid(),
            started=self._started,
            upstreams=tuple(self.upstreams()),
            views=tuple(self.views()),
            counters=self.counters(),
            approvals=tuple(self.approvals()),
            done=tuple(done),
        )


def _transport(entry: Entry, settings: ServerSettings, account: UserAccount | None) -> Any:
    """Return the transport to a server."""
    if entry.command:
        return Stdio(
            entry.command,
            env=entry.env,
            cwd=entry.cwd,
            on_stderr=partial(log.info, "%s: %s", entry.id),
            sandbox=unattended_sandbox(entry, is_personal=settings.is_personal),
        )
    if not entry.url.startswith(_SCHEMES):
        return entry.url
    if account is not None:
        headers: Mapping[str, str] = without_credentials(entry)
        auth: Any = account.auth
    elif settings.identity == "none":
        headers = without_credentials(entry)
        auth = None
    else:
        from interlock.cli.auth.saved_logins import KeptTokens  # late: only for servers with a URL

        headers = entry.headers
        has_own = any(name.lower() == "authorization" for name in headers)
        auth = None if has_own else KeptTokens("")
    return Http(
        entry.url,
        headers=headers,
        auth=auth,
        legacy_sse=True if entry.legacy_sse else None,
    )


def hosts_of(settings: Settings) -> tuple[str, ...]:
    """Return the public host names of the gateway."""
    host = urlsplit(settings.listen.url).hostname
    return () if host is None else (host,)


def changes_of(old: Settings, new: Settings) -> list[str]:
    """Return what a reload changes, in words."""
    words: list[str] = []
    for what, before, after in (
        ("server", _servers(old), _servers(new)),
        ("view", dict(old.views), dict(new.views)),
    ):
        for name in [*before, *(name for name in after if name not in before)]:
            shown = f"{what} {name or 'default'}"
            if name not in after:
                words.append(f"{shown} removed")
            elif name not in before:
                words.append(f"{shown} added")
            elif before[name] != after[name]:
                words.append(f"{shown} changed")
    for section in ("policy", "limits", "audit"):
        if getattr(old, section) != getattr(new, section):
            words.append(f"[{section}] changed")
    if old.listen != new.listen:
        words.append("[listen] changed: start the gateway again to use it")
    return words


def _servers(settings: Settings) -> dict[str, Any]:
    return {
        name: (msgspec.structs.replace(entry, source=""), settings.servers[name])
        for name, entry in settings.entries.items()
    }


def run_gateway(
    settings: Settings,
    *,
    read: Callable[[], Settings] | None = None,
    protections: MakeProtections = no_protections,
    page: Callable[[Gateway], Any] | None = None,
    control: Path | None = None,
    stdio: bool = False,
    on_ready: Callable[[Any], None] | None = None,
) -> None:
    """Serve until the program is told to end.

    Args:
        settings: The settings.
        read: Reads the settings again. Raises BadSettings.
        protections: Makes the protections of settings.
        page: Makes the page of the gateway; None for no page.
        control: The folder of the control sockets; None for none.
        stdio: Whether to serve the default view over stdin and stdout, in place of HTTP.
        on_ready: Called with the address once the gateway accepts connections.

    Raises:
        BadSettings: The gateway would be open to everyone who reaches it.
        StoreError: The vault cannot be used.
        OSError: The address is taken.
    """
    if not stdio:
        check_exposure(settings)
    with contextlib.ExitStack() as stack:
        if settings.listen.workers > 1 and settings.listen.store.startswith("memory:"):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="interlock-"))
            store = f"sqlite:///{Path(folder).resolve()}/store.db"  # shared until the end
            settings = with_options(settings, store=store)
            if read is not None:
                read = partial(_read_with_store, read, store)
        _run(settings, read, protections, page, control, stdio, on_ready)


def _read_with_store(read: Callable[[], Settings], store: str) -> Settings:
    return with_options(read(), store=store)


def _run(
    settings: Settings,
    read: Callable[[], Settings] | None,
    protections: MakeProtections,
    page: Callable[[Gateway], Any] | None,
    control: Path | None,
    stdio: bool,
    on_ready: Callable[[Any], None] | None,
) -> None:
    gateway = Gateway(
        settings,
        read=read,
        questions=asyncio.run(shared_questions(settings)),
        protections=protections,
        control=control,
    )
    if stdio:
        gateway.has_own_connect_page = True
        gateway.server.run("stdio", log="off")
        return
    host, port = settings.address
    front: Any = gateway.front()
    if page is not None and port:
        gateway.page = page(gateway)  # before the workers are forked: they share its secrets
    gateway.server.run(
        "http",
        host=host,
        port=port,
        workers=settings.listen.workers,
        store=settings.listen.store,
        hosts=hosts_of(settings),
        guard=front,
        on_ready=on_ready or (lambda address: None),
    )
