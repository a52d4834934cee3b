"""Decompression of response bodies in bounded pieces, so that a small body cannot fill the
memory (decompression bomb).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from .. import types as t

_PIECE = 1 << 20
# Bytes decompressed at once. What follows a gzip member is copied for each member, so that many
# small members would cost their number squared.
_SLICE = 16 * 1024


class Inflater:
    """One body's way out of its `Content-Encoding`, "gzip" or "deflate". Raises ProtocolError for
    another and for broken data.
    """

    def __init__(self, encoding: str) -> None:
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise t.ProtocolError(
                f"the answer came in the encoding {encoding[:40]!r}, which was not asked for"
            )
        self._deflate = encoding == "deflate"
        self._wbits = zlib.MAX_WBITS | 32  # gzip or zlib, as its first bytes say
        self._first = b""  # less than the two bytes that tell the kinds of "deflate" apart
        self._zip: zlib._Decompress | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The next bytes in their true form, in pieces of 1 MiB at the most, each made when it is
        asked for.
        """
        if self._zip is None:
            data = self._first = self._first + data
            if len(data) < 2:
                return
            if self._deflate and (data[0] & 15 != 8 or (data[0] << 8 | data[1]) % 31):
                self._wbits = -zlib.MAX_WBITS  # without its wrapping, as some servers send it
            self._zip = zlib.decompressobj(self._wbits)
        for start in range(0, len(data), _SLICE):
            part = data[start : start + _SLICE]
            while part:
                try:
                    piece = self._zip.decompress(part, _PIECE)
                    if piece:
                        yield piece
                    part = self._zip.unconsumed_tail
                    while (
                        len(piece) == _PIECE and not part
                    ):  # there may be more of what it has taken in
                        piece = self._zip.decompress(b"", _PIECE)
                        if piece:
                            yield piece
                except zlib.error:
                    raise t.ProtocolError("the answer's compressed data is broken") from None
                if self._zip.eof:
                    part = self._zip.unused_data
                    if part:
                        self._zip = zlib.decompressobj(
                            self._wbits
                        )  # gzip may come in several members

    def finish(self) -> None:
        """The body has ended. Raises ProtocolError where the compressed data has not."""
        if not self._zip.eof if self._zip is not None else self._first:
            raise t.ProtocolError("the answer's compressed data ends too early")
