"""Pagination cursors: opaque text for the position of the next page, bounded, and checked when a
client returns it.

Every cursor has a checksum, so that a truncated, altered or foreign cursor is an error instead of a
wrong page. With a key the cursor is sealed too (HMAC-SHA-256, synthetic IV): only holders of the
key can read or make one.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

MOST_CHARACTERS = 2000
"""The maximum length of a cursor, in characters."""

_TAG_BYTES = 8
T = TypeVar("T")


class InvalidCursor(ValueError):
    """The text is not a cursor of this list."""


def encode_cursor(place: Any, purpose: str, keys: Sequence[bytes] = ()) -> str:
    """Make a cursor.

    Args:
        place: The position of the next page: plain data or a msgspec Struct.
        purpose: The name of the list. A cursor of another list is rejected.
        keys: Seals the cursor with the first key. Hazard: without keys, a client can read cursors
            and forge them. Then validate the place like any argument.
    """
    body = msgspec.msgpack.encode(place)
    key = keys[0] if keys else b""
    tag = _tag(body, purpose, key)
    sealed = _masked(body, tag, key) if key else body
    return base64.urlsafe_b64encode(tag + sealed).decode().rstrip("=")


def decode_cursor(cursor: str, kind: type[T], purpose: str, keys: Sequence[bytes] = ()) -> T:
    """Read a cursor.

    Args:
        cursor: The cursor from the client.
        kind: The type of the place.
        purpose: The name of the list.
        keys: Each key is tried, so that keys can be rotated without downtime.

    Raises:
        InvalidCursor: The cursor is not one of this list, or was sealed with another key.
    """
    from hmac import compare_digest  # late: few lists have more than one page

    if len(cursor) > MOST_CHARACTERS:
        raise InvalidCursor("the cursor is too long")
    try:
        read = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise InvalidCursor("it is not base64") from None
    tag = read[:_TAG_BYTES]
    for key in keys or (b"",):
        body = read[_TAG_BYTES:]
        if key:
            body = _masked(body, tag, key)
        if compare_digest(tag, _tag(body, purpose, key)):
            try:
                return msgspec.msgpack.decode(body, type=kind)
            except ValueError:
                raise InvalidCursor("it holds something else") from None
    raise InvalidCursor("it was not given for this list")


def _tag(body: bytes, purpose: str, key: bytes) -> bytes:
    import hmac  # late: as above

    return hmac.digest(key, b"%b\0%b" % (purpose.encode(), body), "sha256")[:_TAG_BYTES]


def _masked(body: bytes, tag: bytes, key: bytes) -> bytes:
    """Encrypt or decrypt the body with the key stream of its tag (an XOR, its own inverse)."""
    import hashlib  # late: as above
    import hmac  # late: as above

    stream = hashlib.shake_256(b"cursor\0" + hmac.digest(key, tag, "sha256")).digest(len(body))
    return bytes(one ^ other for one, other in zip(body, stream, strict=True))
