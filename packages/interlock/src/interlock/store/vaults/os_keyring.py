"""The OS keyring, if a working one is available (extra `keyring`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import StoreError

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SERVICE = "interlock"

INSTEAD = (
    "use a vault in a file instead: INTERLOCK_VAULT=file:///path/of/a/file (or sqlite:///path), "
    "sealed with a key of "
    "your own if you set INTERLOCK_VAULT_KEY"
)


def find(given: KeyringBackend | bool) -> KeyringBackend:
    """The given keyring, or that of the system for True.

    Raises StoreError if there is no keyring that stores entries.
    """
    if given is False:
        raise StoreError("the keyring is not to be used")
    if given is not True:
        return given
    try:
        import keyring  # optional extra `keyring`, which takes its time to load
        from keyring.backends import chainer, fail, null
    except ImportError:
        raise StoreError(
            "the package keyring is not installed (pip install 'interlock[keyring]')"
        ) from None
    try:
        found = keyring.get_keyring()
    except Exception as bad:  # an invalid keyring configuration raises many types of errors
        raise StoreError(
            f"the keyring that is configured cannot be loaded ({type(bad).__name__}: {bad})"
        ) from None
    if isinstance(found, fail.Keyring | null.Keyring) or (
        isinstance(found, chainer.ChainerBackend) and not found.backends
    ):
        raise StoreError("there is no keyring here, as is usual without a desktop")
    return found


def read(ring: KeyringBackend, name: str, service: str = SERVICE) -> str | None:
    """Read an entry. Raises StoreError if the keyring fails."""
    found: str | None = _call(lambda: ring.get_password(service, name), "be read")
    return found


def write(ring: KeyringBackend, name: str, text: str, service: str = SERVICE) -> None:
    """Write an entry. Raises StoreError if the keyring fails."""
    _call(lambda: ring.set_password(service, name, text), "be written to")


def drop(ring: KeyringBackend, name: str, service: str = SERVICE) -> None:
    """Delete an entry. Raises StoreError if the keyring fails."""
    _call(lambda: ring.delete_password(service, name), "be written to")


def _call(ask: Any, what: str) -> Any:
    try:
        return ask()
    except Exception as bad:  # each backend has its own errors
        why = str(bad).strip().splitlines()
        said = f"{type(bad).__name__}: {why[0]}" if why else type(bad).__name__
        raise StoreError(f"the keyring cannot {what} ({said})") from None
