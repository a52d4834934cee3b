"""Secrets of a server's configuration have no place in words, log lines and errors: what stands there instead."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

from interlock import McpError, Unreachable

from ..config.entries import DOTS

_TAIL = (
    8 * 1024
)  # bytes of stderr that are kept of a process: where there are as many, the first word may be the end of one
_SHORTEST_LINE = 8  # of a secret of several lines; a shorter one, like a brace, is none


class Secrecy:
    """Puts dots in the place of secrets, as they are or as URLs and JSON have them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """These are the secrets from now on."""
        known = {form for secret in secrets if secret for form in _forms(secret)}
        self.longest = max(map(len, known), default=0)
        self._pattern = (
            re.compile("|".join(re.escape(form) for form in sorted(known, key=len, reverse=True)))
            if known
            else None
        )

    def text(self, text: str) -> str:
        """A text without secrets."""
        return text if self._pattern is None else self._pattern.sub(DOTS, text)

    def beginning(self, text: str, most: int) -> str:
        """The first `most` characters of a text, without secrets and without the first part of one that is cut through."""
        whole = len(text) <= most + self.longest
        cut = self.text(text if whole else text[: most + self.longest])
        return cut if whole and len(cut) <= most else f"{cut[:most]}…"

    def tail(self, text: str) -> str:
        """The last of what a process wrote, without secrets and without the last part of one that was cut through."""
        if len(text.encode("utf-8", "surrogatepass")) >= _TAIL:
            text = text[self.longest :]
        return self.text(text)

    def data(self, value: Any) -> Any:
        """A JSON value without secrets."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.data(key): self.data(member) for key, member in value.items()}
        return [self.data(item) for item in value] if isinstance(value, list | tuple) else value

    def hide(self, bad: BaseException) -> None:
        """Take the secrets out of an error, and of those that led to it."""
        seen: set[int] = set()
        error: BaseException | None = bad
        while error is not None and id(error) not in seen and self._pattern is not None:
            seen.add(id(error))
            error.args = tuple(self.data(argument) for argument in error.args)
            if isinstance(error, Unreachable):
                error.stderr = self.tail(error.stderr)
            elif isinstance(error, McpError):
                error.message, error.data = self.text(error.message), self.data(error.data)
            elif isinstance(error, OSError):
                error.strerror, error.filename = (
                    self.data(error.strerror),
                    self.data(error.filename),
                )
            error = error.__cause__ or error.__context__


def _forms(secret: str) -> Iterable[str]:
    raw = secret.encode("utf-8", "surrogatepass")
    yield from (secret, quote(raw), quote(raw, safe=""), quote_plus(raw))
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    lines = secret.splitlines()
    if len(lines) > 1:  # it comes line by line
        yield from (line for line in lines if len(line) >= _SHORTEST_LINE)
