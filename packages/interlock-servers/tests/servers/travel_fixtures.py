"""What the tests of the travel server share: a server over a file of its own, a person who answers,
and a journey to book.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from interlock.testing import ScriptedAnswers
from interlock_servers.travel.database import TravelDatabase

OUT = "CW101-2024-06-15"
BACK = "CW102-2024-06-22"
HOTEL = "bcn-hotel-mar-blau"
WAY = {"origin": "NYC", "destination": "Barcelona", "date": "2024-06-15"}
STAY = {"check_in": "2024-06-15", "check_out": "2024-06-22"}
TRIP: dict[str, Any] = {
    "outbound_flight": OUT,
    "return_flight": BACK,
    "hotel": HOTEL,
    "travelers": 2,
    **STAY,
}
YES: dict[str, Any] = {
    "confirmBooking": True,
    "seatPreference": "Aisle",
    "roomType": "Sea view",
    "travelInsurance": True,
}
CONTACT = {"name": "Ada Lovelace", "email": "ada@example.com", "specialRequests": "A quiet room"}


def person(
    booking: Any = None, contact: Any = None, cancel: Any = None, model: Any = None
) -> ScriptedAnswers:
    """Somebody who agrees to everything, unless the test has another answer; `model` answers
    sampling.
    """
    forms: Mapping[str, Any] = {
        "Please confirm": YES if booking is None else booking,
        "Who travels": CONTACT if contact is None else contact,
        "Cancel the booking": {"confirm": True} if cancel is None else cancel,
    }
    return ScriptedAnswers(elicit=forms, sample={"": model} if model is not None else None)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with its bytes."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def stock(path: Path) -> Path:
    """Put a database that is filled and has no bookings at a path; to copy one is quicker than to
    fill one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_filled())
    return path


@cache
def _filled() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        records = TravelDatabase(Path(folder, "travel.sqlite"))
        records.prepare()
        return records.path.read_bytes()
