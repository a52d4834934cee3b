"""An authorization server elsewhere, at which the proxy is one client: it remembers who has agreed,
and asks nobody twice.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

from interlock import types as t
from interlock.auth.keys import SigningKey
from interlock.http11.fetch import Request
from interlock_issuer.providers import Provider
from tests.auth.network import Answer

ID = "the-proxy"
SECRET = "s3cret/with+signs%"
KEY = SigningKey.generate("ES256")
ACME = Provider(
    name="Acme",
    issuer="https://id.acme.example",
    authorization_endpoint="https://id.acme.example/authorize",
    token_endpoint="https://id.acme.example/token",
    jwks_uri="https://id.acme.example/keys",
    person_url="https://id.acme.example/userinfo",
    scopes=("openid", "api:read"),
    sends_iss=True,
)


class Elsewhere:
    """The provider as its clients and the browsers of people meet it; a Fetch.

    `claims` are laid over those of the ID tokens, `seconds` is how long access tokens live (None:
    not said), `rotates` whether a refresh token is good for one use. What `down` is raised, or
    answered if it is an Answer.
    """

    def __init__(
        self,
        provider: Provider = ACME,
        *,
        clock: Any,
        client_id: str = ID,
        client_secret: str | None = SECRET,
    ) -> None:
        self.provider = provider
        self.clock = clock
        self.client_id = client_id
        self.client_secret = client_secret
        self.person: dict[str, Any] = {provider.subject: "1234", "name": "Anna"}
        self.claims: dict[str, Any] = {}
        self.seconds: float | None = 3600
        self.rotates = True
        self.key = KEY
        self.down: Exception | Answer | None = None
        self.codes: dict[str, dict[str, str]] = {}
        self.access: dict[str, str] = {}  # tokens that are taken, and whose they are
        self.refresh: dict[str, str] = {}
        self.sent: list[Request] = []

    # -- the browser -------------------------------------------------------------------------------

    def visit(self, url: str, **changes: str | None) -> str:
        """A person, who has agreed to this client long ago, comes with a browser: where they are
        sent back to.
        """
        parts = urlsplit(url)
        assert url.startswith(self.provider.authorization_endpoint), url
        asked = {
            name: values[0] for name, values in parse_qs(parts.query).items() if len(values) == 1
        }
        assert asked["client_id"] == self.client_id
        assert asked["response_type"] == "code"
        code = secrets.token_urlsafe(8)
        self.codes[code] = asked
        answer: dict[str, str | None] = {"code": code, "state": asked["state"]}
        if self.provider.sends_iss:
            answer["iss"] = self.provider.issuer
        told = {name: value for name, value in (answer | changes).items() if value is not None}
        return f"{asked['redirect_uri']}?{urlencode(told)}"

    # -- the client --------------------------------------------------------------------------------

    async def __call__(self, request: Request) -> Answer:
        """An answer of the provider."""
        self.sent.append(request)
        if isinstance(self.down, Exception):
            raise self.down
        if self.down is not None:
            return self.down
        if request.url == self.provider.token_endpoint:
            return self._token(request)
        if request.url == self.provider.jwks_uri:
            return Answer({"keys": [self.key.public()]})
        if request.url == self.provider.person_url:
            token = dict(request.headers)["authorization"].removeprefix("Bearer ")
            return (
                Answer(self.person)
                if token in self.access
                else Answer({"message": "Bad credentials"}, 401)
            )
        raise t.Unreachable(f"there is no {request.url}")

    async def aclose(self) -> None:
        """Nothing is open."""

    def revoke(self) -> None:
        """All sessions end."""
        self.access.clear()
        self.refresh.clear()

    def _token(self, request: Request) -> Answer:
        form = dict(parse_qsl(request.body.decode()))
        if not self._is_client(request, form):
            return self._refusal("invalid_client", 401)
        if form["grant_type"] == "refresh_token":
            given = form["refresh_token"]
            if given not in self.refresh:
                return self._refusal("invalid_grant")
            if self.rotates:
                del self.refresh[given]
            return Answer(self._tokens(None, self.rotates))
        asked = self.codes.pop(form["code"], None)
        if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
            return self._refusal("invalid_grant")
        if self.provider.pkce:
            challenge = (
                base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
                .decode()
                .rstrip("=")
            )
            if not hmac.compare_digest(challenge, asked["code_challenge"]):
                return self._refusal("invalid_grant")
        return Answer(self._tokens(asked.get("nonce"), True))

    def _refusal(self, error: str, status: int = 400) -> Answer:
        github = "github" in self.provider.token_endpoint  # which refuses with 200
        return Answer({"error": error, "error_description": "No."}, 200 if github else status)

    def _tokens(self, nonce: str | None, refresh: bool) -> dict[str, Any]:
        token = f"access-{secrets.token_urlsafe(8)}"
        self.access[token] = str(self.person[self.provider.subject])
        told: dict[str, Any] = {
            "access_token": token,
            "token_type": "bearer",
            "scope": ",".join(self.provider.scopes),
        }
        if self.seconds is not None:
            told["expires_in"] = self.seconds
        if refresh and self.seconds is not None:
            told["refresh_token"] = f"refresh-{secrets.token_urlsafe(8)}"
            self.refresh[told["refresh_token"]] = token
        if nonce is not None:
            now = int(self.clock())
            base = {
                "iss": self.provider.issuer,
                "aud": self.client_id,
                "iat": now,
                "exp": now + 300,
                "nonce": nonce,
            }
            claims = base | self.person | self.claims
            told["id_token"] = self.key.sign(
                {name: value for name, value in claims.items() if value is not None}
            )
        return told

    def _is_client(self, request: Request, form: dict[str, str]) -> bool:
        headers = dict(request.headers)
        assert headers["accept"] == "application/json"  # without which GitHub answers with a form
        if self.provider.method == "client_secret_basic":
            name, _, secret = (
                base64.b64decode(headers["authorization"].removeprefix("Basic "))
                .decode()
                .partition(":")
            )
            return (unquote(name), unquote(secret)) == (
                self.client_id,
                self.client_secret,
            ) and "client_secret" not in form
        return (form.get("client_id"), form.get("client_secret")) == (
            self.client_id,
            self.client_secret,
        )
