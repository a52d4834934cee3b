"""Answers to a server's questions (elicitation, sampling and roots) from functions of the client's
author.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import types as t

ElicitFunction = Callable[[t.ElicitRequestParams], Any]
SampleFunction = Callable[[t.CreateMessageRequestParams], Any]
RootsGiven = str | Path | t.Root | Sequence[str | Path | t.Root] | Callable[[], Any]


class Answers:
    """Answers a server's questions with the author's functions (2026-07-28, "Elicitation").

    Functions may be plain or async. The client declares a capability for each kind of question that
    it can answer.

    Args:
        elicit: Gets the question's params. It returns an ElicitResult, a dict (the accepted
            content), True or False (accept or decline) or None (cancel), or raises Declined or
            Cancelled.
        sample: Gets the params of a sampling request. It returns a CreateMessageResult, the model's
            text, or None if the person refused.
        roots: Folders, file:// URIs, Root objects, or a function that returns them.
        url: Whether `elicit` supports URL mode too.
        tools: Whether `sample` supports tools.
        context: Whether `sample` supports includeContext.
        extensions: The settings of the client's extensions, by their ids.
    """

    def __init__(
        self,
        *,
        elicit: ElicitFunction | None = None,
        sample: SampleFunction | None = None,
        roots: RootsGiven | None = None,
        url: bool = True,
        tools: bool = True,
        context: bool = False,
        extensions: Mapping[str, t.JSONObject] | None = None,
    ) -> None:
        self._elicit = elicit
        self._sample = sample
        self._roots = roots
        self._tools = tools
        self.capabilities = t.ClientCapabilities(
            elicitation=t.ElicitationCapability(form={}, url={} if url else None)
            if elicit is not None
            else None,
            sampling=t.SamplingCapability(
                tools={} if tools else None, context={} if context else None
            )
            if sample is not None
            else None,
            roots=t.RootsCapability(list_changed=True) if roots is not None else None,
            extensions=dict(extensions) if extensions else None,
        )

    async def ask(self, request: t.InputRequest, key: str | None = None) -> t.InputResponse:
        """Answer a question. Raises McpError if no function can."""
        if isinstance(request, t.ElicitRequest):
            return await self._answer_elicitation(request.params)
        if isinstance(request, t.CreateMessageRequest):
            return await self._answer_sampling(request.params)
        if self._roots is None:
            raise t.McpError(t.METHOD_NOT_FOUND, "Roots not supported")  # `ROO-03`
        given = await _called(self._roots) if callable(self._roots) else self._roots
        if isinstance(given, str | Path | t.Root):
            given = [
                given
            ]  # a string is a sequence too: of characters, and "/" would be the whole file system
        return t.ListRootsResult(roots=[_root(root) for root in given])

    async def once(
        self, name: str, do: Callable[[], Awaitable[Any]], *, idempotent: bool = False
    ) -> Any:
        """Run the side effect. On this side nothing runs again.

        Args:
            name: The name of the effect, unique in the call.
            do: The effect.
            idempotent: Not used here.
        """
        return await do()

    async def _answer_elicitation(self, params: t.ElicitRequestParams) -> t.ElicitResult:
        if self._elicit is None:
            raise t.McpError(t.METHOD_NOT_FOUND, "Elicitation not supported")
        elicitation = self.capabilities.elicitation
        if params.mode == "url" and (elicitation is None or elicitation.url is None):
            raise t.McpError(t.INVALID_PARAMS, "Elicitation by URL not supported")  # `ERR-18`
        try:
            answer = await _called(self._elicit, params)
        except t.Declined:  # a person declined a nested question
            return t.ElicitResult(action="decline")
        except t.Cancelled:
            return t.ElicitResult(action="cancel")
        if isinstance(answer, t.ElicitResult):
            return answer
        if answer is None:
            return t.ElicitResult(action="cancel")
        if answer is False:
            return t.ElicitResult(action="decline")
        if answer is not True and not isinstance(answer, Mapping):
            raise TypeError(
                "an elicit function returns an ElicitResult, a dict, True, False or None, not"
                f" {type(answer).__name__}"
            )
        if params.mode == "url":
            return t.ElicitResult(action="accept")  # `ELI-13`: only a form has content
        return t.ElicitResult(
            action="accept", content={**_defaults(params), **({} if answer is True else answer)}
        )

    async def _answer_sampling(self, params: t.CreateMessageRequestParams) -> t.CreateMessageResult:
        if self._sample is None:
            raise t.McpError(t.METHOD_NOT_FOUND, "Sampling not supported")
        if (params.tools is not None or params.tool_choice is not None) and not self._tools:
            raise t.McpError(t.INVALID_PARAMS, "Sampling with tools not supported")  # `SAM-13`
        check_tool_turns(params.messages)
        answer = await _called(self._sample, params)
        if isinstance(answer, t.CreateMessageResult):
            return answer
        if answer is None:
            raise t.McpError(t.USER_REJECTED, "User rejected sampling request")  # `SAM-07`
        if not isinstance(answer, str):
            raise TypeError(
                "a sample function returns a CreateMessageResult, text or None, not"
                f" {type(answer).__name__}"
            )
        return t.CreateMessageResult(
            role="assistant", content=t.TextContent(answer), model="unknown", stop_reason="endTurn"
        )


def check_tool_turns(messages: Sequence[t.SamplingMessage]) -> None:
    """Check that a user message with exactly the matching results follows each tool use.

    Raises McpError if not (`SAM-14`, `SAM-15`).
    """
    uses: list[str] = []  # tool uses of the previous message
    for message in messages:
        blocks = message.content if isinstance(message.content, list) else [message.content]
        results = [block.tool_use_id for block in blocks if isinstance(block, t.ToolResultContent)]
        if results and (len(results) != len(blocks) or message.role != "user"):
            raise t.McpError(
                t.INVALID_PARAMS,
                "A message with tool results must have the role user and no other content",
            )
        if sorted(results) != sorted(uses):
            raise t.McpError(
                t.INVALID_PARAMS, "Tool results do not match the tool uses of the message before"
            )
        uses = (
            [block.id for block in blocks if isinstance(block, t.ToolUseContent)]
            if message.role == "assistant"
            else []
        )
    if uses:
        raise t.McpError(t.INVALID_PARAMS, "Tool results are missing")


def _defaults(params: t.ElicitRequestParams) -> t.JSONObject:
    """Return the defaults of a form, which an answer contains unless it has other values
    (`ELI-12`).
    """
    properties = (params.requested_schema or {}).get("properties", {})
    return {
        name: p["default"]
        for name, p in properties.items()
        if isinstance(p, dict) and "default" in p
    }


async def _called(function: Callable[..., Any], *args: Any) -> Any:
    answer = function(*args)
    return await answer if inspect.isawaitable(answer) else answer


def _root(given: Any) -> t.Root:
    if isinstance(given, t.Root):
        root = given
    elif "://" in str(given):
        root = t.Root(uri=str(given))
    else:
        path = Path(given).expanduser().resolve()
        root = t.Root(uri=path.as_uri(), name=path.name)
    if not root.uri.startswith("file://"):
        raise ValueError(f"a root is a folder or a file:// URI, not {root.uri}")  # `ROO-05`
    return root
