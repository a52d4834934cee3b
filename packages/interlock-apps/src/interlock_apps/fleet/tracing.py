"""Spans of conversations, by the semantic conventions for generative AI: turns, and requests to
models.

A turn is the root of a trace, and all turns of a conversation have its id. Requests to models and
calls of tools (spans of the clients of servers) are children of the turn. Texts, arguments and
results are never part of a span.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from interlock.models.interface import Delta, Model, ModelAnswer, ModelFailure
from interlock.observe.spans import Attribute, OpenSpan, Tracing
from interlock.types import CreateMessageRequestParams

from .model_answers import whole

_PROVIDERS: Final = {"gemini": "gcp.gemini", "google": "gcp.gemini"}  # names of the conventions


class AgentTracing:
    """The tracing of a host.

    Args:
        tracing: The tracing system; None for none.
        agent: The name of the host.
    """

    def __init__(self, tracing: Tracing | None = None, agent: str = "interlock") -> None:
        self._tracing = tracing
        self._agent = agent

    def turn(self, conversation: str, model: str) -> AbstractContextManager[OpenSpan | None]:
        """Return a block that is a turn of a conversation.

        Args:
            conversation: The id of the conversation.
            model: The name of its model.
        """
        if self._tracing is None:
            return nullcontext()
        attributes: dict[str, Attribute] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self._agent,
            "gen_ai.conversation.id": conversation,
            "gen_ai.request.model": model,
        }
        return self._tracing.span(f"invoke_agent {self._agent}", attributes)

    async def ask(
        self,
        model: Model,
        request: CreateMessageRequestParams,
        on_piece: Callable[[Delta], None] | None = None,
        *,
        conversation: str = "",
    ) -> ModelAnswer:
        """Ask a model for a whole answer, within a span.

        Args:
            model: The model.
            request: The request.
            on_piece: Gets the pieces as they arrive.
            conversation: The id of the conversation; "" if the request belongs to none.

        Raises:
            ModelFailure: The model gave no answer.
        """
        if self._tracing is None:
            return await whole(model, request, on_piece)
        attributes = _request_attributes(model, request)
        if conversation:
            attributes["gen_ai.conversation.id"] = conversation
        with self._tracing.span(f"chat {model.name}", attributes, "client") as span:
            try:
                answer = await whole(model, request, on_piece)
            except ModelFailure as bad:
                span.set_attributes({"interlock.model.failure": bad.kind})
                raise
            span.set_attributes(_answer_attributes(answer))
            return answer


def _request_attributes(model: Model, request: CreateMessageRequestParams) -> dict[str, Attribute]:
    provider = getattr(getattr(model, "who", None), "provider", None)
    named = str(provider or type(model).__name__).lower()
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(named, named),
        "gen_ai.request.model": str(getattr(model, "model", model.name)),
        "gen_ai.request.max_tokens": request.max_tokens,
    }


def _answer_attributes(answer: ModelAnswer) -> Mapping[str, Attribute]:
    usage = answer.usage
    found: dict[str, Attribute] = {
        "gen_ai.response.model": answer.result.model,
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
    }
    if usage.kept:
        found["gen_ai.usage.cache_read.input_tokens"] = usage.kept
    if answer.result.stop_reason is not None:
        found["gen_ai.response.finish_reasons"] = (str(answer.result.stop_reason),)
    return found
