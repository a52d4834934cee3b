"""A browser at the issuer: its cookie, its login session, and CSRF tokens for forms."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from interlock.auth.oauth import origin
from interlock.store import Vault

from ..http.parameters import header
from ..repository import digest

_SESSION = "session"
_VALUE = re.compile(r"[A-Za-z0-9_-]{43}")


class Session(Struct, frozen=True, kw_only=True):
    """Who is logged in; `mark` changes where log-ins shall end."""

    subject: str
    name: str | None = None
    mark: str = ""


class Browser:
    """The browser that asks, known by a random cookie of its own.

    The cookie is no more than a name: who is logged in is kept in the vault, under its digest.
    Everything that a page hands out to be handed back (`refer`, `token`) holds only for the browser
    that it was given to.
    """

    def __init__(self, url: str, cookie: str | None = None) -> None:
        self._url = url
        given = cookie is not None and _VALUE.fullmatch(cookie) is not None
        self.value = cookie if cookie is not None and given else secrets.token_urlsafe(32)
        self.is_new = not given

    @classmethod
    def of(cls, url: str, request: Request) -> Browser:
        """The browser that asks the issuer at `url`;
        one without a cookie of ours gets a new one."""
        return cls(url, request.cookies.get(cookie_name(url)))

    def renewed(self) -> Browser:
        """The same browser under a new name, as after each log-in and log-out, so that a name known
        before is worth nothing after.
        """
        return Browser(self._url)

    def identify(self, response: Response) -> Response:
        """Give the browser its cookie with a response, and return that."""
        return set_cookie(response, self._url, cookie_name(self._url), self.value)

    def refer(self, word: str) -> str:
        """A word of ours (never an address) that goes through the browser's hands, and through no
        other's.
        """
        return f"{word}~{self._mac('refer', word)}"

    def meant(self, reference: str) -> str | None:
        """The word that was referred to; None where this browser was given no such thing."""
        word, _, mac = reference.rpartition("~")
        return (
            word if hmac.compare_digest(mac.encode(), self._mac("refer", word).encode()) else None
        )

    def token(self, action: str, at: str) -> str:
        """What a form for `action` carries, and nobody else can know."""
        return self._mac(f"form {action}", at)

    def sent(self, action: str, form: dict[str, str], request: Request) -> bool:
        """Whether a form was sent by this browser from a page of ours."""
        sent = header(request, "origin")
        if sent is not None and sent.lower() != origin(self._url):
            return False
        return hmac.compare_digest(
            form.get("token", "").encode(), self.token(action, form.get("at", "")).encode()
        )

    async def session(self, vault: Vault) -> Session | None:
        """Who is logged in; None for nobody."""
        kept = None if self.is_new else await vault.get(_SESSION, self._key)
        return None if kept is None else msgspec.json.decode(kept, type=Session)

    async def log_in(self, vault: Vault, session: Session, until: float) -> Browser:
        """Log somebody in until then (seconds of the wall clock);
        the browser under its new name."""
        await self.log_out(vault)
        browser = self.renewed()
        await vault.put(_SESSION, browser._key, msgspec.json.encode(session), until=until)
        return browser

    async def log_out(self, vault: Vault) -> None:
        """Nobody is logged in here any more."""
        await vault.remove(_SESSION, self._key)

    @property
    def _key(self) -> str:
        return digest(self.value)

    def _mac(self, purpose: str, word: str) -> str:
        digest = hmac.digest(
            self.value.encode(), f"{purpose}\n{word}".encode("utf-8", "surrogatepass"), "sha256"
        )
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def cookie_name(url: str, what: str = "browser") -> str:
    """The name of a cookie of the issuer at `url`: `__Host-` (SEC-09), so that no other host or
    path can set it.

    Two issuers of one host do not get in each other's way. Without https, on loopback, no browser
    would take the prefix.
    """
    prefix = "__Host-" if url.startswith("https:") else ""
    return f"{prefix}interlock-{what}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"


def set_cookie(
    response: Response, url: str, name: str, value: str, *, seconds: int | None = None
) -> Response:
    """Set a cookie of the issuer at `url` that no script reads and no other site's request carries.

    Args:
        response: Carries the cookie, and is returned.
        url: The address of the issuer.
        name: See `cookie_name`.
        value: The value; empty to delete the cookie.
        seconds: How long it lasts, 0 to delete it; None until the browser ends.
    """
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path="/",
        secure=url.startswith("https:"),
        httponly=True,
        samesite="lax",
    )
    return response
