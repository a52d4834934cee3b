"""robots.txt (RFC 9309): what a site allows crawlers, and which rule decides about a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from interlock import ToolError

if TYPE_CHECKING:
    from protego import Protego

MOST = 500 * 1024  # bytes of a robots.txt that are used (2.5)
_PRODUCT = re.compile(r"[A-Za-z_-]+")


class RobotsRule(NamedTuple):
    """A rule and its line number, from 1."""

    number: int
    field: str
    path: str

    def __str__(self) -> str:
        return f"{self.field.capitalize()}: {self.path}"


def lines_for(text: str, token: str) -> list[RobotsRule]:
    """The rules of the groups for a crawler, or else of those for all crawlers (2.2.1).

    They are selected here, so that a file with thousands of groups costs no more than its length.
    """
    groups: dict[bool, list[RobotsRule]] = {True: [], False: []}
    named: set[bool] = set()  # of the current group: whether it is for this crawler, or for all
    ours = in_rules = False
    for number, text_line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        field, colon, value = text_line.partition("#")[0].partition(":")
        field = field.strip().lower()
        value = value.strip()
        if not colon:
            continue
        if field in ("user-agent", "useragent", "user agent"):
            if in_rules:
                named = set()
                in_rules = False
            product = _PRODUCT.match(value)
            if value == "*":
                named.add(False)
            elif product and product[0].lower() == token.lower():
                named.add(True)
                ours = True
        elif field in ("allow", "disallow"):
            in_rules = True
            if value:
                for which in named:
                    groups[which].append(RobotsRule(number, field, value))
    return groups[ours]


class RobotsRules:
    """The rules of a site for a crawler. Parsing can be slow: run it in a thread."""

    def __init__(self, text: str, token: str) -> None:
        self.lines = lines_for(text, token)
        self._rules = _read(self.lines)

    def forbids(self, url: str) -> RobotsRule | None:
        """The rule that forbids a URL; None if it is allowed (2.2.2)."""
        if self._rules.can_fetch(url, "any"):
            return None
        against = [line for line in self.lines if line.field == "disallow"]
        for line in sorted(against, key=lambda line: len(line.path), reverse=True):
            if not _read([line]).can_fetch(url, "any"):
                return line
        return against[0]


def _read(lines: list[RobotsRule]) -> Protego:
    try:
        from protego import Protego  # optional extra `servers`
    except ImportError:
        raise ToolError(
            "Reading robots.txt needs protego. On the server, run: pip install 'interlock[servers]'"
        ) from None
    return Protego.parse("\n".join(["User-agent: *", *map(str, lines)]))
