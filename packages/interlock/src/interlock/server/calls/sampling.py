"""Sampling: answers of a model as Python types, and a fallback model for clients without one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from ... import types as t
from ...typed.adapters import Foreign, Misfit
from ...typed.annotations import TypeAdapter, adapter_of
from ...typed.json_schema import SchemaBuilder
from ...wire.codec import decode, encode
from ...wire.jsonrpc import READ_ERRORS
from ...wire.revisions import NEWEST
from ..server_options import FallbackModel

AskModel = Callable[[t.CreateMessageRequestParams, str | None], Awaitable[t.CreateMessageResult]]
Once = Callable[[str, Callable[[], Awaitable[Any]]], Awaitable[Any]]
_ANSWER = "answer"  # the tool whose arguments are a typed answer
_WRAPPED = "value"
_sorted = msgspec.json.Encoder(order="sorted").encode


class BadAnswer(ValueError):
    """The model's answer does not have the requested type. The message is written for the model."""


class AnswerType:
    """The requested type of a model's answer: produces a JSON Schema of an object for the model,
    and decodes values from its answer.

    Args:
        kind: Any type of a tool's argument, or a JSON Schema.

    Raises:
        TypeError: The type has no form in JSON.
        SchemaError: The schema is not valid.
    """

    def __init__(self, kind: Any) -> None:
        self._adapter: TypeAdapter | Foreign | None = None
        if isinstance(kind, Mapping):
            from ...schema import compile  # late: only a given schema needs a validator

            self._validator = compile(kind)
            schema = dict(kind)
        else:
            self._adapter = adapter_of(kind)
            sheet = SchemaBuilder()
            schema = sheet.finish(sheet.draw(self._adapter))
        self._wrapped = schema.get("type") != "object"
        self.schema: t.JSONObject = _wrap(schema) if self._wrapped else schema

    def read(self, answer: t.CreateMessageResult) -> Any:
        """Decode the value in a model's answer: the arguments of the tool `answer`, or else JSON in
        its text.

        Raises:
            BadAnswer: The answer has no value of the type.
        """
        for block in _blocks(answer):
            if isinstance(block, t.ToolUseContent) and block.name == _ANSWER:
                return self._value(block.input)
        return self._value(_json_in(answer.text))

    def _value(self, data: Any) -> Any:
        if self._wrapped and isinstance(data, dict) and data.keys() == {_WRAPPED}:
            data = data[_WRAPPED]
        if self._adapter is None:
            violations = self._validator.check(data)
            if violations:
                raise BadAnswer("; ".join(f"{v.path or '/'}: {v.message}" for v in violations))
            return data
        try:
            return self._adapter.decode(msgspec.json.encode(data))
        except (*READ_ERRORS, Misfit, OverflowError, UnicodeError) as bad:
            raise BadAnswer(str(bad)) from None

    def request(
        self, params: t.CreateMessageRequestParams, *, by_tool: bool
    ) -> t.CreateMessageRequestParams:
        """Return a sampling request that asks for the type.

        Args:
            params: The original request.
            by_tool: Whether the model can call tools. If so, it must call one whose arguments are
                the answer. Otherwise the request contains the schema.
        """
        if by_tool:
            tool = t.Tool(
                name=_ANSWER,
                description="Gives the answer. Call it once.",
                input_schema=self.schema,
            )
            return replace(params, tools=[tool], tool_choice=t.ToolChoice(mode="required"))
        words = (
            "Answer with one JSON object that matches this JSON Schema. Write nothing before or"
            f" after it.\n\n{json.dumps(self.schema, ensure_ascii=False)}"
        )
        system = params.system_prompt
        return replace(params, system_prompt=f"{system}\n\n{words}" if system else words)


def correction(answer: t.CreateMessageResult, bad: BadAnswer) -> list[t.SamplingMessage]:
    """Return the messages that tell a model what is wrong with its answer, so that it can try
    again.
    """
    words = f"This is not the answer that was asked for: {bad}. Answer again, in the right form."
    blocks = _blocks(answer)
    results: list[t.SamplingContent] = [
        t.ToolResultContent(tool_use_id=block.id, content=[t.TextContent(words)], is_error=True)
        for block in blocks
        if isinstance(block, t.ToolUseContent)
    ]  # each tool use needs its result, in a message with nothing else (`SAM-14`)
    said = t.SamplingMessage(role="assistant", content=answer.content)
    if results:
        return [said, t.SamplingMessage(role="user", content=results)]
    request = t.SamplingMessage(role="user", content=t.TextContent(words))
    return [said, request] if blocks else [request]


class Sampler:
    """Makes the model requests of one call.

    Args:
        ask: Asks the client's model; the second argument is the key of the question.
        once: Runs a step once, although the call may run again from the top.
    """

    def __init__(self, ask: AskModel, once: Once) -> None:
        self._ask = ask
        self._once = once
        self._asked = 0  # the number of requests to a fallback model

    async def ask(
        self,
        params: t.CreateMessageRequestParams,
        fallback: FallbackModel | None,
        key: str | None,
    ) -> t.CreateMessageResult:
        """Ask the fallback model if there is one; otherwise the client's model.

        The answer of a fallback model is kept with the other answers of the call. So a call that
        runs again does not pay for it again.
        """
        if fallback is None:
            return await self._ask(params, key)
        self._asked += 1
        name = key or f"{self._asked}.{hashlib.blake2s(_sorted(params), digest_size=6).hexdigest()}"
        kept = await self._once(f"sample {name}", partial(_ask_fallback, fallback, params))
        answer: t.CreateMessageResult = decode(msgspec.json.encode(kept), t.CreateMessageResult)
        return answer

    async def ask_typed(
        self,
        params: t.CreateMessageRequestParams,
        kind: Any,
        retries: int,
        fallback: FallbackModel | None,
        key: str | None,
        *,
        takes_tools: bool,
    ) -> Any:
        """Ask for a value of a type. Tell the model what is wrong until its answer fits.

        Args:
            params: The request.
            kind: The type, or a JSON Schema.
            retries: The maximum number of further attempts.
            fallback: The model to ask in place of the client's.
            key: The key of the first question.
            takes_tools: Whether the client's model can be required to call a tool.

        Raises:
            ToolError: No answer had a value of the type.
        """
        wanted = AnswerType(kind)
        # An author's function may not support tools.
        request = wanted.request(params, by_tool=takes_tools and fallback is None)
        tries = 0
        while True:
            tries += 1
            name = f"{key} {tries}" if key is not None and tries > 1 else key
            answer = await self.ask(request, fallback, name)
            try:
                return wanted.read(answer)
            except BadAnswer as bad:
                if answer.stop_reason == "maxTokens":
                    raise t.ToolError(
                        f"The model's answer was cut off after {params.max_tokens} tokens."
                    ) from None
                if tries > retries:
                    raise t.ToolError(
                        f"The model gave no answer of the form that was asked for: {bad}"
                    ) from None
                again = correction(answer, bad)
            request = replace(request, messages=[*request.messages, *again])


async def _ask_fallback(model: FallbackModel, params: t.CreateMessageRequestParams) -> t.JSONObject:
    """Ask the server's own model, and return its answer as JSON that can be kept."""
    answer = await model(params)
    if isinstance(answer, str):
        answer = t.CreateMessageResult(
            role="assistant", content=t.TextContent(answer), model="fallback"
        )
    if not isinstance(answer, t.CreateMessageResult):
        raise TypeError(
            f"a fallback model returns a CreateMessageResult or text, not {type(answer).__name__}"
        )
    kept: t.JSONObject = msgspec.json.decode(encode(answer, NEWEST))
    return kept


def _wrap(schema: t.JSONObject) -> t.JSONObject:
    definitions = schema.pop("$defs", None)
    wrapped: t.JSONObject = {
        "type": "object",
        "properties": {_WRAPPED: schema},
        "required": [_WRAPPED],
    }
    if definitions is not None:
        wrapped["$defs"] = definitions
    return wrapped


def _blocks(answer: t.CreateMessageResult) -> list[t.SamplingContent]:
    return answer.content if isinstance(answer.content, list) else [answer.content]


def _json_in(text: str) -> Any:
    """Return the JSON in a text: the whole text, or else the first object in it, because models add
    words and code fences.
    """
    if not text.strip():
        raise BadAnswer("it has no text")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        start = text.find("{")
    if start < 0:
        raise BadAnswer("there is no JSON object in it")
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError) as bad:
        raise BadAnswer(f"the JSON in it cannot be read: {bad}") from None
