"""Input requests of a server and their responses: elicitation, sampling and roots.

In the stateless era they travel inside results, in the handshake era as requests of the server
(2026-07-28, "Multi Round-Trip Requests", "Elicitation", "Sampling", "Roots").
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Raw, field

from .base import JSONObject, Params, Result, Role, WireType
from .content import SamplingContent, TextContent
from .tools import TaskMetadata, Tool


class ElicitRequestParams(WireType, frozen=True, kw_only=True):
    """A question to the person: a form (`requested_schema`, a flat object of primitives) or a page
    to visit (`url`).
    """

    message: str
    mode: Literal["form", "url"] | None = None
    requested_schema: JSONObject | None = None
    url: str | None = None
    elicitation_id: str | None = None
    task: TaskMetadata | None = None
    meta: Raw = field(default=Raw(b"{}"), name="_meta")

    @property
    def dangers(self) -> tuple[str, ...]:
        """Warnings about the URL that the person is sent to, one sentence each; empty for a form.

        Show them beside the URL, and never open a URL with a warning without asking. The absence of
        warnings does not mean that the URL is safe (`ELI-25`).
        """
        if self.url is None:
            return ()
        from ..untrusted.urls import (
            dangers,  # late: only for questions that send a person to a page
        )

        return dangers(self.url)


class ElicitResult(Result, frozen=True, kw_only=True):
    """The person's answer; `content` is set only if a form was accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: JSONObject | None = None


class ModelHint(WireType, frozen=True, kw_only=True):
    """A part of the name of a model that the server prefers."""

    name: str | None = None


class ModelPreferences(WireType, frozen=True, kw_only=True):
    """The server's preferences for the choice of a model; priorities run from 0 to 1."""

    hints: list[ModelHint] | None = None
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None


class SamplingMessage(WireType, frozen=True, kw_only=True):
    """One message for the model."""

    role: Role
    content: SamplingContent | list[SamplingContent]
    meta: JSONObject | None = field(default=None, name="_meta")


class ToolChoice(WireType, frozen=True, kw_only=True):
    """Whether the model may, must or must not use the tools of the request."""

    mode: Literal["auto", "required", "none"] | None = None


class CreateMessageRequestParams(WireType, frozen=True, kw_only=True):
    """A request to the client's model, which may generate at most `max_tokens`."""

    messages: list[SamplingMessage]
    max_tokens: int
    model_preferences: ModelPreferences | None = None
    system_prompt: str | None = None
    include_context: Literal["none", "thisServer", "allServers"] | None = None
    temperature: float | None = None
    stop_sequences: list[str] | None = None
    metadata: JSONObject | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    task: TaskMetadata | None = None
    meta: Raw = field(default=Raw(b"{}"), name="_meta")


class CreateMessageResult(Result, frozen=True, kw_only=True):
    """The model's message."""

    role: Role
    content: SamplingContent | list[SamplingContent]
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """The text of all text blocks, joined by newlines."""
        blocks = self.content if isinstance(self.content, list) else [self.content]
        return "\n".join(block.text for block in blocks if isinstance(block, TextContent))


class Root(WireType, frozen=True, kw_only=True):
    """A folder that the server may work in; `uri` is a file:// URI."""

    uri: str
    name: str | None = None
    meta: JSONObject | None = field(default=None, name="_meta")


class ListRootsRequestParams(Params, frozen=True, kw_only=True):
    """Params of `roots/list`, which has none of its own."""


class ListRootsResult(Result, frozen=True, kw_only=True):
    """The folders that the server may work in."""

    roots: list[Root]


class ElicitRequest(WireType, frozen=True, tag_field="method", tag="elicitation/create"):
    """An input request: a question to the person."""

    params: ElicitRequestParams


class CreateMessageRequest(WireType, frozen=True, tag_field="method", tag="sampling/createMessage"):
    """An input request: a question to the client's model."""

    params: CreateMessageRequestParams


class ListRootsRequest(WireType, frozen=True, tag_field="method", tag="roots/list"):
    """An input request: which folders may be used."""

    params: ListRootsRequestParams | None = None


# The input requests of a server, and their responses.
InputRequest = ElicitRequest | CreateMessageRequest | ListRootsRequest
InputResponse = ElicitResult | CreateMessageResult | ListRootsResult

RESPONSE_TYPES: dict[type[Any], type[Any]] = {
    ElicitRequest: ElicitResult,
    CreateMessageRequest: CreateMessageResult,
    ListRootsRequest: ListRootsResult,
}
"""Which response answers which input request."""


class InputRequiredResult(Result, frozen=True, kw_only=True):
    """The request needs more input: the questions, and a state to send back with the answers."""

    input_requests: dict[str, InputRequest] | None = None
    request_state: str | None = None


class ElicitationCompleteNotificationParams(Params, frozen=True, kw_only=True):
    """Params of `notifications/elicitation/complete`, which only 2025-11-25 has."""

    elicitation_id: str


class RootsListChangedNotificationParams(Params, frozen=True, kw_only=True):
    """Params of `notifications/roots/list_changed`, which only the handshake era has."""
