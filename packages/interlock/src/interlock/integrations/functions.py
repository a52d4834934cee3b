"""A function list: the tools of a client in the form of one provider's interface, and the calls of
its models.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from .. import types as t
from ..models.interface import AcceptedContent
from ..models.tool_schemas import Dialect, ToolDescription, described
from .model_calls import MOST_NAME, ModelCalls, failure


class FunctionCall(Struct, frozen=True):
    """A call in a model's answer.

    Attributes:
        id: The ID of the call; empty if it has none.
        name: The name of the function.
        arguments: The arguments; bytes or a string of JSON, or decoded JSON.
    """

    id: str
    name: str
    arguments: Any


class FunctionList(ABC):
    """The tools of a client as functions for a model.

    `function_list` makes one.

    Attributes:
        definitions: The functions, for the parameter `tools` of a request.
    """

    dialect: ClassVar[Dialect]
    accepted: ClassVar[AcceptedContent]  # by the models that accept images
    longest_name: ClassVar[int] = MOST_NAME

    def __init__(self, calls: ModelCalls, accepted: AcceptedContent) -> None:
        self.definitions: list[t.JSONObject] = []
        self._calls = calls
        self._accepted = accepted

    async def refresh(self) -> None:
        """Read the list of tools again, after it has changed.

        Raises:
            McpError: The server answers with an error.
            Unreachable: The server does not respond, or the connection is lost.
        """
        tools = await self._calls.tools()
        self.definitions = self._define(
            [described(one.tool, one.shown, self.dialect) for one in tools]
        )

    async def run(self, answer: Any) -> list[t.JSONObject]:
        """Run all calls of a model's answer, at the same time.

        A failure is a result that the model reads: of the tool, of the protocol, an unknown name,
        wrong arguments, a call that takes too long. Cancelling this method cancels the calls.

        Args:
            answer: The answer as the provider's package returns it, or the JSON of it as plain
                data; or the message in it. Answers that were streamed must be complete.

        Returns:
            What follows the answer in the conversation, with the results in the order of the calls.
            Empty if the answer has no calls.

        Raises:
            Unreachable: The server does not respond, or the connection is lost.
        """
        calls = self._read(_plain(answer))
        tasks = [asyncio.ensure_future(self._run(call)) for call in calls]
        try:
            results = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return self._answer(calls, results) if calls else []

    async def _run(self, call: FunctionCall) -> t.CallToolResult:
        arguments = call.arguments
        if isinstance(arguments, str):
            try:
                arguments = msgspec.json.decode(arguments or "{}")
            except ValueError as bad:
                return failure(f"The arguments are not JSON: {bad}")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            return failure("The arguments are not a JSON object.")
        return await self._calls.call(call.name, arguments)

    @abstractmethod
    def _define(self, tools: Sequence[ToolDescription]) -> list[t.JSONObject]:
        """Return the definitions of functions."""

    @abstractmethod
    def _read(self, answer: Any) -> list[FunctionCall]:
        """Return the calls of an answer. Raises TypeError if it is not an answer."""

    @abstractmethod
    def _answer(
        self, calls: Sequence[FunctionCall], results: Sequence[t.CallToolResult]
    ) -> list[t.JSONObject]:
        """Return what follows the answer in the conversation."""


def _plain(answer: Any) -> Any:
    """Return the JSON of an object of a provider's package as plain data."""
    if hasattr(answer, "model_dump"):  # the packages of all these providers use pydantic
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(answer, Mapping):
        return {name: _plain(value) for name, value in answer.items()}
    if isinstance(answer, list | tuple):
        return [_plain(one) for one in answer]
    return answer
