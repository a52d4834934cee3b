"""Requests of servers: elicitation goes to the person, sampling to a model after approval."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from interlock import Answers, McpError
from interlock.configs import Entry
from interlock.models.interface import Model, ModelAnswer, ModelFailure, Usage
from interlock.models.model_choice import choose
from interlock.rates import TokenBucket
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
)

from ..fleet import threat_scan
from ..fleet.events import Event, Notice, SampleEnded, SamplingAllowed
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
from ..fleet.tracing import AgentTracing
from .call_request import CallRequest, RunningCalls
from .prompter import Prompter
from .roots import GrantedRoots

ADAPTERS = "io.interlock/"  # prefix of `_meta` keys in which model adapters keep provider data
TRIES = 5  # attempts at a form with an invalid answer


class RequestLimits(Struct, frozen=True, kw_only=True):
    """How often each server may ask: one token bucket for questions, one for sampling requests.

    Attributes:
        samples: Sampling requests per `seconds`.
        questions: Forms and pages per `seconds`.
        seconds: The period of both limits.
        tokens: The limit in tokens for one sampling answer.
        allowed_requests: The sampling requests that a permission for the rest of a conversation
            covers, if the person names no number.
        allowed_tokens: The tokens that it covers, input and output.
    """

    samples: int = 10
    questions: int = 20
    seconds: float = 60.0
    tokens: int = 16_384
    allowed_requests: int = 20
    allowed_tokens: int = 100_000


class SamplingPermission(Struct):
    """What is left of a permission to sample without a question: requests, and tokens."""

    requests: int
    tokens: int


class ServerRequests:
    """Answers the servers' requests: elicitation, sampling and roots.

    Args:
        prompter: Asks the person.
        publish: Receives events.
        models: The models for sampling, by name.
        running: The running calls. A question without a call belongs to the only running one.
        roots: The roots of servers.
        limits: How often servers may ask.
        extensions: The extensions declared to each server, by id.
        tracing: Spans of requests to models.
    """

    def __init__(
        self,
        prompter: Prompter,
        publish: Callable[[Event], None],
        models: Mapping[str, Model],
        running: RunningCalls,
        roots: GrantedRoots,
        limits: RequestLimits,
        extensions: Mapping[str, JSONObject] = {},
        tracing: AgentTracing | None = None,
    ) -> None:
        self.extensions = dict(extensions)
        self._tracing = tracing or AgentTracing()
        self._prompter = prompter
        self._publish = publish
        self._models = models
        self._running = running
        self._roots = roots
        self._limits = limits
        self._buckets: dict[tuple[str, str], TokenBucket] = {}  # by server and kind
        self._noticed: set[tuple[str, str]] = set()  # exhausted buckets that were reported
        # Open questions that another answer covers, with the permission that covers them.
        self._released: dict[str, tuple[SamplingPermission, CreateMessageRequestParams]] = {}
        # Sampling that is allowed for the rest of a conversation, by server and conversation.
        self._allowed: dict[tuple[str, str], SamplingPermission] = {}

    def answers_for(self, entry: Entry, request: CallRequest | None = None) -> Answers:
        """Return the answers for a server. Sampling is declared if there is a model.

        Args:
            entry: The server's configuration.
            request: The call that causes the questions, if known.
        """
        server = entry.id

        async def elicit(params: ElicitRequestParams) -> ElicitResult:
            return await self._elicit(entry, params, self._origin(server, request))

        async def sample(params: CreateMessageRequestParams) -> CreateMessageResult:
            return await self._sample(server, params, self._origin(server, request))

        return Answers(
            elicit=elicit,
            sample=sample if self._models else None,
            roots=lambda: list(self._roots.of(server)),
            extensions=self.extensions,
        )

    # -- forms and pages ---------------------------------------------------------------------------

    async def _elicit(
        self, entry: Entry, params: ElicitRequestParams, origin: tuple[str, str]
    ) -> ElicitResult:
        server = entry.id
        if self._exceeds(server, "question"):
            return ElicitResult(action="cancel")
        session, call = origin
        message = threat_scan.visible(params.message)
        if params.mode == "url":
            host, site, warnings = threat_scan.of_url(params.url or "", server=entry.url)
            page = UrlQuestion(
                id=self._prompter.new_id(),
                server=server,
                session=session,
                call=call,
                warnings=warnings,
                message=message,
                url=threat_scan.visible(params.url or ""),
                host=host,
                site=site,
            )
            answer = await self._prompter.ask(page)
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
            self._publish(
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
                id=self._prompter.new_id(),
                server=server,
                session=session,
                call=call,
                warnings=warnings,
                message=message,
                fields=tuple(fields),
                requested_schema=schema,
            )
            answer = await self._prompter.ask(question)
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

    # -- sampling ----------------------------------------------------------------------------------

    async def _sample(
        self, server: str, params: CreateMessageRequestParams, origin: tuple[str, str]
    ) -> CreateMessageResult:
        if too_deep(params):
            raise McpError(INVALID_PARAMS, "The request is nested too deeply")
        if self._exceeds(server, "sample"):
            raise McpError(
                USER_REJECTED,
                f"At most {self._limits.samples} sampling requests in "
                f"{self._limits.seconds:g} seconds",
            )
        session, call = origin
        warnings = threat_scan.of_sampling(params)
        params = msgspec.structs.replace(
            params, max_tokens=min(params.max_tokens, self._limits.tokens)
        )
        model = choose(list(self._models.values()), params.model_preferences)
        question = self._prompter.new_id()
        permission: SamplingPermission | None
        permission = None if warnings else self._permission(server, session)
        if permission is not None:
            params = self._spend(server, session, permission, params)
        else:
            asked = SampleQuestion(
                id=question,
                server=server,
                session=session,
                call=call,
                warnings=warnings,
                request=params,
                model=model.name,
                models={name: each.facts.remark for name, each in self._models.items()},
                left=self._bucket(server, "sample").left(_now()),
            )
            decision = await self._prompter.decide(asked)
            if not decision.allow:
                raise McpError(
                    USER_REJECTED, decision.reason or "User rejected sampling request"
                )  # `SAM-07`
            permission, params = self._released.pop(question, (None, params))
            self._allow_rest(server, session, decision)
            if decision.request is not None:
                params = msgspec.structs.replace(
                    decision.request,
                    max_tokens=min(decision.request.max_tokens, self._limits.tokens),
                )
            model = self._models.get(decision.model, model)
        if permission is not None:
            used: Usage | None = None
            try:
                said = await self._said(server, session, question, model, params)
                used = said.usage
            finally:
                self._settle(server, session, permission, params, used)
            return said.result
        said = await self._said(server, session, question, model, params)
        checked = SampledQuestion(
            id=self._prompter.new_id(),
            server=server,
            session=session,
            call=call,
            model=model.name,
            result=said.result,
        )
        decision = await self._prompter.decide(checked)
        if not decision.allow:
            raise McpError(USER_REJECTED, decision.reason or "The user withheld the model's answer")
        self._allow_rest(server, session, decision)
        return decision.sampled if decision.sampled is not None else said.result

    def permissions(self, session: str) -> dict[str, SamplingPermission]:
        """Return which servers may sample in a conversation without a question, and how much."""
        return {server: left for (server, of), left in self._allowed.items() if of == session}

    def revoke(self, server: str, session: str) -> bool:
        """Revoke a server's permission to sample without a question; return whether it existed."""
        if self._allowed.pop((server, session), None) is None:
            return False
        self._publish(SamplingAllowed(session=session, server=server, requests=0, tokens=0))
        return True

    def end(self, session: str) -> None:
        """Drop the permissions of a conversation that has ended."""
        for key in [key for key in self._allowed if key[1] == session]:
            del self._allowed[key]

    def _permission(self, server: str, session: str) -> SamplingPermission | None:
        """The permission that covers a further request; None if there is none."""
        found = self._allowed.get((server, session))
        if found is None or found.requests <= 0 or found.tokens <= 0:
            return None
        return found

    def _spend(
        self,
        server: str,
        session: str,
        permission: SamplingPermission,
        params: CreateMessageRequestParams,
    ) -> CreateMessageRequestParams:
        """Count a request that a permission covers; its answer is limited to what is left.

        The tokens of the answer are reserved, so that parallel requests cannot exceed the bound.
        """
        params = msgspec.structs.replace(
            params, max_tokens=max(1, min(params.max_tokens, permission.tokens))
        )
        permission.requests -= 1
        permission.tokens -= params.max_tokens
        self._publish_left(server, session, permission)
        return params

    def _settle(
        self,
        server: str,
        session: str,
        permission: SamplingPermission,
        params: CreateMessageRequestParams,
        used: Usage | None,
    ) -> None:
        """Replace the reserved tokens by those that were used, as far as the provider reports them.

        Without an answer (`used` is None) none were used. A permission that is used up ends.
        """
        spent = 0 if used is None else used.input + used.output or params.max_tokens
        permission.tokens += params.max_tokens - spent
        used_up = permission.requests <= 0 or permission.tokens <= 0
        if used_up and self._allowed.get((server, session)) is permission:
            del self._allowed[server, session]
        self._publish_left(server, session, permission)

    def _publish_left(self, server: str, session: str, permission: SamplingPermission) -> None:
        """Publish what is left of a permission; 0 if it has ended."""
        current = self._allowed.get((server, session)) is permission
        self._publish(
            SamplingAllowed(
                session=session,
                server=server,
                requests=permission.requests if current else 0,
                tokens=permission.tokens if current else 0,
            )
        )

    def _allow_rest(self, server: str, session: str, decision: Decision) -> None:
        """Allow a server's sampling for the rest of a conversation, if the person says so.

        This includes requests that are waiting already, as far as the bounds cover them. A request
        with warnings is always asked about.
        """
        if decision.remember == "once" or not session:
            # the conversation is unknown, so the answer cannot cover the rest of it
            return
        limits = self._limits
        permission = SamplingPermission(
            limits.allowed_requests if decision.requests is None else decision.requests,
            limits.allowed_tokens if decision.tokens is None else decision.tokens,
        )
        if permission.requests <= 0 or permission.tokens <= 0:
            return
        self._allowed[server, session] = permission
        self._publish_left(server, session, permission)
        for question in list(self._prompter.open.values()):
            if (question.server, question.session) != (server, session) or question.warnings:
                continue
            if isinstance(question, SampleQuestion):
                if self._permission(server, session) is None:
                    return
                params = self._spend(server, session, permission, question.request)
                self._released[question.id] = (permission, params)
            elif not isinstance(question, SampledQuestion):
                continue
            self._prompter.withdraw(question.id, Decision(allow=True))

    async def _said(
        self,
        server: str,
        session: str,
        question: str,
        model: Model,
        params: CreateMessageRequestParams,
    ) -> ModelAnswer:
        try:
            said = await self._tracing.ask(model, params, conversation=session)
            # with tools the server runs its own loop, and the provider needs its data in the next
            # request
            if not params.tools:
                said = msgspec.structs.replace(said, result=_without_thoughts(said.result))
            self._publish(
                SampleEnded(
                    session=session,
                    server=server,
                    question=question,
                    model=model.name,
                    usage=said.usage,
                    price=model.facts.price(said.usage),
                )
            )
            return said
        except ModelFailure as bad:
            self._publish(
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
            ) from None  # the message is for the person

    # -- token buckets -----------------------------------------------------------------------------

    def _origin(self, server: str, request: CallRequest | None) -> tuple[str, str]:
        """The conversation and the call that caused a question; "" if unknown."""
        if request is not None:
            return request.session, request.call
        return self._running.origin(server)

    def _exceeds(self, server: str, kind: Literal["sample", "question"]) -> bool:
        """Whether a server exceeds its `RequestLimits`; the first time is reported."""
        key = (server, kind)
        if self._bucket(*key).acquire(_now()) == 0.0:
            self._noticed.discard(key)
            return False
        if key not in self._noticed:
            self._noticed.add(key)
            what = "to ask a model" if kind == "sample" else "to ask you something"
            words = (
                f"{server} wants {what} more than {self._most(kind)} times in "
                f"{self._limits.seconds:g} seconds. Further requests are refused."
            )
            self._publish(Notice(level="warning", server=server, words=words))
        return True

    def _bucket(self, server: str, kind: Literal["sample", "question"]) -> TokenBucket:
        bucket = self._buckets.get((server, kind))
        if bucket is None:
            most = self._most(kind)
            bucket = TokenBucket(rate=most / self._limits.seconds, burst=most)
            self._buckets[server, kind] = bucket
        return bucket

    def _most(self, kind: Literal["sample", "question"]) -> int:
        return self._limits.samples if kind == "sample" else self._limits.questions


def _now() -> float:
    return asyncio.get_running_loop().time()


def _without_thoughts(result: CreateMessageResult) -> CreateMessageResult:
    """A model's answer without the adapter's own data, such as thoughts: servers must not see it
    (`SAM-20`).
    """
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
