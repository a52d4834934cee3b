"""Sessions as bytes, and positions in a topic as strings."""

from __future__ import annotations

import msgspec

from ..logs import limited
from .interface import Session

log = limited("interlock.store")

_LAST = 2**52  # no stream is that long, and the numbers of scripts are exact up to there

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Session)


def encode(session: Session) -> bytes:
    """A session as JSON."""
    return _encoder.encode(session)


def decode(data: bytes, until: float) -> Session | None:
    """The session in these bytes, with its end where it was moved to.

    None where another version wrote what cannot be read.
    """
    try:
        session = _decoder.decode(data)
    except msgspec.DecodeError:
        log.warning(
            "a session in the store cannot be read and counts as gone; was it written by another "
            "version?"
        )
        return None
    return session if session.until == until else msgspec.structs.replace(session, until=until)


def follows(was: Session, known: Session) -> bool:
    """Whether a session is still as it was, its end aside."""
    return known == (
        was if was.until == known.until else msgspec.structs.replace(was, until=known.until)
    )


def known(after: int) -> int:
    """A number of an event as every store can take it.

    A client may ask for what comes after any number.
    """
    return min(max(after, -1), _LAST)


def number(position: str) -> int | None:
    """The number in a position; None where it is no position."""
    # Python's own idea of digits takes those of other scripts too, and a client may send anything.
    return (
        int(position) if position.isascii() and position.isdigit() and len(position) <= 18 else None
    )
