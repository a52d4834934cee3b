"""The OAuth proxy: the whole way through another authorization server, and every shorter one that
an attacker would like to take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from msgspec.structs import replace

from interlock import types as t
from interlock.auth.keys import SigningKey
from interlock.store.vaults.memory import MemoryVault
from interlock_issuer.interfaces import Client
from interlock_issuer.providers import Provider
from interlock_issuer.proxy import OAuthProxy
from tests.auth.network import Answer, Clock
from tests.issuer.exchange import Reply
from tests.issuer.office import (
    APP,
    BACK,
    SCOPES,
    SECOND,
    SERVER,
    VERIFIER,
    World,
    claims_of,
    request,
    said,
)
from tests.issuer.visitors import Page, Visitor, answer_at, leads_to
from tests.proxy.elsewhere import ACME, ID, SECRET, Elsewhere

EVIL = Client(
    id="evil", name="Evil", redirect_uris=("https://evil.example/back",), source="configured"
)
DEVICE = Client(
    id="tv", name="Television", grants=("urn:ietf:params:oauth:grant-type:device_code",)
)


class Street:
    """A proxy, the provider behind it, and people who come along."""

    def __init__(self, provider: Provider = ACME, **options: Any) -> None:
        self.clock = Clock()
        self.vault = MemoryVault(clock=self.clock)
        self.elsewhere = Elsewhere(provider, clock=self.clock)
        given: dict[str, Any] = {
            "clients": [APP, SECOND, EVIL, DEVICE],
            "scopes": SCOPES,
            "resources": [SERVER],
            "vault": self.vault,
            "fetch": World(),
            "upstream_fetch": self.elsewhere,
            "clock": self.clock,
        }
        self.proxy = OAuthProxy("https://proxy.example", provider, ID, SECRET, **(given | options))

    def visitor(self) -> Visitor:
        """Somebody's browser."""
        return Visitor(self.proxy)

    async def agreed(
        self, visitor: Visitor, fields: Mapping[str, str] | None = None, **changes: str | None
    ) -> str:
        """The address at the provider to which somebody is sent who has just agreed here."""
        page = await visitor.begin(request(**changes))
        return leads_to(await visitor.fill(page, "/consent", answer="yes", **(fields or {})))

    async def arrived(self, visitor: Visitor, **changes: str | None) -> Reply:
        """The whole way of a person: consent here, log-in there, and back."""
        return await visitor.get(self.elsewhere.visit(await self.agreed(visitor, **changes)))

    async def tokens(self, visitor: Visitor | None = None, **changes: str | None) -> dict[str, Any]:
        """The whole way of a client."""
        visitor = visitor or self.visitor()
        answer = answer_at(leads_to(await self.arrived(visitor, **changes)))
        form = {
            "grant_type": "authorization_code",
            "code": answer["code"],
            "client_id": "app",
            "redirect_uri": BACK,
            "code_verifier": VERIFIER,
        }
        return said(await visitor.send("/token", form, origin=None))

    async def renew(self, tokens: dict[str, Any], status: int = 200) -> dict[str, Any]:
        """New tokens of ours for a refresh token."""
        form = {
            "grant_type": "refresh_token",
            "client_id": "app",
            "refresh_token": tokens["refresh_token"],
        }
        return said(await self.visitor().send("/token", form, origin=None), status)

    def is_untouched(self) -> bool:
        """Whether nobody was asked for a token."""
        return not [sent for sent in self.elsewhere.sent if sent.url == ACME.token_endpoint]


@pytest.fixture
def street() -> Street:
    """A street of our own."""
    return Street()


async def test_the_whole_way(street: Street) -> None:
    """Consent, log-in elsewhere, and a token of our own about who logged in there: not theirs, for
    our server, to the client (SEC-06).
    """
    visitor = street.visitor()
    page = await visitor.begin(request())
    seen = Page(page)
    for words in ("The App", "Read your files.", "app.example", "Acme", "openid", "api:read"):
        assert words in seen.text
    place = leads_to(await visitor.fill(page, "/consent", answer="yes"))
    asked = dict(parse_qsl(urlsplit(place).query))
    assert asked["scope"] == "openid api:read"
    assert asked["redirect_uri"] == street.proxy.redirect_uri == "https://proxy.example/callback"
    assert asked["code_challenge_method"] == "S256"
    back = leads_to(await visitor.get(street.elsewhere.visit(place)))
    assert back.startswith(f"{BACK}?")
    answer = answer_at(back)
    assert (answer["state"], answer["iss"]) == ("a state", "https://proxy.example")
    form = {
        "grant_type": "authorization_code",
        "code": answer["code"],
        "client_id": "app",
        "redirect_uri": BACK,
        "code_verifier": VERIFIER,
    }
    tokens = said(await visitor.send("/token", form, origin=None))
    claims = claims_of(tokens["access_token"])
    assert (claims["sub"], claims["aud"], claims["client_id"]) == (
        "https://id.acme.example#1234",
        SERVER,
        "app",
    )
    assert tokens["access_token"] not in street.elsewhere.access


async def test_nobody_is_sent_on_before_they_have_agreed(street: Street) -> None:
    """Until the consent form has come there is no state, no cookie of it, and no way to the
    provider (SEC-07, SEC-11, AUF-15).
    """
    visitor = street.visitor()
    page = await visitor.begin(request())
    assert await street.vault.keys("upstream-state") == []
    assert not [header for header in visitor.set if "state" in header]
    assert "id.acme.example" not in page.body.decode()
    await visitor.fill(page, "/consent", answer="no")
    assert await street.vault.keys("upstream-state") == []
    again = await visitor.begin(request())
    await visitor.fill(again, "/consent", answer="yes")
    assert len(await street.vault.keys("upstream-state")) == 1


async def test_confused_deputy(street: Street) -> None:
    """A person who has agreed to one client, and at the provider, is asked for the next client as
    if nothing had been (AUF-15, SEC-07).
    """
    visitor = street.visitor()
    await visitor.get(street.elsewhere.visit(await street.agreed(visitor, {"remember": "yes"})))
    known = await visitor.get(f"/authorize?{urlencode(request())}")
    assert (known.header("location") or "").startswith(
        "https://id.acme.example/authorize?"
    )  # what was agreed holds for this client
    for changes in (
        {"client_id": "evil", "redirect_uri": "https://evil.example/back"},
        {"client_id": "second"},
        {"client_id": "second", "redirect_uri": "https://second.example/back"},
        {"scope": "files:read mail"},
    ):
        page = await visitor.begin(request(**changes))
        assert Page(page).form("/consent"), changes
        assert "id.acme.example/authorize" not in page.body.decode()


async def test_agreement_belongs_to_a_person(street: Street) -> None:
    """Where somebody else logs in at the provider than the one who agreed before, they are asked
    themselves (SEC-07).
    """
    visitor = street.visitor()
    await visitor.get(street.elsewhere.visit(await street.agreed(visitor, {"remember": "yes"})))
    on = await visitor.get(f"/authorize?{urlencode(request())}")
    street.elsewhere.person = {"sub": "5678", "name": "Otto"}
    page = await visitor.follow(
        await visitor.get(street.elsewhere.visit(on.header("location") or ""))
    )
    assert Page(page).form("/consent")
    back = await visitor.get(
        street.elsewhere.visit(leads_to(await visitor.fill(page, "/consent", answer="yes")))
    )
    assert "code" in answer_at(leads_to(back))


async def test_redirect_uri_is_exact(street: Street) -> None:
    """A redirect URI that is not registered to the letter goes nowhere, neither before nor after
    consent (SEC-10).
    """
    visitor = street.visitor()
    for uri in (
        f"{BACK}/",
        f"{BACK}?x=1",
        "https://app.example/Back",
        "https://app.example/back/../evil",
        "https://evil.example/back",
        "http://app.example/back",
    ):
        reply = await visitor.get(f"/authorize?{urlencode(request(redirect_uri=uri))}")
        assert reply.status == 400
        assert reply.header("location") is None
    place = await street.agreed(visitor, {"redirect_uri": "https://evil.example/back"})
    back = street.elsewhere.visit(place) + "&redirect_uri=https%3A%2F%2Fevil.example%2Fback"
    assert leads_to(await visitor.get(back)).startswith(f"{BACK}?")


STATES = [None, "", "x", "x" * 43, "x" * 10_000]


@pytest.mark.parametrize("state", STATES)
async def test_forged_state(street: Street, state: str | None) -> None:
    """A state that nobody gave, or none, is refused, and no code of it is redeemed (SEC-11,
    AUT-13).
    """
    visitor = street.visitor()
    place = await street.agreed(visitor)
    reply = await visitor.get(street.elsewhere.visit(place, state=state))
    assert reply.status == 400
    assert "code=" not in reply.body.decode()
    assert street.is_untouched()
    assert "code" in answer_at(
        leads_to(await visitor.get(street.elsewhere.visit(place)))
    )  # the right one still works


async def test_replayed_state(street: Street) -> None:
    """A state is good for one answer, also where the first one was an error (SEC-11)."""
    for changes in ({}, {"code": None, "error": "access_denied"}):
        visitor = street.visitor()
        place = await street.agreed(visitor)
        cookies = dict(visitor.cookies)
        await visitor.get(street.elsewhere.visit(place, **changes))
        asked = len(street.elsewhere.sent)
        for _ in range(2):
            visitor.cookies = dict(cookies)
            reply = await visitor.get(street.elsewhere.visit(place))
            assert reply.status == 400
            assert "used before" in Page(reply).text
            assert len(street.elsewhere.sent) == asked


async def test_state_ends(street: Street) -> None:
    """A state is good for ten minutes (SEC-11)."""
    visitor = street.visitor()
    place = await street.agreed(visitor)
    street.clock.now += 601
    assert await street.vault.keys("upstream-state") == []
    assert (await visitor.get(street.elsewhere.visit(place))).status == 400
    assert street.is_untouched()


async def test_state_of_another_browser(street: Street) -> None:
    """An answer that comes with another browser is refused, and is not used up by it (SEC-11):
    neither can an attacker finish the log-in of a victim, nor have a victim finish the
    attacker's.
    """
    attacker = street.visitor()
    victim = street.visitor()
    await victim.begin(request())
    back = street.elsewhere.visit(await street.agreed(attacker))
    for cookies in (victim.cookies, {}, {name: "x" * 43 for name in attacker.cookies}):
        other = street.visitor()
        other.cookies = dict(cookies)
        reply = await other.get(back)
        assert reply.status == 400
        assert street.is_untouched()
    assert "code" in answer_at(leads_to(await attacker.get(back)))


async def test_the_cookie_of_the_state(street: Street) -> None:
    """It is `__Host-`, Secure, HttpOnly, SameSite=lax, ends with the state, and goes with it.

    Two log-ins do not disturb each other (SEC-09).
    """
    visitor = street.visitor()
    first = await street.agreed(visitor)
    second = await street.agreed(visitor)
    found = [header for header in visitor.set if "-state-" in header]
    assert len({header.partition("=")[0] for header in found}) == 2
    for header in found:
        assert header.startswith("__Host-")
        assert set(header.split("; ")[1:]) == {
            "Path=/",
            "HttpOnly",
            "SameSite=lax",
            "Secure",
            "Max-Age=600",
        }
    for place in (first, second):
        assert "code" in answer_at(leads_to(await visitor.get(street.elsewhere.visit(place))))
    assert not [name for name in visitor.cookies if "-state-" in name]


async def test_consent_cookie_of_another_client(street: Street) -> None:
    """The cookies of a person who has agreed to one client say nothing for another, however they
    are combined (SEC-09).
    """
    visitor = street.visitor()
    place = await street.agreed(visitor)
    page = await visitor.begin(request(client_id="evil", redirect_uri="https://evil.example/back"))
    assert Page(page).form("/consent")
    other = dict(parse_qsl(urlsplit(street.elsewhere.visit(place)).query))
    reply = await visitor.get(f"/callback?{urlencode(other)}")
    assert leads_to(reply).startswith(
        f"{BACK}?"
    )  # never to the client whose page was open meanwhile


ISSUERS = [
    "https://id.acme.example/",
    "https://ID.acme.example",
    "https://id.acme.example:443",
    "http://id.acme.example",
    "https://evil.example",
    "id.acme.example",
]


@pytest.mark.parametrize("iss", [*ISSUERS, None])
@pytest.mark.parametrize("error", [False, True])
async def test_an_answer_from_another(street: Street, iss: str | None, error: bool) -> None:
    """An answer with another `iss`, or without where the provider has one, is refused.

    No code is redeemed, no error shown (AUF-10, AUF-11).
    """
    visitor = street.visitor()
    changes: dict[str, str | None] = {"iss": iss}
    if error:
        changes |= {
            "code": None,
            "error": "access_denied",
            "error_description": "Call 555 and say your password",
        }
    reply = await visitor.get(street.elsewhere.visit(await street.agreed(visitor), **changes))
    assert reply.status == 400
    assert reply.header("location") is None
    assert "555" not in reply.body.decode()
    assert street.is_untouched()


async def test_a_code_of_another_log_in(street: Street) -> None:
    """A code that was given to another browser's log-in is refused by the provider, as the verifier
    is another's (code injection).
    """
    attacker = street.visitor()
    victim = street.visitor()
    stolen = answer_at(street.elsewhere.visit(await street.agreed(attacker)))["code"]
    answer = answer_at(
        leads_to(await victim.get(street.elsewhere.visit(await street.agreed(victim), code=stolen)))
    )
    assert answer["error"] == "server_error"
    assert "code" not in answer


WRONG_TOKENS: list[tuple[str, dict[str, Any]]] = [
    ("nonce", {"nonce": "another"}),
    ("nonce", {"nonce": None}),
    ("aud", {"aud": "another-client"}),
    ("aud", {"aud": ["another-client"]}),
    ("azp", {"aud": [ID, "another-client"]}),
    ("azp", {"aud": [ID, "another-client"], "azp": "another-client"}),
    ("azp", {"azp": "another-client"}),
    ("iss", {"iss": "https://evil.example"}),
    ("exp", {"exp": 1_700_000_000}),
    ("exp", {"exp": None}),
    ("sub", {"sub": None}),
    ("sub", {"sub": ""}),
    ("sub", {"sub": True}),
    ("sub", {"sub": ["1234"]}),
]


@pytest.mark.parametrize("name, claims", WRONG_TOKENS)
async def test_a_wrong_id_token(street: Street, name: str, claims: dict[str, Any]) -> None:
    """An ID token for another client, log-in or time, from another, or about nobody, lets nobody in
    (OpenID Connect Core, 3.1.3.7).
    """
    street.elsewhere.claims = claims
    answer = answer_at(leads_to(await street.arrived(street.visitor())))
    assert answer["error"] == "server_error"
    assert "code" not in answer


async def test_an_id_token_by_another_key(street: Street) -> None:
    """An ID token that somebody else signed lets nobody in."""
    good = street.elsewhere.key
    forged = SigningKey.generate("ES256")
    street.elsewhere._token = lambda request: Answer(  # type: ignore[method-assign]  # the wire in the middle has another key
        {
            "access_token": "x",
            "id_token": forged.sign(
                {"iss": ACME.issuer, "aud": ID, "sub": "1234"}, header={"kid": good.kid}
            ),
        }
    )
    assert answer_at(leads_to(await street.arrived(street.visitor())))["error"] == "server_error"


@pytest.mark.parametrize(
    "down",
    [
        t.Unreachable("no route"),
        Answer(b"<html>", 500),
        Answer(b"nonsense"),
        Answer({"token_type": "bearer"}),
        Answer({"error": "invalid_client"}, 400),
    ],
)
async def test_a_provider_that_fails(street: Street, down: Exception | Answer) -> None:
    """Whatever is wrong at the provider, the client hears that it was there, and no word of it
    (AUF-12).
    """
    visitor = street.visitor()
    place = await street.agreed(visitor)
    street.elsewhere.down = down
    answer = answer_at(leads_to(await visitor.get(street.elsewhere.visit(place))))
    assert (answer["error"], answer["state"], answer["iss"]) == (
        "server_error",
        "a state",
        "https://proxy.example",
    )
    assert "Acme" in answer["error_description"]
    assert "invalid_client" not in str(answer)


ERRORS = [
    ("access_denied", "access_denied"),
    ("login_required", "login_required"),
    ("invalid_scope", "server_error"),
    ("<script>", "server_error"),
    (None, "server_error"),
]


@pytest.mark.parametrize("error, told", ERRORS)
async def test_who_is_not_let_in_there(street: Street, error: str | None, told: str) -> None:
    """An error of the provider reaches the client in words of ours."""
    visitor = street.visitor()
    back = street.elsewhere.visit(
        await street.agreed(visitor), code=None, error=error, error_description="Words of theirs"
    )
    answer = answer_at(leads_to(await visitor.get(back)))
    assert answer["error"] == told
    assert "theirs" not in str(answer)


async def test_consent_needs_our_form(street: Street) -> None:
    """A consent form that another site made the browser send leads nowhere (SEC-08)."""
    visitor = street.visitor()
    page = await visitor.begin(request())
    form = Page(page).form("/consent")
    for fields, origin in (
        (form.fields, "https://evil.example"),
        (form.fields, "null"),
        (form.fields | {"token": "x"}, None),
        ({"at": form.fields["at"]}, None),
    ):
        reply = await visitor.send(form.action, fields | {"answer": "yes"}, origin=origin)
        assert reply.status == 403
    assert await street.vault.keys("upstream-state") == []
    headers = {name.lower(): value for name, value in page.headers}
    assert headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


async def test_not_everybody_is_admitted() -> None:
    """Who may not come in is denied, by what the provider says of them and not by what they call
    themselves.
    """
    for admit in (lambda claims: claims.get("hd") == "acme.example", _from_acme):
        street = Street(admit=admit)
        assert (
            answer_at(leads_to(await street.arrived(street.visitor())))["error"] == "access_denied"
        )
        street.elsewhere.claims = {"hd": "acme.example"}
        assert "code" in answer_at(leads_to(await street.arrived(street.visitor())))


async def _from_acme(claims: Mapping[str, Any]) -> bool:
    return claims.get("hd") == "acme.example"


async def test_a_log_in_renames_the_browser(street: Street) -> None:
    """A cookie that was known before the log-in is worth nothing after it (session fixation)."""
    attacker = street.visitor()
    victim = street.visitor()
    await attacker.begin(request())
    victim.cookies = dict(attacker.cookies)
    await victim.get(street.elsewhere.visit(await street.agreed(victim, {"remember": "yes"})))
    assert (
        (await victim.get(f"/authorize?{urlencode(request())}"))
        .header(
            "location",
        )
        .startswith("https://id.acme.example/")
    )  # type: ignore[union-attr]  # it is there
    assert Page(await attacker.begin(request())).form("/consent")


async def test_the_callback_takes_get_alone(street: Street) -> None:
    """A form that somebody posts there is not read."""
    visitor = street.visitor()
    back = street.elsewhere.visit(await street.agreed(visitor))
    for method in ("POST", "PUT", "HEAD"):
        assert (await visitor.ask(method, back)).status == 405
    twice = back + "&state=x"
    assert (await visitor.get(twice)).status == 400
    assert "code" in answer_at(leads_to(await visitor.get(back)))


@pytest.mark.parametrize(
    "prompt, told",
    [
        ("login", "login"),
        ("select_account consent", "select_account"),
        ("consent", None),
        ("", None),
        ("<x>", None),
    ],
)
async def test_prompts_go_along(street: Street, prompt: str, told: str | None) -> None:
    """A client may have the person log in again upstream.

    Whether to ask for consent is decided here, and it always is where it must be.
    """
    asked = dict(parse_qsl(urlsplit(await street.agreed(street.visitor(), prompt=prompt)).query))
    assert asked.get("prompt") == told


async def test_prompt_none(street: Street) -> None:
    """`prompt=none` shows no page, neither here nor, for who has agreed before, there."""
    visitor = street.visitor()
    reply = await visitor.get(f"/authorize?{urlencode(request(prompt='none'))}")
    assert answer_at(leads_to(reply))["error"] == "login_required"
    await visitor.get(street.elsewhere.visit(await street.agreed(visitor, {"remember": "yes"})))
    place = leads_to(await visitor.get(f"/authorize?{urlencode(request(prompt='none'))}"))
    assert dict(parse_qsl(urlsplit(place).query))["prompt"] == "none"


async def test_a_device(street: Street) -> None:
    """A device gets its token by the same road: code, consent, log-in elsewhere."""
    visitor = street.visitor()
    device = said(
        await visitor.send(
            "/device_authorization", {"client_id": "tv", "resource": SERVER}, origin=None
        )
    )
    page = await visitor.follow(
        await visitor.fill(await visitor.get("/device"), "/device", user_code=device["user_code"])
    )
    assert device["user_code"] in Page(page).text
    place = leads_to(await visitor.fill(page, "/consent", answer="yes"))
    assert "Done" in Page(await visitor.get(street.elsewhere.visit(place))).text
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "client_id": "tv",
        "device_code": device["device_code"],
    }
    assert (
        claims_of(said(await visitor.send("/token", form, origin=None))["access_token"])["sub"]
        == "https://id.acme.example#1234"
    )


def test_what_cannot_be() -> None:
    """A client without a secret, where one is needed, or the tokens could not be sealed, is refused
    with words.
    """
    with pytest.raises(ValueError, match="give client_secret"):
        OAuthProxy("https://proxy.example", ACME, ID)
    with pytest.raises(ValueError, match="needs keys"):
        OAuthProxy("https://proxy.example", replace(ACME, method="none"), ID)
    assert OAuthProxy("https://proxy.example", replace(ACME, method="none"), ID, keys=[b"k" * 32])
