"""Decompression of response bodies in bounded pieces, so that a small body cannot fill the
memory (decompression bomb).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from .. import types as t

_PIECE = 1 << 20
# Bytes decompressed at once. The data after a gzip member is copied for each member, so without
# this limit the time for many small members would be quadratic.
_SLICE = 16 * 1024


class Inflater:
    """Decompresses one body with the `Content-Encoding` "gzip" or "deflate". Raises ProtocolError
    for any other encoding, and for invalid data.
    """

    def __init__(self, encoding: str) -> None:
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise t.ProtocolError(
                f"the answer came in the encoding {encoding[:40]!r}, which was not asked for"
            )
        self._deflate = encoding == "deflate"
        self._wbits = zlib.MAX_WBITS | 32  # gzip or zlib, detected from the first bytes
        self._first = b""  # fewer than the two bytes that distinguish the two forms of "deflate"
        self._zip: zlib._Decompress | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decompress the next bytes, lazily and in pieces of at most 1 MiB."""
        if self._zip is None:
            data = self._first = self._first + data
            if len(data) < 2:
                return
            if self._deflate and (data[0] & 15 != 8 or (data[0] << 8 | data[1]) % 31):
                # raw deflate without a zlib header, as some servers send it
                self._wbits = -zlib.MAX_WBITS
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
                    ):  # the decompressor may have more output
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
                        )  # gzip data may have several members

    def finish(self) -> None:
        """End the body. Raises ProtocolError if the compressed data is incomplete."""
        if not self._zip.eof if self._zip is not None else self._first:
            raise t.ProtocolError("the answer's compressed data ends too early")
