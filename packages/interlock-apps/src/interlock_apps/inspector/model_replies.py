"""Answers of a configured model to the questions of servers: sampling, and forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from interlock.models.interface import Model, ModelFailure
from interlock.models.model_choice import choose
from interlock.typed.form_fields import BadForm
from interlock.typed.form_fields import check as check_form
from interlock.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    SamplingMessage,
    TextContent,
)

from ..fleet.model_answers import whole

MOST_TOKENS = 8192
"""The limit of tokens for one answer."""


class ModelReplies:
    """Answers questions with a model, which is loaded when the first question needs it.

    Args:
        load: Returns the configured models. Raises ValueError if there is none.
    """

    def __init__(self, load: Callable[[], Sequence[Model]] | None = None) -> None:
        self._load = load or _configured
        self._models: list[Model] = []

    def names(self) -> list[str]:
        """The names of the configured models; empty if there is none."""
        try:
            return [model.name for model in self._loaded()]
        except ValueError:
            return []

    async def reply(self, params: Any) -> ElicitResult | CreateMessageResult:
        """Answer a sampling request, or fill in a form.

        Raises:
            ValueError: No model is configured, the model fails, or its values do not fit the form.
        """
        try:
            if isinstance(params, CreateMessageRequestParams):
                return await self._sampled(params)
            return await self._filled(params)
        except ModelFailure as bad:
            raise ValueError(str(bad)) from None

    async def aclose(self) -> None:
        """Close the models."""
        for model in self._models:
            await model.aclose()
        self._models = []

    async def _sampled(self, params: CreateMessageRequestParams) -> CreateMessageResult:
        model = choose(self._loaded(), params.model_preferences)
        limited = replace(params, max_tokens=min(params.max_tokens, MOST_TOKENS))
        return (await whole(model, limited)).result

    async def _filled(self, params: ElicitRequestParams) -> ElicitResult:
        if params.mode == "url":
            raise ValueError("A model cannot visit a page.")
        schema = params.requested_schema or {"type": "object", "properties": {}}
        asked = (
            f"Fill in a form. The question is:\n{params.message}\n\nThe JSON Schema of the form is:"
            f"\n{msgspec.json.encode(schema).decode()}\n\nAnswer with one JSON object, and nothing "
            "else."
        )
        result = await self._sampled(
            CreateMessageRequestParams(
                messages=[SamplingMessage(role="user", content=TextContent(asked))],
                max_tokens=MOST_TOKENS,
            )
        )
        content = _object_in(result.text)
        try:
            wrong = check_form(schema, content)
        except BadForm as bad:
            wrong = {"": str(bad)}
        if wrong:
            found = "; ".join(f"{field}: {words}" for field, words in wrong.items())
            raise ValueError(f"The model's values do not fit the form: {found}")
        return ElicitResult(action="accept", content=content)

    def _loaded(self) -> list[Model]:
        self._models = self._models or list(self._load())
        return self._models


def _configured() -> Sequence[Model]:
    # Imported late: it loads the adapters of all providers.
    from interlock.cli.models import models_of

    try:
        return models_of(None, [])
    except click.UsageError as bad:
        raise ValueError(bad.message) from None


def _object_in(text: str) -> dict[str, Any]:
    """The JSON object in a model's answer. Raises ValueError if there is none."""
    begin = text.find("{")
    end = text.rfind("}")
    try:
        found = msgspec.json.decode(text[begin : end + 1])
    except (msgspec.DecodeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError("The model did not answer with a JSON object.")
    return found
