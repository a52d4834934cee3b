"""Secrets in what is to be logged: replaced before anything is written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import quote, quote_plus

Redact = Callable[[str], str]

_LEAST = 6  # characters; what is shorter is found by chance, and would make holes in everything
_NESTED = 4  # texts of JSON within texts of JSON


class Secrets:
    """A function that replaces values in texts: as they are, as JSON writes them within a string, and as URLs do.

    What is shorter than 6 characters is left alone. A secret that is written otherwise, in base64 for example, is not found.
    """

    def __init__(self, values: Iterable[str] = (), *, instead: str = "[secret]") -> None:
        self._instead = instead
        self._values: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.add(*values)

    def add(self, *values: str) -> None:
        """Values to replace from now on."""
        self._values.update(value for value in values if len(value) >= _LEAST)
        forms: set[str] = set()
        for value in self._values:
            forms |= {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
            forms |= {quote(value, safe="", errors="replace"), quote_plus(value, errors="replace")}
        # The longest first: one secret may be the beginning of another.
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __call__(self, text: str) -> str:
        """The text without the secrets."""
        return text if self._pattern is None else self._pattern.sub(lambda _: self._instead, text)


def redacted(value: Any, redact: Redact, nested: int = _NESTED) -> Any:
    """A JSON value with every string in it, keys included, gone through `redact`; also those of JSON that stands in a string."""
    if isinstance(value, str):
        return _text(value, redact, nested)
    if isinstance(value, dict):
        return {redact(key): redacted(part, redact, nested) for key, part in value.items()}
    if isinstance(value, list):
        return [redacted(part, redact, nested) for part in value]
    return value


def _text(text: str, redact: Redact, nested: int) -> str:
    plain = redact(text)
    # Within JSON a secret may be written in more ways than can be listed, with any of its characters escaped.
    if nested and "\\" in plain and plain.lstrip()[:1] in ("{", "[", '"'):
        try:
            inner = json.loads(plain)
        except (ValueError, RecursionError):
            return plain
        clean = redacted(inner, redact, nested - 1)
        if clean != inner:
            return json.dumps(clean, ensure_ascii=False)
    return plain
