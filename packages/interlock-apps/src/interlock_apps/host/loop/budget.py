"""The budget of a turn: limits of steps, calls, tokens and time."""

from __future__ import annotations

from msgspec import Struct


class Budget(Struct, frozen=True, kw_only=True):
    """The limits of a turn.

    `steps` is how often the model may be asked. `calls` is how many tools it may call in one step.
    `tokens` is the total of input and output of all steps. `seconds` is the duration of the turn,
    without the time spent on questions to the person. The text of a result is given to the model in
    pages of `page` characters; the rest is stored, `stored_results` bytes in all. `picture` is the
    limit in bytes for one image or sound, `pictures` for all in one result. The last `keep` turns
    of a conversation are never trimmed. `answer` is the limit in tokens for one answer, 0 for the
    model's own limit.
    """

    steps: int = 40
    calls: int = 32
    tokens: int = 2_000_000
    seconds: float = 3_600.0
    page: int = 24_000
    stored_results: int = 64 * 1024 * 1024
    picture: int = 5 * 1024 * 1024
    pictures: int = 20 * 1024 * 1024
    keep: int = 2
    answer: int = 0
