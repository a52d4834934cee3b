"""The budget of a turn: bounds of steps, calls, tokens and time."""

from __future__ import annotations

from msgspec import Struct


class Budget(Struct, frozen=True, kw_only=True):
    """Bounds of a turn.

    `steps` is how often the model may be asked, `calls` how many tools it may call in one step,
    `tokens` what all its steps may take in and give out together, `seconds` how long the turn may
    last, not counting the time in which the person is asked. A result's text is given to the model
    in pages of `page` characters; the rest is kept aside, `shelf` bytes in all. `picture` is the
    most bytes of one image or sound, `pictures` of all in one result. `keep` turns at the end of a
    conversation are never trimmed. `answer` is the most tokens of one answer, 0 for what the model
    can.
    """

    steps: int = 40
    calls: int = 32
    tokens: int = 2_000_000
    seconds: float = 3_600.0
    page: int = 24_000
    shelf: int = 64 * 1024 * 1024
    picture: int = 5 * 1024 * 1024
    pictures: int = 20 * 1024 * 1024
    keep: int = 2
    answer: int = 0
