"""Where results too large for a conversation are kept, to be read a page at a time."""

from __future__ import annotations

from collections import OrderedDict


class Shelf:
    """Long texts by a short name; the oldest go when `most` bytes are passed."""

    def __init__(self, page: int, most: int) -> None:
        self.page, self._most = page, most
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._size = 0
        self._count = 0

    def put(self, text: str) -> str:
        """Keep a text; its name."""
        self._count += 1
        name = f"r{self._count}"
        self._texts[name] = text
        self._size += _bytes(text)
        while self._size > self._most and len(self._texts) > 1:
            _, gone = self._texts.popitem(last=False)
            self._size -= _bytes(gone)
        return name

    def pages(self, name: str) -> int:
        """How many pages a text has; 0 for one that is not here."""
        return -(-len(self._texts.get(name, "")) // self.page)

    def read(self, name: str, page: int) -> str | None:
        """A page, counted from 1; None where there is none."""
        text = self._texts.get(name)
        if text is None or not 1 <= page <= self.pages(name):
            return None
        return text[(page - 1) * self.page : page * self.page]


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
