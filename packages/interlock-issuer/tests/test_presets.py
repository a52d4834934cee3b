"""The presets: well-formed, and each takes a token as its provider makes it, for this server, and
no other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from interlock import types as t
from interlock.auth.keys import SigningKey
from interlock.auth.tokens.interface import BadToken, Unverifiable
from interlock_issuer import presets
from interlock_issuer.presets.preset import Preset
from interlock_issuer.providers import Provider, provider_of
from tests.auth.network import Answer, Web
from tests.issuer.office import World

NOW = 1_800_000_000.0
SERVER = "https://mcp.example/mcp"
KEY = SigningKey.generate("RS256")
ALL = [presets.get(name) for name in presets.names()]
SIGNED = [preset for preset in ALL if preset.kind == "jwt"]
ASKED = [preset for preset in ALL if preset.kind == "api"]
WANTED = {
    "auth0",
    "entra",
    "cognito",
    "google",
    "github",
    "keycloak",
    "okta",
    "workos",
    "clerk",
    "supabase",
    "descope",
    "scalekit",
}

# What each provider puts into an access token beside iss, exp and iat: header, claims, and the
# principal that they mean.
ENTRA_APP = "11111111-1111-1111-1111-111111111111"
TOKENS: dict[str, tuple[dict[str, str], dict[str, Any], tuple[str, str, set[str]]]] = {
    "auth0": (
        {"typ": "at+jwt"},
        {
            "sub": "auth0|1",
            "aud": [SERVER, "https://acme.eu.auth0.com/userinfo"],
            "azp": "c",
            "scope": "openid files:read",
            "permissions": ["files:write"],
        },
        ("auth0|1", "c", {"openid", "files:read", "files:write"}),
    ),
    "entra": (
        {"typ": "JWT"},
        {
            "aud": ENTRA_APP,
            "sub": "pairwise",
            "oid": "o-1",
            "azp": "c",
            "scp": "files.read files.write",
            "ver": "2.0",
            "tid": "t",
        },
        ("o-1", "c", {"files.read", "files.write"}),
    ),
    "cognito": (
        {},
        {
            "sub": "s-1",
            "aud": SERVER,
            "token_use": "access",
            "client_id": "c",
            "scope": f"{SERVER}/read",
            "username": "anna",
        },
        ("s-1", "c", {f"{SERVER}/read"}),
    ),
    "keycloak": (
        {"typ": "JWT"},
        {
            "sub": "k-1",
            "aud": ["account", SERVER],
            "typ": "Bearer",
            "azp": "c",
            "scope": "files:read profile",
        },
        ("k-1", "c", {"files:read", "profile"}),
    ),
    "okta": (
        {},
        {
            "sub": "anna@acme.example",
            "uid": "00u1",
            "aud": SERVER,
            "cid": "c",
            "scp": ["files:read"],
            "ver": 1,
        },
        ("00u1", "c", {"files:read"}),
    ),
    "workos": (
        {},
        {"sub": "user_1", "aud": SERVER, "client_id": "c", "scope": "openid files:read"},
        ("user_1", "c", {"openid", "files:read"}),
    ),
    "clerk": (
        {"typ": "at+jwt"},
        {"sub": "user_2", "aud": SERVER, "client_id": "c", "scope": "profile email"},
        ("user_2", "c", {"profile", "email"}),
    ),
    "supabase": (
        {"typ": "JWT"},
        {"sub": "u-1", "aud": SERVER, "client_id": "c", "role": "authenticated"},
        ("u-1", "c", set()),
    ),
    "descope": (
        {"typ": "JWT"},
        {
            "sub": "U1",
            "aud": ["c", "P2abcdefghijklmnopqrstuvwxyz"],
            "azp": "c",
            "scope": "mcp:read",
        },
        ("U1", "c", {"mcp:read"}),
    ),
    "scalekit": (
        {},
        {"sub": "usr_1", "aud": [SERVER], "client_id": "c", "scope": "files:read"},
        ("usr_1", "c", {"files:read"}),
    ),
}


def addresses(preset: Preset) -> list[str]:
    """All addresses of a preset, filled with its own examples."""
    templates = [
        preset.issuer,
        preset.server,
        preset.jwks_uri,
        preset.introspection,
        preset.authorization_endpoint,
        preset.token_endpoint,
        preset.person_url,
    ]
    return [template.format_map(preset.needs) for template in templates if template]


def world(preset: Preset) -> World:
    """Where the keys of a provider are."""
    found = World()
    found.documents[preset.jwks_uri.format_map(preset.needs)] = {"keys": [KEY.public()]}
    return found


def token(preset: Preset, **changes: Any) -> str:
    """An access token as the provider makes it, but for the changes."""
    header, claims, _ = TOKENS[preset.name]
    base = {
        "iss": preset.issuer.format_map(preset.needs),
        "iat": int(NOW) - 10,
        "exp": int(NOW) + 600,
        "jti": "1",
    }
    told = {name: value for name, value in (base | claims | changes).items() if value is not None}
    return KEY.sign(told, header=header)


def test_all_are_there() -> None:
    """The providers that people use, each with all that a reader of the table wants to know.

    Another name says which there are.
    """
    assert set(presets.names()) == WANTED
    assert {preset.name for preset in SIGNED} == set(TOKENS)
    with pytest.raises(ValueError, match="auth0, clerk, cognito"):
        presets.get("nobody")
    assert presets.get("Auth0") is presets.get("auth0")
    for preset in ALL:
        assert preset.links
        assert preset.remarks
        assert all(remark.endswith(".") for remark in preset.remarks)
        assert all(link.startswith("https://") for link in preset.links)


@pytest.mark.parametrize("preset", ALL, ids=lambda preset: preset.name)
def test_addresses(preset: Preset) -> None:
    """Every address is https, absolute and whole once its values are filled in."""
    for url in addresses(preset):
        parts = urlsplit(url)
        assert (parts.scheme, bool(parts.hostname)) == ("https", True), url
        assert not parts.query
        assert not parts.fragment
        assert "{" not in url
        assert "//" not in parts.path


@pytest.mark.parametrize("preset", ALL, ids=lambda preset: preset.name)
def test_the_provider_of_each(preset: Preset) -> None:
    """Each can stand behind the proxy, and says where people log in, and how they are found."""
    provider = preset.provider(**preset.needs)
    url = provider.visit(
        client_id="c",
        redirect_uri="https://p.example/cb",
        state="s",
        challenge="x",
        nonce="n",
        scopes=provider.scopes,
    )
    assert url.startswith(f"{provider.authorization_endpoint}?")
    assert "code_challenge=x" in url
    assert ("nonce=n" in url) == (provider.person == "id_token") == ("openid" in provider.scopes)
    assert provider.identified({provider.subject: "1", provider.names[0]: "Anna"}) == ("1", "Anna")


@pytest.mark.parametrize("preset", SIGNED, ids=lambda preset: preset.name)
async def test_a_token_of_each(preset: Preset) -> None:
    """A token as the provider makes it is taken, and read as it is meant."""
    verifier = preset.verifier(fetch=world(preset), **preset.needs)
    principal = (await verifier.verify(token(preset), resource=SERVER, now=NOW)).principal
    subject, client, scopes = TOKENS[preset.name][2]
    assert (principal.subject, principal.client, principal.scopes) == (
        subject,
        client,
        frozenset(scopes),
    )
    assert principal.expires == NOW + 600
    assert list(verifier.issuers) == [(preset.server or preset.issuer).format_map(preset.needs)]


OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("another server", {"aud": "https://other.example/mcp"}),
    ("several others", {"aud": ["https://other.example/mcp", "account"]}),
    ("nobody", {"aud": None}),
    ("another issuer", {"iss": "https://evil.example"}),
    ("the past", {"exp": int(NOW) - 3600}),
    ("no end", {"exp": None}),
]


@pytest.mark.parametrize(
    "changes", [changes for _, changes in OTHERS], ids=[name for name, _ in OTHERS]
)
@pytest.mark.parametrize("preset", SIGNED, ids=lambda preset: preset.name)
async def test_tokens_for_others(preset: Preset, changes: dict[str, Any]) -> None:
    """A token for another server, from another, or from another time is refused (AUT-07,
    SEC-06)."""
    verifier = preset.verifier(fetch=world(preset), **preset.needs)
    with pytest.raises(BadToken):
        await verifier.verify(token(preset, **changes), resource=SERVER, now=NOW)


async def test_an_id_token_of_cognito_is_none() -> None:
    """An ID token of Cognito, which has an audience of its own, is no access token."""
    preset = presets.get("cognito")
    verifier = preset.verifier(fetch=world(preset), **preset.needs)
    with pytest.raises(BadToken, match="token_use"):
        await verifier.verify(token(preset, token_use="id"), resource=SERVER, now=NOW)


@pytest.mark.parametrize("preset", SIGNED, ids=lambda preset: preset.name)
async def test_another_audience(preset: Preset) -> None:
    """Who knows better what the tokens name says so; then that counts and nothing else."""
    verifier = preset.verifier(fetch=world(preset), audience="authenticated", **preset.needs)
    assert await verifier.verify(token(preset, aud="authenticated"), resource=SERVER, now=NOW)
    with pytest.raises(BadToken):
        await verifier.verify(token(preset, aud=SERVER), resource=SERVER, now=NOW)


INTROSPECTED = [preset for preset in SIGNED if preset.introspection]


@pytest.mark.parametrize("preset", INTROSPECTED, ids=lambda preset: preset.name)
async def test_a_token_that_is_asked_about(preset: Preset) -> None:
    """Where the provider can be asked in the common way, its answer is read as its tokens are, and
    held to the same audience (AUT-07).
    """
    _, claims, (subject, client, scopes) = TOKENS[preset.name]
    api = Web({}, others=Answer({"active": True, "exp": int(NOW) + 600} | claims))
    verifier = preset.verifier(
        opaque=True, client_id="own", client_secret="hush", fetch=api, **preset.needs
    )
    principal = (await verifier.verify("opaque-token", resource=SERVER, now=NOW)).principal
    assert (principal.subject, principal.client, principal.scopes) == (
        subject,
        client,
        frozenset(scopes),
    )
    assert [sent.url for sent in api.asked] == [preset.introspection.format_map(preset.needs)]
    for told in (
        {"active": False},
        {"active": True} | claims | {"aud": "https://other.example/mcp"},
    ):
        api.others = Answer(told)
        with pytest.raises(BadToken):
            await verifier.verify("opaque-token", resource=SERVER, now=NOW)


def test_where_nobody_can_be_asked() -> None:
    """A provider without introspection, and one who does not say who asks,
    are refused with words."""
    with pytest.raises(ValueError, match="has no way to check"):
        presets.get("auth0").verifier(opaque=True, client_id="own", **presets.get("auth0").needs)
    with pytest.raises(ValueError, match="give client_id"):
        presets.get("okta").verifier(opaque=True, **presets.get("okta").needs)


WRONG_VALUES: list[tuple[str, dict[str, str]]] = [
    ("auth0", {"domain": "evil.example/x?"}),
    ("auth0", {"domain": "acme.eu.auth0.com@evil.example"}),
    ("auth0", {"domain": ""}),
    ("auth0", {}),
    ("auth0", {"domain": "acme.eu.auth0.com", "tenant": "x"}),
    ("entra", {"tenant": "common", "application": ENTRA_APP}),
    ("entra", {"tenant": "organizations", "application": ENTRA_APP}),
    ("keycloak", {"base": "http://id.example.com", "realm": "acme"}),
    ("keycloak", {"base": "https://id.example.com", "realm": "../master"}),
    ("cognito", {"region": "eu-central-1.evil.example/", "pool": "p", "domain": "a.example"}),
    ("supabase", {"project": "evil.example/x"}),
    ("google", {"domain": "acme.example"}),
]


@pytest.mark.parametrize("name, values", WRONG_VALUES)
def test_values_that_cannot_be(name: str, values: dict[str, str]) -> None:
    """A value that is missing, strange, or would make it the address of somebody else is refused
    with words and an example.
    """
    for use in (presets.get(name).verifier, presets.get(name).provider):
        with pytest.raises(ValueError, match=r"needs|cannot be the|has no"):
            use(**values)


def test_values_as_people_copy_them() -> None:
    """A domain may come as it stands in the address line; a Keycloak may be on the own machine."""
    assert (
        presets.get("okta").provider(domain="https://acme.okta.com/", server="default").issuer
        == "https://acme.okta.com/oauth2/default"
    )
    assert (
        presets.get("keycloak").provider(base="http://127.0.0.1:8080/", realm="a").issuer
        == "http://127.0.0.1:8080/realms/a"
    )


KNOWN: dict[str, tuple[Mapping[str, Any], tuple[str, set[str]]]] = {
    "google": (
        {
            "aud": "own",
            "azp": "own",
            "sub": "g-1",
            "scope": "openid https://www.googleapis.com/auth/calendar",
            "expires_in": "3599",
            "email": "a@b.example",
        },
        ("g-1", {"openid", "https://www.googleapis.com/auth/calendar"}),
    ),
    "github": (
        {
            "app": {"client_id": "own", "name": "App"},
            "user": {"id": 7, "login": "octocat"},
            "scopes": ["repo", "read:user"],
            "expires_at": None,
        },
        ("7", {"repo", "read:user"}),
    ),
}


def asking(preset: Preset, answer: Answer | Exception) -> tuple[Any, Web]:
    """A verifier that asks an API, and the API."""
    api = Web({}, others=answer)
    return preset.verifier(client_id="own", client_secret="hush", fetch=api, **preset.needs), api


@pytest.mark.parametrize("preset", ASKED, ids=lambda preset: preset.name)
async def test_an_opaque_token_of_each(preset: Preset) -> None:
    """An opaque token is shown to its provider, never in an address, and taken where it was given
    to our own client.
    """
    told, (subject, scopes) = KNOWN[preset.name]
    verifier, api = asking(preset, Answer(told))
    principal = (await verifier.verify("opaque-token", resource=SERVER, now=NOW)).principal
    assert (principal.subject, principal.client, principal.scopes) == (
        subject,
        "own",
        frozenset(scopes),
    )
    (sent,) = api.asked
    assert sent.method == "POST"
    assert "opaque-token" not in sent.url


@pytest.mark.parametrize("preset", ASKED, ids=lambda preset: preset.name)
async def test_an_opaque_token_of_another_client(preset: Preset) -> None:
    """A token that was given to another client of the provider is refused, though the provider
    knows it (AUT-07, SEC-06).
    """
    told = json.loads(json.dumps(KNOWN[preset.name][0]).replace('"own"', '"another"'))
    verifier, _ = asking(preset, Answer(told))
    with pytest.raises(BadToken, match="another client"):
        await verifier.verify("opaque-token", resource=SERVER, now=NOW)


@pytest.mark.parametrize("preset", ASKED, ids=lambda preset: preset.name)
@pytest.mark.parametrize("answer, refusal", [
    (Answer({"error": "invalid_token"}, 400), BadToken),
    (Answer({"message": "Not Found"}, 404), BadToken),
    (Answer({}), BadToken),
    (Answer(b"<html>", 500), Unverifiable),
    (Answer(b"<html>"), Unverifiable),
    (Answer(b"[1]"), Unverifiable),
    (t.Unreachable("no route"), Unverifiable),
])  # fmt: skip
async def test_an_opaque_token_that_nobody_knows(
    preset: Preset, answer: Answer | Exception, refusal: type[Exception]
) -> None:
    """What the provider does not know is refused,
    and what it cannot be asked about is not taken."""
    verifier, _ = asking(preset, answer)
    wanted = (
        Unverifiable
        if getattr(answer, "status", 0) in (400, 404) and not _refuses(preset, answer)
        else refusal
    )
    with pytest.raises(wanted):
        await verifier.verify("opaque-token", resource=SERVER, now=NOW)


def _refuses(preset: Preset, answer: Any) -> bool:
    """Whether the provider says by this status that it does not know a token."""
    return answer.status == {"google": 400, "github": 404}[preset.name]


def test_an_opaque_token_needs_a_client() -> None:
    """Who asks has to say who it is."""
    for preset in ASKED:
        with pytest.raises(ValueError, match="client"):
            preset.verifier(**preset.needs)


GOOD = {
    "name": "A",
    "issuer": "https://a.example",
    "authorization_endpoint": "https://a.example/a",
    "token_endpoint": "https://a.example/t",
    "jwks_uri": "https://a.example/k",
}
BAD_PROVIDERS = [
    {"token_endpoint": "http://a.example/t"},
    {"authorization_endpoint": "javascript:alert(1)"},
    {"issuer": "a.example"},
    {"jwks_uri": "https://user@a.example/k"},
    {"jwks_uri": "https://a.example/k#x"},
    {"jwks_uri": ""},
    {"person": "userinfo"},
    {"person": "api", "person_url": "ftp://a.example"},
]


@pytest.mark.parametrize("changes", BAD_PROVIDERS)
def test_a_provider_that_cannot_be(changes: dict[str, Any]) -> None:
    """Addresses of a provider are https, or on loopback;
    people must be found in some way (SEC-13)."""
    with pytest.raises(ValueError, match="cannot be"):
        Provider(**(GOOD | changes))
    assert Provider(**(GOOD | {"token_endpoint": "http://127.0.0.1:8080/t"}))


def test_a_provider_by_its_metadata() -> None:
    """What a provider publishes is enough to make one of it."""
    published = {
        "issuer": "https://id.example",
        "authorization_endpoint": "https://id.example/a",
        "token_endpoint": "https://id.example/t",
        "userinfo_endpoint": "https://id.example/u",
        "jwks_uri": "https://id.example/k",
        "token_endpoint_auth_methods_supported": ["private_key_jwt", "client_secret_basic"],
        "code_challenge_methods_supported": ["plain", "S256"],
        "authorization_response_iss_parameter_supported": True,
    }
    provider = provider_of(json.dumps(published).encode())
    assert (provider.name, provider.person, provider.method, provider.pkce, provider.sends_iss) == (
        "id.example",
        "id_token",
        "client_secret_basic",
        True,
        True,
    )
    published |= {
        "code_challenge_methods_supported": ["plain"],
        "jwks_uri": None,
        "authorization_response_iss_parameter_supported": None,
    }
    provider = provider_of(json.dumps(published).encode(), name="Ours", scopes=("a",))
    assert (provider.name, provider.person, provider.pkce, provider.sends_iss, provider.scopes) == (
        "Ours",
        "userinfo",
        False,
        False,
        ("a",),
    )
    with pytest.raises(ValueError, match="token_endpoint"):
        provider_of(b'{"issuer": "https://id.example"}')
