"""Grants of users: one record from the code through every refresh token to its end.

A code and a refresh token both name the record and hold a secret of which the record keeps a
digest. A secret that is not (or no longer) the one to come has been stolen, or was used by the
thief first: then the whole grant ends (RFC 9700, 4.14.2; 4.5.3).
"""

from __future__ import annotations

import hmac
import re

from msgspec import Struct
from msgspec.structs import replace

from interlock.auth.oauth import challenge_of
from interlock.store import Vault

from ..http.error_responses import OAuthError, invalid_grant
from ..interfaces import Client, PendingRequest, User
from ..repository import Repository, digest
from ..settings import REFRESH, Settings

_VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")  # RFC 7636, 4.1
_SECRET = re.compile(r"([A-Za-z0-9_\-]{16,64})\.([A-Za-z0-9_\-]{16,128})")
_UNKNOWN_CODE = "the code is unknown, has expired, or was already used"
_UNKNOWN_TOKEN = "the refresh token is unknown, has expired, or was already used"


class Grant(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person granted a client.

    `code` and `refresh` are digests of the secrets that are to come.
    """

    client: str
    person: User
    scopes: tuple[str, ...] = ()
    resource: str = ""
    thumbprint: str | None = None
    begun: float
    code: str = ""
    redirect_uri: str = ""
    challenge: str = ""
    redeemed: bool = False
    refresh: str = ""


class IssuedGrant(Struct, frozen=True):
    """A grant in use: its name in access tokens, what it is, and the refresh token that comes next,
    where there is one.
    """

    sid: str
    grant: Grant
    refresh: str | None


class Grants:
    """Every grant of one issuer."""

    def __init__(self, settings: Settings, vault: Vault) -> None:
        self._settings = settings
        self._repository = Repository(vault, "grant", Grant, settings.clock)

    # -- codes -------------------------------------------------------------------------------------

    async def code(self, pending: PendingRequest, person: User, scopes: tuple[str, ...]) -> str:
        """A code for what a person has just granted."""
        name, secret = self._secrets()
        grant = Grant(
            client=pending.client.id,
            person=person,
            scopes=scopes,
            resource=pending.resource,
            thumbprint=pending.thumbprint,
            begun=self._settings.now(),
            code=digest(secret),
            redirect_uri=pending.redirect_uri,
            challenge=pending.challenge,
        )
        await self._repository.put(digest(name), grant, grant.begun + self._settings.code_seconds)
        return f"{name}.{secret}"

    async def redeem(
        self,
        code: str,
        client: Client,
        redirect_uri: str | None,
        verifier: str | None,
        thumbprint: str | None,
    ) -> IssuedGrant:
        """Turn a code into a grant in use.

        Raises Refusal; a code that came to the wrong hands is of no use to anybody after.
        """
        sid, secret = _read(code, _UNKNOWN_CODE)
        grant = await self._repository.get(sid)
        if grant is None or not hmac.compare_digest(grant.code, digest(secret)):
            raise invalid_grant(_UNKNOWN_CODE)
        wrong = _misfit(grant, client, redirect_uri, verifier, thumbprint)
        if grant.redeemed or wrong is not None:
            await self.end(sid)
            raise wrong or invalid_grant(_UNKNOWN_CODE)
        bound = grant.thumbprint or thumbprint
        return await self._use(
            code, grant, replace(grant, redeemed=True, thumbprint=bound), client, _UNKNOWN_CODE
        )

    async def begin(
        self,
        client: Client,
        person: User,
        scopes: tuple[str, ...],
        resource: str,
        thumbprint: str | None,
    ) -> IssuedGrant:
        """A grant that needs no code: that of a device."""
        name, secret = self._secrets()
        now = self._settings.now()
        grant = Grant(
            client=client.id,
            person=person,
            scopes=scopes,
            resource=resource,
            thumbprint=thumbprint,
            begun=now,
            redeemed=True,
        )
        refreshing = REFRESH in client.grants
        if refreshing:
            grant = replace(grant, refresh=digest(secret))
        await self._repository.put(digest(name), grant, self._end(grant))
        return IssuedGrant(digest(name), grant, f"{name}.{secret}" if refreshing else None)

    # -- refresh tokens ----------------------------------------------------------------------------

    async def find(self, token: str, client: Client) -> tuple[str, Grant]:
        """The grant that a refresh token belongs to.

        Raises Refusal, and ends the grant where the token was used before.
        """
        sid, secret = _read(token, _UNKNOWN_TOKEN)
        grant = await self._repository.get(sid)
        if grant is None or grant.client != client.id:
            raise invalid_grant(_UNKNOWN_TOKEN)
        if not grant.refresh or not hmac.compare_digest(grant.refresh, digest(secret)):
            await self.end(sid)
            raise invalid_grant(_UNKNOWN_TOKEN)
        return sid, grant

    async def rotate(self, token: str, grant: Grant, client: Client) -> IssuedGrant:
        """Spend a refresh token that `find` has found, for the next one.

        Raises Refusal where another was faster, which ends the grant.
        """
        return await self._use(token, grant, grant, client, _UNKNOWN_TOKEN)

    # -- either ------------------------------------------------------------------------------------

    async def get(self, sid: str) -> Grant | None:
        """The grant of a name, as long as it stands."""
        return await self._repository.get(sid)

    async def end(self, sid: str) -> None:
        """Let a grant and all its tokens be no longer valid."""
        await self._repository.remove(sid)

    async def _use(
        self, token: str, was: Grant, grant: Grant, client: Client, words: str
    ) -> IssuedGrant:
        name = token.partition(".")[0]
        secret = self._settings.random(32)
        sid = digest(name)
        refreshing = REFRESH in client.grants
        grant = replace(grant, refresh=digest(secret) if refreshing else "")
        if not await self._repository.swap(sid, was, grant, self._end(grant)):
            await self.end(sid)  # two came with the same secret: one of them has stolen it
            raise invalid_grant(words)
        return IssuedGrant(sid, grant, f"{name}.{secret}" if refreshing else None)

    def _secrets(self) -> tuple[str, str]:
        return self._settings.random(18), self._settings.random(32)

    def _end(self, grant: Grant) -> float:
        """When a grant ends unless it is used: as long as its longest token lives."""
        seconds = (
            self._settings.refresh_seconds if grant.refresh else self._settings.access_seconds + 60
        )
        return min(self._settings.now() + seconds, grant.begun + self._settings.session_seconds)


def _read(text: str, words: str) -> tuple[str, str]:
    """The name of the record and the secret in a code or refresh token."""
    found = _SECRET.fullmatch(text)
    if found is None:
        raise invalid_grant(words)
    return digest(found[1]), found[2]


def _misfit(
    grant: Grant,
    client: Client,
    redirect_uri: str | None,
    verifier: str | None,
    thumbprint: str | None,
) -> OAuthError | None:
    """Why a code is not for who brings it."""
    if grant.client != client.id:
        return invalid_grant("the code was issued to another client")
    if redirect_uri is not None and redirect_uri != grant.redirect_uri:
        return invalid_grant("the redirect_uri is not the one that the code was sent to")
    if verifier is None or not _VERIFIER.fullmatch(verifier):
        return invalid_grant("the code_verifier is missing or malformed")
    if not hmac.compare_digest(challenge_of(verifier), grant.challenge):
        return invalid_grant("the code_verifier does not match the code_challenge")
    if grant.thumbprint is not None and grant.thumbprint != thumbprint:
        return invalid_grant("the code is bound to another DPoP key")
    return None
