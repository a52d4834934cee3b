"""Reads whole files, lines or bytes, as text or media, within the limit of a result."""

from __future__ import annotations

import codecs
import os
from base64 import b64encode
from collections.abc import Iterator

from interlock import Audio, EmbeddedResource, Image, ResourceContents, TextContent, ToolError
from interlock.types import ContentBlock
from interlock.untrusted.invisible import visible_line as plain

from .encodings import decoded, encoding_of, is_medium, no_text, type_of
from .limits import FilesystemLimits
from .resolve import ResolvedPath
from .results import ReadResult, version_of
from .tail import last_lines

_HEAD = 4096
_CHUNK = 256 * 1024


class ReadRange:
    """The requested part of a file: lines, bytes, or as much as fits.

    Raises ToolError if both lines and bytes are given.
    """

    def __init__(
        self,
        first_line: int | None = None,
        last_line: int | None = None,
        offset: int | None = None,
        length: int | None = None,
    ) -> None:
        self.lines = first_line is not None or last_line is not None
        self.bytes = offset is not None or length is not None
        if self.lines and self.bytes:
            raise ToolError(
                "Ask for lines (first_line, last_line) or for bytes (offset, length), not for both."
            )
        if first_line == 0:
            raise ToolError("Lines count from 1; with first_line -20 you get the last 20.")
        self.first = first_line or 1
        self.last = last_line
        if self.first < 0 and self.last is not None:
            raise ToolError(
                "The last lines (first_line below 0) end where the file does: leave last_line out."
            )
        if self.last is not None and self.last < self.first:
            raise ToolError(f"last_line {self.last} is before first_line {self.first}.")
        self.offset = offset or 0
        self.length = length


def read_place(
    place: ResolvedPath,
    shown: str,
    window: ReadRange,
    encoding: str | None,
    limits: FilesystemLimits,
) -> tuple[ReadResult, ContentBlock]:
    """Read the requested part of a file. Raises ToolError."""
    fd = place.open_file()
    try:
        found = os.fstat(fd)
        head = os.pread(fd, _HEAD, 0)
        mime = type_of(place.name or "", head)
        answer = ReadResult(
            shown, place.uri, "text", mime, found.st_size, version_of(found), complete=True
        )
        if window.bytes:
            return _bytes(fd, answer, window, limits)
        if is_medium(mime) and encoding is None and not window.lines:
            return _medium(fd, answer, limits)
        name, mark = encoding_of(head, encoding, answer.path)
        answer.encoding = f"{name} with a byte order mark" if mark else name
        if window.first < 0:
            return last_lines(fd, answer, -window.first, name, len(mark), limits)
        if (
            not window.lines
            and answer.size <= limits.read
            and (content := _at_once(fd, answer, name, mark, limits)) is not None
        ):
            return answer, content
        return _lines(fd, answer, window, name, mark, limits)
    finally:
        os.close(fd)


def whole(fd: int, most: int, shown: str) -> bytes:
    """Read an opened file to its end. Raises ToolError if it is too large."""
    data = bytearray()
    while chunk := os.pread(fd, min(_CHUNK, most + 1 - len(data)), len(data)):
        data += chunk
        if len(data) > most:
            raise ToolError(
                f"{plain(shown)} has more than {most:,} bytes, too many to read at once."
            )
    return bytes(data)


def _medium(
    fd: int, answer: ReadResult, limits: FilesystemLimits
) -> tuple[ReadResult, ContentBlock]:
    data = whole(fd, limits.media, answer.path)
    answer.kind = answer.mime_type.partition("/")[0]
    medium = (
        Image(data=data, mime_type=answer.mime_type)
        if answer.kind == "image"
        else Audio(data=data, mime_type=answer.mime_type)
    )
    return answer, medium.content()


def _bytes(
    fd: int, answer: ReadResult, window: ReadRange, limits: FilesystemLimits
) -> tuple[ReadResult, ContentBlock]:
    """Some bytes: as text if they are UTF-8, except for characters cut at either end; otherwise as
    bytes.
    """
    wanted = limits.read if window.length is None else min(window.length, limits.read)
    data = bytearray()
    while len(data) < wanted and (
        chunk := os.pread(fd, wanted - len(data), window.offset + len(data))
    ):
        data += chunk
    answer.offset = window.offset
    answer.length = len(data)
    answer.complete = window.offset == 0 and len(data) >= answer.size
    lead = (
        next(
            (n for n in range(min(4, len(data) + 1)) if n == len(data) or data[n] & 0xC0 != 0x80), 0
        )
        if window.offset
        else 0
    )
    if b"\0" not in data:
        text, used = _cut(bytes(data[lead:]))
        if text is not None:
            answer.offset = window.offset + lead
            answer.length = used
            answer.encoding = "utf-8"
            return answer, TextContent(text)
    answer.kind = "bytes"
    blob = b64encode(data).decode()
    return answer, EmbeddedResource(
        resource=ResourceContents(uri=answer.uri, mime_type="application/octet-stream", blob=blob)
    )


def _cut(data: bytes) -> tuple[str | None, int]:
    """The text up to the last complete character, and its size in bytes; None if not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(data)
    except UnicodeDecodeError:
        return None, 0
    return text, len(data) - len(decoder.getstate()[0])


def _at_once(
    fd: int, answer: ReadResult, name: str, mark: bytes, limits: FilesystemLimits
) -> TextContent | None:
    """A text as a whole; None if it does not fit, or the file has grown since.

    Raises ToolError.
    """
    data = os.pread(fd, answer.size + 1, 0)
    if len(data) != answer.size:
        return None
    try:
        text = data[len(mark) :].decode(name)
    except UnicodeDecodeError as bad:
        raise no_text(answer.path, name, len(mark) + bad.start) from None
    if name not in ("utf-8", "ascii") and len(text.encode("utf-8", "surrogatepass")) > limits.read:
        return None
    breaks = text.count("\n")
    answer.lines = breaks if text.endswith("\n") or not data else breaks + 1
    if text:
        answer.first_line = 1
        answer.last_line = answer.lines
    return TextContent(text)


def _lines(
    fd: int, answer: ReadResult, window: ReadRange, name: str, mark: bytes, limits: FilesystemLimits
) -> tuple[ReadResult, ContentBlock]:
    kept: list[str] = []
    room = limits.read
    number = 1
    ended = True
    begin = 0
    texts = _texts(fd, name, len(mark), answer.path, limits)
    for text, end in texts:
        breaks = text.count("\n")
        if number + breaks < window.first:  # no requested line is in this piece
            number += breaks
            continue
        pieces = text.split("\n")
        for n, piece in enumerate(pieces):
            if window.last is not None and number > window.last:
                ended = n == len(pieces) - 1 and not piece and next(texts, None) is None
                break
            if number >= window.first:
                if not kept:
                    begin = end - len("\n".join(pieces[n:]).encode(name))
                line = piece + ("\n" if n < len(pieces) - 1 else "")
                size = len(line.encode("utf-8", "surrogatepass"))
                if size > room:
                    kept.append(
                        line.encode("utf-8", "surrogatepass")[:room].decode("utf-8", "ignore")
                    )
                    room = -1
                    break
                kept.append(line)
                room -= size
            if n < len(pieces) - 1:
                number += 1
        if room < 0:
            ended = False
        if not ended:
            break
    content = "".join(kept)
    if room < 0:
        answer.cut = True
        content = content[: content.rfind("\n") + 1] or content  # complete lines, if there is one
        if content.endswith("\n"):
            answer.next_line = window.first + content.count("\n")
        else:
            answer.next_offset = begin + len(content.encode(name))
    if ended:
        answer.lines = number if _ends_open(fd, name) else number - 1
        if window.first > max(1, answer.lines):
            raise ToolError(
                f"{plain(answer.path)} has {answer.lines} lines, so there is no line "
                f"{window.first}."
            )
    if content:
        answer.first_line = window.first
        answer.last_line = window.first + content.count("\n") - content.endswith("\n")
    answer.complete = ended and window.first == 1
    return answer, TextContent(content)


def _ends_open(fd: int, encoding: str) -> bool:
    """Whether the last line lacks a line feed (an empty file has no line)."""
    size = os.fstat(fd).st_size
    width = len("\n".encode(encoding))
    return size > 0 and os.pread(fd, width, max(0, size - width)) != "\n".encode(encoding)


def _texts(
    fd: int, encoding: str, start: int, path: str, limits: FilesystemLimits
) -> Iterator[tuple[str, int]]:
    """The text of a file in pieces, each with the offset of its end.

    Raises ToolError if it is not text, or too far into the file.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    at = start
    while True:
        if at > limits.scanned:
            raise ToolError(
                f"{plain(path)} is too long to count its lines up to there. Read bytes of it with "
                "offset and length."
            )
        chunk = os.pread(fd, _CHUNK, at)
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as bad:
            raise no_text(path, encoding, at + bad.start) from None
        at += len(chunk)
        if text:
            yield text, at - len(decoder.getstate()[0])
        if not chunk:
            return


def contents_of(place: ResolvedPath, limits: FilesystemLimits) -> ResourceContents:
    """A file as a resource: text, or else base64. Raises ToolError."""
    fd = place.open_file()
    try:
        data = whole(fd, max(limits.read, limits.media), place.shown)
    finally:
        os.close(fd)
    mime = type_of(place.name or "", data[:_HEAD])
    if not is_medium(mime):
        try:
            return ResourceContents(
                uri=place.uri, mime_type=mime, text=decoded(data, None, place.shown)[0]
            )
        except ToolError:
            pass  # not valid in the encoding that its mark declares
    return ResourceContents(uri=place.uri, mime_type=mime, blob=b64encode(data).decode())
