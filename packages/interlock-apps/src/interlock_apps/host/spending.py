"""What a conversation took so far: tokens and money, from the log."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from interlock.models.interface import Usage

from ..fleet.events import SampleEnded, TurnEnded
from ..fleet.log import Log

_PAGE = 1_000  # entries read at a time


class Spending(Struct, frozen=True, kw_only=True, rename="camel"):
    """The tokens and the price of a conversation, with what servers asked models for it.

    Attributes:
        input: Tokens of requests.
        output: Tokens of answers.
        kept: Tokens of requests that came from caches of providers.
        price: US dollars, of those that have a price.
        priced: How many turns and requests of servers have a price.
        unpriced: How many have none, because their model has no prices.
        until: The number of the last entry of the log that is counted; 0 for none.
    """

    input: int = 0
    output: int = 0
    kept: int = 0
    price: float = 0.0
    priced: int = 0
    unpriced: int = 0
    until: int = 0

    def plus(self, usage: Usage, price: float | None) -> Spending:
        """The spending with another turn; the same if it took no tokens."""
        if not usage.input and not usage.output:
            return self
        return replace(
            self,
            input=self.input + usage.input,
            output=self.output + usage.output,
            kept=self.kept + usage.kept,
            price=self.price + (price or 0.0),
            priced=self.priced + (price is not None),
            unpriced=self.unpriced + (price is None),
        )


async def spending(log: Log, session: str) -> Spending:
    """Sum what a conversation took. Raises LogError if the log cannot be read."""
    await log.flush()
    total = Spending()
    before: int | None = None
    while True:
        notes = await log.search(
            session=session, kinds=("turnEnded", "sampleEnded"), before=before, limit=_PAGE
        )
        if notes and before is None:
            total = replace(total, until=notes[0].seq)
        for noted in notes:
            if isinstance(noted.event, TurnEnded | SampleEnded):
                total = total.plus(noted.event.usage, noted.event.price)
        if len(notes) < _PAGE:
            return total
        before = notes[-1].seq
