"""Fixed API keys, and tokens that a function checks."""

from __future__ import annotations

import hashlib
import hmac
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ...exchange import Principal
from .interface import BadToken, Verified

Answer = Principal | Awaitable[Principal | None] | None
# the shortest key in characters: a shorter one could be guessed, because its digest is a fast hash
_LEAST = 20
_DIGEST = "sha256:"


class ApiKeys:
    """Verifies fixed API keys.

    Args:
        keys: Maps the name of each client to its key of at least 20 random characters, or to the
            digest that `ApiKeys.digest` returns. The name is the subject of the principal. Only
            digests are stored.
        scopes: The scopes of all keys, or a mapping from each name to its scopes.
    """

    issuers: Sequence[str] = ()  # clients cannot request such a key

    def __init__(
        self, keys: Mapping[str, str], *, scopes: Sequence[str] | Mapping[str, Sequence[str]] = ()
    ) -> None:
        if not isinstance(keys, Mapping):
            raise TypeError("keys must be a mapping from the name of each key's owner to the key")
        given = dict(scopes) if isinstance(scopes, Mapping) else dict.fromkeys(keys, scopes)
        if isinstance(scopes, str) or any(isinstance(names, str) for names in given.values()):
            raise TypeError("scopes are a list of strings, not one string")
        if strangers := given.keys() - keys.keys():
            raise ValueError(
                f"there are scopes for {', '.join(sorted(strangers))}, but no such key"
            )
        self._known = [
            (
                _read(name, key),
                Principal(subject=name, client=name, scopes=frozenset(given.get(name, ()))),
            )
            for name, key in keys.items()
        ]

    @staticmethod
    def digest(key: str) -> str:
        """Return the digest of a key, which can be stored in place of the key."""
        return _DIGEST + hashlib.sha256(key.encode()).hexdigest()

    async def verify(self, token: str, *, resource: str, now: float) -> Verified:
        """See `Verifier.verify`. The time it takes does not depend on the key (timing attacks)."""
        shown = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        found: Principal | None = None
        for digest, principal in self._known:
            if hmac.compare_digest(digest, shown):
                found = principal
        if found is None:
            raise BadToken("it is not a known API key")
        return Verified(found)


class Checked:
    """Verifies tokens with a function: it takes a token and returns its Principal, or None for an
    invalid token.

    The function may be async, and may raise BadToken and Unverifiable. It must check that the token
    is issued for this server.

    Args:
        function: The function.
        issuers: The authorization servers that clients get tokens from.
        seconds: How long its result may be cached.
    """

    def __init__(
        self,
        function: Callable[[str], Answer],
        *,
        issuers: Sequence[str] = (),
        seconds: float = 0.0,
    ) -> None:
        self.issuers: Sequence[str] = tuple(issuers)
        self.seconds = seconds
        self._function = function

    async def verify(self, token: str, *, resource: str, now: float) -> Verified:
        """See `Verifier.verify`."""
        said = self._function(token)
        principal = await said if inspect.isawaitable(said) else said
        if principal is None:
            raise BadToken("it is unknown")
        if not isinstance(principal, Principal):
            raise TypeError(
                "a function that checks tokens must return a Principal or None, not "
                f"{type(principal).__name__}"
            )
        if principal.expires is not None and principal.expires <= now:
            raise BadToken("it has expired")
        return Verified(principal, None, self.seconds)


def _read(name: str, key: str) -> bytes:
    """The digest of a key.

    Raises ValueError for an invalid key. The message does not quote the key.
    """
    if key.startswith(_DIGEST):
        digest = key.removeprefix(_DIGEST)
        try:
            raw = bytes.fromhex(digest)
        except ValueError:
            raw = b""
        if len(raw) != 32:
            raise ValueError(
                f"the digest of {name}'s key is not {_DIGEST} and 64 hexadecimal digits"
            )
        return raw
    if len(key) < _LEAST:
        raise ValueError(f"{name}'s key is too short: it needs at least {_LEAST} random characters")
    return hashlib.sha256(key.encode()).digest()
