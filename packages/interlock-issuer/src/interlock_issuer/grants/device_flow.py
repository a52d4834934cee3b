"""The device flow: a code to show, a code to poll with, and a user elsewhere (RFC 8628)."""

from __future__ import annotations

import secrets
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from interlock.store import Vault

from ..clients.registry import Clients
from ..http.error_responses import OAuthError, invalid_grant, too_many_requests
from ..http.rate_limit import RequestLimiter
from ..http.responses import json_response
from ..interfaces import Client, PendingRequest, User
from ..repository import Repository, digest
from ..settings import DEVICE, Settings

MOST_WAITING = 10_000
MARK = "d."  # how the ids of waiting devices begin
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so that no words come out (RFC 8628, 6.1)
_INTERVAL = 5.0  # seconds between polls, at first
_GRACE = 300.0  # seconds for which a code that has ended is still known as such


class _Device(Struct, frozen=True, kw_only=True, omit_defaults=True):
    client: str
    user_code: str
    until: float
    scopes: tuple[str, ...] = ()
    resource: str = ""
    decided: Literal["", "granted", "denied"] = ""
    person: User | None = None
    interval: float = _INTERVAL
    polled: float = 0.0


class _Named(Struct, frozen=True):
    key: str


class DeviceConsent(Struct, frozen=True):
    """What a person granted a device."""

    person: User
    scopes: tuple[str, ...]
    resource: str


class DeviceFlow:
    """Every device that waits."""

    def __init__(self, settings: Settings, vault: Vault, clients: Clients) -> None:
        self._settings = settings
        self._clients = clients
        self._repository = Repository(vault, "device", _Device, settings.clock, MOST_WAITING)
        self._limiter = RequestLimiter("device", settings.clock)
        self._codes = Repository(vault, "usercode", _Named, settings.clock)

    async def answer(
        self, client: Client, scope: str | None, resource: str | None, address: str
    ) -> Response:
        """Begin: the two codes (RFC 8628, 3.2). Raises Refusal."""
        if DEVICE not in client.grants:
            raise OAuthError("unauthorized_client", "this client may not use the device grant")
        if await self._limiter.is_over(address) or await self._repository.is_full():
            raise too_many_requests("too many devices are waiting")
        scopes = self._settings.wanted_scopes(scope, client.scopes)
        target = self._settings.wanted_resource(resource)
        secret = self._settings.random(32)
        until = self._settings.now() + self._settings.pending_seconds
        shown = await self._user_code(digest(secret), until)
        device = _Device(
            client=client.id, user_code=shown, until=until, scopes=scopes, resource=target
        )
        await self._repository.put(digest(secret), device, until + _GRACE)
        place = self._settings.endpoint("device")
        return json_response(
            {
                "device_code": secret,
                "user_code": shown,
                "verification_uri": place,
                "verification_uri_complete": f"{place}?user_code={shown}",
                "expires_in": int(self._settings.pending_seconds),
                "interval": int(_INTERVAL),
            }
        )

    async def find(self, user_code: str) -> PendingRequest | None:
        """The request behind a code that a person has typed, in any case and with or without the
        dash.
        """
        typed = "".join(c for c in user_code.upper() if c in _LETTERS)
        named = (
            await self._codes.get(digest(typed))
            if len(typed) == 8 and len(user_code) < 40
            else None
        )
        return None if named is None else await self.get(f"{MARK}{named.key}")

    async def get(self, id: str) -> PendingRequest | None:
        """A device that waits."""
        device = await self._repository.get(id.removeprefix(MARK))
        if device is None or device.decided or self._settings.now() >= device.until:
            return None
        try:
            client = await self._clients.find(device.client)
        except OAuthError:
            return None
        until = device.until
        scopes = device.scopes
        code = device.user_code
        return PendingRequest(
            id=id,
            client=client,
            until=until,
            scopes=scopes,
            resource=device.resource,
            user_code=code,
        )

    async def decide(self, id: str, agreed: DeviceConsent | None) -> bool:
        """What the person said: what is granted, or None for nothing.

        Whether it was the first word about it.
        """
        key = id.removeprefix(MARK)
        while True:  # a poll may come between
            device = await self._repository.get(key)
            if device is None or device.decided or self._settings.now() >= device.until:
                return False
            if agreed is None:
                decided = replace(device, decided="denied")
            else:
                decided = replace(
                    device, decided="granted", person=agreed.person, scopes=agreed.scopes
                )
            if await self._repository.swap(key, device, decided, device.until + _GRACE):
                await self._codes.remove(digest(device.user_code.replace("-", "")))
                return True

    async def poll(self, code: str, client: Client) -> DeviceConsent:
        """What the person has granted. Raises Refusal: not yet, too often, never (RFC 8628,
        3.5)."""
        key = digest(code)
        now = self._settings.now()
        device = await self._repository.get(key)
        if device is None or device.client != client.id:
            raise invalid_grant("the device_code is unknown, or was already used")
        if now >= device.until:
            raise OAuthError("expired_token", "the device_code has expired: start again")
        if not device.decided:
            # half a second for networks
            early = device.polled and now < device.polled + device.interval - 0.5
            polled = replace(device, polled=now, interval=device.interval + (5.0 if early else 0.0))
            await self._repository.swap(key, device, polled, device.until + _GRACE)
            if early:
                raise OAuthError("slow_down", f"wait {polled.interval:g} seconds between polls")
            raise OAuthError("authorization_pending", "the user has not decided yet")
        taken = await self._repository.pop(key)
        if taken is None:
            raise invalid_grant("the device_code is unknown, or was already used")
        if taken.person is None:
            raise OAuthError("access_denied", "the user denied the request")
        return DeviceConsent(taken.person, taken.scopes, taken.resource)

    async def _user_code(self, key: str, until: float) -> str:
        """A code that no other device has now."""
        while True:
            letters = "".join(secrets.choice(_LETTERS) for _ in range(8))
            if await self._codes.add(digest(letters), _Named(key), until):
                return f"{letters[:4]}-{letters[4:]}"
