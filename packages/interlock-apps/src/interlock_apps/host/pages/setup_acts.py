"""Acts of the page that set up the host, and the functions that run them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ...web.page_site import ActError
from ..setup.host_setup import MOST_WAIT, Change, HostSetup
from ..setup.logins import LoginWay
from ..setup.model_setup import ModelForm
from ..setup.server_form import ServerForm
from .acts import HostAct


class SetupServerAct(HostAct, frozen=True, kw_only=True, tag="setupServer"):
    """Return the form, the file and the tools of a configured server."""

    server: str


class PlanServerAct(HostAct, frozen=True, kw_only=True, tag="planServer"):
    """Plan a new server, or a change of the server `was`."""

    form: ServerForm
    was: str = ""


class PlanRemovalAct(HostAct, frozen=True, kw_only=True, tag="planRemoval"):
    """Plan the removal of a server."""

    server: str


class PlanChangeAct(HostAct, frozen=True, kw_only=True, tag="planChange"):
    """Plan a change of one key of a server."""

    server: str
    change: Change
    value: str | bool


class PlanToolsAct(HostAct, frozen=True, kw_only=True, tag="planTools"):
    """Plan which tools of a server are offered."""

    server: str
    on: tuple[str, ...]
    offers_later: bool


class ApplyPlanAct(HostAct, frozen=True, kw_only=True, tag="applyPlan"):
    """Write a planned change of a server, and allow its start as the plan showed it."""

    plan: str


class TryPlanAct(HostAct, frozen=True, kw_only=True, tag="tryPlan"):
    """Start a planned server once, as the plan showed it."""

    plan: str


class FollowJobAct(HostAct, frozen=True, kw_only=True, tag="followJob"):
    """Return the events of a job after the first `after`, as soon as there are any."""

    job: str
    after: int = 0


class CancelJobAct(HostAct, frozen=True, kw_only=True, tag="cancelJob"):
    """Cancel a job."""

    job: str


class ReplyJobAct(HostAct, frozen=True, kw_only=True, tag="replyJob"):
    """Give a text to a job that waits for it."""

    job: str
    text: str


class OtherClientsAct(HostAct, frozen=True, kw_only=True, tag="otherClients"):
    """Return the servers of other clients on this machine."""


class PlanImportAct(HostAct, frozen=True, kw_only=True, tag="planImport"):
    """Plan to take over a server of another client."""

    client: str
    server: str
    id: str = ""
    sandbox: bool | None = None


class SearchRegistryAct(HostAct, frozen=True, kw_only=True, tag="searchRegistry"):
    """Search for servers in the MCP registry."""

    words: str


class RegistryServerAct(HostAct, frozen=True, kw_only=True, tag="registryServer"):
    """Return a server of the registry, and the values that it needs."""

    name: str
    version: str = ""


class PlanRegistryAct(HostAct, frozen=True, kw_only=True, tag="planRegistry"):
    """Plan to add a server of the registry."""

    name: str
    version: str
    values: dict[str, str] = msgspec.field(default_factory=dict)
    sandbox: bool | None = None
    id: str = ""


class ExamineServerAct(HostAct, frozen=True, kw_only=True, tag="examineServer"):
    """Examine a server with the rules of `interlock doctor`."""

    server: str


class LogInAct(HostAct, frozen=True, kw_only=True, tag="logIn"):
    """Log in to a server."""

    server: str
    way: LoginWay = "browser"


class SetupModelsAct(HostAct, frozen=True, kw_only=True, tag="setupModels"):
    """Return the configured models, the providers, and whether there is a keyring."""


class LocalModelsAct(HostAct, frozen=True, kw_only=True, tag="localModels"):
    """Look for model servers on this machine."""


class PlanModelAct(HostAct, frozen=True, kw_only=True, tag="planModel"):
    """Plan a new model, or a change of the model `was`."""

    form: ModelForm
    was: str = ""


class PlanModelRemovalAct(HostAct, frozen=True, kw_only=True, tag="planModelRemoval"):
    """Plan the removal of a model."""

    name: str


class TryModelAct(HostAct, frozen=True, kw_only=True, tag="tryModel"):
    """Ask a planned model for one word."""

    plan: str


class ApplyModelAct(HostAct, frozen=True, kw_only=True, tag="applyModel"):
    """Write a planned change of a model."""

    plan: str


AnySetupAct = (
    SetupServerAct
    | PlanServerAct
    | PlanRemovalAct
    | PlanChangeAct
    | PlanToolsAct
    | ApplyPlanAct
    | TryPlanAct
    | FollowJobAct
    | CancelJobAct
    | ReplyJobAct
    | OtherClientsAct
    | PlanImportAct
    | SearchRegistryAct
    | RegistryServerAct
    | PlanRegistryAct
    | ExamineServerAct
    | LogInAct
    | SetupModelsAct
    | LocalModelsAct
    | PlanModelAct
    | PlanModelRemovalAct
    | TryModelAct
    | ApplyModelAct
)


class SetupActs:
    """Runs the acts that set up the host.

    Args:
        setup: The setup of the host.
    """

    def __init__(self, setup: HostSetup) -> None:
        self._setup = setup

    @property
    def table(self) -> dict[type[HostAct], Callable[[Any], Awaitable[Any]]]:
        """The function of each act."""
        return {
            SetupServerAct: self._server,
            PlanServerAct: self._plan_server,
            PlanRemovalAct: self._plan_removal,
            PlanChangeAct: self._plan_change,
            PlanToolsAct: self._plan_tools,
            ApplyPlanAct: self._apply,
            TryPlanAct: self._try,
            FollowJobAct: self._follow,
            CancelJobAct: self._cancel,
            ReplyJobAct: self._reply,
            OtherClientsAct: self._other_clients,
            PlanImportAct: self._plan_import,
            SearchRegistryAct: self._search_registry,
            RegistryServerAct: self._registry_server,
            PlanRegistryAct: self._plan_registry,
            ExamineServerAct: self._examine,
            LogInAct: self._log_in,
            SetupModelsAct: self._models,
            LocalModelsAct: self._local_models,
            PlanModelAct: self._plan_model,
            PlanModelRemovalAct: self._plan_model_removal,
            TryModelAct: self._try_model,
            ApplyModelAct: self._apply_model,
        }

    async def _server(self, act: SetupServerAct) -> Any:
        return self._setup.server(act.server)

    async def _plan_server(self, act: PlanServerAct) -> Any:
        return self._setup.plan_server(act.form, was=act.was)

    async def _plan_removal(self, act: PlanRemovalAct) -> Any:
        return self._setup.plan_removal(act.server)

    async def _plan_change(self, act: PlanChangeAct) -> Any:
        return self._setup.plan_change(act.server, act.change, act.value)

    async def _plan_tools(self, act: PlanToolsAct) -> Any:
        return self._setup.plan_tools(act.server, act.on, offers_later=act.offers_later)

    async def _apply(self, act: ApplyPlanAct) -> Any:
        return {"server": await self._setup.apply(act.plan)}

    async def _try(self, act: TryPlanAct) -> Any:
        return {"job": self._setup.try_out(act.plan).id}

    async def _follow(self, act: FollowJobAct) -> Any:
        job = self._setup.jobs.job(act.job)
        events = await job.after(max(act.after, 0), MOST_WAIT)
        return {"events": events, "done": job.done}

    async def _cancel(self, act: CancelJobAct) -> None:
        await self._setup.jobs.job(act.job).cancel()

    async def _reply(self, act: ReplyJobAct) -> None:
        reply = self._setup.jobs.job(act.job).reply
        if reply is None:
            raise ActError("This no longer waits for an answer.")
        reply(act.text)

    async def _other_clients(self, act: OtherClientsAct) -> Any:
        return {"clients": await self._setup.other_clients()}

    async def _plan_import(self, act: PlanImportAct) -> Any:
        return self._setup.plan_import(act.client, act.server, id=act.id, sandbox=act.sandbox)

    async def _search_registry(self, act: SearchRegistryAct) -> Any:
        return await self._setup.registry.search(act.words)

    async def _registry_server(self, act: RegistryServerAct) -> Any:
        return await self._setup.registry.offer(act.name, act.version)

    async def _plan_registry(self, act: PlanRegistryAct) -> Any:
        return await self._setup.plan_registry(
            act.name, act.version, act.values, sandbox=act.sandbox, id=act.id
        )

    async def _examine(self, act: ExamineServerAct) -> Any:
        return {"job": self._setup.examine(act.server).id}

    async def _log_in(self, act: LogInAct) -> Any:
        return {"job": self._setup.log_in(act.server, act.way).id}

    async def _models(self, act: SetupModelsAct) -> Any:
        return self._setup.models.listing()

    async def _local_models(self, act: LocalModelsAct) -> Any:
        return {"servers": await self._setup.models.local()}

    async def _plan_model(self, act: PlanModelAct) -> Any:
        return self._setup.plan_model(act.form, was=act.was)

    async def _plan_model_removal(self, act: PlanModelRemovalAct) -> Any:
        return self._setup.plan_model_removal(act.name)

    async def _try_model(self, act: TryModelAct) -> Any:
        return {"job": self._setup.try_model(act.plan).id}

    async def _apply_model(self, act: ApplyModelAct) -> Any:
        return {"name": await self._setup.apply_model(act.plan)}
