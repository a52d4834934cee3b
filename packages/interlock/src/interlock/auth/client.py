"""OAuth client: stores, sends and refreshes the tokens of a server, and requests new ones.

Requests never block each other. Only callers without a valid token wait, and they share one
refresh.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from ..http11.fetch import Fetch, Request, Response
from ..logs import limited
from ..store.errors import StoreError
from ..store.vaults.interface import Vault
from ..types import InterlockError, TimedOut, Unreachable
from .errors import leads_to, token_of, too_little, useless, vaulted
from .oauth.addresses import canonical, origin
from .oauth.challenges import Challenge, find, read_challenges
from .oauth.errors import Unauthorized
from .oauth.flow import GrantFlow, authorize, still_trusted
from .oauth.grants import Means, renewed
from .oauth.members import Grant, Member
from .oauth.revocation import revoke
from .oauth.steps import Note
from .records import GRANTS, read_grant
from .sender import HttpClients, dismiss, known_issuers, perform, recall
from .single_flight import SingleFlight

if TYPE_CHECKING:
    from .agents import Agent
    from .keys import SigningKey

log = limited("interlock.client")

# of one request: other callers may have refreshed the token meanwhile, and a nonce may have changed
_MOST_TRIES = 6
_MOST_STEP_UPS = 3  # of one request, and of all for the same scopes
_MOST_OPERATIONS = 256  # the limit of remembered operations that needed a step-up
_SCHEMES = ("bearer", "dpop")
_PAUSE = 60.0  # seconds without a new login after a new token was refused
# seconds after which another program takes over from one that died while it refreshed
_LEASE = 30.0


class Authorization:
    """Authorizes the requests of clients, each for its own server. It implements `Authorizer`.

    Args:
        way: The grant type. The subclasses `OAuth`, `ClientCredentials`, `WorkloadIdentity` and
            `EnterpriseManaged` provide it.
        scopes: Scopes that are always requested, in addition to those of a challenge. They replace
            the list of all scopes that the server supports.
        vault: Stores tokens and registrations: a Vault, or an address for `open_vault`; in memory
            by default.
        account: Separates the users of a shared vault.
        dpop: Binds tokens to a key (RFC 9449): True for a generated key, or the key. A stolen token
            is useless without it.
        key: The key that authenticates the client (private_key_jwt).
        hosts: Hosts of the authorization server that may have private addresses. The server's own
            host always may.
        assume_pkce: Accepts authorization servers that support PKCE without declaring it.
        agent: Makes the agent that reaches the person.
        fetch: Fetches documents and tokens; `SafeFetch` by default.
        tell: Called with each step.
        clock: Returns the time in seconds of the wall clock.
    """

    def __init__(
        self,
        way: GrantFlow,
        *,
        scopes: str | Sequence[str] = (),
        vault: Vault | str | None = None,
        account: str = "",
        dpop: bool | SigningKey = False,
        key: SigningKey | None = None,
        hosts: Iterable[str] = (),
        assume_pkce: bool = False,
        agent: Callable[[], Agent] | None = None,
        fetch: Fetch | None = None,
        on_step: Callable[[Note], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.way = way
        self.scopes = tuple(scopes.split() if isinstance(scopes, str) else scopes)
        self.account = account
        self.dpop = dpop
        self.key = key
        self.hosts = tuple(hosts)
        self.assume_pkce = assume_pkce
        self.agent = agent
        self.fetch = fetch
        self.on_step = on_step
        self.clock = clock
        self._vault = vault
        self._own_vault: Vault | None = None
        self._servers: dict[str, Access] = {}

    @property
    def vault(self) -> Vault:
        """The vault that stores the tokens."""
        if self._vault is None or isinstance(self._vault, str):
            from ..store import open_vault  # imported late: only needed when a vault is opened

            self._vault = self._own_vault = vault = open_vault(self._vault or "memory:")
            return vault
        return self._vault

    async def aclose(self) -> None:
        """Close the vault, if it was given as an address.

        It is opened again when it is needed.
        """
        if self._own_vault is not None:
            await self._own_vault.aclose()

    def to(self, url: str) -> Access:
        """Return the authorization for one server; always the same object for the same server.

        Raises ValueError for an invalid URL.
        """
        place = canonical(url)
        if place not in self._servers:
            self._servers[place] = Access(self, url)
        return self._servers[place]


class Access:
    """The authorization for one server: its tokens, and the callers that wait for new ones."""

    def __init__(self, whole: Authorization, url: str) -> None:
        self.url = url
        self._whole = whole
        self.name = " ".join(
            part for part in (canonical(url), whole.way.label, whole.account) if part
        )
        self._grant: Grant | None = None
        self._loaded = False
        # the previous grant, if it could not be refreshed without the user
        self._before: Grant | None = None
        # how the grant was obtained, until the server has accepted its token
        self._new: Literal["", "refreshed", "granted"] = ""
        # wall clock: until then, a refused new token is not replaced by another login
        self._vain_until = 0.0
        # a grant that could not be refreshed early, and is used until it expires
        self._stable_redirect_uri: Grant | None = None
        self._key: SigningKey | None = None
        self._key_of: Grant | None = None
        self._nonces: dict[str, str] = {}  # by origin
        self._flight: SingleFlight[Grant | None] = SingleFlight()
        self.refreshes: Counter[str] = Counter()  # of this program, by outcome
        self._step_ups: dict[frozenset[str], int] = {}  # by the requested scopes

    # -- the interface Authorizer ------------------------------------------------------------------

    async def sign(self, request: Request) -> Request:
        """Add the token to a request, if there is one. A token that expires soon is refreshed
        first.
        """
        grant = self._grant
        if grant is None and not self._loaded:
            grant = await self._load()
        if grant is None:
            return request
        if grant.refresh_token is not None and grant.is_stale(self._whole.clock()):
            grant = await self._early(grant)
        return request if grant is None else self._signed(request, grant)

    async def _early(self, grant: Grant) -> Grant | None:
        """Refresh a token that expires soon.

        One caller waits for the refresh. Other callers use the old token meanwhile, and after a
        failure.
        """
        if self._lasts(grant) and (grant is self._stable_redirect_uri or self._flight.under_way):
            return grant
        try:
            return await self._renew(grant, None)
        except Unreachable:
            if not self._lasts(grant):
                raise
            self._stable_redirect_uri = grant
            return grant

    def _lasts(self, grant: Grant) -> bool:
        return grant.expires is None or self._whole.clock() < grant.expires

    async def handle_response(self, request: Request, response: Response, tries: int) -> bool:
        """Handle the response to a signed request; True if the request should be signed and sent
        again.
        """
        status = response.status
        headers = response.headers
        nonce = headers.get("dpop-nonce")
        if nonce is not None:
            self._nonces[origin(request.url)] = nonce
        if (
            status != 401
            and self._new
            and status < 500
            and self._grant is not None
            and token_of(request) == self._grant.access_token
        ):
            self._new = ""
            self._vain_until = 0.0
        if status not in (401, 403):
            return False
        challenges = read_challenges(headers.get("www-authenticate", ""))
        if status == 403:
            lacking = next(
                (
                    one
                    for one in challenges
                    if one.scheme in _SCHEMES and one.error == "insufficient_scope"
                ),
                None,
            )
            return lacking is not None and await self._step_up(request, lacking, tries)
        challenge = find(challenges, *_SCHEMES)
        if tries >= _MOST_TRIES:
            raise useless(self.url, challenge)
        if (
            nonce is not None
            and (dpop := find(challenges, "dpop")) is not None
            and dpop.error == "use_dpop_nonce"
        ):
            return True  # the nonce was missing; the token may be valid
        return await self._replace(request, challenge, tries)

    async def _replace(self, request: Request, challenge: Challenge | None, tries: int) -> bool:
        """Replace a refused token: by a refresh first, then by a login.

        Raises Unauthorized after both.
        """
        grant = self._grant
        fresh = False
        if grant is not None and token_of(request) != grant.access_token:
            return True  # another caller has replaced it meanwhile
        if grant is not None and self._new:
            if tries > 1 and self._new == "granted":
                self._vain_until = self._whole.clock() + _PAUSE
            if self._whole.clock() < self._vain_until:
                raise useless(self.url, challenge)
            fresh = tries > 1
        return await self._renew(grant, challenge or Challenge("bearer"), fresh=fresh) is not None

    # -- tokens ------------------------------------------------------------------------------------

    def _signed(self, request: Request, grant: Grant) -> Request:
        if request.url != self.url and not leads_to(
            request.url, self.url
        ):  # a token is sent to its own server only (`AUT-09`)
            return request
        pairs = [
            (name, value) for name, value in request.headers if name.lower() != "authorization"
        ]
        pairs.append(("Authorization", f"{grant.token_type} {grant.access_token}"))
        if grant.token_type == "DPoP":
            pairs = [pair for pair in pairs if pair[0].lower() != "dpop"]
            pairs.append(
                (
                    "DPoP",
                    self._proof(
                        request.method, request.url, self._nonces.get(origin(request.url)), grant
                    ),
                )
            )
        return replace(request, headers=tuple(pairs))

    async def _load(self) -> Grant | None:
        """Load the stored grant. Concurrent callers share one load."""
        with vaulted():
            kept = await self._whole.vault.get(GRANTS, self.name)
        if not self._loaded:
            self._loaded = True
            self._grant = self._read(kept)
        return self._grant

    def _read(self, kept: bytes | None) -> Grant | None:
        """Return the stored grant; None if it was issued to another client, or is not bound to a
        key although it must be.
        """
        grant = read_grant(kept)
        given = self._given()
        if grant is None or (self._whole.dpop and grant.key is None):
            return None
        if given is not None and (
            given.client_id != grant.client_id or given.issuer not in ("", grant.issuer)
        ):
            return None
        try:
            self._bound(grant)
        except ValueError:  # the stored key is not valid
            return None
        return grant

    async def grant(self) -> Grant | None:
        """The grant for this server, as far as it is known in this process."""
        return self._grant if self._loaded else await self._load()

    async def renew(self, challenge: Challenge | None = None, *, fresh: bool = False) -> Grant:
        """Get a token now: by a refresh if possible, otherwise by a new authorization. `fresh`
        excludes the refresh.

        Raises Unauthorized.
        """
        grant = await self._renew(await self.grant(), challenge or Challenge("bearer"), fresh=fresh)
        assert grant is not None
        return grant

    async def forget(self) -> Grant | None:
        """Delete the stored grant and return it, so that it can be revoked."""
        grant = await self.grant()
        self._grant = None
        await self._whole.vault.remove(GRANTS, self.name)
        return grant

    async def revoke(self) -> bool:
        """Revoke the grant at the authorization server (RFC 7009), and delete it.

        Returns False if the server does not support revocation.

        Raises Unauthorized or Unreachable if it was not revoked. It is deleted in any case.
        """
        grant = await self.grant()
        whole = self._whole
        clients = HttpClients(self.url, whole.hosts, whole.fetch)
        try:
            if grant is None:
                return False
            member = await self._member(grant) or Member(
                issuer=grant.issuer, client_id=grant.client_id
            )
            return await perform(
                revoke(grant, member, self._means(grant)), clients, on_step=whole.on_step
            )
        finally:
            await self.forget()
            await clients.aclose()

    async def _step_up(self, request: Request, challenge: Challenge, tries: int) -> bool:
        """Request the scopes that an operation needs in addition to the granted ones (`AUS-05` to
        `AUS-07`).

        Raises Unauthorized.
        """
        grant = self._grant
        needed = frozenset(challenge.scopes or ())
        if grant is None:
            return False
        if token_of(request) != grant.access_token and tries < _MOST_TRIES:
            return True
        tried = self._step_ups.get(needed, 0)
        if (
            not needed
            or needed <= set(grant.asked)
            or tried >= _MOST_STEP_UPS
            or tries > _MOST_STEP_UPS
        ):
            raise too_little(self.url, needed, grant)
        while (grant := self._grant) is not None and not needed <= set(grant.asked):
            if (
                not self._flight.under_way
            ):  # otherwise another caller's request is in flight, and this one follows
                if len(self._step_ups) >= _MOST_OPERATIONS:
                    self._step_ups.clear()
                self._step_ups[needed] = self._step_ups.get(needed, 0) + 1
            await self._renew(grant, challenge, fresh=True)
        return True

    async def _renew(
        self, used: Grant | None, challenge: Challenge | None, *, fresh: bool = False
    ) -> Grant | None:
        """Replace the token `used` by a new one, once for all waiting callers.

        None if no token can be requested without a challenge.
        """
        while self._grant is used:
            grant = await self._flight.join(functools.partial(self._obtain, used, challenge, fresh))
            if grant is not None or challenge is None:
                return grant
            used = None  # the caller that started the work had no challenge; this one has
        return self._grant

    async def _obtain(
        self, used: Grant | None, challenge: Challenge | None, fresh: bool
    ) -> Grant | None:
        whole = self._whole
        clients = HttpClients(self.url, self._whole.hosts, self._whole.fetch)
        try:
            with vaulted():
                grant = (
                    await self._found(used, challenge)
                    if fresh
                    else await self._refreshed(used, challenge, clients)
                )
                if grant is not None:
                    return self._use_grant(grant)
                if not self._flight.wanted:
                    raise asyncio.CancelledError  # the tokens were deleted during the refresh
                if challenge is None:  # the server has to send its challenge first
                    self._grant = None
                    self._before = used
                    return None
                procedure = authorize(
                    self.url,
                    whole.way,
                    self._means(None),
                    challenge=challenge,
                    wanted=whole.scopes,
                    before=used or self._before,
                    known=await known_issuers(whole.vault),
                    assume_pkce=whole.assume_pkce,
                )
            agent = whole.agent() if whole.agent is not None else None
            with vaulted():
                grant = await perform(
                    procedure, clients, agent=agent, vault=whole.vault, on_step=whole.on_step
                )
            await self._keep(grant)
            return self._use_grant(grant, "granted")
        finally:
            await clients.aclose()

    def _use_grant(
        self, grant: Grant, new: Literal["", "refreshed", "granted"] | None = None
    ) -> Grant:
        """Sign requests with this grant from now on."""
        if grant is not self._grant:
            self._grant = grant
            self._loaded = True
            self._new = new or ""
        return grant

    async def _found(self, used: Grant | None, challenge: Challenge | None) -> Grant | None:
        """The grant that another program with the same vault has received meanwhile, if it
        suffices.
        """
        kept = self._read(await self._whole.vault.get(GRANTS, self.name))
        if (
            kept is None
            or used is None
            or kept.access_token == used.access_token
            or kept.is_stale(self._whole.clock())
        ):
            return None
        return kept if challenge is None or set(challenge.scopes or ()) <= set(kept.asked) else None

    async def _refreshed(
        self, used: Grant | None, challenge: Challenge | None, clients: HttpClients
    ) -> Grant | None:
        """Refresh the token; among all programs that share the vault, one at a time.

        None if that is impossible and the person has to log in again. If another program has
        refreshed the token meanwhile, its result is used.
        """
        from ..store import hold_lease  # imported late: only for clients that refresh

        whole = self._whole
        try:
            async with hold_lease(whole.vault, f"{GRANTS} {self.name}", seconds=_LEASE):
                was = await whole.vault.get(GRANTS, self.name)
                kept = self._read(was)
                if (
                    kept is not None
                    and (used is None or kept.access_token != used.access_token)
                    and not kept.is_stale(whole.clock())
                ):
                    return kept
                kept = kept or used
                if kept is None or kept.refresh_token is None:
                    return None
                if challenge is not None and not await perform(
                    still_trusted(self.url, challenge, kept), clients, on_step=whole.on_step
                ):
                    return None
                member = await self._member(kept)
                if member is None:
                    return None
                with (
                    self._flight.uncancellable()
                ):  # a used refresh token must be recorded, even if the callers have been cancelled
                    return await self._spend(kept, member, clients, was)
        except TimeoutError:
            raise TimedOut(
                "The vault did not answer in time to refresh a token; try again."
            ) from None

    async def _spend(
        self, kept: Grant, member: Member, clients: HttpClients, was: bytes | None
    ) -> Grant | None:
        """Exchange the refresh token for new tokens; `was` is the record in the vault.

        None if the refresh token is no longer valid.
        """
        whole = self._whole
        try:
            grant = await perform(
                renewed(kept, member, self._means(kept)), clients, on_step=whole.on_step
            )
        except Unauthorized as bad:
            if bad.code not in ("invalid_grant", "invalid_client", "unauthorized_client"):
                self.refreshes["failed"] += 1
                raise
            self.refreshes["refused"] += 1
            if bad.code != "invalid_grant":
                await dismiss(whole.vault, member)
            await self._keep(replace(kept, refresh_token=None), was)  # so that it is not sent again
            return None
        except InterlockError:
            self.refreshes["failed"] += 1
            raise
        self.refreshes["ok"] += 1
        await self._keep(grant, was)
        return self._use_grant(grant, "refreshed")

    async def _member(self, grant: Grant) -> Member | None:
        """The registration of the client that received a grant."""
        given = self._given()
        if given is not None and given.client_id == grant.client_id:
            return replace(given, issuer=grant.issuer)
        kept = await recall(self._whole.vault, grant.issuer, grant.client_id)
        if kept is not None:
            return kept
        return (
            Member(issuer=grant.issuer, client_id=grant.client_id)
            if grant.client_id.startswith("https://")
            else None
        )

    def _given(self) -> Member | None:
        way: Any = self._whole.way
        return getattr(way, "member", None) or getattr(
            getattr(way, "identity", None), "given", None
        )

    def _document(self) -> str | None:
        """The URL of the client's metadata document, which is its client ID at servers that support
        such documents.
        """
        identity: Any = getattr(self._whole.way, "identity", None)
        return None if identity is None else identity.document

    async def _keep(self, grant: Grant, was: bytes | None = None) -> None:
        """Store a grant. If `was` is given, the grant replaces only that record.

        If the vault fails, the person has to log in again later; the present call continues.
        """
        vault = self._whole.vault
        record = msgspec.json.encode(grant)
        try:
            if was is None:
                await vault.put(GRANTS, self.name, record)
            else:
                await vault.swap(GRANTS, self.name, was, record)
        except StoreError as bad:
            log.warning("the grant for %s could not be stored: %s", self.url, bad)

    # -- keys --------------------------------------------------------------------------------------

    def _means(self, grant: Grant | None) -> Means:
        """The clock, random source and keys of a procedure."""
        whole = self._whole
        bound = self._bound(grant)
        return Means(
            now=whole.clock,
            random=lambda: secrets.token_urlsafe(32),
            assertion=self._assertion if whole.key is not None else None,
            proof=None
            if bound is None
            else lambda method, url, nonce: _prove(bound, method, url, nonce, None, whole.clock()),
            thumbprint=None if bound is None else bound.thumbprint,
            key=None if bound is None else bound.private(),
        )

    def _bound(self, grant: Grant | None) -> SigningKey | None:
        """The key that tokens are bound to: the key of a grant, the given key, or one generated for
        this server.
        """
        if grant is not None and grant.key is None:
            return None
        if grant is None and not self._whole.dpop:
            return None
        from .keys import SigningKey  # optional extra `auth`

        if grant is not None and grant.key is not None:
            return SigningKey.from_jwk(grant.key)
        if isinstance(self._whole.dpop, SigningKey):
            return self._whole.dpop
        if self._key is None:
            self._key = SigningKey.generate("ES256")
        return self._key

    def _proof(self, method: str, url: str, nonce: str | None, grant: Grant) -> str:
        if self._key is None or self._key_of is not grant:
            self._key = self._bound(grant)
            self._key_of = grant
        if self._key is None:
            raise Unauthorized(
                "request",
                "the token is bound to a key that no longer exists",
                advice="Log in again.",
                culprit="client",
            )
        return _prove(self._key, method, url, nonce, grant.access_token, self._whole.clock())

    def _assertion(self, audience: str) -> str:
        from .keys import assertion  # optional extra `auth`

        given = self._given()
        key = self._whole.key
        name = self._document() if given is None else given.client_id
        assert name is not None and key is not None
        return assertion(key, issuer=name, subject=name, audience=audience, now=self._whole.clock())


def _prove(
    key: SigningKey, method: str, url: str, nonce: str | None, token: str | None, now: float
) -> str:
    from .keys import dpop_proof  # optional extra `auth`

    return dpop_proof(key, method=method, url=url, now=now, nonce=nonce, access_token=token)
