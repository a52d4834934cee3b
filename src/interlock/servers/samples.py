"""A small picture and a short sound, made on the spot so that the servers need no files beside them."""

from __future__ import annotations

import io
import struct
import wave
import zlib


def png(red: int) -> bytes:
    """A picture of 8 by 8 points."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b"".join(b"\0" + bytes((red, 30 * x, 30 * y)[n] for x in range(8) for n in range(3)) for y in range(8))
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def wav() -> bytes:
    """A tenth of a second of a low tone."""
    held = io.BytesIO()
    with wave.open(held, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(bytes(128 + (60 if n // 18 % 2 else -60) for n in range(800)))
    return held.getvalue()
