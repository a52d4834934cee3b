"""The interface of a model: a request goes in, a stream of pieces and an answer come out.

The types are those of sampling (2026-07-28, "Sampling"): a conversation is a list of
SamplingMessage, a request is CreateMessageRequestParams, and an answer is CreateMessageResult. So a
server's sampling request goes to a model unchanged. Data that a provider needs again in the next
turn is in the `_meta` of content blocks (`SAM-21`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct

from interlock.types import CreateMessageRequestParams, CreateMessageResult, InterlockError


class ModelFacts(Struct, frozen=True, kw_only=True):
    """What is known about a model.

    Attributes:
        context: The context window, in tokens.
        output: The largest answer, in tokens.
        images: Whether it accepts images.
        audio: Whether it accepts audio.
        tools: Whether it supports tools.
        cost: From 0 to 1; cheaper is higher. The preferences of a sampling request are weighed
            against this and the next two.
        speed: From 0 to 1; faster is higher.
        intelligence: From 0 to 1; more capable is higher.
        remark: Shown to a person next to the name.
        efforts: The levels of effort that its reasoning has, such as "low" and "high".
        price_in: The price of a million tokens of input in US dollars; None if it is not stated.
        price_out: The price of a million tokens of output.
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
    efforts: tuple[str, ...] = ()
    price_in: float | None = None
    price_out: float | None = None

    def price(self, usage: Usage) -> float | None:
        """The price of an answer in US dollars; None without both prices.

        Input from the provider's cache counts in full, so the real price may be lower.
        """
        if self.price_in is None or self.price_out is None:
            return None
        return (usage.input * self.price_in + usage.output * self.price_out) / 1_000_000


class AcceptedContent(Struct, frozen=True):
    """The content that a model accepts besides text.

    Attributes:
        images: Media types of images.
        audio: Media types of sounds.
        documents: Media types of documents.
        most: The largest image or sound, in bytes.
        most_document: The largest document, in bytes.
    """

    images: frozenset[str] = frozenset()
    audio: frozenset[str] = frozenset()
    documents: frozenset[str] = frozenset()
    most: int = 20_000_000
    most_document: int = 20_000_000


class Usage(Struct, frozen=True, kw_only=True):
    """The token counts of an answer; 0 if the provider does not report them.

    Attributes:
        input: Tokens of the request.
        output: Tokens of the answer.
        kept: Tokens of the request that came from the provider's cache.
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
    """A piece of a streamed answer.

    Attributes:
        kind: "text"; "thought" for visible reasoning; "call" for the name of a tool when its call
            begins; "note" for a remark about the exchange, such as a wait after "429 Too Many
            Requests".
        text: The content.
        call: The ID of the call.
    """

    kind: Literal["text", "thought", "call", "note"]
    text: str
    call: str = ""


class ModelAnswer(Struct, frozen=True, tag=True):
    """A complete answer, and its token counts; `thought` is the visible reasoning before it."""

    result: CreateMessageResult
    usage: Usage = Usage()
    thought: str = ""


class Model(Protocol):
    """A language model; each has a `name` that is unique among the configured ones.

    A model may also have the attribute `accepts`, an `AcceptedContent`. Without it the `facts` say
    whether files of a person can be sent to it. A model whose facts have `efforts` also has
    `with_effort`; see `ThinkingModel`.
    """

    name: str
    facts: ModelFacts

    def stream(self, request: CreateMessageRequestParams) -> AsyncIterator[Delta | ModelAnswer]:
        """Ask the model. Yields pieces as they arrive, and at the end exactly one `ModelAnswer`.

        Closing the iterator, or cancelling the task that reads it, cancels the request. Raises
        ModelFailure.
        """
        ...

    async def aclose(self) -> None:
        """Close its connections."""
        ...


@runtime_checkable
class ThinkingModel(Protocol):
    """A model whose reasoning has levels of effort."""

    effort: str

    def with_effort(self, effort: str) -> Model:
        """The same model, on the same connections, with another effort; "" for the provider's
        default. Raises ValueError if the model does not have it.
        """
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
    """A model gave no answer. The message is for a person.

    Attributes:
        kind: "unreachable": no connection, or no answer in time. "refused": the model does not
            answer this. "rate_limited", "overloaded": a retry may succeed later. "cut": the stream
            ended too early. "too_long": the conversation exceeds the context window.
            "unauthorized": the key is missing or wrong. "bad_request": the provider rejected the
            request. "bad_answer": the answer could not be decoded.
        status: The HTTP status; 0 if there was none.
        retry_after: Seconds to wait before a retry, if the provider said so.
    """

    def __init__(
        self, words: str, kind: FailureKind, *, status: int = 0, retry_after: float | None = None
    ) -> None:
        super().__init__(words)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
