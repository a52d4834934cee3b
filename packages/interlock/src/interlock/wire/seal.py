"""Sealed state: state that travels through clients, protected against reading and changes, and
bound to one request.
"""

from __future__ import annotations

import base64
import binascii
import math
import os
from collections.abc import Sequence
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[float, Any]).decode
_MAC_BYTES = 32
_NONCE_BYTES = 12


class BadSeal(ValueError):
    """The state was not sealed by one of these keys for this request, or it has expired. The
    message says which.
    """

    def __init__(self, words: str) -> None:
        """Store the message."""
        super().__init__(words)


class Seal:
    """Seals and opens state. The first key seals, every key opens, so that keys can be rotated
    without downtime.

    `keys` are at least 16 random bytes each. `seconds` is the lifetime of a state. The caller
    passes the time. `encrypt` is True or False, or None to encrypt if the cryptography package is
    installed. Raises ValueError for weak keys, and if encryption is required but not available.
    """

    def __init__(
        self, keys: Sequence[bytes], *, seconds: float = 900.0, encrypt: bool | None = None
    ) -> None:
        if not keys or any(len(key) < 16 for key in keys):
            raise ValueError("a seal needs at least one key of 16 random bytes or more")
        if encrypt and _aead() is None:
            raise ValueError(
                "state can only be encrypted where the cryptography package is installed (the "
                "extra `seal`)"
            )
        self._given = list(keys)
        self._derived: list[bytes] = []
        self.seconds = seconds
        self._encrypt = encrypt

    def close(self, payload: Any, binding: bytes, now: float) -> str:
        """Seal a JSON value for the request that `binding` identifies. `now` is the wall clock in
        seconds.
        """
        body = _encode((now + self.seconds, payload))
        aead = _aead() if self._encrypt is not False else None
        if aead is not None:
            nonce = os.urandom(_NONCE_BYTES)
            sealed = b"e" + nonce + aead(self._keys[0]).encrypt(nonce, body, binding)
        else:
            sealed = b"m" + _mac(self._keys[0], body, binding) + body
        return base64.urlsafe_b64encode(sealed).decode().rstrip("=")

    def open(self, state: str, binding: bytes, now: float, *, tolerance: float = math.inf) -> Any:
        """Return the sealed value. Raises BadSeal.

        Args:
            state: The sealed state.
            binding: Identifies the request.
            now: The wall clock in seconds.
            tolerance: By how many seconds the clock may have been ahead when the state was sealed.
                Otherwise a state from before the clock was set back would be valid for too long.
        """
        try:
            sealed = base64.b64decode(
                state + "=" * (-len(state) % 4), altchars=b"-_", validate=True
            )
        except (binascii.Error, ValueError):
            raise BadSeal("it is not a state that this server gave") from None
        body = self._open_body(sealed, binding)
        if body is None:
            raise BadSeal("it was changed, or belongs to another request or server")
        try:
            until, payload = _decode(body)
        except msgspec.DecodeError:
            raise BadSeal("it is not a state that this server gave") from None
        if not now <= until <= now + self.seconds + tolerance:
            raise BadSeal("it has expired; start the request again")
        return payload

    @property
    def _keys(self) -> list[bytes]:
        """The keys, each derived to 32 bytes for this purpose only."""
        if not self._derived:
            import hashlib  # late: only for calls that ask

            self._derived = [
                hashlib.blake2b(key, digest_size=32, person=b"interlock-seal").digest()
                for key in self._given
            ]
        return self._derived

    def _open_body(self, sealed: bytes, binding: bytes) -> bytes | None:
        kind = sealed[:1]
        rest = sealed[1:]
        for key in self._keys:
            if kind == b"m" and len(rest) >= _MAC_BYTES:
                if _same(rest[:_MAC_BYTES], _mac(key, rest[_MAC_BYTES:], binding)):
                    return rest[_MAC_BYTES:]
            elif kind == b"e" and (aead := _aead()) is not None and len(rest) > _NONCE_BYTES:
                try:
                    return bytes(
                        aead(key).decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], binding)
                    )
                except Exception:
                    continue
        return None


def _same(a: bytes, b: bytes) -> bool:
    import hmac  # late: only for calls that ask

    return hmac.compare_digest(a, b)


def _mac(key: bytes, body: bytes, binding: bytes) -> bytes:
    import hmac  # late: only for calls that ask

    return hmac.digest(key, len(binding).to_bytes(8, "big") + binding + body, "sha256")


def _aead() -> Any:
    """Return AES-GCM if the optional package is installed, otherwise None."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # optional extra `seal`
    except ImportError:
        return None
    return AESGCM
