"""The options of `Context.sample`, which its overloads share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from ... import types as t
from ..server_options import FallbackModel


class SampleOptions(TypedDict, total=False):
    """Options of every sampling request. `Context.sample` describes them."""

    max_tokens: int
    system: str | None
    temperature: float | None
    stop: Sequence[str] | None
    preferences: t.ModelPreferences | None
    include_context: Literal["none", "thisServer", "allServers"] | None
    metadata: dict[str, Any] | None
    fallback_model: FallbackModel | None
    prefer_fallback_model: bool | None
    key: str | None
    task_ttl: float | None


class ToolSampleOptions(SampleOptions, total=False):
    """Options of a request for the whole message of the model, which may use tools."""

    tools: Sequence[t.Tool] | None
    tool_choice: t.ToolChoice | None


class TypedSampleOptions(SampleOptions, total=False):
    """Options of a request for a value of a type."""

    retries: int
