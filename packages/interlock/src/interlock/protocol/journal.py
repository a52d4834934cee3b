"""The journal of a call: the answers to its questions so far by name, so that its tool can run
again from the top.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..types.input import InputRequest

_sorted = msgspec.json.Encoder(order="sorted").encode


class Journal:
    """Answers by key. A question's key is the author's own, or its ordinal and the digest of its
    words.

    `entries` is what travels between rounds; both answers (raw JSON values) and results of `once`
    are in it.
    """

    def __init__(self, entries: dict[str, Any] | None = None) -> None:
        self.entries: dict[str, Any] = dict(entries or {})
        self._asked = 0
        self._named: set[str] = set()

    def key(self, request: InputRequest, name: str | None = None) -> str:
        """The key of the next question; the same questions in the same order get the same keys in
        every run (`MRT-04`).
        """
        if name is not None:
            self._claim(name)
            return name
        self._asked += 1
        # late: only for calls that ask, which spares every other server its start-up
        import hashlib

        digest = hashlib.blake2s(_sorted(request), digest_size=6).hexdigest()
        return f"{self._asked}.{digest}"

    def once_key(self, name: str) -> str:
        """The key under which the result of something that must happen once is kept."""
        key = f"once {name}"
        self._claim(key)
        return key

    def _claim(self, key: str) -> None:
        if key in self._named:
            raise ValueError(
                f"the key {key!r} is used twice in one call; give each question its own"
            )
        self._named.add(key)
