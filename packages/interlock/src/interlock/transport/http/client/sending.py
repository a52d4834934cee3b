"""Sends the HTTP requests of a client with their authorization, and follows redirects within the
origin of the server.
"""

from __future__ import annotations

import contextlib

from msgspec.structs import replace

from interlock import types as t
from interlock.exchange import PauseTimeout
from interlock.http11.fetch import Authorized, Fetch, Request, Response
from interlock.redaction.urls import url_without_secrets

from .refusals import resolve, shown

_MOST_REDIRECTS = 5
_UNTIMED = contextlib.nullcontext()


class HttpSender:
    """Sends requests to one server.

    Args:
        url: The address of the endpoint. It changes when the server redirects for good.
        fetch: The HTTP client.
        authorized: The authorization for the server, if it needs one.
    """

    def __init__(self, url: str, fetch: Fetch, authorized: Authorized | None = None) -> None:
        self.url = url
        self.fetch = fetch
        self._authorized = authorized

    async def send(
        self, request: Request, pause_timeout: PauseTimeout = contextlib.nullcontext
    ) -> Response:
        """Send a request. Redirects are followed within the origin, and from http to https on the
        same host.

        While `pause_timeout` is entered, a person may be asked to log in.
        """
        permanent = request.url == self.url
        for _ in range(_MOST_REDIRECTS + 1):
            response = await (
                self.fetch(request)
                if self._authorized is None
                else self._ask(self._authorized, request, pause_timeout)
            )
            if response.status not in (301, 302, 307, 308) or "location" not in response.headers:
                return response
            await response.aclose()
            target = resolve(request.url, response.headers["location"])
            if target is None:
                raise t.Unreachable(
                    f"{url_without_secrets(request.url)} sends to "
                    f"{shown(url_without_secrets(response.headers['location']).encode())}, "
                    "which is another origin; give that address if it is meant.",
                    status=response.status,
                )
            permanent = permanent and response.status in (301, 308)
            if permanent:
                self.url = target
            request = replace(request, url=target)
        raise t.Unreachable(
            f"{url_without_secrets(self.url)} redirects more than {_MOST_REDIRECTS} times. Is that "
            "the right address?"
        )

    async def _ask(
        self, authorized: Authorized, request: Request, pause_timeout: PauseTimeout
    ) -> Response:
        """Send a request with its authorization. Repeat it if the authorization had to be
        renewed.
        """
        tries = 0
        while True:
            with pause_timeout():
                signed = await authorized.sign(request)
            response = await self.fetch(signed)
            tries += 1
            try:
                with (
                    pause_timeout() if response.status >= 400 else _UNTIMED
                ):  # otherwise no login is possible
                    again = await authorized.handle_response(signed, response, tries)
            except BaseException:
                await response.aclose()
                raise
            if not again:
                return response
            await response.aclose()

    async def send_signed(self, request: Request) -> None:
        """Send a request with the current authorization, and ignore the response: the end of a
        session must not cause a login.
        """
        response = await self.fetch(
            request if self._authorized is None else await self._authorized.sign(request)
        )
        await response.aclose()
