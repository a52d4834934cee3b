"""What people give by mistake, at the place where something else belongs, is said at once and in
words that name the right thing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from interlock import Client
from interlock.auth import AnyOf, ApiKeys, Guard, Jwt, OAuth
from interlock.transport.http.client.transport import Http
from interlock_issuer import Issuer, OAuthProxy, presets

given: Any = presets.get("github")
JWT: Any = Jwt
KEYS: Any = ApiKeys
GUARD: Any = Guard
PROXY: Any = OAuthProxy

MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a token for a guard": (
        lambda: GUARD("secret"),
        "a guard needs a verifier of tokens, .*ApiKeys.*; not a str",
    ),
    "nothing for a guard": (lambda: GUARD(None), "a guard needs a verifier of tokens"),
    "a preset for a guard": (
        lambda: GUARD(given),
        r"a guard needs a verifier of tokens, .*; not a Preset",
    ),
    "a class for a guard": (
        lambda: GUARD(Jwt),
        "a guard needs a verifier of tokens, .*; not the class Jwt",
    ),
    "a function for a guard": (lambda: GUARD(len), "a guard needs a verifier of tokens, .*Checked"),
    "one of several is none": (
        lambda: AnyOf(Jwt("https://a.example"), given),
        "a guard needs a verifier of tokens",
    ),
    "a preset for a proxy": (
        lambda: PROXY("https://p.example", given, "id", "secret"),
        r"at a provider, such as presets.get\('github'\).provider\(\)",
    ),
    "a name for a proxy": (
        lambda: PROXY("https://p.example", "github", "id", "secret"),
        r"at a provider, such as presets.get\('github'\).provider\(\)",
    ),
    "an issuer without its scheme": (
        lambda: JWT("auth.example.com"),
        "'auth.example.com' cannot be an issuer",
    ),
    "an issuer in the open": (lambda: JWT("http://auth.example.com"), "issuer.*https"),
    "one algorithm": (
        lambda: JWT("https://a.example", algorithms="RS256"),
        "algorithms are a list of strings",
    ),
    "keys without names": (
        lambda: KEYS(["a" * 30]),
        "keys must be a mapping from the name of each key's owner to the key",
    ),
    "a token as auth": (
        lambda: Client("http://127.0.0.1:1/mcp", auth=object()),
        r"auth is what gets tokens, such as OAuth\(\)",
    ),  # type: ignore[arg-type]  # the mistake
    "a string as auth": (lambda: Http("http://127.0.0.1:1/mcp", auth="abc"), "goes to token="),  # type: ignore[arg-type]  # the mistake
    "a class as auth": (lambda: Http("http://127.0.0.1:1/mcp", auth=OAuth), r"such as OAuth\(\)"),  # type: ignore[arg-type]  # the mistake
}


@pytest.mark.parametrize("mistake, words", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_said_at_once(mistake: Callable[[], object], words: str) -> None:
    """A TypeError or ValueError, where the mistake is made and not at the first request."""
    with pytest.raises((TypeError, ValueError), match=words):
        mistake()


def test_what_is_right_is_taken() -> None:
    """An issuer by another name where its keys are given, an Issuer beside the app, verifiers of
    one's own.
    """

    class InProcessVerifier:
        issuers = ("https://a.example",)

        async def verify(self, token: str, *, resource: str, now: float) -> Any:
            raise AssertionError

    assert Jwt("an issuer of long ago", jwks_uri="https://keys.example.com/jwks").issuers == (
        "an issuer of long ago",
    )
    assert Guard(InProcessVerifier()).verifier.issuers == ("https://a.example",)
    assert Guard(Issuer("https://a.example")).beside is not None
