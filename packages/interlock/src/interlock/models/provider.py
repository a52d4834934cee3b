"""The base of all adapters: sends a request, retries it, and reads the answer within limits."""

from __future__ import annotations

import asyncio
import copy
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, ClassVar, Protocol, Self
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from interlock.http11.client import HttpFetch
from interlock.http11.fetch import ConnectionLost, Fetch, Request, Response
from interlock.types import (
    CreateMessageRequestParams,
    InterlockError,
    JSONObject,
    TimedOut,
    Unreachable,
)
from interlock.wire.sse import EventReader

from ..untrusted.invisible import plain_line as plain
from .answer_builder import has_calls, without_calls
from .conversation import IdMap, RoleTurn, prepared, without_tools
from .errors import ProviderError, ProviderIdentity, of_body
from .interface import AcceptedContent, Delta, ModelAnswer, ModelFacts, ModelFailure
from .known_models import known
from .lenient_json import parsed
from .tool_schemas import Dialect, ToolDescription, described

_MOST_ERROR = 262_144  # bytes read of the body of an error
_MOST_EVENT = 32_000_000  # bytes of one event, which may contain an image
_FIRST_PAUSE = 1.0  # seconds; doubled each time
# seconds to wait for the end of a complete answer's body, so that its connection can be reused
_DRAIN = 0.1
_AGAIN = frozenset({"unreachable", "rate_limited", "overloaded"})


class ApiKey:
    """An API key that its representation does not reveal; `value` is the key.

    Raises ValueError for an invalid key.
    """

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value.strip()
        if not (self.value.isascii() and self.value.isprintable()) or " " in self.value:
            raise ValueError(
                "a key is printable ASCII without spaces; this one is not (it is not shown here)"
            )

    def __repr__(self) -> str:
        return "Key(***)" if self.value else "Key(none)"


class AnswerReader(Protocol):
    """Decodes one answer.

    Attributes:
        complete: Whether the data so far is a whole answer.
        over: Whether no more data will come.
    """

    complete: bool
    over: bool

    def process_event(self, name: str, data: bytes) -> list[Delta]:
        """Process the next event of a stream. Raises ModelFailure, and ValueError for invalid
        JSON.
        """
        ...

    def whole(self, body: Any) -> list[Delta]:
        """Process a response that was not streamed. Raises ModelFailure."""
        ...

    def said(self) -> ModelAnswer:
        """The whole answer. Raises ModelFailure."""
        ...


class ProviderRequest(Struct):
    """A prepared request: its URL and body, the reader of its answer, and notes for the user."""

    url: str
    body: JSONObject
    reader: Callable[[], AnswerReader]
    notes: list[str] = []


class Provider(ABC):
    """A model behind an HTTP API.

    Args:
        name: The configured name.
        model: The provider's name of the model.
        url: The URL of the API; the provider's usual one by default.
        key: The API key. It is sent in a header, and never shown.
        facts: The properties of the model; by default looked up by its name.
        fetch: The HTTP client; by default its own.
        stream: Whether answers are streamed.
        extra: Members that are added to the body of every request, or replace those there.
        headers: Additional headers.
        tries: The limit of attempts for an error that a retry may fix.
        patience: The limit of all pauses between attempts together, in seconds.
        silence: The longest time without data, in seconds.
        seconds: The longest time of an answer, in seconds.
        most: The largest answer, in bytes.
        sleep: Waits for a number of seconds.

    Attributes:
        accepts: The content that the model accepts besides text.
        effort: The effort of its reasoning; "" for the provider's default.

    Raises:
        ValueError: The URL or the key is not valid.
    """

    title: ClassVar[str] = ""
    dialect: ClassVar[Dialect] = "openai"
    default_url: ClassVar[str] = ""
    tool_names: ClassVar[int] = 64  # the largest length of a tool name
    accepts: AcceptedContent

    def __init__(
        self,
        name: str,
        *,
        model: str,
        url: str = "",
        key: str = "",
        facts: ModelFacts | None = None,
        fetch: Fetch | None = None,
        stream: bool = True,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        tries: int = 4,
        patience: float = 30.0,
        silence: float = 180.0,
        seconds: float = 1_800.0,
        most: int = 64_000_000,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self.model = model
        self.url = _checked(url or self.default_url)
        self.facts = facts or known(model)
        self.effort = ""
        self.host = urlsplit(self.url).hostname or ""
        self.streamed = stream
        self.tries = tries
        self.patience = patience
        self.silence = silence
        self.seconds = seconds
        self.most = most
        self._key = ApiKey(key)
        self._extra = dict(extra or {})
        self._headers = dict(headers or {})
        self._sleep = sleep
        self._own = fetch is None
        self._fetch: Fetch = HttpFetch() if fetch is None else fetch
        secrets = {
            self._key.value,
            *(value for value in self._headers.values() if len(value) >= 8),
        } - {""}
        self.who = ProviderIdentity(self.title, urlsplit(self.url).netloc, model, tuple(secrets))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, model={self.model!r}, url={self.url!r})"

    def __rich_repr__(self) -> list[Any]:
        return [self.name, ("model", self.model), ("url", self.url)]

    def with_effort(self, effort: str) -> Self:
        """The same model with another effort; "" for the provider's default.

        It uses the connections of this one, which closes them. Raises ValueError.
        """
        if effort and effort not in self.facts.efforts:
            has = ", ".join(self.facts.efforts) or "none"
            raise ValueError(f"{self.name} has no effort {plain(effort, 40)!r}. It has: {has}.")
        made = copy.copy(self)
        made.effort = effort
        made._own = False
        return made

    async def aclose(self) -> None:
        """Close the connections, unless the caller provided `fetch`."""
        if self._own:
            await self._fetch.aclose()

    async def stream(
        self, request: CreateMessageRequestParams
    ) -> AsyncGenerator[Delta | ModelAnswer, None]:
        """Ask the model.

        Yields pieces as they arrive, and at the end exactly one `ModelAnswer`. Raises ModelFailure.
        """
        asked = self._asked(request)
        for note in asked.notes:
            yield Delta("note", note)
        waited = 0.0
        tried = 1
        while True:
            begun = False
            try:
                async with aclosing(self._attempt(asked)) as pieces:
                    async for piece in pieces:
                        begun = True
                        yield (
                            self._judged(request, piece)
                            if isinstance(piece, ModelAnswer)
                            else piece
                        )
                return
            except _Repaired:
                continue
            except ModelFailure as bad:
                pause = (
                    bad.retry_after
                    if bad.retry_after is not None
                    else _FIRST_PAUSE * 2 ** (tried - 1)
                )
                slow = isinstance(
                    bad.__cause__, TimeoutError | TimedOut
                )  # a retry would be just as slow
                if (
                    begun
                    or slow
                    or bad.kind not in _AGAIN
                    or tried >= self.tries
                    or waited + pause > self.patience
                ):
                    raise
                words = str(bad).partition(". ")[0].rstrip(".")
            tried += 1
            waited += pause
            yield Delta("note", f"{words}. Retrying in {pause:g} s ({tried} of {self.tries}).")
            await self._sleep(pause)

    # -- for the adapters --

    @abstractmethod
    def _asked(self, request: CreateMessageRequestParams) -> ProviderRequest:
        """Convert the request for the provider. Raises ModelFailure."""

    def _sent_headers(self) -> dict[str, str]:
        """The headers that authenticate the client."""
        return {"authorization": f"Bearer {self._key.value}"} if self._key.value else {}

    def _repair(self, asked: ProviderRequest, found: ProviderError) -> bool:
        """Change a rejected request; return True if it should be sent again."""
        return False

    def _words_of_names(self) -> IdMap:
        return IdMap("a-zA-Z0-9_-", self.tool_names)

    def _talk(self, request: CreateMessageRequestParams) -> list[RoleTurn]:
        """The conversation as the model accepts it.

        Raises ModelFailure if it is empty.
        """
        talk = prepared(request.messages)
        if not self.facts.tools:
            talk = without_tools(talk)
        if not talk:
            raise ModelFailure(
                f"{self.who.words} cannot be asked: the conversation is empty.", "bad_request"
            )
        return talk

    def _tools(
        self, request: CreateMessageRequestParams, names: IdMap, notes: list[str]
    ) -> list[ToolDescription]:
        """The tools that the model receives."""
        tools = request.tools or []
        if tools and not self.facts.tools:
            if _mode(request) == "required":
                raise ModelFailure(
                    f"{self.who.words} does not support tools, and the request requires "
                    "one; choose another model.",
                    "bad_request",
                )
            notes.append(f"{self.model} does not support tools; it is asked without them.")
            return []
        return [described(tool, names.out(tool.name), self.dialect) for tool in tools]

    def _output(self, request: CreateMessageRequestParams) -> int:
        """The limit of output tokens (`SAM-09`)."""
        return max(1, min(request.max_tokens, self.facts.output))

    # -- the talk with the provider --

    async def _attempt(self, asked: ProviderRequest) -> AsyncGenerator[Delta | ModelAnswer, None]:
        """Send the request once."""
        response = await self._send(asked)
        try:
            if response.status >= 300:
                failure, found = of_body(
                    self.who, response.status, response.headers, await self._error_body(response)
                )
                if failure.kind == "bad_request" and self._repair(asked, found):
                    raise _Repaired
                raise failure
            reader = asked.reader()
            if (
                self.streamed
                and "json" not in response.headers.get("content-type", "").partition(";")[0]
            ):
                async with aclosing(self._events(response, reader)) as deltas:
                    async for delta in deltas:
                        yield delta
            else:
                for delta in await self._whole(response, reader):
                    yield delta
            yield reader.said()
        finally:
            await response.aclose()

    async def _send(self, asked: ProviderRequest) -> Response:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream" if self.streamed else "application/json",
        }
        headers |= self._sent_headers() | {
            name.lower(): value for name, value in self._headers.items()
        }
        try:
            body = msgspec.json.encode(asked.body)
        except (ValueError, TypeError, RecursionError):
            raise ModelFailure(
                f"The request to {self.who.words} cannot be written as JSON.", "bad_request"
            ) from None
        try:
            async with asyncio.timeout(self.silence if self.streamed else self.seconds):
                return await self._fetch(
                    Request("POST", asked.url, tuple(headers.items()), body, again=True)
                )
        except TimeoutError as slow:
            words = (
                f"{self.who.words} did not begin to answer in time; it may be busy, or still "
                "loading the model."
            )
            raise ModelFailure(words, "unreachable") from slow
        except Unreachable as gone:
            words = (
                f"{self.who.words} cannot be reached: {self.who.quote(str(gone))} Check "
                "the URL, and check that it is running."
            )
            raise ModelFailure(words, "unreachable", status=gone.status or 0) from gone
        except ValueError:  # its words would repeat the header
            raise ModelFailure(
                f"{self.who.words} cannot be asked: its URL or a header is invalid.", "bad_request"
            ) from None

    async def _error_body(self, response: Response) -> bytes:
        try:
            async with asyncio.timeout(min(self.silence, 10.0)):
                return await response.read(_MOST_ERROR)
        except (InterlockError, TimeoutError):
            return b""

    async def _whole(self, response: Response, reader: AnswerReader) -> list[Delta]:
        try:
            async with asyncio.timeout(self.seconds):
                body = await response.read(self.most)
        except TimeoutError as slow:
            raise ModelFailure(
                f"{self.who.words} did not end its answer within {self.seconds:g} seconds.", "cut"
            ) from slow
        except ConnectionLost as lost:
            raise self._cut() from lost
        except InterlockError as bad:
            raise ModelFailure(
                f"{self.who.words} gave too large an answer: {bad}", "bad_answer"
            ) from bad
        try:
            return reader.whole(parsed(body))
        except ValueError:
            raise ModelFailure(
                f"{self.who.words} gave an answer that is not JSON. Is the URL right?", "bad_answer"
            ) from None

    async def _events(
        self, response: Response, reader: AnswerReader
    ) -> AsyncGenerator[Delta, None]:
        """Read a stream to its end."""
        events = EventReader(min(_MOST_EVENT, self.most))
        size = 0
        end = time.monotonic() + self.seconds
        chunks = response.chunks()
        while not reader.over:
            try:
                async with asyncio.timeout(min(self.silence, max(0.0, end - time.monotonic()))):
                    chunk = await anext(chunks, None)
            except (TimeoutError, InterlockError) as bad:
                if reader.complete:
                    return
                raise self._cut(silent=isinstance(bad, TimeoutError)) from bad
            if chunk is None:
                break
            size += len(chunk)
            if size > self.most:
                raise ModelFailure(
                    f"{self.who.words} gave an answer of more than {self.most} bytes; the "
                    "request was abandoned.",
                    "bad_answer",
                )
            try:
                found = events.feed(chunk)
            except Exception as bad:  # the reader raises an error only for an event over the limit
                raise ModelFailure(
                    f"{self.who.words} sent an event that is too large.", "bad_answer"
                ) from bad
            for event in found:
                if reader.over:
                    break
                try:
                    deltas = reader.process_event(event.name, event.data)
                except ValueError:
                    raise self._cut() from None
                for delta in deltas:
                    yield delta
        if not reader.complete:
            raise self._cut()
        try:
            async with asyncio.timeout(_DRAIN):
                await anext(chunks, None)
        except (TimeoutError, InterlockError):
            pass

    def _cut(self, silent: bool = False) -> ModelFailure:
        how = "fell silent" if silent else "broke off"
        return ModelFailure(
            f"{self.who.words} {how} in the middle of its answer, so the answer is "
            "incomplete. Ask again.",
            "cut",
        )

    def _judged(self, request: CreateMessageRequestParams, said: ModelAnswer) -> ModelAnswer:
        """Check an answer against the tool choice of the request (`SAM-16`)."""
        mode = _mode(request)
        if mode == "none":
            return without_calls(said)
        if (
            mode == "required"
            and not has_calls(said)
            and said.result.stop_reason in ("endTurn", "stopSequence")
        ):
            raise ModelFailure(
                f"{self.who.words} had to call a tool and did not; the model may not support that.",
                "bad_answer",
            )
        return said


class _Repaired(Exception):
    """The request was changed and should be sent again."""


def _mode(request: CreateMessageRequestParams) -> str:
    return (request.tool_choice and request.tool_choice.mode) or "auto"


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("a model's URL must begin with https:// or http:// and name a host")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError(
            "a model's URL must not have a user name, password, query or fragment; put "
            "the key into its own setting"
        )
    return url.rstrip("/")
