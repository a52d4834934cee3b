"""Small images and a short sound, generated so that the servers need no data files."""

from __future__ import annotations

import base64
import io
import struct
import wave
import zlib


def png(red: int) -> bytes:
    """A picture of 8 by 8 points."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    rows = b"".join(
        b"\0" + bytes((red, 30 * x, 30 * y)[n] for x in range(8) for n in range(3))
        for y in range(8)
    )
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def wav() -> bytes:
    """A tenth of a second of a low tone."""
    held = io.BytesIO()
    with wave.open(held, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(bytes(128 + (60 if n // 18 % 2 else -60) for n in range(800)))
    return held.getvalue()


def _drawn(colour: str) -> str:
    """A star as a data URI of SVG, for icons."""
    path = "M8 1l2 5h5l-4 3 2 6-5-4-5 4 2-6-4-3h5z"
    opening = "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    return f"data:image/svg+xml,{opening}%3Cpath fill='{colour}' d='{path}'/%3E%3C/svg%3E"


DRAWN = {"light": _drawn("black"), "dark": _drawn("white")}
"""A star for light backgrounds and one for dark ones, as data URIs."""

PAINTED = "data:image/png;base64," + base64.b64encode(png(200)).decode()
"""The small picture as a data URI."""
