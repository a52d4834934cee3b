"""Folder of iCalendar files, one for each calendar, which are replaced atomically."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from interlock import ToolError
from interlock.store import StoreError, file_lock, own_path, write_atomic

from .ical_text import MOST_BYTES, IcalDocument, InvalidCalendar, empty

if TYPE_CHECKING:
    from .events import CalendarEntry

FOLDER_VARIABLE = "INTERLOCK_CALENDAR_FOLDER"
DEFAULT = "my-calendar"
MOST_CALENDARS = 100
PATIENCE = 10.0  # seconds to wait for another process that changes the same calendar
_ATTEMPTS = 5
_PLAIN = re.compile(r"[^\x00-\x1f\x7f/\\:.][^\x00-\x1f\x7f/\\:]{0,99}")

Signature = tuple[int, int, int]


class CalendarFile(IcalDocument):
    """The file of a calendar as last read, with its events.

    `unread` counts events without a readable time.
    """

    def __init__(self, data: bytes, signature: Signature | None) -> None:
        super().__init__(data)
        self.signature = signature
        self.entries: list[CalendarEntry] = []
        self.unread = 0
        # the years with events up to a given year, computed on demand
        self.years: tuple[int, set[int]] | None = None


class Calendars:
    """The calendars of a folder, thread-safe.

    Reading does not change a file. Files are cached until they change. Methods raise ToolError.
    """

    def __init__(
        self, folder: str | os.PathLike[str] | None = None, today: Callable[[], date] = date.today
    ) -> None:
        self._folder = Path(folder) if folder is not None else None
        self.today = today
        self._pages: dict[str, CalendarFile] = {}
        self.listed: set[int] = set()  # the years that are listed as resources

    @property
    def folder(self) -> Path:
        """The folder of the files: the one given, the environment's, or the default in the user's
        data.
        """
        if self._folder is None:
            try:
                self._folder = own_path(FOLDER_VARIABLE, "calendars")
            except StoreError as bad:
                raise ToolError(str(bad)) from None
        return self._folder

    def names(self) -> list[str]:
        """The names of the calendars: file names without `.ics`."""
        try:
            found = sorted(
                path.stem
                for path in self.folder.iterdir()
                if path.suffix == ".ics" and _PLAIN.fullmatch(path.stem)
            )
        except FileNotFoundError:
            return []
        except OSError as bad:
            raise ToolError(
                f"The folder of the calendars cannot be read: {bad.strerror}."
            ) from None
        if len(found) > MOST_CALENDARS:
            raise ToolError(
                f"There are more than {MOST_CALENDARS} calendars in the folder, which is "
                "too many to read."
            )
        return found

    def entries(self, calendar: str | None = None) -> list[CalendarEntry]:
        """The events of one calendar, or of all calendars."""
        return [entry for page in self.pages(calendar).values() for entry in page.entries]

    def pages(self, calendar: str | None = None) -> dict[str, CalendarFile]:
        """One calendar, or all of them, by name; the default calendar may be missing."""
        there = self.names()
        if calendar is not None and calendar not in there:
            if calendar == DEFAULT:
                return {}
            raise ToolError(_unknown(calendar, there))
        pages = {name: self._load(name) for name in (there if calendar is None else [calendar])}
        return {name: page for name, page in pages.items() if page is not None}

    def years(self, last: int) -> set[int]:
        """The years with events; recurring events are expanded up to the year `last`."""
        found: set[int] = set()
        for page in self.pages().values():
            if page.years is None or page.years[0] != last:
                page.years = last, load_days().years_of(page.entries, last)
            found |= page.years[1]
        return found

    def change(self, calendar: str, work: Callable[[CalendarFile], bytes]) -> None:
        """Rewrite a calendar: `work` gets the file and returns its new bytes.

        A missing default calendar is created. Processes that use the lock file take turns. If
        another program has changed the file in the meantime, `work` runs again.
        """
        there = self.names()
        if calendar not in there and calendar != DEFAULT:
            raise ToolError(_unknown(calendar, there))
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._load(calendar)  # parses a large file before other processes have to wait
            with file_lock(self.folder / f".{calendar}.lock", patience=PATIENCE):
                for _ in range(_ATTEMPTS):
                    page = self._load(calendar) or CalendarFile(empty(), None)
                    new = work(page)
                    if len(new) > MOST_BYTES:
                        raise ToolError(
                            f"The calendar {calendar} would have more than {MOST_BYTES} "
                            "bytes, so it was not changed."
                        )
                    IcalDocument(new)  # never replaces a valid file by one that cannot be parsed
                    if self._written(calendar, page, new):
                        return
        except InvalidCalendar as bad:
            raise ToolError(
                f"The calendar {calendar} was not changed: the change would break it ({bad})."
            ) from None
        except TimeoutError:
            raise ToolError(
                f"Another program has locked the calendar {calendar}. Try again later."
            ) from None
        except OSError as bad:
            raise ToolError(
                f"The calendar {calendar} cannot be written and was not changed: {bad.strerror}."
            ) from None
        raise ToolError(
            f"Another program keeps changing the calendar {calendar}; it was not changed. "
            "Try again."
        )

    # -- one file ----------------------------------------------------------------------------------

    def _path(self, calendar: str) -> Path:
        return Path(
            os.path.realpath(self.folder / f"{calendar}.ics")
        )  # a symbolic link stays in place; its target is replaced

    def _load(self, calendar: str) -> CalendarFile | None:
        """The file and its events; None if there is no such file."""
        days = load_days()
        path = self._path(calendar)
        known = self._pages.get(calendar)
        try:
            with path.open("rb") as file:
                signature = _signature(os.fstat(file.fileno()))
                if known is not None and known.signature == signature:
                    return known
                data = file.read(MOST_BYTES + 1)
        except FileNotFoundError:
            self._pages.pop(calendar, None)
            return None
        except OSError as bad:
            raise ToolError(f"The calendar {calendar} cannot be read: {bad.strerror}.") from None
        if len(data) > MOST_BYTES:
            raise ToolError(
                f"The calendar {calendar} has more than {MOST_BYTES} bytes, which is too "
                "large to read."
            )
        try:
            page = CalendarFile(data, signature)
            before: dict[bytes, CalendarEntry | None] = (
                {entry.block.raw: entry for entry in known.entries} if known is not None else {}
            )
            page.entries, page.unread = days.entries_of(page, calendar, before)
        except InvalidCalendar as bad:
            raise ToolError(
                f"The file of the calendar {calendar} is broken, so it is neither used "
                f"nor overwritten: {bad}."
            ) from None
        self._pages[calendar] = page
        return page

    def _written(self, calendar: str, page: CalendarFile, data: bytes) -> bool:
        """Replace a file, unless it has changed since it was read."""
        path = self._path(calendar)

        def still() -> bool:
            now = _stat(path)
            return (_signature(now) if now is not None else None) == page.signature

        return write_atomic(path, data, still=still)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _signature(found: os.stat_result) -> Signature:
    return found.st_mtime_ns, found.st_size, found.st_ino


def _unknown(calendar: str, there: list[str]) -> str:
    near = difflib.get_close_matches(calendar, there, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"There is {', '.join(there) or 'none yet'}."
    return f"There is no calendar called {calendar!r}. {hint}"


def load_days() -> ModuleType:
    """The module for dates and recurrence.

    Raises ToolError if icalendar is not installed.
    """
    try:
        from . import (
            # Optional extra `servers`; imported late, because it takes longer than everything else
            events as days,
        )
    except ImportError:
        raise ToolError(
            "The calendar server needs icalendar. Install it with: pip install 'interlock[servers]'"
        ) from None
    return days
