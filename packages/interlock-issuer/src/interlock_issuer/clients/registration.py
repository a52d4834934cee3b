"""Dynamic registration: a client describes itself and is given an id (RFC 7591)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from interlock.addresses import network_of
from interlock.auth.oauth import ClientMetadata
from interlock.caches import BoundedCache

from ..http.error_responses import OAuthError, too_many_requests
from ..http.parameters import address_of
from ..http.rate_limit import RequestLimiter
from ..http.responses import json_response
from ..repository import digest
from ..settings import CODE, Settings
from .registry import METHODS, Clients, described

_LISTED_FOR = 60.0  # seconds between two searches for unused registrations


class Registration:
    """The endpoint `/register`."""

    def __init__(self, settings: Settings, clients: Clients) -> None:
        self._settings = settings
        self._clients = clients
        self._limiter = RequestLimiter("register", settings.clock)
        # Registrations that were not used at first, by id, the oldest first: the network of each.
        self._unused: BoundedCache[str, str] = BoundedCache(settings.registrations)
        self._listed_at = float("-inf")

    async def answer(self, request: Request) -> Response:
        """Register a client. Raises Refusal (RFC 7591, 3.2)."""
        if not self._settings.registration:
            raise OAuthError("access_denied", "clients cannot register themselves here", status=403)
        if (
            request.headers.get("content-type", "").partition(";")[0].strip().lower()
            != "application/json"
        ):
            raise OAuthError("invalid_client_metadata", "the body must be application/json")
        if await self._limiter.is_over(address_of(request)):
            raise too_many_requests("too many registrations from one address")
        try:
            metadata = msgspec.json.decode(await request.body(), type=ClientMetadata)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
            words = str(bad) if isinstance(bad, msgspec.ValidationError) else "that is not JSON"
            raise OAuthError(
                "invalid_client_metadata", f"the body is not client metadata: {words}"
            ) from None
        method = metadata.token_endpoint_auth_method or "client_secret_basic"  # RFC 7591, 2
        if method not in METHODS:
            raise OAuthError(
                "invalid_client_metadata",
                "this token_endpoint_auth_method is not supported; supported are: "
                f"{', '.join(METHODS)}",
            )
        client = described(
            metadata,
            self._settings,
            id=self._settings.random(18),
            method=method,
            source="registered",
        )
        secret = self._settings.random(32) if method.startswith("client_secret") else None
        issued = int(self._settings.now())
        until = issued + int(self._settings.registration_seconds)
        client = replace(
            client,
            secret=None if secret is None else digest(secret),
            issued=issued,
            until=until,
            used=False,
            network=network_of(address_of(request)),
        )
        repository = self._clients.repository
        if (await repository.is_full() and not await self._make_room()) or not await repository.add(
            client.id, client, until
        ):
            raise too_many_requests("too many clients have registered", 3600)
        self._unused.put(client.id, client.network)
        response: dict[str, Any] = msgspec.to_builtins(replace(metadata, client_id=client.id))
        response |= {
            "client_name": client.name,
            "client_uri": client.uri,
            "logo_uri": client.logo,
            "grant_types": list(client.grants),
            "response_types": ["code"] if CODE in client.grants else [],
            "redirect_uris": list(client.redirect_uris),
            "token_endpoint_auth_method": method,
            "client_id_issued_at": issued,
        }
        if secret is not None:
            response |= {"client_secret": secret, "client_secret_expires_at": until}
        return json_response(
            {name: value for name, value in response.items() if value is not None}, 201
        )

    async def _make_room(self) -> bool:
        """Remove the oldest registration that was never used, of the network with the most of
        them; False if there is none.
        """
        await self._list_unused()
        while len(self._unused):
            networks = {id: self._unused.peek(id) for id in self._unused}
            ((largest, _),) = Counter(networks.values()).most_common(1)
            for id in [id for id, network in networks.items() if network == largest]:
                self._unused.pop(id)
                client = await self._clients.repository.get(id)
                if client is not None and not client.used:
                    return await self._clients.repository.expire(id, client)
        return False

    async def _list_unused(self) -> None:
        """Find the unused registrations of other processes, and of those before this one."""
        now = self._settings.now()
        if len(self._unused) or now < self._listed_at + _LISTED_FOR:
            return
        self._listed_at = now
        found = [client async for client in self._clients.repository.all() if not client.used]
        for client in sorted(found, key=lambda client: client.issued or 0.0):
            self._unused.put(client.id, client.network)
