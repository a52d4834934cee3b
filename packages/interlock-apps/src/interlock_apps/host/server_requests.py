"""What a server's questions lead to: forms and pages go to the person, sampling past the person to a model and back."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from interlock import Answers, McpError
from interlock.models.interface import Model, ModelAnswer, ModelFailure
from interlock.models.model_choice import choose
from interlock.typed.form_fields import BadForm, form_fields
from interlock.typed.form_fields import check as check_form
from interlock.types import (
    INVALID_PARAMS,
    USER_REJECTED,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    JSONObject,
    Root,
)

from ..fleet import threat_scan
from ..fleet.events import Event, Notice, SampleEnded
from ..fleet.nesting import too_deep
from ..fleet.questions import (
    Decision,
    Filled,
    FormQuestion,
    SampledQuestion,
    SampleQuestion,
    UrlQuestion,
    Warned,
)
from .calls import CallRequest
from .model_answers import whole
from .prompter import Prompter

ADAPTERS = (
    "io.interlock/"  # keys of `_meta` under which adapters keep what a provider wants to see again
)
TRIES = 5  # at a form whose answer does not fit it


class RequestLimits(Struct, frozen=True, kw_only=True):
    """How much servers may ask: `samples` and `questions` are for each server, in `seconds`; `tokens` is the most of one sample."""

    samples: int = 10
    questions: int = 20
    seconds: float = 60.0
    tokens: int = 16_384


class ServerRequests:
    """Answers what the servers ask.

    `running` has the calls under way at each server: a question that comes with none belongs to the only one there is. `roots` and
    `address` are the folders that a server may be told of, and the URL that it is reached at ("" for a process). `extensions` are
    declared to each.
    """

    def __init__(
        self,
        desk: Prompter,
        tell: Callable[[Event], None],
        models: Mapping[str, Model],
        running: Mapping[str, Sequence[CallRequest]],
        roots: Callable[[str], Sequence[Root]],
        address: Callable[[str], str],
        asking: RequestLimits,
        extensions: Mapping[str, JSONObject] = {},
    ) -> None:
        self._desk, self._tell, self._models, self._running = desk, tell, models, running
        self._roots, self._address, self._asking = roots, address, asking
        self.extensions = dict(extensions)
        self._recent: dict[tuple[str, str], deque[float]] = {}
        self._told: set[tuple[str, str]] = set()
        self._released: set[str] = set()  # questions that another one's answer was for, too
        self._waved: set[tuple[str, str]] = (
            set()
        )  # servers whose samples pass unseen in a conversation, as the person said

    def of(self, server: str, wanted: CallRequest | None = None) -> Answers:
        """The answers for one server, because of one call where that is known; sampling is declared where there is a model."""

        async def elicit(params: ElicitRequestParams) -> ElicitResult:
            return await self._elicit(server, params, self._place(server, wanted))

        async def sample(params: CreateMessageRequestParams) -> CreateMessageResult:
            return await self._sample(server, params, self._place(server, wanted))

        return Answers(
            elicit=elicit,
            sample=sample if self._models else None,
            roots=lambda: list(self._roots(server)),
            extensions=self.extensions,
        )

    # -- forms and pages ------------------------------------------------------------------------------------------

    async def _elicit(
        self, server: str, params: ElicitRequestParams, place: tuple[str, str]
    ) -> ElicitResult:
        if self._too_often(server, "question", self._asking.questions):
            return ElicitResult(action="cancel")
        session, call = place
        message = threat_scan.visible(params.message)
        if params.mode == "url":
            host, site, warnings = threat_scan.of_url(
                params.url or "", server=self._address(server)
            )
            page = UrlQuestion(
                id=self._desk.name(), server=server, session=session, call=call, warnings=warnings,
                message=message, url=threat_scan.visible(params.url or ""), host=host, site=site,
            )  # fmt: skip
            answer = await self._desk.ask(page)
            return (
                ElicitResult(action=answer.action)
                if isinstance(answer, Filled)
                else ElicitResult(action="cancel")
            )
        return await self._form(server, params, message, session, call)

    async def _form(
        self, server: str, params: ElicitRequestParams, message: str, session: str, call: str
    ) -> ElicitResult:
        schema = params.requested_schema or {"type": "object", "properties": {}}
        try:
            fields = form_fields(schema)
        except BadForm as bad:
            words = f"{server} asks with a form that cannot be shown ({bad}); it was cancelled."
            self._tell(
                Notice(
                    session=session,
                    level="warning",
                    server=server,
                    words=threat_scan.visible(words),
                )
            )
            return ElicitResult(action="cancel")
        warnings = threat_scan.of_form(params.message, fields)
        for _ in range(TRIES):
            question = FormQuestion(
                id=self._desk.name(), server=server, session=session, call=call, warnings=warnings,
                message=message, fields=tuple(fields), requested_schema=schema,
            )  # fmt: skip
            answer = await self._desk.ask(question)
            if not isinstance(answer, Filled):
                return ElicitResult(action="cancel")
            if answer.action != "accept":
                return ElicitResult(action=answer.action)
            content = answer.content or {}
            wrong = check_form(schema, content)
            if not wrong:
                return ElicitResult(action="accept", content=content)
            warnings = tuple(
                Warned(kind="invalid", words=words, where=field) for field, words in wrong.items()
            )
        return ElicitResult(action="cancel")

    # -- sampling -----------------------------------------------------------------------------------------------------

    async def _sample(
        self, server: str, params: CreateMessageRequestParams, place: tuple[str, str]
    ) -> CreateMessageResult:
        if too_deep(params):
            raise McpError(INVALID_PARAMS, "The request is nested too deeply")
        if self._too_often(server, "sample", self._asking.samples):
            raise McpError(
                USER_REJECTED,
                f"At most {self._asking.samples} sampling requests in {self._asking.seconds:g} seconds",
            )
        session, call = place
        warnings = threat_scan.of_sampling(params)
        params = msgspec.structs.replace(
            params, max_tokens=min(params.max_tokens, self._asking.tokens)
        )
        model = choose(list(self._models.values()), params.model_preferences)
        question = self._desk.name()
        waved = (server, session) in self._waved
        if not waved:
            asked = SampleQuestion(
                id=question,
                server=server,
                session=session,
                call=call,
                warnings=warnings,
                request=params,
                model=model.name,
                models={name: each.facts.remark for name, each in self._models.items()},
                left=self._left(server, "sample", self._asking.samples),
            )
            decision = await self._desk.decide(asked)
            if not decision.allow:
                raise McpError(
                    USER_REJECTED, decision.reason or "The person refused the sampling request"
                )  # `SAM-07`
            self._wave(server, session, decision)
            if decision.request is not None:
                params = msgspec.structs.replace(
                    decision.request,
                    max_tokens=min(decision.request.max_tokens, self._asking.tokens),
                )
            model = self._models.get(decision.model, model)
        said = await self._said(server, session, question, model, params)
        if waved or question in self._released:
            self._released.discard(question)
            return said.result
        checked = SampledQuestion(
            id=self._desk.name(),
            server=server,
            session=session,
            call=call,
            model=model.name,
            result=said.result,
        )
        decision = await self._desk.decide(checked)
        if not decision.allow:
            raise McpError(
                USER_REJECTED, decision.reason or "The person keeps the model's answer back"
            )
        self._wave(server, session, decision)
        return decision.sampled if decision.sampled is not None else said.result

    def _wave(self, server: str, session: str, decision: Decision) -> None:
        """Let what a server asks models in a conversation pass unseen, if the person says so; also what waits already."""
        if decision.remember == "once" or not session:
            return  # where it is not known whose request it was, nobody can say so for the rest of it
        self._waved.add((server, session))
        for question in list(self._desk.open.values()):
            waits = isinstance(question, SampleQuestion | SampledQuestion)
            if waits and (question.server, question.session) == (server, session):
                self._released.add(question.id)
                self._desk.withdraw(question.id, Decision(allow=True))

    async def _said(
        self,
        server: str,
        session: str,
        question: str,
        model: Model,
        params: CreateMessageRequestParams,
    ) -> ModelAnswer:
        try:
            said = await whole(model, params)
            if not params.tools:  # with tools it is a loop of the server's own, in which a provider wants to see its marks again
                said = msgspec.structs.replace(said, result=_without_thoughts(said.result))
            self._tell(
                SampleEnded(
                    session=session,
                    server=server,
                    question=question,
                    model=model.name,
                    usage=said.usage,
                )
            )
            return said
        except ModelFailure as bad:
            self._tell(
                SampleEnded(
                    session=session,
                    server=server,
                    question=question,
                    model=model.name,
                    error=str(bad),
                )
            )
            raise McpError(
                USER_REJECTED, f"The model gave no answer: {bad.kind}"
            ) from None  # the words are for the person

    # -- bounds ---------------------------------------------------------------------------------------------------------

    def _place(self, server: str, wanted: CallRequest | None) -> tuple[str, str]:
        """The conversation and the call because of which a server asks, as far as that can be known."""
        if wanted is not None:
            return wanted.session, wanted.call
        running = self._running.get(server, ())
        sessions = {wanted.session for wanted in running}
        return (
            next(iter(sessions)) if len(sessions) == 1 else "",
            running[0].call if len(running) == 1 else "",
        )

    def _too_often(self, server: str, kind: str, most: int) -> bool:
        now = asyncio.get_running_loop().time()
        recent = self._recent.setdefault((server, kind), deque())
        while recent and recent[0] < now - self._asking.seconds:
            recent.popleft()
        if len(recent) < most:
            recent.append(now)
            self._told.discard((server, kind))
            return False
        if (server, kind) not in self._told:
            self._told.add((server, kind))
            what = "to ask a model" if kind == "sample" else "to ask you something"
            words = f"{server} wants {what} more than {most} times in {self._asking.seconds:g} seconds; what is beyond that is refused."
            self._tell(Notice(level="warning", server=server, words=words))
        return True

    def _left(self, server: str, kind: str, most: int) -> int:
        return most - len(self._recent.get((server, kind), ()))


def _without_thoughts(result: CreateMessageResult) -> CreateMessageResult:
    """What a model said without what its adapter keeps beside it, thoughts for instance: that is no server's business (`SAM-20`)."""
    blocks = result.content if isinstance(result.content, list) else [result.content]
    plain = [
        msgspec.structs.replace(
            block,
            meta={key: value for key, value in meta.items() if not key.startswith(ADAPTERS)}
            or None,
        )
        if (meta := getattr(block, "meta", None))
        else block
        for block in blocks
    ]
    return msgspec.structs.replace(
        result, content=plain if isinstance(result.content, list) else plain[0]
    )
