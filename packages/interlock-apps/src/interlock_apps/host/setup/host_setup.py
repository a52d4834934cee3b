"""Setting up a host while it runs: its servers, its models, and logins to servers.

Every change of a file is planned first, and shown with the difference and the whole command. A
program is started only as a plan showed it, or when the user allowed its start before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Literal, Protocol

import msgspec

from interlock.configs import Config, Entry, RawEntry, comes_from_project
from interlock.models.interface import Model
from interlock.redaction import Redactor
from interlock.registry import RegistryOffer
from interlock.sandbox import unavailable_reason
from interlock.store import Vault, open_vault

from ...fleet import threat_scan
from ...fleet.events import Event, SettingsChanged
from ...fleet.hub import Hub
from ...fleet.start_questions import start_question
from .examinations import examine_server
from .jobs import SetupJob, SetupJobs
from .logins import LoginWay, log_in_to
from .model_setup import ModelForm, ModelPlan, ModelSetup
from .other_clients import OtherClients, imported
from .registry_install import RegistryInstall
from .server_files import ServerFiles, ServerPlan
from .server_form import ServerForm, entry_of, form_of
from .tool_switches import is_offered, switched
from .trial import try_server

EXAMINE_SECONDS = 30.0
MOST_WAIT = 20.0
"""Seconds for which a page waits for news of a job before it asks again."""
RELOAD_SECONDS = 5.0
_SWITCHES_OF_FORMAT: Mapping[str, tuple[str, str]] = {
    "mcpServers": ("tools", "without"),
    "gemini": ("includeTools", "excludeTools"),
}

Change = Literal["revision", "sandbox", "trusted", "disabled"]


class HostToSetUp(Protocol):
    """What the setup uses of a host; see Host."""

    config: Config
    hub: Hub
    models: dict[str, Model]

    def publish(self, event: Event) -> None: ...
    def is_start_approved(self, entry: Entry) -> bool: ...
    def approve_start(self, entry: Entry) -> None: ...


class HostSetup:
    """Changes the servers and the models of a host.

    Args:
        host: The host.
        files: Its configuration files.
        reload: Makes the host read its configuration again.
        models: The file of its models.
        auth: Returns the Authorizer for a server at a URL, or None.
        registry: The MCP registry.
        clients: The other clients of this machine, whose servers can be taken over.
        vault: Opens the vault for the tokens of logins.
        private_hosts: Hosts of authorization servers that may have private addresses.

    Attributes:
        files: The configuration files.
        models: The file of the models.
        registry: The MCP registry.
        jobs: What runs in the background: tests, logins, examinations.
        reload: Makes the host read its configuration again.
    """

    def __init__(
        self,
        host: HostToSetUp,
        *,
        files: ServerFiles,
        reload: Callable[[], Awaitable[object]],
        models: ModelSetup,
        registry: RegistryInstall,
        auth: Callable[[Entry], Any] = lambda entry: None,
        clients: OtherClients | None = None,
        vault: Callable[[], Vault] = lambda: open_vault(None),
        private_hosts: Collection[str] = (),
    ) -> None:
        self.files = files
        self.models = models
        self.registry = registry
        self.jobs = SetupJobs()
        self._host = host
        self.reload = reload
        self._auth = auth
        self._clients = clients or OtherClients()
        self._vault = vault
        self._private_hosts = tuple(private_hosts)
        self._reloading: set[asyncio.Task[object]] = set()
        self._offers: dict[str, RegistryOffer] = {}  # the version that each plan installs
        self._was: dict[str, str] = {}  # the former name of the model of each plan

    async def aclose(self) -> None:
        """Cancel what runs: tests, logins, examinations."""
        await self.jobs.aclose()
        await self.models.aclose()

    def state(self) -> dict[str, Any]:
        """Return the part of the host's state about its setup, as JSON values."""
        return {
            "file": str(self.files.path),
            "exists": self.files.path.exists(),
            "sandbox": unavailable_reason(),
        }

    # -- servers -----------------------------------------------------------------------------------

    def server(self, id: str) -> dict[str, Any]:
        """Return a server's form, file and tools, as JSON values without secrets.

        Raises:
            Uneditable: A file cannot be read.
            ValueError: No file has this server.
        """
        path, format, raw = self._found(id)
        form = form_of(id, raw)
        if form.command and form.sandbox is None:
            form = msgspec.structs.replace(form, sandbox=comes_from_project(str(path)))
        managed = self._host.hub.servers.get(id)
        entry = managed.entry if managed is not None else None
        tools = list(managed.tools) if managed is not None else []
        only = entry.tools if entry is not None else None
        without = entry.without if entry is not None else ()
        return {
            "form": msgspec.to_builtins(form),
            "file": str(path),
            "switches": format in _SWITCHES_OF_FORMAT,
            "offersLater": only is None,
            "tools": [
                {
                    "name": tool.name,
                    "title": threat_scan.visible(tool.label),
                    "readOnly": tool.annotations is not None
                    and tool.annotations.read_only_hint is True,
                    "on": is_offered(tool.name, only, without),
                }
                for tool in tools
            ],
        }

    def plan_server(self, form: ServerForm, *, was: str = "") -> dict[str, Any]:
        """Plan a new or a changed server.

        Args:
            form: What the user filled in.
            was: The id of the server that is edited; empty for a new one.

        Returns:
            The plan as JSON values, for the user to see.

        Raises:
            Uneditable: The file cannot be read or edited.
            ValueError: The form is incomplete, or the id is taken.
        """
        id = form.id.strip()
        if not id:
            raise ValueError("Give the server a name.")
        found = self.files.raw(was or id)
        path = self.files.path if found is None else found[0]
        confined = comes_from_project(str(path))
        plan = self.files.plan(
            was or id,
            lambda raw: entry_of(form, raw, confined=confined),
            renamed=id if was and was != id else "",
            new=not was,
        )
        return self._shown(plan)

    def plan_removal(self, id: str) -> dict[str, Any]:
        """Plan the removal of a server. Raises what `plan_server` raises."""
        self._found(id)
        return self._shown(self.files.plan(id, lambda raw: None))

    def plan_change(self, id: str, change: Change, value: str | bool) -> dict[str, Any]:
        """Plan a change of one key of a server, such as an older revision.

        Args:
            id: The server.
            change: The key.
            value: Its value; "" or False removes it, but `sandbox: false` is written.

        Raises:
            Uneditable: The file cannot be read or edited.
            ValueError: The value does not fit the key.
        """
        if isinstance(value, str) is not (change == "revision"):
            raise ValueError(f"This is no value for {change}.")
        self._found(id)

        def edit(raw: RawEntry | None) -> RawEntry:
            entry = {key: each for key, each in (raw or {}).items() if key != change}
            if value or change == "sandbox":
                entry[change] = value
            return entry

        return self._shown(self.files.plan(id, edit))

    def plan_tools(self, id: str, on: Collection[str], *, offers_later: bool) -> dict[str, Any]:
        """Plan which tools of a server are offered.

        Args:
            id: The server, which must be up.
            on: The names of the offered tools.
            offers_later: Whether tools that it adds later are offered.

        Raises:
            Uneditable: The file cannot be read or edited.
            ValueError: The server is not up, or the format has no switches.
        """
        _, format, _ = self._found(id)
        names = _SWITCHES_OF_FORMAT.get(format)
        managed = self._host.hub.servers.get(id)
        if names is None:
            raise ValueError("The format of this file has no switches for tools.")
        if managed is None or managed.state != "up":
            raise ValueError("The server is not running. Start it to choose its tools.")
        listed = [tool.name for tool in managed.tools]

        def edit(raw: RawEntry | None) -> RawEntry:
            return switched(raw or {}, listed, on, offers_later=offers_later, names=names)

        return self._shown(self.files.plan(id, edit))

    async def apply(self, plan: str) -> str:
        """Write a planned change of a server, and use it.

        The start of a server is allowed exactly as the plan showed it.

        Args:
            plan: The id of the plan.

        Returns:
            The id of the server.

        Raises:
            Uneditable: The file has changed since the change was planned.
            OSError: The file cannot be written.
            ValueError: There is no such plan.
        """
        found = self.files.plan_of(plan)
        known = found.server in self._host.hub.servers
        self.files.write(found)
        offer = self._offers.pop(plan, None)
        if offer is not None:
            self.registry.keep(offer)
        if found.entry is not None:
            self._host.approve_start(found.entry)
        reloading = asyncio.ensure_future(self.reload())
        self._reloading.add(reloading)
        reloading.add_done_callback(self._reloading.discard)
        await asyncio.wait({reloading}, timeout=RELOAD_SECONDS)
        if reloading.done():
            reloading.result()
        how: Literal["added", "changed", "removed"] = "changed" if known else "added"
        self._host.publish(
            SettingsChanged(
                what="server",
                name=found.server,
                how="removed" if found.entry is None else how,
                file=str(found.path),
            )
        )
        return found.server

    def try_out(self, plan: str) -> SetupJob:
        """Start a planned server once, as the plan showed it, and see what it offers.

        Raises:
            ValueError: There is no such plan, or it removes the server.
        """
        entry = self.files.plan_of(plan).entry
        if entry is None:
            raise ValueError("This server is about to be removed.")
        return self.jobs.start(lambda job: try_server(entry, job, auth=self._auth(entry)))

    def examine(self, id: str) -> SetupJob:
        """Examine a server with the rules of `interlock doctor`.

        Raises:
            ValueError: There is no such server, or its start was not allowed yet.
        """
        entry = self._entry(id)
        if not entry.command and not entry.url:
            raise ValueError("This server runs in this process.")
        if not self._host.is_start_approved(entry):
            raise ValueError("Allow its start first. Its command is in the question about it.")
        return self.jobs.start(
            lambda job: examine_server(entry, job, auth=self._auth(entry), seconds=EXAMINE_SECONDS)
        )

    def log_in(self, id: str, way: LoginWay) -> SetupJob:
        """Log in to a server at a URL; afterwards it is started.

        Raises:
            ValueError: There is no such server, it has no URL, or its entry has a token already.
        """
        entry = self._entry(id)
        if not entry.url.lower().startswith("http"):
            raise ValueError("Only servers at an http address have a login.")
        if any(name.lower() == "authorization" for name in entry.headers):
            raise ValueError("Its entry has an Authorization header. Remove it to log in.")

        async def work(job: SetupJob) -> None:
            done = await log_in_to(
                entry.url,
                job,
                way,
                open_vault=self._vault,
                hosts=self._private_hosts,
            )
            if done and id in self._host.hub.servers:
                await self._host.hub.restart(id)

        return self.jobs.start(work)

    # -- servers of other clients ------------------------------------------------------------------

    async def other_clients(self) -> list[dict[str, Any]]:
        """Return the servers of other clients on this machine, as JSON values without secrets."""
        return await asyncio.to_thread(self._clients.found, self._host.config.entries)

    def plan_import(
        self, client: str, server: str, *, id: str = "", sandbox: bool | None = None
    ) -> dict[str, Any]:
        """Plan to take over a server of another client.

        Args:
            client: The client, such as "cursor".
            server: Its name there.
            id: Its name here; empty for the same, or a free one like it.
            sandbox: Whether it runs in a sandbox; None as the other client has it.

        Raises:
            Uneditable: The file cannot be read or edited.
            ValueError: The server is no longer there, or the name is taken.
        """
        entry = self._clients.entry(client, server)
        name = id.strip() or self._free_name(server, client)
        plan = self.files.plan_text(
            name, lambda text: imported(entry, text, id=name, sandbox=sandbox)
        )
        return self._shown(plan)

    # -- the registry ------------------------------------------------------------------------------

    async def plan_registry(
        self,
        name: str,
        version: str,
        values: Mapping[str, str],
        *,
        sandbox: bool | None,
        id: str = "",
    ) -> dict[str, Any]:
        """Plan to add a server of the registry, with its exact version.

        Args:
            name: The server.
            version: Its version.
            values: The values for its inputs, by label.
            sandbox: Whether its program runs in a sandbox; None where nothing is started.
            id: Its name here; empty for a free one like its own.

        Raises:
            InterlockError: The registry refused, or nothing of the server can be used here.
            Uneditable: The file cannot be read or edited.
            ValueError: A required value is missing.
        """
        found = await self.registry.entry(name, version, values, sandbox=sandbox)
        server = id.strip() or self._free_name(found.id, "registry")
        plan = self.files.plan(server, lambda raw: found.entry, new=True, secrets=found.secrets)
        self._offers[plan.id] = found.offer
        shown = self._shown(plan)
        shown["start"]["command"] = Redactor(found.secrets)(shown["start"]["command"])
        return {**shown, "warning": threat_scan.visible(found.warning)}

    # -- models ------------------------------------------------------------------------------------

    def plan_model(self, form: ModelForm, *, was: str = "") -> dict[str, Any]:
        """Plan a new or a changed model; see ModelSetup."""
        plan = self.models.plan(form, was=was)
        self._was[plan.id] = was
        return _shown_model(plan)

    def plan_model_removal(self, name: str) -> dict[str, Any]:
        """Plan the removal of a model; see ModelSetup."""
        return _shown_model(self.models.plan_removal(name))

    def try_model(self, plan: str) -> SetupJob:
        """Ask a planned model for one word. Raises ValueError if there is no such plan."""
        self.models.plan_of(plan)
        return self.jobs.start(lambda job: self.models.test(plan, job))

    async def apply_model(self, plan: str) -> str:
        """Write a planned change of a model, and use it; see ModelSetup.

        Returns:
            The name of the model.
        """
        was = self._was.pop(plan, "")
        known = was or self.models.plan_of(plan)[0].name in self._host.models
        await asyncio.to_thread(self.models.write, plan, was=was)
        done = self.models.use(plan, was=was)
        how: Literal["added", "changed", "removed"] = "changed" if known else "added"
        self._host.publish(
            SettingsChanged(
                what="model",
                name=done.name,
                how="removed" if done.entry is None else how,
                file=str(done.path),
            )
        )
        return done.name

    # -- inside ------------------------------------------------------------------------------------

    def _found(self, id: str) -> tuple[Any, str, RawEntry]:
        found = self.files.raw(id)
        if found is None:
            raise ValueError(f"The server {id} is not in a file of this host.")
        return found

    def _entry(self, id: str) -> Entry:
        managed = self._host.hub.servers.get(id)
        if managed is None:
            raise ValueError(f"There is no server {id}.")
        return managed.entry

    def _free_name(self, name: str, client: str) -> str:
        for each in (name, f"{name}-{client}", *(f"{name}-{number}" for number in range(2, 100))):
            if self.files.raw(each) is None:
                return each
        raise ValueError(f"There is a server {name} already. Choose another name.")

    def _shown(self, plan: ServerPlan) -> dict[str, Any]:
        """A plan as JSON values, with the facts of the question before a start."""
        start = None if plan.entry is None else start_question("", plan.entry)
        return {
            "plan": plan.id,
            "server": plan.server,
            "file": str(plan.path),
            "isNew": plan.before is None,
            "difference": plan.difference,
            "start": None if start is None else msgspec.to_builtins(start),
            "problems": [threat_scan.visible(problem.words) for problem in plan.problems],
        }


def _shown_model(plan: ModelPlan) -> dict[str, Any]:
    return {
        "plan": plan.id,
        "name": plan.name,
        "file": str(plan.path),
        "isNew": plan.before is None,
        "difference": plan.difference,
        "keyring": plan.key_name,
    }
