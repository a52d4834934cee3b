"""Encryption of vaults: AES-256-GCM, with a key that you provide or that the OS keyring stores."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from typing import TYPE_CHECKING, Any

from ..errors import StoreError
from . import os_keyring
from .interface import Name

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

VARIABLE = "INTERLOCK_VAULT_KEY"

_NONCE_BYTES = 12
_TAG_BYTES = 16
_SHORTEST_KEY = 32  # characters: about 16 random bytes in any encoding

_MAKE_ONE = "make one with `python -c 'import secrets; print(secrets.token_urlsafe(32))'`"


class Key:
    """An encryption key. `mark` identifies the key without revealing it."""

    def __init__(self, secret: str) -> None:
        aead = _aead()
        if aead is None:
            raise StoreError(
                "a vault can only be sealed where the package cryptography is installed: pip "
                "install 'interlock[seal]'"
            )
        data = secret.encode()
        # The key text is random, not a password, so a single hash is enough to derive 32 bytes.
        self._aead = aead(hashlib.blake2b(data, digest_size=32, person=b"interlock-vault").digest())
        self.mark = hashlib.blake2b(data, digest_size=8, person=b"interlock-vmark").hexdigest()

    def close(self, plain: bytes, about: bytes) -> bytes:
        """Encrypt data, and bind it to the context `about`."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + bytes(self._aead.encrypt(nonce, plain, about))

    def open(self, sealed: bytes, about: bytes) -> bytes:
        """Decrypt data.

        Raises ValueError if the key or the context differs, or the data was changed.
        """
        if len(sealed) < _NONCE_BYTES + _TAG_BYTES:
            raise ValueError("it is too short to have been sealed")
        try:
            return bytes(self._aead.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], about))
        except Exception:
            raise ValueError("it was changed, or sealed with another key") from None


class Sealing:
    """Finds the encryption keys of vaults.

    Args:
        key: The key, or several with commas between them: the first one encrypts, all of them
            decrypt, so that a key can be rotated. By default the variable INTERLOCK_VAULT_KEY.
        keyring: Whether the OS keyring is used if no key is given; or another keyring.

    Raises:
        ValueError: A key is too short.
    """

    def __init__(self, key: str | None, keyring: KeyringBackend | bool) -> None:
        given = key or os.environ.get(VARIABLE) or ""
        self._texts = [text.strip() for text in given.split(",")] if given else []
        self._whose = "the key that was given" if key else VARIABLE
        if any(len(text) < _SHORTEST_KEY for text in self._texts):
            raise ValueError(
                f"{self._whose} is shorter than {_SHORTEST_KEY} characters: {_MAKE_ONE}"
            )
        self._keyring = keyring
        self._given: list[Key] = []
        self._kept: dict[str, Key | None] = {}  # by the vault's ID: the key in the keyring

    def given(self) -> Key | None:
        """The given key that encrypts. Raises StoreError if it cannot be used."""
        keys = self._given_keys()
        return keys[0] if keys else None

    def _given_keys(self) -> list[Key]:
        if not self._given:
            self._given = [Key(text) for text in self._texts]
        return self._given

    def possible(self) -> bool:
        """Whether there is a key, or a keyring that could store one."""
        if self._texts:
            return True
        try:
            return _aead() is not None and os_keyring.find(self._keyring) is not None
        except StoreError:
            return False

    def begin(self, id: str) -> tuple[str, Key | None]:
        """Choose the key for a vault that is not encrypted yet: "key" or "keyring" with the key, or
        "" without encryption.
        """
        if key := self.given():
            return "key", key
        if id not in self._kept:
            self._kept[id] = self._new(id) if _aead() is not None else None
        key = self._kept[id]
        return ("keyring", key) if key is not None else ("", None)

    def resume(self, place: object, id: str, by: str, mark: str) -> Key | None:
        """The key of an encrypted vault.

        Raises StoreError, which says what to do, if the key is not available.
        """
        if not by:
            return None
        if by == "keyring":
            return self._found(place, id, mark)
        keys = self._given_keys()
        if not keys:
            raise StoreError(
                f"the vault {place} is sealed: set {VARIABLE} to the key that it was sealed with"
            )
        for key in keys:
            if key.mark == mark:
                return key
        raise StoreError(
            f"the vault {place} is sealed with another key than {self._whose}: give the right "
            "one, or, if that is lost, "
            "move the vault away and log in again"
        )

    def rotate(self, place: object, id: str) -> tuple[str, str, Key]:
        """Choose the key to encrypt a vault with anew: the first of the given keys, or a new key
        in the OS keyring.

        Returns:
            The ID of the vault from now on, "key" or "keyring", and the key. A new key in the
            keyring comes with a new ID, so that the old entry stays until the vault is written.

        Raises:
            StoreError: There is no key, and no keyring that stores one.
        """
        if key := self.given():
            return id, "key", key
        id = secrets.token_hex(8)
        new = self._new(id) if _aead() is not None else None
        if new is None:
            raise StoreError(
                f"there is no key for the vault {place}, and no keyring that stores one: set "
                f"{VARIABLE}; {_MAKE_ONE}"
            )
        self._kept[id] = new
        return id, "keyring", new

    def discard(self, id: str) -> None:
        """Delete the key of a vault from the OS keyring, after the vault got another one."""
        self._kept.pop(id, None)
        with contextlib.suppress(StoreError):  # nothing is encrypted with it any more
            os_keyring.drop(os_keyring.find(self._keyring), _entry(id))

    def _new(self, id: str) -> Key | None:
        """Generate a key and store it in the keyring. None if the keyring does not store it."""
        secret = secrets.token_urlsafe(32)
        try:
            ring = os_keyring.find(self._keyring)
            os_keyring.write(ring, _entry(id), secret)
            return Key(secret) if os_keyring.read(ring, _entry(id)) == secret else None
        except StoreError:
            return None

    def _found(self, place: object, id: str, mark: str) -> Key:
        known = self._kept.get(id)
        if known is not None and known.mark == mark:
            return known
        sealed = f"the vault {place} is sealed with a key that the system's keyring keeps"
        try:
            secret = os_keyring.read(os_keyring.find(self._keyring), _entry(id))
        except StoreError as bad:
            raise StoreError(
                f"{sealed}, and {bad}: unlock the keyring, or {os_keyring.INSTEAD}"
            ) from None
        if secret is None or (key := Key(secret)).mark != mark:
            raise StoreError(
                f"{sealed}, and it is no longer there: move the vault away, and log in again"
            )
        self._kept[id] = key
        return key


def about(id: str, of: Name) -> bytes:
    """The context that one encrypted record is bound to: its vault and its name."""
    return b"interlock record %s %d %s %s" % (id.encode(), len(of[0]), *of)


def _entry(id: str) -> str:
    return f"key of vault {id}"


def _aead() -> Any:
    """AES-GCM if the optional package is installed, else None."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # optional extra `seal`
    except ImportError:
        return None
    return AESGCM
