"""Finds the last lines of a text from its end, without reading the whole file."""

from __future__ import annotations

import codecs
import os

from interlock import TextContent, ToolError
from interlock.types import ContentBlock
from interlock.untrusted.invisible import visible_line as plain

from .encodings import no_text
from .limits import FilesystemLimits
from .results import ReadResult

_CHUNK = 256 * 1024


def last_lines(
    fd: int, answer: ReadResult, count: int, encoding: str, start: int, limits: FilesystemLimits
) -> tuple[ReadResult, ContentBlock]:
    """The last `count` lines of a file whose text begins at `start`.

    They have line numbers if the file is short enough to count its lines. A longer rest can be read
    by its offset. Raises ToolError if the file is not text, or has lines that are too long to scan.
    """
    begin = _begin_of(fd, count, encoding, start, answer, limits)
    data = bytearray()
    while len(data) < min(answer.size - begin, limits.read) and (
        chunk := os.pread(fd, min(answer.size - begin, limits.read) - len(data), begin + len(data))
    ):
        data += chunk
    whole = begin + len(data) >= answer.size
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        text = decoder.decode(bytes(data), final=whole)
    except UnicodeDecodeError as bad:
        raise no_text(answer.path, encoding, begin + bad.start) from None
    content = _fitting(text, limits.read, whole)
    answer.cut = len(content) < len(text) or not whole
    answer.complete = begin == start and not answer.cut
    if answer.cut:
        answer.next_offset = begin + len(content.encode(encoding))
    if answer.size <= limits.scanned and content:
        answer.first_line = 1 + _breaks(fd, encoding, start, begin)
        answer.last_line = answer.first_line + content.count("\n") - content.endswith("\n")
        answer.lines = answer.last_line if not answer.cut else None
    elif content:
        answer.offset = begin
        answer.length = len(content.encode(encoding))
    return answer, TextContent(content)


def _fitting(text: str, most: int, whole: bool) -> str:
    """The part of a text that fits, in complete lines if it is cut."""
    data = text.encode("utf-8", "surrogatepass")
    if whole and len(data) <= most:
        return text
    kept = data[:most].decode("utf-8", "ignore")
    return kept[: kept.rfind("\n") + 1] or kept


def _begin_of(
    fd: int, count: int, encoding: str, start: int, answer: ReadResult, limits: FilesystemLimits
) -> int:
    """The offset at which the last `count` lines begin.

    The line feed at the end of a file does not begin a line.
    """
    feed = "\n".encode(encoding)
    width = len(feed)
    at = answer.size - (answer.size - start) % width
    if at > start and os.pread(fd, width, at - width) == feed:
        at -= width
    while at > start:
        low = max(start, at - _CHUNK)
        chunk = os.pread(fd, at - low, low)
        end = len(chunk)
        while (found := chunk.rfind(feed, 0, end)) >= 0:
            if found % width:
                end = found + width - 1  # the halves of two other characters
                continue
            count -= 1
            if not count:
                return low + found + width
            end = found
        at = low
        if answer.size - at > limits.scanned:
            raise ToolError(
                f"{plain(answer.path)} has lines that are too long. Read bytes of it with "
                "offset and length."
            )
    return start


def _breaks(fd: int, encoding: str, start: int, end: int) -> int:
    """The number of line feeds between two offsets."""
    count = 0
    at = start
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    wide = len("\n".encode(encoding)) > 1
    while at < end and (chunk := os.pread(fd, min(_CHUNK, end - at), at)):
        count += decoder.decode(chunk).count("\n") if wide else chunk.count(b"\n")
        at += len(chunk)
    return count
