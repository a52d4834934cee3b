"""Files that a page has uploaded and not sent yet, by the digest of their content."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

from ..attachments import AttachedFile, FileRefused

MOST_WAITING = 100_000_000  # bytes of all files that wait; beyond it the oldest are dropped


class Uploads:
    """The uploaded files of the pages of one host, in memory until a message has them."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._most = most
        self._size = 0
        self._files: OrderedDict[str, AttachedFile] = OrderedDict()

    def add(self, file: AttachedFile) -> str:
        """Keep a file; return its id: the digest of its content and name."""
        digest = hashlib.sha256(file.name.encode("utf-8", "surrogatepass") + b"\0" + file.data)
        id = digest.hexdigest()
        self.remove(id)
        self._files[id] = file
        self._size += len(file.data)
        while self._size > self._most and len(self._files) > 1:
            self.remove(next(iter(self._files)))
        return id

    def named(self, ids: Sequence[str]) -> list[AttachedFile]:
        """The files with these ids. Raises FileRefused if one is no longer there."""
        if any(id not in self._files for id in ids):
            raise FileRefused("An attached file is no longer here. Attach it again.")
        return [self._files[id] for id in ids]

    def remove(self, id: str) -> None:
        """Forget a file."""
        if (gone := self._files.pop(id, None)) is not None:
            self._size -= len(gone.data)
