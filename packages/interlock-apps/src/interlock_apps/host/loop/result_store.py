"""The store of large results, which the model reads in pages."""

from __future__ import annotations

from interlock.caches import BoundedCache


class ResultStore:
    """Long texts by a short name; beyond `most` bytes the oldest are dropped."""

    def __init__(self, page: int, most: int) -> None:
        self.page = page
        self._most = most
        self._texts: BoundedCache[str, str] = BoundedCache(most_size=most)
        self._count = 0

    def put(self, text: str) -> str:
        """Store a text; return its name."""
        self._count += 1
        name = f"r{self._count}"
        # The newest text is always kept, even if it is larger than the store.
        self._texts.put(name, text, min(_bytes(text), self._most))
        return name

    def pages(self, name: str) -> int:
        """The number of pages of a text; 0 if it is not stored."""
        return -(-len(self._texts.peek(name) or "") // self.page)

    def read(self, name: str, page: int) -> str | None:
        """A page, counted from 1; None if there is none."""
        text = self._texts.peek(name)
        if text is None or not 1 <= page <= self.pages(name):
            return None
        return text[(page - 1) * self.page : page * self.page]


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
