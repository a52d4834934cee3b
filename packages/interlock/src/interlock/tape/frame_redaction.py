"""Redaction of what is recorded: secrets are taken out before anything reaches the file.

Three things count as a secret: known values (of the server's environment, arguments and headers),
text with the shape of a key, and members of JSON objects whose name says so, such as `password` or
`accessToken`. A value found by its name is redacted from then on wherever it occurs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ..redaction import (
    DOTS,
    Redactor,
    is_secret_word,
    is_secretive,
    redacted,
    secrets_in,
    secrets_in_command,
    without_keys,
)
from ..wire.jsonrpc import READ_ERRORS, Frame

_MOST_LEARNED = 200  # values found by their names; each costs a search in every message
_SHORTEST_LEARNED = 8  # characters; a shorter value occurs by chance
# Members of the protocol and of common results whose names look like those of secrets.
_HARMLESS_MEMBERS = frozenset(
    {
        "progressToken",
        "nextPageToken",
        "pageToken",
        "continuationToken",
        "key",
        "sig",
        "pat",
        "pass",
    }
)
_SECRET_ENDINGS = (
    "key", "token", "secret", "password", "passwd", "passphrase", "pwd", "auth", "authorization",
    "bearer", "credential", "credentials", "cookie", "dsn", "signature",
    "_pass", "-pass", ".pass", "_pat", "-pat", ".pat", "_sig", "-sig", ".sig",
)  # fmt: skip


def _behind(end: str) -> str:
    """The pattern of a place that follows one of the names."""
    return "|".join(f"(?<={re.escape(ending)}{end})" for ending in _SECRET_ENDINGS)


# The name of a member, in lower case. In JSON within a string of JSON, its quotation mark is
# escaped. The first look-behind, at two characters, rules out most names: the search is quick.
_LAST_TWO = "|".join(sorted({ending[-2:] for ending in _SECRET_ENDINGS}))
_find_secret_name = re.compile(
    rf"""":(?:(?<=(?:{_LAST_TWO})":)(?<!progresstoken":)(?:{_behind('":')})"""
    rf"""|(?<=\\":)(?:{_behind(chr(92) * 2 + '":')}))"""
).search
# Values of variables such as DISABLE_AUTH.
_COMMON_VALUES = frozenset(
    {"true", "false", "null", "none", "basic", "bearer", "token", "oauth", "auto", "default"}
    | {"enabled", "disabled", "optional", "required", "always", "never", "anonymous", "public"}
)
_SHORTEST_NUMBER = 6  # digits
_json = msgspec.json.Decoder().decode


class FrameRedactor:
    """Takes the secrets out of messages, stderr and HTTP heads.

    A message without secrets is returned as it is, byte for byte.

    Args:
        secrets: Known values to redact.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._redactor = Redactor(secrets)
        self._learned = 0

    def add(self, *secrets: str) -> None:
        """Redact these values too from now on."""
        self._redactor.add(*secrets)

    def frame(self, frame: Frame) -> Frame:
        """Return a message without secrets."""
        try:
            text = frame.decode()
        except UnicodeDecodeError:
            text = frame.decode("utf-8", "surrogateescape")
            return self._redactor(text).encode("utf-8", "surrogateescape")
        if not self._is_suspicious(text):
            return frame
        try:
            message = _json(frame)
        except READ_ERRORS:
            return self._redactor(text).encode()
        clean = self._data(message)
        encoded = frame if clean == message else msgspec.json.encode(clean)
        # A secret that is a number stands in the message without quotation marks. Then the result
        # is not JSON any more, and the tape keeps it as text.
        rest = encoded.decode()
        return self._redactor.values(rest).encode() if self._redactor.has_any(rest) else encoded

    def text(self, text: str) -> str:
        """Return text without secrets."""
        return self._redactor(text)

    def data(self, value: Any) -> Any:
        """Return a JSON value without secrets."""
        return self._data(value)

    def headers(self, headers: Iterable[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        """Return HTTP headers without secrets. The values of secret headers are redacted from now
        on wherever they occur.
        """
        found = []
        for name, value in headers:
            if is_secretive(name) or name.lower() == "mcp-session-id":
                self._learn(*secrets_in(name, value))
                scheme, blank, _ = value.partition(" ")
                found.append((name, f"{scheme} {DOTS}" if blank and scheme.isalpha() else DOTS))
            else:
                found.append((name, self._redactor(value)))
        return found

    def _is_suspicious(self, text: str) -> bool:
        """Whether a message may contain a secret. It must be quick, because every message of a
        recording passes here.
        """
        if self._redactor.has_any(text) or without_keys(text) != text:
            return True
        # An escaped character hides a secret from the searches above.
        if "\\" in text and ("\\u" in text or "\\/" in text or "\\\\" in text):
            return True
        lowered = text.casefold()
        if _find_secret_name(lowered) is not None:
            return True
        has_blank = " :" in text or "\t:" in text or "\r:" in text or "\n:" in text
        return has_blank and any(ending in lowered for ending in _SECRET_ENDINGS)

    def _data(self, value: Any) -> Any:
        known = self._learned
        clean = redacted(value, self._redactor, hides=self._hides)
        # A value that was found by its name may occur earlier in the same message.
        return (
            redacted(value, self._redactor, hides=self._hides) if self._learned > known else clean
        )

    def _hides(self, name: str, value: Any) -> bool:
        if name in _HARMLESS_MEMBERS or not is_secret_word(name):
            return False
        if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
            return False
        self._learn(str(value))
        return True

    def _learn(self, *values: str) -> None:
        for value in values:
            if len(value) >= _SHORTEST_LEARNED and self._learned < _MOST_LEARNED:
                self._redactor.add(value)
                self._learned += 1


def secrets_of_process(command: Sequence[str], environment: Mapping[str, str]) -> frozenset[str]:
    """Return the secrets that a server's command and environment contain.

    Short numbers and common words are left out: redacting them would make holes in everything.
    """
    found = set(secrets_in_command(command))
    for name, value in environment.items():
        found |= secrets_in(name, value)
    return frozenset(value for value in found if not _is_common(value))


def _is_common(value: str) -> bool:
    return value.lower() in _COMMON_VALUES or (value.isdecimal() and len(value) < _SHORTEST_NUMBER)
