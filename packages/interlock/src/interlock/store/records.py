"""Sessions as bytes, and topic positions as strings."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from ..logs import limited
from .interface import Session

log = limited("interlock.store")

_LAST = 2**52  # longer than any stream; scripts compute exactly with numbers up to here

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Session)


def encode(session: Session) -> bytes:
    """Encode a session as JSON."""
    return _encoder.encode(session)


def decode(data: bytes, until: float) -> Session | None:
    """Decode a session, with its current end. Returns None if another version of Interlock wrote
    unreadable bytes.
    """
    try:
        return _decoded(data, until)
    except msgspec.DecodeError:
        log.warning(
            "a session in the store cannot be read and counts as gone; was it written by another "
            "version?"
        )
        return None


@lru_cache(maxsize=1024)  # each request of a session loads the same bytes
def _decoded(data: bytes, until: float) -> Session:
    session = _decoder.decode(data)
    return session if session.until == until else msgspec.structs.replace(session, until=until)


def follows(was: Session, known: Session) -> bool:
    """Whether a session still equals `was`, except for its end."""
    return known == (
        was if was.until == known.until else msgspec.structs.replace(was, until=known.until)
    )


def known(after: int) -> int:
    """Limit the number of an event to a range that every store supports, because a client may send
    any number.
    """
    return min(max(after, -1), _LAST)


def number(position: str) -> int | None:
    """Return the number in a position; None if it is not a position."""
    # `str.isdigit` also accepts the digits of other scripts, and a client can send anything.
    return (
        int(position) if position.isascii() and position.isdigit() and len(position) <= 18 else None
    )
