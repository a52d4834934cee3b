"""What a server may ask of the other side: elicitation, sampling and roots, and the answers to
them.

In the stateless era they travel inside results, in the handshake era as requests of the server
(2026-07-28, "Multi Round-Trip Requests", "Elicitation", "Sampling", "Roots").
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Raw, field

from .base import JSONObject, Params, Result, Role, WireType
from .content import SamplingContent, TextContent
from .tools import Tool


class ElicitRequestParams(WireType, frozen=True, kw_only=True):
    """A question to the person: a form (`requested_schema`, a flat object of primitives) or a page
    to visit (`url`).
    """

    message: str
    mode: Literal["form", "url"] | None = None
    requested_schema: JSONObject | None = None
    url: str | None = None
    elicitation_id: str | None = None
    meta: Raw = field(default=Raw(b"{}"), name="_meta")

    @property
    def dangers(self) -> tuple[str, ...]:
        """What is odd about the page that the person is sent to, one sentence each; empty for a
        form, or where nothing is.

        Show these beside the URL, and never open a URL that has any without asking. No sign is not
        an all-clear (`ELI-25`).
        """
        if self.url is None:
            return ()
        from ..untrusted.urls import (
            dangers,  # late: only for questions that send a person to a page
        )

        return dangers(self.url)


class ElicitResult(Result, frozen=True, kw_only=True):
    """The person's answer; `content` is there only when a form was accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: JSONObject | None = None


class ModelHint(WireType, frozen=True, kw_only=True):
    """A part of a model's name that the server would like."""

    name: str | None = None


class ModelPreferences(WireType, frozen=True, kw_only=True):
    """What matters to the server in choosing a model; priorities run from 0 to 1."""

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
    """Whether the model may, must or must not use the tools it is given."""

    mode: Literal["auto", "required", "none"] | None = None


class CreateMessageRequestParams(WireType, frozen=True, kw_only=True):
    """A request to the client's model; `max_tokens` is the most it may generate."""

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
    meta: Raw = field(default=Raw(b"{}"), name="_meta")


class CreateMessageResult(Result, frozen=True, kw_only=True):
    """What the model said."""

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
    """Params of `roots/list`: none of its own."""


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


# What a server may ask of the other side, and what may come back.
InputRequest = ElicitRequest | CreateMessageRequest | ListRootsRequest
InputResponse = ElicitResult | CreateMessageResult | ListRootsResult

RESPONSE_TYPES: dict[type[Any], type[Any]] = {
    ElicitRequest: ElicitResult,
    CreateMessageRequest: CreateMessageResult,
    ListRootsRequest: ListRootsResult,
}
"""Which response answers which input request."""


class InputRequiredResult(Result, frozen=True, kw_only=True):
    """The request cannot be finished without more input: what is asked, and a state to send back
    with the answers.
    """

    input_requests: dict[str, InputRequest] | None = None
    request_state: str | None = None


class ElicitationCompleteNotificationParams(Params, frozen=True, kw_only=True):
    """Params of `notifications/elicitation/complete`, which only 2025-11-25 has."""

    elicitation_id: str


class RootsListChangedNotificationParams(Params, frozen=True, kw_only=True):
    """Params of `notifications/roots/list_changed`, which only the handshake era has."""
