"""Newline framing: splits bytes into lines with a size limit, without copying a long line twice."""

from __future__ import annotations

from .jsonrpc import Frame

DEFAULT_LIMIT = 64 * 1024 * 1024
# Smaller pieces are joined, so that a line that arrives byte by byte costs no more memory than its
# bytes.
_CRUMB = 4096


class LineSplitter:
    """Collects bytes and returns whole lines (2026-07-28, "stdio"). `limit` is the maximum length
    of a line in bytes.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit
        self.dropped = 0  # the number of lines that were too long, so far
        self._parts: list[bytes] = []
        self._held = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> list[Frame]:
        """Add bytes. Returns the lines that are complete now, without newlines and without empty
        lines.
        """
        end = chunk.rfind(b"\n")
        if end < 0:
            self._hold(chunk)
            return []
        if self._parts or self._skipping:
            first = chunk.find(b"\n")
            lines = self._finish(chunk[:first])
            if first < end:
                lines += self._whole(chunk[first + 1 : end])
        else:
            lines = self._whole(chunk[:end])
        if end + 1 < len(chunk):
            self._hold(chunk[end + 1 :])
        return lines

    def close(self) -> list[Frame]:
        """End the input. Returns the last line, if it had no newline."""
        return self._finish(b"")

    def _whole(self, block: bytes) -> list[Frame]:
        if len(block) <= self.limit:
            return [line for line in block.split(b"\n") if line and line != b"\r"]
        lines = [line for line in block.split(b"\n") if line and line != b"\r"]
        sound = [line for line in lines if len(line) <= self.limit]
        self.dropped += len(lines) - len(sound)
        return sound

    def _hold(self, part: bytes) -> None:
        if self._skipping:
            return
        self._held += len(part)
        if self._held > self.limit:
            self._parts.clear()
            self._held = 0
            self._skipping = True
            self.dropped += 1
        elif self._parts and len(self._parts[-1]) + len(part) <= _CRUMB:
            self._parts[-1] += part
        else:
            self._parts.append(part)

    def _finish(self, tail: bytes) -> list[Frame]:
        self._hold(tail)
        line = b"".join(self._parts)
        self._parts.clear()
        self._held = 0
        if self._skipping:
            self._skipping = False
            return []
        return [line] if line and line != b"\r" else []
