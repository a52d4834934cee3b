"""Sessions of users at the provider: sealed tokens, which concurrent requests refresh only once."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from interlock import types as t
from interlock.auth import SingleFlightGroup, Unauthorized
from interlock.auth.oauth import TokenAnswer
from interlock.store import BadSeal, Seal, Vault, hold_lease

from ..repository import digest
from .provider_client import ProviderClient

_KIND = "upstream-session"
_KEPT = 180 * 86_400.0  # seconds after its tokens were last renewed
_EARLY = 60.0  # seconds before its end at which a token is renewed
_BELIEVED = 600.0  # seconds for which it is believed that a token without an end is still taken
_FOREVER = 100 * 365 * 86_400.0  # for the seal, which knows no other end than this one


class _StoredSession(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tokens of one session, and when they were found good;
    times in seconds of the wall clock."""

    subject: str
    access_token: str
    refresh_token: str | None = None
    until: float | None = None
    seen: float = 0.0


class UpstreamSessions:
    """The sessions of people at one provider, each under a random name that says nothing by itself.

    `keys` seal them (AES-GCM): who reads the vault cannot use them, and who exchanges two of them
    breaks both.
    """

    def __init__(
        self, vault: Vault, talk: ProviderClient, keys: Sequence[bytes], clock: Callable[[], float]
    ) -> None:
        self._vault = vault
        self._provider_client = talk
        self._clock = clock
        self._seal = Seal(keys, seconds=_FOREVER, encrypt=True)
        self._renewing: SingleFlightGroup[str, str] = SingleFlightGroup()

    async def begin(self, subject: str, answer: TokenAnswer) -> str:
        """Keep the tokens of somebody who has just logged in; the name of the session."""
        name = secrets.token_urlsafe(24)
        await self._keep(name, self._of(subject, answer, None))
        return name

    async def token(self, name: str, subject: str) -> str:
        """An access token for the provider's own API, renewed where it ends.

        Raises Unauthorized where the session has ended there, or is not that of `subject`;
        Unreachable where the provider cannot be asked.
        """
        kept = await self._read(name)
        if kept is None or kept.subject != subject:
            raise self._ended()
        if not self._is_old(kept):
            return kept.access_token
        # As an errand: a caller who gives up must not give up a refresh token that has been spent
        # already.
        return await self._renewing.join(name, lambda: self._renewed(name))

    async def is_active(self, name: str, subject: str) -> bool:
        """Whether the session has not ended at the provider.

        Raises Unreachable where it cannot be asked.
        """
        try:
            await self.token(name, subject)
        except Unauthorized:
            return False
        kept = await self._read(name)
        if kept is None:
            return False
        if kept.until is not None or kept.seen + _BELIEVED > self._clock():
            return True
        if await self._provider_client.takes(kept.access_token):
            await self._keep(name, msgspec.structs.replace(kept, seen=self._clock()))
            return True
        await self.end(name)
        return False

    async def end(self, name: str) -> None:
        """Forget a session."""
        await self._vault.remove(_KIND, digest(name))

    async def _renewed(self, name: str) -> str:
        async with hold_lease(self._vault, f"upstream {digest(name)}", clock=self._clock):
            kept = await self._read(name)  # another process may have renewed it while we waited
            if kept is None:
                raise self._ended()
            return (await self._renew(name, kept) if self._is_old(kept) else kept).access_token

    async def _renew(self, name: str, kept: _StoredSession) -> _StoredSession:
        if kept.refresh_token is None:
            await self.end(name)
            raise self._ended()
        try:
            answer = await self._provider_client.refresh(kept.refresh_token)
        except Unauthorized as refused:
            if refused.code not in (
                "invalid_grant",
                "bad_refresh_token",
            ):  # the second is GitHub's word for it
                raise t.Unreachable(str(refused)) from None
            await self.end(name)
            raise self._ended() from None
        renewed = self._of(kept.subject, answer, kept.refresh_token)
        await self._keep(name, renewed)
        return renewed

    def _of(self, subject: str, answer: TokenAnswer, refresh_token: str | None) -> _StoredSession:
        now = self._clock()
        seconds = answer.seconds
        return _StoredSession(
            subject=subject,
            access_token=answer.access_token,
            refresh_token=answer.refresh_token or refresh_token,
            until=None if seconds is None else now + seconds,
            seen=now,
        )

    def _is_old(self, kept: _StoredSession) -> bool:
        early = _EARLY if kept.refresh_token is not None else 0.0
        return kept.until is not None and kept.until - early <= self._clock()

    async def _keep(self, name: str, kept: _StoredSession) -> None:
        now = self._clock()
        key = digest(name)
        sealed = self._seal.close(msgspec.to_builtins(kept), key.encode(), now)
        await self._vault.put(_KIND, key, sealed.encode(), until=now + _KEPT)

    async def _read(self, name: str) -> _StoredSession | None:
        key = digest(name)
        sealed = await self._vault.get(_KIND, key)
        if sealed is None:
            return None
        try:
            return msgspec.convert(
                self._seal.open(sealed.decode(), key.encode(), self._clock()), type=_StoredSession
            )
        except BadSeal:  # the keys are others now
            return None

    def _ended(self) -> Unauthorized:
        name = self._provider_client.provider.name
        return Unauthorized(
            "log-in",
            f"the session at {name} has ended",
            advice="Log in again.",
            culprit="person",
            code="invalid_grant",
        )
