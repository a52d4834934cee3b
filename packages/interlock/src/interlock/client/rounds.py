"""Multi-round requests: the client answers questions and retries (2026-07-28, "MRTR")."""

from __future__ import annotations

import asyncio

from msgspec import Raw
from msgspec.structs import replace

from .. import types as t
from ..eager import start_eagerly
from ..exchange import AnyResult, Exchange, Handler, Middleware
from ..wire.codec import encode
from ..wire.revisions import INPUT_REQUIRED_METHODS, METHODS, Era

DEFAULT_MOST_ROUNDS = 32


Asking = set[asyncio.Future[Raw]]
"""The open questions. Closing the client cancels them, and their requests raise Unreachable."""


def rounds(most: int = DEFAULT_MOST_ROUNDS, asking: Asking | None = None) -> Middleware:
    """Return middleware that answers the questions of a request and retries it, for at most `most`
    rounds (`MRT-23`).

    Raises ProtocolError for questions in the wrong place.
    """
    open_questions: Asking = asking if asking is not None else set()

    def layer(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            result = await handler(x)
            if not isinstance(result, t.InputRequiredResult):
                return result
            return await _go_on(x, result, handler, most, open_questions)

        return handle

    return layer


async def _go_on(
    x: Exchange, asked: t.InputRequiredResult, handler: Handler, most: int, asking: Asking
) -> AnyResult:
    # The params of an extension's method say whether it may be answered with questions.
    may_ask = x.method in INPUT_REQUIRED_METHODS or x.method not in METHODS
    if not may_ask or not isinstance(x.params, t.InputResponseParams):
        raise t.ProtocolError(
            f"The server answered {x.method} with questions, which it must not (`MRT-01`)."
        )
    if x.caller.era is Era.HANDSHAKE:
        raise t.ProtocolError(
            f"The server answered {x.method} with questions, which {x.caller.revision} does not"
            " have."
        )
    for _ in range(most):
        if not asked.input_requests and asked.request_state is None:
            raise t.ProtocolError(
                "The server's input_required result has neither inputRequests nor requestState."
            )
        with x.transport.pause_timeout():
            answers = await _answers(x, asked, asking)
        params = replace(x.params, input_responses=answers, request_state=asked.request_state)
        result = await handler(replace(x, params=params))
        if not isinstance(result, t.InputRequiredResult):
            return result
        asked = result
    raise t.ProtocolError(f"The server asked for input more than {most} times for one request.")


async def _answers(
    x: Exchange, asked: t.InputRequiredResult, asking: Asking
) -> dict[str, Raw] | None:
    """Return all answers under the keys of their questions (`MRT-18`). All questions are asked at
    once (`MRT-12`).
    """
    requests = asked.input_requests or {}
    if not requests:
        return None
    loop = asyncio.get_running_loop()
    tasks = {
        key: start_eagerly(_answer(x, request, key), loop) for key, request in requests.items()
    }
    asking.update(tasks.values())
    try:
        done = {task for task in tasks.values() if task.done()}
        if len(done) < len(tasks):
            done, _ = await asyncio.wait(tasks.values(), return_when=asyncio.FIRST_EXCEPTION)
        if any(task.cancelled() for task in done):
            raise t.Unreachable("The client was closed.")
        for task in done:
            task.result()
    except BaseException:
        for task in tasks.values():
            task.cancel()  # one question failed, so the others are not needed
        await asyncio.gather(*tasks.values(), return_exceptions=True)
        raise
    finally:
        asking.difference_update(tasks.values())
    return {key: task.result() for key, task in tasks.items()}


async def _answer(x: Exchange, request: t.InputRequest, key: str) -> Raw:
    return Raw(encode(await x.asker.ask(request, key), x.caller.revision))
