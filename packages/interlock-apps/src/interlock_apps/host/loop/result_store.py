"""The store of large results, which the model reads page by page."""

from __future__ import annotations

from interlock.caches import BoundedCache


class ResultStore:
    """Long texts by a short name; the oldest go when `most` bytes are passed."""

    def __init__(self, page: int, most: int) -> None:
        self.page = page
        self._most = most
        self._texts: BoundedCache[str, str] = BoundedCache(most_size=most)
        self._count = 0

    def put(self, text: str) -> str:
        """Keep a text; its name."""
        self._count += 1
        name = f"r{self._count}"
        # The newest text is kept in any case, even if it alone is larger than the store.
        self._texts.put(name, text, min(_bytes(text), self._most))
        return name

    def pages(self, name: str) -> int:
        """How many pages a text has; 0 for one that is not here."""
        return -(-len(self._texts.peek(name) or "") // self.page)

    def read(self, name: str, page: int) -> str | None:
        """A page, counted from 1; None where there is none."""
        text = self._texts.peek(name)
        if text is None or not 1 <= page <= self.pages(name):
            return None
        return text[(page - 1) * self.page : page * self.page]


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
