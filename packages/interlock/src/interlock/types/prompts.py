"""Prompts and completion (2026-07-28, "Prompts", "Completion")."""

from __future__ import annotations

from msgspec import field

from .base import Icon, JSONObject, PaginatedParams, PaginatedResult, Params, Result, Role, WireType
from .content import ContentBlock
from .tools import InputResponseParams


class PromptArgument(WireType, frozen=True, kw_only=True):
    """One argument of a prompt; its value is always a string on the wire."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool | None = None


class Prompt(WireType, frozen=True, kw_only=True):
    """A prompt as it is listed."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: list[PromptArgument] | None = None
    icons: list[Icon] | None = None
    meta: JSONObject | None = field(default=None, name="_meta")


class PromptMessage(WireType, frozen=True, kw_only=True):
    """One message of a prompt."""

    role: Role
    content: ContentBlock


class ListPromptsRequestParams(PaginatedParams, frozen=True, kw_only=True):
    """Params of `prompts/list`."""


class ListPromptsResult(PaginatedResult, frozen=True, kw_only=True):
    """One page of prompts."""

    prompts: list[Prompt]


class GetPromptRequestParams(InputResponseParams, frozen=True, kw_only=True):
    """Params of `prompts/get`."""

    name: str
    arguments: dict[str, str] | None = None


class GetPromptResult(Result, frozen=True, kw_only=True):
    """The messages of a prompt with its arguments filled in."""

    messages: list[PromptMessage]
    description: str | None = None


class PromptReference(WireType, frozen=True, kw_only=True, tag_field="type", tag="ref/prompt"):
    """Refers to a prompt whose argument is to be completed."""

    name: str
    title: str | None = None


class ResourceTemplateReference(
    WireType, frozen=True, kw_only=True, tag_field="type", tag="ref/resource"
):
    """Refers to a resource template (or resource) whose variable is to be completed."""

    uri: str


class CompletionArgument(WireType, frozen=True, kw_only=True):
    """The argument being typed: its name and its value so far."""

    name: str
    value: str


class CompletionContext(WireType, frozen=True, kw_only=True):
    """The arguments that already have a value."""

    arguments: dict[str, str] | None = None


class CompleteRequestParams(Params, frozen=True, kw_only=True):
    """Params of `completion/complete`."""

    ref: PromptReference | ResourceTemplateReference
    argument: CompletionArgument
    context: CompletionContext | None = None


class Completion(WireType, frozen=True, kw_only=True):
    """Suggested values, best first, at most 100; `total` counts all that exist."""

    values: list[str]
    total: int | None = None
    has_more: bool | None = None


class CompleteResult(Result, frozen=True, kw_only=True):
    """The answer to `completion/complete`."""

    completion: Completion
