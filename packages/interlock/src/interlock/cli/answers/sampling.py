"""Answers sampling requests of a server: with given texts, with a model, or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from ... import types as t
from ..screen import note

if TYPE_CHECKING:
    from ...models.interface import Model

MOST_SAMPLES: Final = 20
"""The number of sampling requests that one command answers with a model: answers cost money, and no
one monitors them.
"""

MOST_TOKENS: Final = 8192
"""The limit of tokens for one answer of a model."""

Sample = Callable[[t.CreateMessageRequestParams], Coroutine[Any, Any, t.CreateMessageResult]]


class Sampling(Struct, frozen=True):
    """The options about sampling: a list of answers, of which the last one is repeated, or a model.

    Attributes:
        texts: The answers of `--sample`.
        model: The name of `--model`; empty if there is none.
    """

    texts: tuple[str, ...] = ()
    model: str = ""

    @property
    def is_offered(self) -> bool:
        """Whether sampling requests can be answered. Only then is the capability declared."""
        return bool(self.texts or self.model)

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Sample | None]:
        """The function that answers sampling requests; None without such options. Raises
        click.UsageError.
        """
        if self.texts:
            yield _Given(self.texts).answer
        elif self.model:
            # imported late: providers are loaded only if a model is used
            from ..models import models_of

            model = models_of(None, [self.model])[0]
            try:
                yield _Asked(model).answer
            finally:
                await model.aclose()
        else:
            yield None


def sampling_of(samples: Sequence[str], model: str | None) -> Sampling:
    """Read `--sample` and `--model`. Raises click.UsageError."""
    if samples and model:
        raise click.UsageError("--sample and --model answer the same requests: give one of them.")
    return Sampling(tuple(_text(sample) for sample in samples), model or "")


def _text(sample: str) -> str:
    if not sample.startswith("@"):
        return sample
    try:
        return Path(sample[1:]).read_text(encoding="utf-8")
    except (OSError, ValueError) as bad:
        raise click.UsageError(f"--sample cannot be read: {bad}") from None


class _Given:
    """Answers with the given texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._next = 0

    async def answer(self, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        text = self._texts[min(self._next, len(self._texts) - 1)]
        self._next += 1
        return t.CreateMessageResult(
            role="assistant",
            content=t.TextContent(text),
            model="given",
            stop_reason="endTurn",
        )


class _Asked:
    """Answers with a model, and shows the user the requests and answers."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._count = 0

    async def answer(self, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        from ...models.interface import ModelAnswer, ModelFailure  # imported late, like the models

        self._count += 1
        if self._count > MOST_SAMPLES:
            raise t.McpError(
                t.INTERNAL_ERROR, f"At most {MOST_SAMPLES} sampling requests for one command"
            )
        for message in params.messages:
            note(f"[the server asks {self._model.name}] {_words(message.content)}", dim=True)
        params = replace(params, max_tokens=min(params.max_tokens, MOST_TOKENS))
        try:
            async for piece in self._model.stream(params):
                if isinstance(piece, ModelAnswer):
                    note(f"[{self._model.name}] {_words(piece.result.content)}", dim=True)
                    return piece.result
        except ModelFailure as bad:
            note(f"The model gave no answer: {bad}", fg="yellow")
        raise t.McpError(t.INTERNAL_ERROR, "The model gave no answer")


def _words(content: Any) -> str:
    """The text of a message, with other content in brackets."""
    blocks = content if isinstance(content, list) else [content]
    return " ".join(
        block.text if isinstance(block, t.TextContent) else f"[{type(block).__name__}]"
        for block in blocks
    )
