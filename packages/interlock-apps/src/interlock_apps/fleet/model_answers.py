"""Reads the whole answer of a model."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from interlock.models.interface import Delta, Model, ModelAnswer, ModelFailure
from interlock.types import CreateMessageRequestParams

from .nesting import too_deep


async def whole(
    model: Model,
    request: CreateMessageRequestParams,
    on_piece: Callable[[Delta], None] | None = None,
) -> ModelAnswer:
    """Read all of a model's answer; `on_piece` gets the pieces as they arrive.

    Raises ModelFailure, also for other errors of the model.
    """
    stream = model.stream(request)
    thought: list[str] = []
    try:
        async for piece in stream:
            if isinstance(piece, ModelAnswer):
                if too_deep(piece.result):
                    raise ModelFailure(
                        f"{model.name} gave an answer that is nested too deeply.", "bad_answer"
                    )
                return structs.replace(piece, thought="".join(thought)) if thought else piece
            if piece.kind == "thought":
                thought.append(piece.text)
            if on_piece is not None:
                on_piece(piece)
    except ModelFailure:
        raise
    except Exception as bad:  # errors of third-party models
        raise ModelFailure(
            f"{model.name} failed ({type(bad).__name__}: {bad}).", "bad_answer"
        ) from bad
    finally:
        close = getattr(
            stream, "aclose", None
        )  # an async generator has `aclose`; another iterator may not
        if close is not None:
            await close()
    raise ModelFailure(f"{model.name} ended without an answer.", "bad_answer")
