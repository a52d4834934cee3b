"""The interface of a model: a request goes in, a stream of pieces and an answer come out.

The words of sampling are used throughout (2026-07-28, "Sampling"): a conversation is a list of
SamplingMessage, what a model is asked is CreateMessageRequestParams and what it says is
CreateMessageResult. So a server's sampling request goes to a model as it is, and what a provider
wants to see again in the next turn rides in the `_meta` of content blocks (`SAM-21`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal, Protocol

from msgspec import Struct

from interlock.types import CreateMessageRequestParams, CreateMessageResult, InterlockError


class ModelFacts(Struct, frozen=True, kw_only=True):
    """What is known of a model.

    `context` and `output` are in tokens: what it can take in, and the most it may say in one go.
    `cost`, `speed` and `intelligence` run from 0 to 1, and more is better (cheaper, faster,
    cleverer): the preferences of sampling are weighed against them. `images`, `audio` and `tools`
    say what it takes. `remark` is shown beside its name wherever a person sees it.
    """

    context: int = 128_000
    output: int = 8_192
    images: bool = True
    audio: bool = False
    tools: bool = True
    cost: float = 0.5
    speed: float = 0.5
    intelligence: float = 0.5
    remark: str = ""


class Usage(Struct, frozen=True, kw_only=True):
    """How many tokens went in (of which `kept` came out of the provider's cache) and came out; 0
    where the provider does not say.
    """

    input: int = 0
    output: int = 0
    kept: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            kept=self.kept + other.kept,
        )


class Delta(Struct, frozen=True, tag=True):
    """A piece of what a model is saying.

    `kind` is "text" for its words, "thought" for thinking aloud, "call" for the name of a tool that
    it begins to call (`call` is the call's id), and "note" for something about the talk itself,
    such as a wait because of "429 Too Many Requests".
    """

    kind: Literal["text", "thought", "call", "note"]
    text: str
    call: str = ""


class ModelAnswer(Struct, frozen=True, tag=True):
    """All that a model said, and what it took."""

    result: CreateMessageResult
    usage: Usage = Usage()


class Model(Protocol):
    """A language model; each has a `name` that is unique among the configured ones."""

    name: str
    facts: ModelFacts

    def stream(self, request: CreateMessageRequestParams) -> AsyncIterator[Delta | ModelAnswer]:
        """Ask the model. Yields pieces as they come and ends with exactly one `ModelAnswer`.

        Closing the iterator, or cancelling the task that reads it, ends the request. Raises
        ModelFailure.
        """
        ...

    async def aclose(self) -> None:
        """Close its connections."""
        ...


FailureKind = Literal[
    "unreachable",
    "refused",
    "rate_limited",
    "overloaded",
    "cut",
    "too_long",
    "unauthorized",
    "bad_request",
    "bad_answer",
]


class ModelFailure(InterlockError):
    """A model gave no answer. The words are for a person; `kind` says what happened.

    "unreachable": nobody there, or no answer in time; "refused": it will not answer this;
    "rate_limited" and "overloaded": later perhaps, `retry_after` is in seconds where the provider
    said when; "cut": the stream broke before its end; "too_long": the conversation is longer than
    the model takes; "unauthorized": the key is missing or wrong; "bad_request" and "bad_answer":
    one of the two was not understood. `status` is the HTTP status, 0 where there was none.
    """

    def __init__(
        self, words: str, kind: FailureKind, *, status: int = 0, retry_after: float | None = None
    ) -> None:
        super().__init__(words)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
