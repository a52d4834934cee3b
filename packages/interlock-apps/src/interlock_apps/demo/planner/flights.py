"""How the planner chooses a flight when the travel server asks it by sampling."""

from __future__ import annotations

import re

from msgspec import Struct

_ROW = re.compile(
    r"^- (?P<id>\S+) \| (?P<airline>[^|]+) \| "
    r"(?P<departs>\d\d:\d\d) -> (?P<arrives>\d\d:\d\d)(?P<next>\+1)? "
    r"\| (?P<stops>\d+) stop\S* \| (?P<duration>[^|]+) \| \$(?P<price>[\d,]+)$",
    re.MULTILINE,
)
MORNING = ("05:00", "12:00")
# penalties in dollars
A_STOP = 90
NOT_MORNING = 150


class Row(Struct, frozen=True):
    """One flight in the list."""

    id: str
    airline: str
    departs: str
    stops: int
    duration: str
    price: int
    overnight: bool


def rows(text: str) -> list[Row]:
    """The flights listed in a text."""
    return [
        Row(
            id=found["id"],
            airline=found["airline"].strip(),
            departs=found["departs"],
            stops=int(found["stops"]),
            duration=found["duration"].strip(),
            price=int(found["price"].replace(",", "")),
            overnight=bool(found["next"]),
        )
        for found in _ROW.finditer(text)
    ]


def best(text: str) -> str | None:
    """The three best flights listed in a text, one a line with the reason; None for no flights."""
    listed = rows(text)
    if not listed:
        return None
    wants_morning = "morning" in text.lower()
    most = re.search(r"at most (one|two|\d) stop|non-?stop|direct", text.lower())
    limit = (
        9
        if most is None
        else {"one": 1, "two": 2}.get(most[1] or "", 0 if most[1] is None else _digit(most[1]))
    )

    def weight(row: Row) -> tuple[int, int, str]:
        late = NOT_MORNING if wants_morning and not MORNING[0] <= row.departs < MORNING[1] else 0
        return max(0, row.stops - limit), row.price + row.stops * A_STOP + late, row.id

    ranked = sorted(listed, key=weight)[:3]
    return "\n".join(f"{rank}. {row.id}: {_why(row)}" for rank, row in enumerate(ranked, 1))


def _digit(text: str) -> int:
    return int(text) if text.isdigit() else 9


def _why(row: Row) -> str:
    when = "in the morning" if MORNING[0] <= row.departs < MORNING[1] else "not in the morning"
    stops = "without a stop" if not row.stops else f"with {row.stops} stop{'s' * (row.stops > 1)}"
    return (
        f"leaves at {row.departs}, {when}, {stops}, takes {row.duration}, "
        f"${row.price} with {row.airline}"
    )
