"""The proxy in front of each provider that there is a preset for,
and the manners of some of them."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from interlock_issuer import presets
from interlock_issuer.presets.preset import Preset
from tests.issuer.office import claims_of, request
from tests.issuer.visitors import Page, answer_at, leads_to
from tests.proxy.elsewhere import ID
from tests.proxy.test_proxy import Street
from tests.proxy.test_sessions import principal

ALL = [presets.get(name) for name in presets.names()]


def street_to(preset: Preset) -> Street:
    """A proxy in front of that provider."""
    street = Street(preset.provider(**preset.needs))
    street.elsewhere.person = {
        preset.subject: 1234 if preset.name == "github" else "1234",
        "sub": "other",
        preset.names[0]: "Anna",
    } | ({"sub": "1234"} if preset.subject == "sub" else {})
    return street


@pytest.mark.parametrize("preset", ALL, ids=lambda preset: preset.name)
async def test_through_each(preset: Preset) -> None:
    """The whole way of a person and a client, with this provider behind the proxy, its refresh
    included.
    """
    street = street_to(preset)
    tokens = await street.tokens()
    assert (
        claims_of(tokens["access_token"])["sub"] == f"{preset.issuer.format_map(preset.needs)}#1234"
    )
    assert await street.proxy.upstream_token(principal(tokens)) in street.elsewhere.access
    street.clock.now += 3600
    assert await street.proxy.upstream_token(principal(tokens)) in street.elsewhere.access
    assert "access_token" in await street.renew(tokens)


@pytest.mark.parametrize("preset", ALL, ids=lambda preset: preset.name)
async def test_the_page_names_each(preset: Preset) -> None:
    """The consent page names the provider, and all that is asked for there (SEC-08)."""
    street = street_to(preset)
    seen = Page(await street.visitor().begin(request()))
    for words in (preset.title, *preset.scopes):
        assert words in seen.text


@pytest.mark.parametrize("preset", ALL, ids=lambda preset: preset.name)
async def test_an_answer_from_another(preset: Preset) -> None:
    """An `iss` that is not the provider's is refused also where the provider need not send one
    (AUF-10).
    """
    street = street_to(preset)
    visitor = street.visitor()
    back = street.elsewhere.visit(await street.agreed(visitor), iss="https://evil.example")
    assert (await visitor.get(back)).status == 400
    assert street.is_untouched()


async def test_google_is_asked_for_refresh_tokens() -> None:
    """Google gives refresh tokens only to who asks for them in its own words."""
    street = street_to(presets.get("google"))
    asked = dict(parse_qsl(urlsplit(await street.agreed(street.visitor())).query))
    assert (asked["access_type"], asked["prompt"]) == ("offline", "consent")


async def test_github_says_iss() -> None:
    """GitHub's `iss` is that of its log-in, which is not the host alone."""
    street = street_to(presets.get("github"))
    visitor = street.visitor()
    back = street.elsewhere.visit(
        await street.agreed(visitor), iss="https://github.com/login/oauth"
    )
    assert "code" in answer_at(leads_to(await visitor.get(back)))
    back = street.elsewhere.visit(await street.agreed(visitor), iss="https://github.com")
    assert (await visitor.get(back)).status == 400


async def test_github_refuses_with_200() -> None:
    """An error that comes with the status of a success is an error."""
    street = street_to(presets.get("github"))
    visitor = street.visitor()
    answer = answer_at(
        leads_to(
            await visitor.get(street.elsewhere.visit(await street.agreed(visitor), code="wrong"))
        )
    )
    assert answer["error"] == "server_error"


@pytest.mark.parametrize(
    "person", [{}, {"id": None}, {"id": True}, {"id": ""}, {"login": "octocat"}]
)
async def test_who_is_nobody(person: dict[str, Any]) -> None:
    """Where the API does not say who it is, nobody is let in.

    A name that can be changed is not enough.
    """
    street = street_to(presets.get("github"))
    visitor = street.visitor()
    place = await street.agreed(visitor)
    street.elsewhere.person = {"id": 1234}
    back = street.elsewhere.visit(place)
    tokens = street.elsewhere._tokens

    def later(nonce: str | None, refresh: bool) -> dict[str, Any]:
        told = tokens(nonce, refresh)
        street.elsewhere.person = person
        return told

    street.elsewhere._tokens = later  # type: ignore[method-assign]  # the person is gone once the token is there
    assert answer_at(leads_to(await visitor.get(back)))["error"] == "server_error"


async def test_entra_knows_people_by_their_object() -> None:
    """A person of Entra is the object of the directory, not the pairwise `sub`."""
    street = street_to(presets.get("entra"))
    assert claims_of((await street.tokens())["access_token"])["sub"].endswith("/v2.0#1234")


async def test_google_by_its_old_name() -> None:
    """An ID token of Google may name it without the scheme, as it once did."""
    street = street_to(presets.get("google"))
    street.elsewhere.claims = {"iss": "accounts.google.com", "azp": ID}
    assert "code" in answer_at(leads_to(await street.arrived(street.visitor())))
