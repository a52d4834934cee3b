"""A conversation: it drives turns, calls tools and publishes events."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from interlock import CallToolResult, InterlockError, ProtocolError, TextContent
from interlock.models.interface import Delta, Model, ModelAnswer, ModelFailure, ThinkingModel
from interlock.types import SamplingMessage, ToolResultContent

from ..fleet import threat_scan
from ..fleet.event_bus import EventBus
from ..fleet.events import (
    Attached,
    MessageQueued,
    MessageUnqueued,
    ModelChosen,
    ModelSaid,
    ModelSays,
    PersonSaid,
    TaskEnded,
    TaskGiven,
    ToolOfferChosen,
    TurnEnded,
)
from ..fleet.log.session_titles import title_of
from ..fleet.toolbox import ServerTool, Toolbox, UnknownTool
from ..fleet.tracing import AgentTracing
from .attachments import AttachedFile, file_blocks
from .call_plans import BadPlan, CallPlans
from .call_request import CallRequest
from .calls import ToolCalls
from .consent import Bounds, Consents, ConversationConsent, Mode
from .conversations.branches import Branch, Branches
from .conversations.projects import Project
from .feature_approvals import FeatureApprovals
from .loaded_skills import LoadedSkills
from .loop import builtin_tools, parallelism, tokens
from .loop.budget import Budget
from .loop.context_window import ContextWindow, blocks
from .loop.result_renderer import ResultRenderer
from .loop.result_store import ResultStore
from .loop.turn import AskModel, PublishEvent, Step, ToolUse, TurnState, TurnStopped, turn
from .loop.untrusted_text import UntrustedTextMarker
from .message_queue import MessageQueue, When
from .model_context import ContextUse, LeftOut, ModelContextBuilder, ToolOffer
from .prompter import Prompter
from .replay import messages_of
from .server_access import ServerAccess
from .uncallable_tools import UncallableTools

log = logging.getLogger("interlock_apps.host")

LEAST_WAIT = 0.05


class Busy(InterlockError):
    """The conversation has a running turn; it runs one at a time."""


@dataclass(frozen=True, kw_only=True)
class SessionServices:
    """The parts of a host that its conversations use."""

    events: EventBus
    branches: Branches
    prompter: Prompter
    calls: ToolCalls
    consents: Consents
    plans: CallPlans
    toolbox: Toolbox
    features: FeatureApprovals
    skills: LoadedSkills
    servers: ServerAccess
    uncallable: UncallableTools
    tracing: AgentTracing
    budget: Budget
    discovery: float


class Session:
    """A conversation with a model, created by `Host.session`.

    Attributes:
        id: Its id.
        title: Its title.
        model: Its model, with the chosen effort; `choose_model` changes it.
        project: Its project, or None.
        messages: All of its messages.
        consent: What the user has decided for it; see `mode` and `bounds`.
    """

    def __init__(
        self,
        services: SessionServices,
        id: str,
        model: Model,
        title: str,
        messages: Sequence[SamplingMessage] = (),
        *,
        calls: int = 0,
        queued: Sequence[MessageQueued] = (),
        effort: str = "",
        offer: ToolOffer = "auto",
        project: Project | None = None,
    ) -> None:
        self.id = id
        self.title = title
        self.model = with_effort(model, effort)
        self.project = project
        self.messages: list[SamplingMessage] = list(messages)
        self.consent: ConversationConsent = services.consents.of(id)
        self._services = services
        self._events = services.events
        budget = services.budget
        self._marker = UntrustedTextMarker(_mark(id))
        self._results_store = ResultStore(budget.page, budget.stored_results)
        self._renderer = ResultRenderer(
            budget, self._marker, self._results_store, threat_scan.clean
        )
        self._window = self._new_window()
        self._turn: TurnState | None = None  # of the running turn
        self._context = ModelContextBuilder(
            services.toolbox,
            services.features,
            services.skills,
            self._marker,
            services.discovery,
            self.consent,
            project,
        )
        self._context.offer = offer
        services.skills.resumed(id, self.messages)
        self._calls = calls  # the count so far, including earlier runs, so that ids stay unique
        self._results: list[ToolResultContent | None] = []
        self._shown_by_apps: dict[tuple[str, str], CallToolResult] = {}
        self._work: asyncio.Task[TurnEnded] | None = None
        self._arrived: list[TaskEnded] = []  # tasks whose outcome waits for the end of a turn
        self._queue = MessageQueue(id, queued)
        self._next_turn = False  # whether the messages of the queue begin a turn by themselves
        self._answering: asyncio.Task[None] | None = None
        self._stop = "cancelled"
        self._begun = False
        self._stopping = False
        self._ended: TurnEnded | None = None

    @property
    def running(self) -> bool:
        """Whether a turn is running."""
        return self._work is not None

    @property
    def mode(self) -> Mode:
        """Which calls run without a question: "ask", "read", "plan" or "bounds".

        Rules that deny, and written rules that ask, hold in every mode. Setting it applies to the
        next call, and to those about which the user is being asked.
        """
        return self.consent.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self.consent.choose(mode)

    @property
    def bounds(self) -> Bounds:
        """The bounds of the mode "bounds". Setting them selects that mode, and counts from zero."""
        return self.consent.bounds

    @bounds.setter
    def bounds(self, bounds: Bounds) -> None:
        self.consent.choose("bounds", bounds)

    @property
    def effort(self) -> str:
        """The effort of the model's reasoning; "" for the provider's default."""
        return self.model.effort if isinstance(self.model, ThinkingModel) else ""

    def choose_model(self, model: Model | None = None, *, effort: str | None = None) -> None:
        """Change the model, its effort, or both; a running turn has them from its next step on.

        The conversation is fitted to the context window of the model. A line replaces each picture
        if the model cannot see pictures.

        Args:
            model: The model; None keeps the present one.
            effort: The effort, "" for the provider's default; None keeps the present one if the
                model has it.

        Raises:
            ValueError: The model does not have this effort.
        """
        chosen = model or self.model
        if effort is None:
            effort = self.effort if self.effort in chosen.facts.efforts else ""
        chosen = with_effort(chosen, effort)
        if chosen.name == self.model.name and effort == self.effort:
            return
        refit = chosen.facts != self.model.facts
        self.model = chosen
        if refit:
            self._window = self._new_window()
        if self._turn is not None:
            self._turn.model = chosen.name
            self._turn.facts = chosen.facts
            self._turn.trimming = self._window
        self._events.publish(
            ModelChosen(
                session=self.id, model=chosen.name, effort=effort, remark=chosen.facts.remark
            )
        )

    def offer_tools(self, offer: ToolOffer) -> None:
        """Choose how tools are offered to the model, from its next step on.

        Args:
            offer: "all" tools; a tool "search" instead of them; "auto": a search if the tools would
                take more than `HostOptions.discovery` of the context window.
        """
        if offer != self._context.offer:
            self._context.choose(offer)
            self._events.publish(ToolOfferChosen(session=self.id, offer=offer))

    def context(self) -> ContextUse:
        """How the conversation uses the context window of its model now."""
        facts = self.model.facts
        budget = self._services.budget
        counted = self._window.size if self.messages else 0
        return self._context.use(
            facts,
            answer=min(facts.output, budget.answer or facts.output),
            messages=counted or tokens.of_messages(self.messages),
            left_out=tuple(
                LeftOut(rule=each.rule, words=each.words, tokens=each.tokens)
                for each in self._window.omissions.values()
            ),
        )

    def _new_window(self) -> ContextWindow:
        return ContextWindow(self._services.budget.keep, images=self.model.facts.images)

    @property
    def queued(self) -> tuple[MessageQueued, ...]:
        """The messages that wait for the running turn, or after a turn that was stopped."""
        return tuple(self._queue)

    async def say(
        self,
        text: str,
        *,
        attach: Sequence[Attached] = (),
        files: Sequence[AttachedFile] = (),
    ) -> TurnEnded:
        """Send a message, with attached resources and files, and wait for the end of the turn.

        If the same text is sent again before the model answered it, the model is asked again
        without repeating the message.

        Raises Busy while another turn runs, FileRefused for a file that the model does not accept,
        and McpError or Unreachable if a resource cannot be read; then nothing is sent.
        """
        self._refuse_if_busy()
        content = [*self._files(files), *await self._attachments(attach), *_typed(text)]
        said = SamplingMessage(role="user", content=content)
        if self.messages and self.messages[-1] == said:
            return await self._run_turn()
        return await self._take_turn(
            PersonSaid(session=self.id, messages=(said,), attached=tuple(attach))
        )

    async def prompt(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, str],
        *,
        attach: Sequence[Attached] = (),
    ) -> TurnEnded:
        """Send the messages of a server's prompt with these arguments. Raises as `say` does."""
        self._refuse_if_busy()
        got = await self._services.servers.get_prompt(server, name, arguments)
        origin = f"prompt {name} of {server}"
        messages = [
            SamplingMessage(role=m.role, content=content)
            for m in got.messages
            if (content := self._shown(m.content, origin))
        ]
        if not messages:
            raise ProtocolError(f"The prompt {name} is empty.")
        attached = await self._attachments(attach)
        if attached:
            messages.insert(0, SamplingMessage(role="user", content=list(attached)))
        event = PersonSaid(
            session=self.id,
            messages=tuple(messages),
            attached=tuple(attach),
            server=server,
            prompt=name,
            arguments=dict(arguments),
        )
        return await self._take_turn(event)

    async def retry(self, message: int = 0) -> TurnEnded:
        """Ask the model again without a new message, and wait for the end of the turn.

        Args:
            message: The number of a message of the person or the model (see `Host.conversations`)
                that is answered, or given, anew. What followed it stays as another branch. 0: the
                last message, which the model has not answered.

        Raises:
            Busy: Another turn runs.
            ProtocolError: The model has answered the last message.
            ValueError: There is no such message.
        """
        self._refuse_if_busy()
        if message:
            branch = await self._services.branches.of(self.id)
            is_answer = isinstance(branch.entry(message).event, ModelSaid)
            self._go_on(branch, branch.before(message) if is_answer else message)
        if not self.messages or self.messages[-1].role != "user":
            raise ProtocolError("There is nothing to retry: the model has answered.")
        return await self._run_turn()

    async def steer(
        self,
        text: str,
        *,
        when: When = "step",
        attach: Sequence[Attached] = (),
        files: Sequence[AttachedFile] = (),
    ) -> MessageQueued:
        """Put a message into the queue while a turn runs, and return it without waiting.

        If the turn is stopped or fails before the model gets the message, it stays in the queue and
        goes to the model together with the next message.

        Args:
            text: The message.
            when: "step": the model gets it at the next step of the running turn. "turn": it begins
                the next turn, as soon as the running one is done.
            attach: Resources to attach.
            files: Files to attach.

        Raises:
            ProtocolError: No turn runs, or too many messages wait.
            FileRefused: The model does not accept a file.
            McpError: A resource cannot be read. Also Unreachable.
        """
        if self._work is None:
            raise ProtocolError("No turn is running: send the message with `say`.")
        content = [*self._files(files), *await self._resources(attach), *_typed(text)]
        message = SamplingMessage(role="user", content=content)
        queued = self._queue.add(message, when, tuple(attach))
        self._events.publish(queued)
        if self._work is None:  # it ended while a resource was read
            self._follow_up()
        return queued

    def change_queued(
        self, id: str, *, text: str | None = None, when: When | None = None
    ) -> MessageQueued:
        """Edit a message in the queue; its attachments stay. Raises ProtocolError if it no longer
        waits.
        """
        queued = self._queue.change(id, text, when)
        self._events.publish(queued)
        return queued

    def remove_queued(self, id: str) -> None:
        """Remove a message from the queue. Raises ProtocolError if it no longer waits."""
        self._queue.remove(id)
        self._events.publish(MessageUnqueued(session=self.id, id=id))

    async def send_queued(self) -> TurnEnded:
        """Send the messages that still wait after a turn was stopped, and wait for the end of their
        turn.

        Raises:
            Busy: Another turn runs.
            ProtocolError: No message waits.
        """
        self._refuse_if_busy()
        if not self._queue:
            raise ProtocolError("No message waits.")
        return await self._run_turn()

    async def edit(self, message: int, text: str) -> TurnEnded:
        """Replace the text of a message of the person, send it, and wait for the end of the turn.

        Its attachments stay. The earlier message and what followed it stay as another branch.

        Args:
            message: The number of the message; see `Host.conversations`.
            text: The new text.

        Raises:
            Busy: Another turn runs.
            ValueError: There is no such message, or it is not the person's.
        """
        self._refuse_if_busy()
        branch = await self._services.branches.of(self.id)
        said = branch.entry(message).event
        if not isinstance(said, PersonSaid):
            raise ValueError("Only a message of the person can be edited.")
        self._go_on(branch, branch.before(message))
        return await self._take_turn(edited(said, text))

    async def branch(self, message: int) -> None:
        """Go on after an earlier message. What followed it stays as another branch.

        Args:
            message: The number of the message; see `Host.conversations`.

        Raises:
            Busy: A turn runs.
            ValueError: There is no such message.
        """
        branch = await self._services.branches.of(self.id)
        self._go_on(branch, branch.after(message))

    async def switch(self, end: int) -> None:
        """Go on after an entry of another branch; see `Fork.ends`.

        Raises:
            Busy: A turn runs.
            ValueError: There is no such entry.
        """
        self._go_on(await self._services.branches.of(self.id, end), end)

    def _go_on(self, branch: Branch, after: int) -> None:
        """Continue after an entry of a branch: as if what followed had not been said."""
        self._refuse_if_busy()
        messages = messages_of(branch.until(after).events)
        self._services.branches.choose(self.id, after)
        self.messages[:] = messages
        self._window = ContextWindow(self._services.budget.keep)

    def beside(self, server: str, uri: str, shown: CallToolResult) -> None:
        """Attach content that an app of a server shows to the next message.

        It replaces the app's earlier content (MCP Apps, 2026-01-26; `APP-29`).
        """
        self._shown_by_apps.pop((server, uri), None)
        if shown.content or shown.structured_content is not msgspec.UNSET:
            self._shown_by_apps[server, uri] = shown

    def cancel(self, reason: str = "cancelled") -> None:
        """Cancel the running turn, if any: its calls are cancelled at their servers, and its
        questions are withdrawn.
        """
        if self._work is not None:
            self._stop = reason
            self._stopping = True
            if self._begun:  # a task cancelled before its start would not report its end
                self._work.cancel()

    def take_task(self, ended: TaskEnded) -> None:
        """Add the outcome of a task to the messages, without asking the model."""
        origin = f"result of the task of {ended.tool} of {ended.server}"
        words = f"The task of the call {ended.call} ({ended.tool} of {ended.server}) has ended."
        content: list[Any] = []
        if ended.result is None:
            refusal = self._renderer.refusal("", f"{words} It has no result.", ended.error, origin)
            content += refusal.content
        else:
            failed = " The tool reports a failure:" if ended.result.is_error else " Its result:"
            rendered = self._renderer.result("", ended.result, origin)
            content += [TextContent(text=words + failed), *rendered.content]
        message = SamplingMessage(role="user", content=content)
        self._events.publish(TaskGiven(session=self.id, call=ended.call, messages=(message,)))
        self.messages.append(message)

    def deliver(self, ended: TaskEnded) -> None:
        """Add the outcome of a task to the messages, and ask the model, as soon as no turn runs."""
        self._arrived.append(ended)
        self._answer_later()

    def _follow_up(self) -> None:
        """Begin a turn with the messages of the queue, as soon as no turn runs."""
        self._next_turn = True
        self._answer_later()

    def _answer_later(self) -> None:
        if self._answering is None:
            self._answering = asyncio.get_running_loop().create_task(self._answer_what_came())

    async def _answer_what_came(self) -> None:
        """Have the model answer the outcomes of tasks and the messages of the queue."""
        try:
            while self._arrived or self._next_turn:
                if self._work is not None:
                    await asyncio.wait({self._work})
                    continue
                self._next_turn = False
                if not self._arrived and not self._queue:
                    break  # the person removed the message, or sent it with another one
                arrived = self._arrived
                self._arrived = []
                for ended in arrived:
                    self.take_task(ended)
                await self._run_turn()
        finally:
            self._answering = None

    async def aclose(self) -> None:
        """Cancel the running turn, and wait for its end."""
        self._arrived.clear()
        self._next_turn = False
        if (answering := self._answering) is not None:
            answering.cancel()
            await asyncio.wait({answering})
        self.cancel()
        if (work := self._work) is not None:
            await asyncio.wait({work})

    # -- what goes in ------------------------------------------------------------------------------

    def _files(self, files: Sequence[AttachedFile]) -> list[Any]:
        return file_blocks(files, self.model, self._renderer.paged)

    async def _resources(self, attach: Sequence[Attached]) -> list[Any]:
        blocks: list[Any] = []
        for each in attach:
            read = await self._services.servers.read(each.server, each.uri, session=self.id)
            for contents in read.contents:
                blocks += self._contents(contents, f"resource {each.uri} of {each.server}")
        return blocks

    async def _attachments(self, attach: Sequence[Attached]) -> list[Any]:
        blocks = await self._resources(attach)
        for (server, uri), shown in self._shown_by_apps.items():
            blocks += self._renderer.result(
                "", shown, f"what the app {uri} of {server} shows"
            ).content
        return blocks

    def _shown(self, content: Any, origin: str) -> list[Any]:
        """The blocks of a prompt's message. The person chose and could read it, so it is trusted; a
        longer one is marked as untrusted.
        """
        text, media = self._renderer.parts([content])
        long = len(text) > self._services.budget.page
        text = self._renderer.paged(text, origin) if long else threat_scan.clean(text)
        return [*([TextContent(text=text)] if text else []), *media]

    def _contents(self, contents: Any, origin: str) -> list[Any]:
        text, media = self._renderer.contents(contents)
        return [TextContent(text=self._renderer.paged(text, origin)), *media]

    # -- the turn ----------------------------------------------------------------------------------

    async def _take_turn(self, said: PersonSaid) -> TurnEnded:
        self._refuse_if_busy()
        apps = (
            Attached(server=server, uri=uri, title="What its app shows")
            for server, uri in self._shown_by_apps
        )
        said = msgspec.structs.replace(said, attached=(*said.attached, *apps))
        self._shown_by_apps.clear()
        self._say_queued()
        self._say(said)
        return await self._run_turn()

    def _say(self, said: PersonSaid) -> None:
        self.title = self.title or title_of(said)
        self._events.publish(said)
        self.messages += said.messages

    def _say_queued(self) -> None:
        for said in self._queue.take():
            self._say(said)

    async def _run_turn(self) -> TurnEnded:
        """Continue from the last message; cancelling this cancels the turn."""
        self._refuse_if_busy()
        self._say_queued()
        work = self._begin()
        try:
            await self._within(work)
            return self._ended or work.result()
        except asyncio.CancelledError:
            self.cancel()
            await asyncio.wait({work})
            raise
        finally:
            if self._work is work:
                self._work = None

    def _begin(self) -> asyncio.Task[TurnEnded]:
        self._ended = None
        self._begun = False
        self._stopping = False
        self._work = asyncio.get_running_loop().create_task(self._run_turn_to_end())
        return self._work

    def _refuse_if_busy(self) -> None:
        if self._work is not None:
            raise Busy("The conversation is busy. Wait for its answer, or cancel it.")

    async def _within(self, work: asyncio.Task[TurnEnded]) -> None:
        """Wait for the turn within its time limit; time spent on questions to the person does not
        count.
        """
        loop = asyncio.get_running_loop()
        began = loop.time() - self._services.prompter.asked_seconds(self.id)
        while not work.done():
            left = self._services.budget.seconds - (
                loop.time() - began - self._services.prompter.asked_seconds(self.id)
            )
            if left <= 0 and not self._services.prompter.is_asking(self.id):
                self.cancel("seconds")
                left = self._services.budget.seconds
            await asyncio.wait({work}, timeout=max(left, LEAST_WAIT))

    async def _run_turn_to_end(self) -> TurnEnded:
        self._begun = True
        with self._services.tracing.turn(self.id, self.model.name) as span:
            ended = self._ended = await self._drive()
            if span is not None:
                span.set_attributes({"interlock.turn.ended": ended.reason})
        self._work = None
        self._events.publish(ended)
        if ended.reason == "done" and self._queue:
            self._follow_up()
        return ended

    async def _drive(self) -> TurnEnded:
        talk = self._turn = TurnState(
            session=self.id,
            model=self.model.name,
            facts=self.model.facts,
            budget=self._services.budget,
            messages=self.messages,
            trimming=self._window,
            offer=lambda: self._context.now(self.model.facts),
            steered=lambda: self._queue.take("step"),
        )
        steps = turn(talk)
        came: Any = None
        try:
            while True:
                step = steps.send(came)
                came = None
                if self._stopping:
                    self._end(steps, self._stop)
                try:
                    if isinstance(step, PublishEvent):
                        self._events.publish(step.event)
                    elif isinstance(step, AskModel):
                        came = await self._ask(step)
                    else:
                        came = await self._call(step.uses)
                except asyncio.CancelledError:
                    self._end(steps, self._stop)
                except Exception:  # a bug of the host, which must not break the conversation
                    log.exception("the turn of %s failed", self.id)
                    self._end(steps, "failed")
        except StopIteration as end:
            ended: TurnEnded = end.value
            return ended
        finally:
            self._turn = None

    def _end(self, steps: Generator[Step, Any, TurnEnded], reason: str) -> None:
        """End the turn early; raises StopIteration with its outcome."""
        step: Step = steps.throw(
            TurnStopped(reason, [result for result in self._results if result is not None])
        )
        while True:
            if isinstance(step, PublishEvent):
                self._events.publish(step.event)
            step = next(steps)

    async def _ask(self, step: AskModel) -> ModelAnswer | ModelFailure:
        self._results = []

        def on_piece(piece: Delta) -> None:
            self._events.publish(
                ModelSays(session=self.id, kind=piece.kind, text=piece.text, call=piece.call)
            )

        try:
            tracing = self._services.tracing
            answer = await tracing.ask(self.model, step.request, on_piece, conversation=self.id)
            self.consent.used(answer.usage, self.model.facts.price(answer.usage))
            return answer
        except ModelFailure as bad:
            return bad

    # -- tools -------------------------------------------------------------------------------------

    async def _call(self, uses: Sequence[ToolUse]) -> list[ToolResultContent]:
        """Call tools, in parallel where that is safe.

        The person is asked about all of them at once, before the first one runs. The results are in
        the order of the uses.
        """
        plan = [self._planned(use) for use in uses]
        results = self._results = [None] * len(uses)
        ended = [asyncio.Event() for _ in uses]
        earlier = parallelism.earlier_calls(
            parallelism.parallel_groups(
                [
                    parallelism.PlannedCall(each.item.server, _reads(each.item))
                    if isinstance(each, CallRequest)
                    else _HERE
                    for each in plan
                ]
            )
        )
        requests = [each for each in plan if isinstance(each, CallRequest)]
        group = requests[0].call if len(requests) > 1 else ""

        async def one(index: int) -> None:
            async def turn() -> None:
                for other in earlier[index]:
                    await ended[other].wait()

            each = plan[index]
            if isinstance(each, CallRequest):
                request = msgspec.structs.replace(each, group=group, turn=turn)
                results[index] = await self._called(uses[index], request)
            elif each is None:
                results[index] = await self._propose_plan(uses[index])
            else:
                results[index] = each
            ended[index].set()

        async with asyncio.TaskGroup() as tasks:
            for index in range(len(plan)):
                tasks.create_task(one(index))
        return [result for result in results if result is not None]

    async def _propose_plan(self, use: ToolUse) -> ToolResultContent:
        try:
            words = await self._services.plans.propose(self.id, use.arguments)
        except BadPlan as bad:
            return self._renderer.refusal(use.id, threat_scan.clean(str(bad)))
        return ToolResultContent(
            tool_use_id=use.id, content=[TextContent(text=threat_scan.clean(words))]
        )

    def _planned(self, use: ToolUse) -> CallRequest | ToolResultContent | None:
        """The call for a tool use, or its result if no call is needed or possible.

        None: the tool use is a plan, about which the user is asked.
        """
        name = use.name
        arguments = use.arguments
        if use.unreadable:
            return self._renderer.refusal(
                use.id, f"The arguments were no JSON object: {use.unreadable[:500]}"
            )
        if name == builtin_tools.PLAN:
            return None
        if name == builtin_tools.FIND:
            return self._found(use)
        if name == builtin_tools.READ_RESULT:
            return self._read_on(use)
        if name == builtin_tools.USE:
            name = str(arguments.get("name", ""))
            arguments = arguments.get("arguments") or {}
            if not isinstance(arguments, dict):
                return self._renderer.refusal(use.id, "`arguments` must be an object.")
        self._calls += 1
        call = f"{self.id}.{self._calls}"
        server = str(arguments.get("server", ""))
        if name in builtin_tools.OF_SERVERS and not self._offers(server):
            return self._unknown(use, call, arguments, f"There is no server {server}.")
        if name in builtin_tools.OF_SERVERS:
            item = ServerTool(name=name, server=server, tool=_OWN[name])
            return CallRequest(call=call, session=self.id, item=item, arguments=arguments)
        try:
            item = self._services.toolbox.find(name)
        except UnknownTool as bad:
            if server := self._services.uncallable.stopped_server(name):
                return self._stopped_server(use, call, name, arguments, server)
            return self._unknown(use, call, arguments, str(bad))
        if not self._offers(item.server):
            return self._unknown(use, call, arguments, f"There is no tool {name}.")
        if not item.for_model:
            return self._unknown(use, call, arguments, f"{name} is not for models to call.")
        return CallRequest(call=call, session=self.id, item=item, arguments=arguments)

    def _offers(self, server: str) -> bool:
        """Whether the project of the conversation has a server."""
        return self.project is None or self.project.offers(server)

    async def _called(self, use: ToolUse, wanted: CallRequest) -> ToolResultContent:
        item = wanted.item
        if item.name == builtin_tools.READ_RESOURCE:
            uri = str(wanted.arguments.get("uri", ""))
            origin = f"resource {uri} of {item.server}"
            outcome = await self._services.calls.read(wanted)
        elif item.name == builtin_tools.LOAD_SKILL:
            origin = f"skill {wanted.arguments.get('uri', '')} of the server {item.server}"
            outcome = await self._services.calls.load_skill(wanted)
        elif item.name == builtin_tools.READ_SKILL:
            path = wanted.arguments.get("path", "")
            uri = wanted.arguments.get("uri", "")
            origin = f"{path} of the skill {uri} of the server {item.server}"
            outcome = await self._services.calls.read_skill(wanted)
        else:
            origin = f"result of {item.tool.name} of {item.server}"
            outcome = await self._services.calls.call(wanted)
        if outcome.result is None:
            return self._renderer.refusal(
                use.id, threat_scan.clean(outcome.words), outcome.said, origin
            )
        return self._renderer.result(use.id, outcome.result, origin)

    def _found(self, use: ToolUse) -> ToolResultContent:
        words = str(use.arguments.get("words", ""))
        limit = use.arguments.get("limit", 8)
        found = self._context.search(
            words, limit if isinstance(limit, int) and 1 <= limit <= 50 else 8
        )
        if not found:
            return self._renderer.refusal(use.id, f"No tool fits “{words}”. Try other words.")
        data = [
            {
                "name": t.name,
                "title": t.title,
                "description": t.description,
                "inputSchema": t.input_schema,
            }
            for t in found
        ]
        text = msgspec.json.encode(data).decode()
        return self._renderer.result(
            use.id, CallToolResult(content=[TextContent(text=text)]), "tools that were found"
        )

    def _read_on(self, use: ToolUse) -> ToolResultContent:
        name = str(use.arguments.get("result", ""))
        page = use.arguments.get("page")
        text = self._results_store.read(name, page) if isinstance(page, int) else None
        if text is None:
            pages = self._results_store.pages(name)
            return self._renderer.refusal(
                use.id,
                f"{name} has {pages} pages."
                if pages
                else f"There is no result {name!r}, or it is no longer stored.",
            )
        return ToolResultContent(
            tool_use_id=use.id,
            content=[TextContent(text=self._marker.wrap(text, f"page {page} of {name}"))],
        )

    def _stopped_server(
        self, use: ToolUse, call: str, name: str, arguments: dict[str, Any], server: str
    ) -> ToolResultContent:
        self._services.uncallable.publish_stopped(self.id, call, name, arguments, server)
        words = (
            f"The server {server} is stopped, so {name} cannot be called. The user can "
            "start it; ask them."
        )
        return self._renderer.refusal(use.id, threat_scan.clean(words))

    def _unknown(
        self, use: ToolUse, call: str, arguments: dict[str, Any], words: str
    ) -> ToolResultContent:
        self._services.uncallable.publish_unknown(self.id, call, use.name, arguments, words)
        return self._renderer.refusal(use.id, words)


def edited(said: PersonSaid, text: str) -> PersonSaid:
    """A message of the person with another text; what was sent with it stays."""
    *before, last = said.messages or (SamplingMessage(role="user", content=[]),)
    kept = blocks(last)
    own = next((b for b in reversed(kept) if isinstance(b, TextContent)), None)
    content: list[Any] = [b for b in kept if b is not own]
    message = SamplingMessage(role="user", content=[*content, TextContent(text=text)])
    return msgspec.structs.replace(
        said, messages=(*before, message), server="", prompt="", arguments={}
    )


_HERE = parallelism.PlannedCall("interlock", True)
_OWN = {
    builtin_tools.READ_RESOURCE: builtin_tools.RESOURCE_TOOL,
    builtin_tools.LOAD_SKILL: builtin_tools.LOAD_SKILL_TOOL,
    builtin_tools.READ_SKILL: builtin_tools.READ_SKILL_TOOL,
}


def with_effort(model: Model, effort: str) -> Model:
    """The model with an effort. Raises ValueError if the model does not have it."""
    if isinstance(model, ThinkingModel):
        return model if model.effort == effort else model.with_effort(effort)
    if effort:
        raise ValueError(f"{model.name} has no levels of effort.")
    return model


def _typed(text: str) -> list[TextContent]:
    """What the person typed; a message can consist of files only."""
    return [TextContent(text=text)] if text.strip() else []


def _reads(item: ServerTool) -> bool:
    hints = item.tool.annotations
    return bool(hints is not None and hints.read_only_hint)


def _mark(session: str) -> str:
    """The random part of a conversation's marks around untrusted text.

    It is as random as the id, which servers never see, and the same after the conversation is
    resumed.
    """
    return f"data-{hashlib.sha256(f'marker of {session}'.encode()).hexdigest()[:8]}"
