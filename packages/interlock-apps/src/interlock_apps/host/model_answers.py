"""Reads the answer of a model to its end."""

from __future__ import annotations

from collections.abc import Callable

from interlock.models.interface import Delta, Model, ModelAnswer, ModelFailure
from interlock.types import CreateMessageRequestParams

from ..fleet.nesting import too_deep


async def whole(
    model: Model, request: CreateMessageRequestParams, hear: Callable[[Delta], None] | None = None
) -> ModelAnswer:
    """All that a model says; `hear` gets the pieces as they come.

    Raises ModelFailure, also for a model that breaks in its own way.
    """
    stream = model.stream(request)
    try:
        async for piece in stream:
            if isinstance(piece, ModelAnswer):
                if too_deep(piece.result):
                    raise ModelFailure(
                        f"{model.name} gave an answer that is nested too deeply.", "bad_answer"
                    )
                return piece
            if hear is not None:
                hear(piece)
    except ModelFailure:
        raise
    except Exception as bad:  # a model of somebody's own
        raise ModelFailure(
            f"{model.name} failed ({type(bad).__name__}: {bad}).", "bad_answer"
        ) from bad
    finally:
        close = getattr(
            stream, "aclose", None
        )  # an async generator has it; an iterator of another kind need not
        if close is not None:
            await close()
    raise ModelFailure(f"{model.name} ended without an answer.", "bad_answer")
