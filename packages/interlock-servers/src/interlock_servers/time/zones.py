"""Finds time zones by exact name, offset, city, country or abbreviation."""

from __future__ import annotations

import os
import re
import unicodedata
import zoneinfo
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from interlock import ToolError

VARIABLE = "INTERLOCK_TIME_ZONE"
MOST_LETTERS = 100  # in a name or a search
_OFFSET = re.compile(r"(?:UTC|GMT)?\s*([+-])(\d{1,2})(?::?([0-5]\d))?", re.ASCII | re.IGNORECASE)
_NOT_FOR_USE = {"Factory", "localtime"}  # placeholders, not zones
_HALF_A_YEAR = timedelta(days=182)
# Large cities that no zone is named after.
_CITIES = {
    "Africa/Johannesburg": "Cape Town, Durban, Pretoria",
    "America/Chicago": "Austin, Dallas, Houston, Minneapolis, New Orleans, San Antonio",
    "America/Los_Angeles": "Las Vegas, Portland, San Diego, San Francisco, San Jose, Seattle",
    "America/New_York": "Atlanta, Boston, Miami, Philadelphia, Washington",
    "America/Sao_Paulo": "Brasilia, Rio de Janeiro",
    "America/Toronto": "Montreal, Ottawa, Quebec",
    "Asia/Dubai": "Abu Dhabi",
    "Asia/Ho_Chi_Minh": "Hanoi",
    "Asia/Jerusalem": "Haifa, Tel Aviv",
    "Asia/Karachi": "Islamabad, Lahore",
    "Asia/Kolkata": (
        "Bangalore, Bengaluru, Bombay, Chennai, Delhi, Hyderabad, Mumbai, New Delhi, Pune"
    ),
    "Asia/Riyadh": "Jeddah, Mecca",
    "Asia/Shanghai": "Beijing, Guangzhou, Peking, Shenzhen, Wuhan",
    "Asia/Tokyo": "Kyoto, Nagoya, Osaka, Sapporo, Yokohama",
    "Australia/Sydney": "Canberra",
    "Europe/Berlin": "Bonn, Cologne, Frankfurt, Hamburg, Leipzig, Munich, Stuttgart",
    "Europe/Istanbul": "Ankara, Izmir",
    "Europe/London": "Birmingham, Cardiff, Edinburgh, Glasgow, Liverpool, Manchester",
    "Europe/Madrid": "Barcelona, Bilbao, Sevilla, Seville, Valencia",
    "Europe/Moscow": "Saint Petersburg, St Petersburg",
    "Europe/Paris": "Bordeaux, Lyon, Marseille, Nice, Toulouse",
    "Europe/Rome": "Florence, Milan, Naples, Turin, Venice",
    "Europe/Warsaw": "Gdansk, Krakow, Wroclaw",
    "Europe/Zurich": "Basel, Bern, Geneva",
    "Pacific/Auckland": "Christchurch, Wellington",
}


class ZoneMatch(NamedTuple):
    """A zone that matches a search: name, country, and what it was found by."""

    name: str
    country: str | None
    by: str


class Zones:
    """All time zones of this machine, read on first use."""

    @cached_property
    def names(self) -> dict[str, str]:
        """The names by their case-folded form. Raises ToolError if there are none."""
        found = sorted(zoneinfo.available_timezones() - _NOT_FOR_USE)
        if not found:
            raise ToolError(
                "This machine has no time zone data. Run `pip install tzdata` where this server "
                "is installed, and try again."
            )
        return {name.casefold(): name for name in found}

    def zone(self, name: str) -> tzinfo:
        """The zone with a name in any case, or for an offset such as +05:30.

        Raises ToolError, with similar names.
        """
        text = name.strip()[:MOST_LETTERS]
        if text.casefold() in ("utc", "z"):
            return UTC  # needs no data
        known = self.names.get(text.replace(" ", "_").casefold())
        if known is not None:  # no other file is opened, whatever the caller sent
            return zoneinfo.ZoneInfo(known)
        if (offset := offset_of(text)) is not None:
            return timezone(offset)
        raise ToolError(f"There is no time zone {text!r}. {self._advice(text)}")

    def _advice(self, text: str) -> str:
        now = datetime.now(UTC)  # abbreviations rarely change, so any clock will do
        found = self.search(text.rpartition("/")[2], now, len(self.names))
        if found and found[0].by == "abbreviation":
            # One zone for each offset, because only that differs: a whole continent would be too
            # long to read.
            apart = {
                now.astimezone(self._opened[one.name]).utcoffset(): one.name
                for one in reversed(found)
                if one.by == "abbreviation"
            }
            return (
                f"Clocks say {text.upper()} in {', '.join(sorted(apart.values()))} and "
                "elsewhere: name the zone that you mean."
            )
        cities = {_plain(name.rpartition("/")[2]): name for name in self.names.values()}
        near = [one.name for one in found[:5]] or [
            cities[key] for key in get_close_matches(_plain(text.rpartition("/")[2]), cities, 3)
        ]
        meant = f"Did you mean {', '.join(near)}? " if near else ""
        return f"{meant}Names are like Europe/Madrid; find_timezones finds them by city or country."

    def completed(self, value: str) -> list[str]:
        """The names that begin with a text, then those with a part that does."""
        wanted = value.strip().replace(" ", "_").casefold()
        first = [name for key, name in self.names.items() if key.startswith(wanted)]
        part = re.compile(rf"(?<=[/_-]){re.escape(wanted)}") if wanted else None
        return list(
            dict.fromkeys(
                [*first, *(name for key, name in self.names.items() if part and part.search(key))]
            )
        )

    # -- searching ---------------------------------------------------------------------------------

    def search(self, text: str, moment: datetime, limit: int) -> list[ZoneMatch]:
        """The zones that a text may mean, best first.

        `moment` is the time for which offsets and abbreviations are compared.
        """
        wanted = _plain(text)
        offset = offset_of(text.strip())
        if not wanted and offset is None:
            return []
        ranked: list[
            tuple[int, bool, str, str]
        ] = []  # names without a country come later: most are old
        for name in self.names.values():
            if offset is not None:
                if moment.astimezone(self._opened[name]).utcoffset() == offset:
                    ranked.append((0, name not in self._places, name, "offset"))
            elif (match := self._match(name, wanted, moment)) is not None:
                ranked.append((match[0], name not in self._places, name, match[1]))
        return [
            ZoneMatch(name, self._country(name)[1] or None, by)
            for _, _, name, by in sorted(ranked)[:limit]
        ]

    def _match(self, name: str, wanted: str, moment: datetime) -> tuple[int, str] | None:
        """How well a zone matches (0 is best), and by what; None if it does not."""
        code, country, about = self._country(name)
        whole = _plain(name)
        city = _plain(name.rpartition("/")[2])
        cities = [_plain(one) for one in _CITIES.get(name, "").split(",") if one]
        if wanted in (whole, city) or wanted in cities:
            return 0, "city"
        if self._says(name, wanted, moment):
            return 1, "abbreviation"
        if wanted in (code.casefold(), _plain(country)):
            return 2, "country"
        if city.startswith(wanted) or any(one.startswith(wanted) for one in cities):
            return 3, "city"
        if len(wanted) > 2:  # two letters occur in too many names
            if wanted in whole:
                return 4, "city"
            if wanted in _plain(country) or wanted in _plain(about):
                return 5, "country"
        return None

    def _says(self, name: str, wanted: str, moment: datetime) -> bool:
        zone = self._opened[name]
        return wanted.isalpha() and any(
            (when.astimezone(zone).tzname() or "").casefold() == wanted
            for when in (moment, moment + _HALF_A_YEAR)
        )

    @cached_property
    def _opened(self) -> dict[str, zoneinfo.ZoneInfo]:
        return {name: zoneinfo.ZoneInfo(name) for name in self.names.values()}

    def _country(self, name: str) -> tuple[str, str, str]:
        """The code and name of a zone's country, and the table's comment on the zone; empty if
        unknown.
        """
        return self._places.get(name, ("", "", ""))

    @cached_property
    def _places(self) -> Mapping[str, tuple[str, str, str]]:
        countries = {row[0]: row[1] for row in _rows("iso3166.tab")}
        return {
            row[2]: (row[0], countries.get(row[0], ""), "".join(row[3:]))
            for row in _rows("zone.tab")
        }


def own_zone(environment: Mapping[str, str] = os.environ, etc: Path = Path("/etc")) -> str:
    """The name of the user's zone: from INTERLOCK_TIME_ZONE or TZ, else from the system (`etc`),
    else UTC.

    A rule such as CET-1CEST in TZ has no name and is ignored.
    """
    if name := environment.get(VARIABLE, "").strip():
        return name
    if _is_zone(named := _below_zoneinfo(environment.get("TZ", "").removeprefix(":"))):
        return named
    try:
        if _is_zone(linked := _below_zoneinfo(os.path.realpath(etc / "localtime"))):
            return linked
        if _is_zone(written := (etc / "timezone").read_text(encoding="utf-8").strip()):
            return written
    except (OSError, UnicodeDecodeError):
        pass  # not every system has these files
    return "UTC"


def offset_of(text: str) -> timedelta | None:
    """An offset in common notation: +05:30, UTC+2, GMT-3; None for anything else."""
    found = _OFFSET.fullmatch(text)
    if found is None or int(found[2]) > 23:
        return None
    size = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return -size if found[1] == "-" else size


def _below_zoneinfo(path: str) -> str:
    return path.rpartition("/zoneinfo/")[2].removeprefix("posix/")


def _is_zone(name: str) -> bool:
    try:
        return bool(name) and zoneinfo.ZoneInfo(name) is not None
    except (
        KeyError,
        OSError,
        ValueError,
    ):  # no such zone, a folder, or a path that leads elsewhere
        return False


def _rows(name: str) -> Iterator[list[str]]:
    """The rows of a table from the time zone database; none if this machine's database lacks it."""
    for folder in zoneinfo.TZPATH:
        try:
            text = Path(folder, name).read_text(encoding="utf-8")
            break
        except OSError:
            continue
    else:
        try:
            text = (resources.files("tzdata") / "zoneinfo" / name).read_text(encoding="utf-8")
        except (ImportError, OSError):
            return
    yield from (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))


def _plain(text: str) -> str:
    """A text without case, accents, underscores and extra spaces."""
    letters = "".join(
        one
        for one in unicodedata.normalize("NFKD", text[:MOST_LETTERS])
        if not unicodedata.combining(one)
    )
    return " ".join(letters.casefold().replace("_", " ").split())
