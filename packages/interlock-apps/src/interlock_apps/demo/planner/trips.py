"""A trip as far as it is known: what each sentence adds, what is missing, and how that is asked."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from .days import Days, chosen_day, month_words, take_days
from .money import Money, take_bare_amount, take_money
from .people import take_people
from .places import take_destination, take_home
from .sentence import Sentence
from .wishes import FLIGHTS, HOME, Wishes

MOST_READ = 1_000  # characters of a sentence
MOST_TRAVELERS = 9
MOST_NIGHTS = 366

_QUESTION = re.compile(
    r"^\W*(?:what(?! about)|how(?! about)|when|where|who|whose|why|which|is|are|does|do|did)\b",
    re.IGNORECASE,
)
_TRIP = re.compile(
    r"\b(?:trip|travel(?:ing)?|vacation|holidays?|getaway|week-?end|week|honeymoon|fly|flying|"
    r"go(?:ing)? to|journey|city break|visit(?:ing)?|tour)\b",
    re.IGNORECASE,
)
_SEA = re.compile(
    r"\b(?:(?:and|with|at|on|by|near|close to|next to|along)\s+)*(?:the |a )?"
    r"(?:sea(?:side)?|beach(?:es)?|ocean|coast)\b(?: view)?",
    re.IGNORECASE,
)
_FLIGHTS = re.compile(
    r"\b(?:with\s+)?(?:a\s+)?((?:direct|non-?stop|morning)(?:,? (?:and )?(?:direct|non-?stop|"
    r"morning))*)(?: (?:flights?|departures?))?(?: only)?\b",
    re.IGNORECASE,
)


class Trip(Struct):
    """What is known of a trip.

    Attributes:
        destination: The city; "" if it is not known.
        home: Where it starts; "" for the usual airport.
        days: When.
        travelers: How many people; 0 if it is not known.
        budget: The limit for everything; None if it is not known.
        night: The limit for a night at a hotel, in US dollars; 0 for none.
        flights: What flights must be like.
        sea: Whether the hotel is to be by the sea.
        notes: How the last sentence was read, where that is not obvious.
        unknown: The clauses of the last sentence that were not understood.
    """

    destination: str = ""
    home: str = ""
    days: Days = msgspec.field(default_factory=Days)
    travelers: int = 0
    budget: Money | None = None
    night: int = 0
    flights: str = ""
    sea: bool = False
    notes: list[str] = []
    unknown: list[str] = []

    @property
    def facts(self) -> int:
        """How many things are known."""
        days = self.days
        return sum(
            (
                bool(self.destination),
                bool(days.departure or days.month),
                bool(days.back or days.nights),
                bool(self.travelers),
                self.budget is not None,
            )
        )


def read_trip(text: str, today: dt.date, before: Trip | None = None) -> Trip | None:
    """Return a trip with what a sentence adds to it; None if the sentence is about no trip.

    Args:
        text: What the person wrote.
        today: Days without a year are the next ones from this day.
        before: The trip that the planner asked about, or has planned.
    """
    open_before = before if before is not None and missing(before) else None
    if _QUESTION.search(text) or len(text) > MOST_READ:
        if open_before is None:
            return None
        return msgspec.structs.replace(open_before, notes=[], unknown=[text.strip()[:MOST_READ]])
    found = _found(text, today, before, answers=open_before is not None)
    if open_before is not None:
        return _merged(open_before, found, today)
    days = found.days
    if before is not None and (found.destination or found.budget or days.departure or days.month):
        fresh = found.destination and (days.departure or days.month)
        return _merged(Trip() if fresh else before, found, today, first=bool(fresh))
    about_a_trip = bool(_TRIP.search(text)) and bool(found.destination or days.nights or days.month)
    if before is None and (found.facts >= 2 or about_a_trip):
        return _merged(Trip(), found, today, first=True)
    return None


def trip_of_form(fields: Mapping[str, str]) -> Trip:
    """Return the trip of a filled form. Its other fields may be empty: they have defaults.

    Args:
        fields: The values by the labels of the form.
    """
    problems: list[str] = []

    def day(name: str) -> dt.date | None:
        text = fields.get(name, "").strip()
        try:
            return dt.date.fromisoformat(text) if text else None
        except ValueError:
            problems.append(f"{text} is not a day of the calendar.")
            return None

    days = Days(
        departure=day("Departure date"),
        back=day("Return date"),
        nights=_digits(fields.get("Duration", ""), 0),
        problems=problems,
    )
    return Trip(
        destination=fields["Destination"].strip(),
        days=days,
        travelers=max(1, _digits(fields.get("Travelers", ""), 1)),
        budget=Money(_digits(fields.get("Budget", ""), 0)),
        sea="beach" in fields.get("Interests", ""),
    )


def missing(trip: Trip) -> list[str]:
    """The questions about what is missing; empty if the trip can be planned."""
    questions = []
    days = trip.days
    if not trip.destination:
        questions.append("Where do you want to go?")
    if days.departure is None and days.month is not None:
        month = month_words(days)
        questions.append(
            f"Which day in {month} do you leave? Name one, such as “the 8th”, or write “any day”."
        )
    elif days.departure is None:
        questions.append("When do you leave? Write a day, such as 2027-05-08, “8 May” or “in May”.")
    if days.back is None and not days.nights:
        questions.append("How long do you stay, or when do you come back?")
    elif days.departure is not None and days.back is not None and days.back <= days.departure:
        questions.append("The return date must be after the departure date. When do you come back?")
    if not trip.travelers:
        questions.append("How many people travel?")
    elif trip.travelers > MOST_TRAVELERS:
        questions.append(f"I can plan for at most {MOST_TRAVELERS} people. How many travel?")
    if trip.budget is None:
        questions.append("What is your budget in US dollars? Write “no limit” if there is none.")
    return questions


def question_about(trip: Trip) -> str:
    """The form as far as it is filled, what was not understood, and the questions."""
    days = trip.days
    when = days.departure.isoformat() if days.departure else month_words(days)
    budget = ""
    if trip.budget is not None:
        each = " for each person" if trip.budget.each else ""
        budget = f"${trip.budget.dollars:,}{each}" if trip.budget.dollars else "no limit"
    form = {
        "Destination": trip.destination,
        "Departure date": when,
        "Return date": days.back.isoformat() if days.back else "",
        "Duration": _nights(days.nights) if days.nights and not days.back else "",
        "Travelers": str(trip.travelers or ""),
        "Budget": budget,
    }
    filled = [f"- {name}: {value}" for name, value in form.items() if value]
    paragraphs = []
    if filled:
        paragraphs.append("\n".join(["I filled in the form “Plan a vacation”:", "", *filled]))
    paragraphs.extend(remarks(trip))
    questions = missing(trip)
    if len(questions) == 1:
        paragraphs.append(questions[0])
    else:
        listed = "\n".join(f"{number}. {words}" for number, words in enumerate(questions, 1))
        paragraphs.append(f"Some fields are empty:\n\n{listed}")
    return "\n\n".join(paragraphs)


def remarks(trip: Trip) -> list[str]:
    """How the last sentence was read, and what was not understood."""
    said = [*trip.days.problems, *trip.days.notes, *trip.notes]
    if trip.unknown:
        words = ", ".join(f"“{clause}”" for clause in trip.unknown)
        said.append(f"I do not understand {words}, and go on without it.")
    return [" ".join(said)] if said else []


def wishes_of(trip: Trip) -> Wishes | None:
    """The trip as a request to plan; None if something is missing."""
    days = trip.days
    if missing(trip) or days.departure is None or trip.budget is None:
        return None
    back = days.back or days.departure + dt.timedelta(days=min(days.nights, MOST_NIGHTS))
    budget = trip.budget.dollars * (trip.travelers if trip.budget.each else 1)
    return Wishes(
        destination=trip.destination,
        departure=days.departure.isoformat(),
        back=back.isoformat(),
        travelers=trip.travelers,
        budget=budget,
        night=trip.night,
        home=trip.home or HOME,
        flights=trip.flights or FLIGHTS,
        sea=trip.sea,
        remarks=" ".join(remarks(trip)),
    )


def _found(text: str, today: dt.date, before: Trip | None, *, answers: bool) -> Trip:
    """What one sentence says."""
    known = before or Trip()
    sentence = Sentence(text)
    found = Trip(days=take_days(sentence, today, known.days, answers=answers))
    for money in take_money(sentence):
        if money.words:
            found.notes.append(money.words)
        if money.night:
            found.night = money.dollars
        else:
            found.budget = money
    found.sea = sentence.take(_SEA) is not None
    if match := sentence.take(_FLIGHTS):
        found.flights = match[1].lower()
    found.travelers = take_people(sentence, answers=answers and not known.travelers)
    found.home = take_home(sentence)
    listed = found.facts >= 2  # "lisbon, may 10 to 17, two people"
    found.destination = take_destination(
        sentence,
        answers=(answers or listed) and not known.destination,
        again=before is not None,
    )
    if found.budget is None and known.budget is None:
        found.budget = take_bare_amount(sentence)
    found.unknown = sentence.clauses()
    return found


def _merged(before: Trip, found: Trip, today: dt.date, *, first: bool = False) -> Trip:
    """A trip with what another sentence says. After the `first` one, what need not be known has a
    default, because it has been asked for.
    """
    days = _merged_days(before.days, found.days, today)
    trip = msgspec.structs.replace(
        before,
        destination=found.destination or before.destination,
        home=found.home or before.home,
        days=days,
        travelers=found.travelers or before.travelers,
        budget=found.budget if found.budget is not None else before.budget,
        night=found.night or before.night,
        flights=found.flights or before.flights,
        sea=found.sea or before.sea,
        notes=found.notes,
        unknown=found.unknown,
    )
    if found.days.free and trip.budget is None and days.departure is not None:
        trip.budget = Money(0)
    if not first and trip.destination and days.departure and (days.back or days.nights):
        if not trip.travelers:
            trip.travelers = 1
            trip.notes = [*trip.notes, "You did not say how many travel: I plan for one."]
        if trip.budget is None:
            trip.budget = Money(0)
            trip.notes = [*trip.notes, "You named no budget: I plan without a limit."]
    return trip


def _merged_days(before: Days, found: Days, today: dt.date) -> Days:
    """Days with what another sentence says about them."""
    departure = found.departure or before.departure
    back = found.back or before.back
    nights = found.nights or before.nights
    if found.departure and not found.back:
        # another departure keeps the duration
        if before.departure and before.back:
            nights = found.nights or (before.back - before.departure).days
        back = None if before.departure or found.nights else before.back
    elif found.nights and not found.back:
        back = None
    elif found.month and before.departure and not found.departure:
        departure = None
        if before.back:
            nights = found.nights or (before.back - before.departure).days
        back = None
    days = Days(
        departure=departure,
        back=back,
        month=found.month or before.month,
        part=found.part if found.month else before.part,
        nights=nights,
        weekend=found.weekend or before.weekend,
        free=found.free,
        notes=list(found.notes),
        problems=list(found.problems),
    )
    if days.departure is None and days.free:
        days.departure = chosen_day(days, today)
        if days.departure is not None:
            weekday = "Friday" if days.weekend else "Saturday"
            days.notes.append(f"I choose the {weekday}, {days.departure}.")
    return days


def _digits(text: str, otherwise: int) -> int:
    found = re.search(r"\d+", text.replace(",", ""))
    return int(found[0]) if found else otherwise


def _nights(count: int) -> str:
    return f"{count} day{'' if count == 1 else 's'}"
