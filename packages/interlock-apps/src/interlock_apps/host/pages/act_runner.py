"""Runs the requests ("acts") of a page: one function for each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from interlock import InterlockError, ResourceContents

from ...fleet.events import LogEntry, ModelAsked, PersonSaid
from ...fleet.rule_text import in_words
from ...web.app_sandbox import AppSandbox
from ...web.page_site import ActError
from ..attachments import AttachedFile
from ..call_messages import GONE
from . import acts as a
from .acts import HostAct
from .conversation_acts import ConversationActs
from .excerpts import result_of, structured_page
from .open_apps import OpenApps
from .policy_view import changed_policy, policy_view
from .setup_acts import SetupActs
from .state import plain, rule_id
from .uploads import Uploads
from .user import PageUser

if TYPE_CHECKING:
    from ..app import Host
    from ..setup.host_setup import HostSetup

BEGUN = (PersonSaid, ModelAsked)  # the events that start a turn


class ActRunner:
    """Runs acts on a host, for the person at its page.

    Args:
        host: The host.
        user: Gives the page's answers to questions.
        sandbox: The origin of apps.
        setup: Changes the servers and the models of the host; None if they are not in files.

    Attributes:
        uploads: The files that the page has uploaded.
    """

    def __init__(
        self, host: Host, user: PageUser, sandbox: AppSandbox, setup: HostSetup | None = None
    ) -> None:
        self.uploads = Uploads()
        self._host = host
        self._user = user
        self._apps = OpenApps(host, sandbox)
        self._turns: set[asyncio.Task[Any]] = set()
        self._table: dict[type[HostAct], Callable[[Any], Awaitable[Any]]] = {
            a.SayAct: self._say,
            a.SayPromptAct: self._say_prompt,
            a.CancelAct: self._cancel,
            a.SteerAct: self._steer,
            a.RemoveFileAct: self._remove_file,
            a.ChangeQueuedAct: self._change_queued,
            a.RemoveQueuedAct: self._remove_queued,
            a.SendQueuedAct: self._send_queued,
            a.NewSessionAct: self._new,
            a.ChooseModelAct: self._choose_model,
            a.OfferToolsAct: self._offer_tools,
            a.ContextAct: self._context,
            a.ResumeAct: self._resume,
            a.GiveAnswerAct: self._answer,
            a.GiveAnswersAct: self._answers,
            a.ModeAct: self._mode,
            a.ClearTaintAct: self._clear_taint,
            a.RevokeSamplingAct: self._revoke_sampling,
            a.DoneCallsAct: self._done_calls,
            a.RestoreFileAct: self._restore_file,
            a.PolicyAct: self._policy,
            a.ChangePolicyAct: self._change_policy,
            a.ExplainAct: self._explain,
            a.PreviewPromptAct: self._preview,
            a.CompleteAct: self._complete,
            a.ReadAct: self._read,
            a.ExpandAct: self._expand,
            a.GrantAct: self._grant,
            a.RevokeAct: self._revoke,
            a.ServerAct: self._server,
            a.ServerLogAct: self._server_log,
            a.ForgetAct: self._forget,
            a.SearchLogAct: self._search,
            a.ReadStructuredAct: self._read_structured,
            a.ReadResultAct: self._read_result,
            a.RunsAct: self._runs,
            a.TimelineAct: self._timeline,
            a.CallMessagesAct: self._call_messages,
            a.CallMessageAct: self._call_message,
            a.WatchAct: self._watch,
            a.UnwatchAct: self._unwatch,
            a.CallToolAct: self._call_tool,
            a.CancelTaskAct: self._cancel_task,
            a.AppResourceAct: self._open_app,
            a.AppReadAct: self._app_read,
            a.AppLinkAct: self._app_link,
            a.AppContextAct: self._app_context,
            a.CloseAppAct: self._close_app,
            **(SetupActs(setup).table if setup is not None else {}),
            **ConversationActs(host, self._begin, self._session).table,
        }

    async def run(self, act: HostAct) -> Any:
        """Run an act; return its outcome as JSON values.

        Raises:
            ActError: It failed; the message is for the person.
        """
        function = self._table.get(type(act))
        if function is None:
            raise ActError("This action is not available here.")
        try:
            return await function(act)
        except (InterlockError, ValueError, OSError) as bad:
            raise ActError(str(bad)) from None

    def close(self) -> None:
        """Cancel the calls of apps."""
        self._apps.end()

    # -- conversations

    async def _say(self, act: a.SayAct) -> None:
        files = self._said_files(act)
        turn = self._session(act.session).say(act.text, attach=act.attach, files=files)
        await self._begin(turn, act.session)
        self._forget_files(act.files)

    async def _say_prompt(self, act: a.SayPromptAct) -> None:
        turn = self._session(act.session).prompt(
            act.server, act.name, act.arguments, attach=act.attach
        )
        await self._begin(turn, act.session)

    async def _begin(self, turn: Any, session: str) -> None:
        """Run a turn in the background. An error before it starts is raised here; later ones become
        events.
        """
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def receive(noted: LogEntry) -> None:
            ours = isinstance(noted.event, BEGUN) and noted.event.session == session
            if ours and not begun.done():
                begun.set_result(None)

        end = self._host.listen(receive)
        task = asyncio.get_running_loop().create_task(turn)
        self._turns.add(task)
        task.add_done_callback(self._turns.discard)
        try:
            await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            end()
        if task.done() and not begun.done():
            task.result()

    async def _cancel(self, act: a.CancelAct) -> None:
        self._session(act.session).cancel()

    async def _steer(self, act: a.SteerAct) -> None:
        session = self._session(act.session)
        files = self._said_files(act)
        if session.running:
            await session.steer(act.text, when=act.when, attach=act.attach, files=files)
        else:
            turn = session.say(act.text, attach=act.attach, files=files)
            await self._begin(turn, act.session)
        self._forget_files(act.files)

    def _said_files(self, act: a.SayAct | a.SteerAct) -> list[AttachedFile]:
        if not act.text.strip() and not act.files:
            raise ActError("The message is empty.")
        return self.uploads.named(act.files)

    def _forget_files(self, files: Sequence[str]) -> None:
        for file in files:
            self.uploads.remove(file)

    async def _remove_file(self, act: a.RemoveFileAct) -> None:
        self.uploads.remove(act.file)

    async def _change_queued(self, act: a.ChangeQueuedAct) -> None:
        if act.text is not None and not act.text.strip():
            raise ActError("The message is empty.")
        self._session(act.session).change_queued(act.id, text=act.text, when=act.when)

    async def _remove_queued(self, act: a.RemoveQueuedAct) -> None:
        self._session(act.session).remove_queued(act.id)

    async def _send_queued(self, act: a.SendQueuedAct) -> None:
        await self._begin(self._session(act.session).send_queued(), act.session)

    async def _cancel_task(self, act: a.CancelTaskAct) -> None:
        await self._host.tasks.cancel(act.call)

    async def _new(self, act: a.NewSessionAct) -> Any:
        session = self._host.session(
            model=act.model, title=act.title, effort=act.effort, project=act.project
        )
        return {"session": session.id}

    async def _choose_model(self, act: a.ChooseModelAct) -> None:
        model = self._host.model(act.model) if act.model else None
        self._session(act.session).choose_model(model, effort=act.effort)

    async def _offer_tools(self, act: a.OfferToolsAct) -> None:
        self._session(act.session).offer_tools(act.offer)

    async def _context(self, act: a.ContextAct) -> Any:
        return plain(self._session(act.session).context())

    async def _resume(self, act: a.ResumeAct) -> Any:
        return {"session": (await self._host.resume(act.session)).id}

    async def _answer(self, act: a.GiveAnswerAct) -> None:
        if not self._user.settle(act.question, act.answer):
            raise ActError("This question is no longer open.")

    async def _answers(self, act: a.GiveAnswersAct) -> Any:
        settled = [self._user.settle(question, given) for question, given in act.answers.items()]
        if not any(settled):
            raise ActError("These questions are no longer open.")
        return {"settled": sum(settled)}

    # -- consent

    async def _mode(self, act: a.ModeAct) -> None:
        self._session(act.session).consent.choose(act.mode, act.bounds)

    async def _clear_taint(self, act: a.ClearTaintAct) -> None:
        self._session(act.session).consent.clear_taint()

    async def _revoke_sampling(self, act: a.RevokeSamplingAct) -> None:
        if not self._host.revoke_sampling(act.session, act.server):
            raise ActError("The permission has ended already.")

    async def _done_calls(self, act: a.DoneCallsAct) -> Any:
        return {"calls": plain(self._host.done_calls(act.session))}

    async def _restore_file(self, act: a.RestoreFileAct) -> None:
        await self._host.restore(act.session, act.call, act.path)

    async def _policy(self, act: a.PolicyAct) -> Any:
        return policy_view(self._host)

    async def _change_policy(self, act: a.ChangePolicyAct) -> Any:
        return changed_policy(self._host, act)

    async def _explain(self, act: a.ExplainAct) -> Any:
        found = self._host.explain(act.server, act.tool, act.arguments, session=act.session)
        return {
            **plain(found),
            "rule": "" if found.rule is None else in_words(found.rule),
            "matching": [in_words(rule) for rule in found.matching],
        }

    def _session(self, session: str) -> Any:
        found = self._host.sessions.get(session)
        if found is None:
            raise ActError("This conversation is not open here. Start a new one.")
        return found

    # -- what servers offer

    async def _preview(self, act: a.PreviewPromptAct) -> Any:
        got = await self._host.get_prompt(act.server, act.name, act.arguments)
        return {"description": plain(got.description), "messages": plain(got.messages)}

    async def _complete(self, act: a.CompleteAct) -> Any:
        found = await self._host.complete(
            act.server, act.ref, act.argument, act.value, act.arguments
        )
        return {"values": found.values, "total": found.total, "hasMore": bool(found.has_more)}

    async def _read(self, act: a.ReadAct) -> Any:
        read = await self._host.read(act.server, act.uri)
        return {
            "contents": plain(read.contents),
            "size": sum(_size(part) for part in read.contents),
        }

    async def _expand(self, act: a.ExpandAct) -> Any:
        return {"uri": self._host.expand(act.template, act.values)}

    async def _watch(self, act: a.WatchAct) -> None:
        await self._host.server(act.server).watch_uri(act.uri)

    async def _unwatch(self, act: a.UnwatchAct) -> None:
        await self._host.server(act.server).unwatch_uri(act.uri)

    # -- servers, folders, rules, the log

    async def _grant(self, act: a.GrantAct) -> None:
        self._host.grant(act.folder, act.server)

    async def _revoke(self, act: a.RevokeAct) -> None:
        self._host.revoke(act.folder, act.server)

    async def _server(self, act: a.ServerAct) -> None:
        self._host.server(act.server)
        do = {
            "start": self._host.hub.start,
            "stop": self._host.hub.stop,
            "restart": self._host.hub.restart,
        }[act.what]
        await do(act.server)

    async def _server_log(self, act: a.ServerLogAct) -> Any:
        return {"lines": [plain(line) for line in self._host.server(act.server).log]}

    async def _forget(self, act: a.ForgetAct) -> None:
        learned = self._host.policy.learned
        found = next((rule for rule in learned if rule_id(rule) == act.rule), None)
        if found is None or not self._host.forget(found):
            raise ActError("There is no such rule.")

    async def _search(self, act: a.SearchLogAct) -> Any:
        await self._host.log.flush()
        notes = await self._host.log.search(
            act.words,
            session=act.session,
            server=act.server,
            kinds=act.kinds,
            before=act.before,
            limit=min(max(act.limit, 1), 500),
        )
        return {"notes": [plain(noted) for noted in notes]}

    async def _read_structured(self, act: a.ReadStructuredAct) -> Any:
        page = await structured_page(self._host.log, act.session, act.call, act.page)
        if page is None:
            raise ActError("This result is not in the log.")
        return page

    async def _read_result(self, act: a.ReadResultAct) -> Any:
        result = await result_of(self._host.log, act.session, act.call)
        if result is None:
            raise ActError("This result is not in the log.")
        return plain(result)

    async def _runs(self, act: a.RunsAct) -> Any:
        return {"runs": plain(self._host.runs())}

    async def _timeline(self, act: a.TimelineAct) -> Any:
        turns = await self._host.timeline(act.session, after=max(0, act.after - 1))
        return {"now": time.time(), "turns": plain(turns)}

    async def _call_messages(self, act: a.CallMessagesAct) -> Any:
        rows = self._host.messages.rows(act.call, self._revision(act.server))
        return {"rows": rows, "gone": "" if rows else GONE}

    async def _call_message(self, act: a.CallMessageAct) -> Any:
        return self._host.messages.message(act.call, act.row, self._revision(act.server))

    def _revision(self, server: str) -> str:
        found = self._host.hub.servers.get(server)
        return (found.revision or "") if found is not None else ""

    # -- apps of servers

    async def _open_app(self, act: a.AppResourceAct) -> Any:
        return await self._apps.open(act.server, act.uri, act.session)

    async def _call_tool(self, act: a.CallToolAct) -> Any:
        if act.app:
            return {"call": self._apps.call(act.app, act.server, act.tool, act.arguments)}
        return {
            "call": self._apps.call_for_person(act.session, act.server, act.tool, act.arguments)
        }

    async def _app_read(self, act: a.AppReadAct) -> Any:
        return msgspec.to_builtins(await self._apps.read(act.app, act.uri))

    async def _app_link(self, act: a.AppLinkAct) -> Any:
        return {"question": self._apps.link(act.app, act.url, act.call)}

    async def _app_context(self, act: a.AppContextAct) -> None:
        self._apps.context(act.app, act.content, act.structured_content)

    async def _close_app(self, act: a.CloseAppAct) -> None:
        self._apps.close(act.app)


def _size(part: ResourceContents) -> int:
    """The size of a resource's content in bytes."""
    if part.text is not None:
        return len(part.text.encode())
    return len(part.blob or "") * 3 // 4
