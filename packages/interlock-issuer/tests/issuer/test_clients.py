"""Clients: those that register themselves, and those whose id is the address of a document."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.auth.keys import SigningKey, assertion
from interlock.http11.fetch import Request
from interlock_issuer.clients import metadata_documents
from interlock_issuer.clients.registry import document_problem
from interlock_issuer.interfaces import Client
from tests.auth.network import Answer
from tests.issuer.office import BACK, URL, Office, World, answer_of, basic, error_of, said

KEY = SigningKey.generate()
PAPER = "https://client.example/oauth/client.json"
DOCUMENT: dict[str, Any] = {
    "client_id": PAPER,
    "client_name": "A Client",
    "redirect_uris": [BACK, "http://127.0.0.1/callback"],
}
ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


# -- registration ----------------------------------------------------------------------------------


async def test_a_public_client() -> None:
    """Registered, it logs in at once (AUR-01, AUR-02, AU2-08)."""
    office = Office()
    told = said(
        await office.register(
            {
                "redirect_uris": ["http://127.0.0.1:3000/callback"],
                "client_name": "My\u202eApp\n",
                "client_uri": "https://app.example/",
                "logo_uri": "javascript:alert(1)",
                "token_endpoint_auth_method": "none",
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
                "application_type": "native",
                "scope": "files:read",
            }
        ),
        201,
    )
    assert (
        told["client_name"] == "MyApp"
    )  # nothing that cannot be seen, or that turns the line around
    assert (told["client_uri"], "logo_uri" in told) == ("https://app.example/", False)
    assert (told["token_endpoint_auth_method"], "client_secret" in told) == ("none", False)
    assert told["grant_types"] == ["authorization_code", "refresh_token"]
    assert told["application_type"] == "native"
    back = "http://127.0.0.1:49152/callback"
    code = answer_of(await office.authorize(client_id=told["client_id"], redirect_uri=back), back)[
        "code"
    ]
    tokens = said(await office.redeem(code, client_id=told["client_id"], redirect_uri=back))
    assert tokens["refresh_token"]
    (pending,) = office.people.begun
    assert (pending.client.is_dynamic, pending.is_loopback) == (True, True)
    assert (pending.client.logo, pending.redirect_host) == (None, "127.0.0.1:49152")  # AUR-09


async def test_a_client_with_a_secret() -> None:
    """The method that is meant where none is named (RFC 7591, 2).

    The secret ends when it is said to.
    """
    office = Office()
    told = said(await office.register({"redirect_uris": [BACK]}), 201)
    assert told["token_endpoint_auth_method"] == "client_secret_basic"
    assert told["client_secret_expires_at"] == told["client_id_issued_at"] + 180 * 86_400
    id = told["client_id"]
    secret = told["client_secret"]
    assert (
        error_of(await office.redeem(await office.code(client_id=id), client_id=id), 401)
        == "invalid_client"
    )
    assert said(
        await office.redeem(await office.code(client_id=id), basic(id, secret), client_id=None)
    )
    assert said(
        await office.redeem(await office.code(client_id=id), client_id=id, client_secret=secret)
    )
    office.clock.now += 181 * 86_400
    assert (await office.authorize(client_id=id)).status == 400


BAD = {
    "javascript": ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
    "http to somewhere": ({"redirect_uris": [BACK, "http://app.example/"]}, "invalid_redirect_uri"),
    "a fragment": ({"redirect_uris": [f"{BACK}#x"]}, "invalid_redirect_uri"),
    "no redirect URI": ({}, "invalid_redirect_uri"),
    "too many": ({"redirect_uris": [f"{BACK}{n}" for n in range(30)]}, "invalid_redirect_uri"),
    "a private scheme": ({"redirect_uris": ["cursor://callback"]}, "invalid_redirect_uri"),
    "another method": (
        {"redirect_uris": [BACK], "token_endpoint_auth_method": "tls_client_auth"},
        "invalid_client_metadata",
    ),
    "keys that there are not": (
        {"redirect_uris": [BACK], "token_endpoint_auth_method": "private_key_jwt"},
        "invalid_client_metadata",
    ),
    "a private key": (
        {
            "redirect_uris": [BACK],
            "token_endpoint_auth_method": "private_key_jwt",
            "jwks": {"keys": [KEY.private()]},
        },
        "invalid_client_metadata",
    ),
    "keys inside": (
        {
            "redirect_uris": [BACK],
            "token_endpoint_auth_method": "private_key_jwt",
            "jwks_uri": "http://169.254.169.254/keys",
        },
        "invalid_client_metadata",
    ),
    "letting itself in": (
        {"grant_types": ["client_credentials"], "redirect_uris": [BACK]},
        "invalid_client_metadata",
    ),
    "an implicit grant": (
        {"response_types": ["token"], "redirect_uris": [BACK]},
        "invalid_client_metadata",
    ),
    "a number for a name": ({"client_name": 7, "redirect_uris": [BACK]}, "invalid_client_metadata"),
}


@pytest.mark.parametrize("metadata, error", BAD.values(), ids=BAD)
async def test_what_is_not_registered(metadata: dict[str, Any], error: str) -> None:
    """And why not (RFC 7591, 3.2.2)."""
    assert error_of(await Office().register(metadata)) == error


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 50_000, b"\xff"], ids=range(5))
async def test_what_is_no_metadata(body: bytes) -> None:
    """It is refused, however it is broken."""
    assert error_of(await Office().register(body)) == "invalid_client_metadata"


async def test_a_form_is_not_taken() -> None:
    """A page elsewhere can send a form without asking; JSON it cannot."""
    headers = {"content-type": "text/plain"}
    assert (
        error_of(await Office().register({"redirect_uris": [BACK]}, **headers))
        == "invalid_client_metadata"
    )


async def test_registration_can_be_off() -> None:
    """Then it is not in the metadata, and nobody registers;
    who had is not known any more (AUR-02)."""
    office = Office()
    told = said(await office.register({"redirect_uris": [BACK]}), 201)
    closed = Office(registration=False, vault=office.vault)
    assert "registration_endpoint" not in said(
        await closed.get("/.well-known/oauth-authorization-server")
    )
    assert error_of(await closed.register({"redirect_uris": [BACK]}), 403) == "access_denied"
    assert (await closed.authorize(client_id=told["client_id"])).status == 400


async def test_one_address_does_not_register_for_ever() -> None:
    """30 a minute; the next minute is another."""
    office = Office()
    replies = [(await office.register({"redirect_uris": [BACK]})) for _ in range(31)]
    assert [reply.status for reply in replies] == [201] * 30 + [429]
    assert replies[-1].header("retry-after") == "60"
    office.clock.now += 60
    assert (await office.register({"redirect_uris": [BACK]})).status == 201


async def test_registrations_of_public_clients_go_on_while_they_are_used() -> None:
    """And end half a year after the last use."""
    office = Office()
    id = said(
        await office.register({"redirect_uris": [BACK], "token_endpoint_auth_method": "none"}), 201
    )["client_id"]
    for _ in range(3):
        office.clock.now += 100 * 86_400
        await office.redeem(await office.code(client_id=id), client_id=id)
    office.clock.now += 181 * 86_400
    assert (await office.authorize(client_id=id)).status == 400


def test_configured_clients_are_checked() -> None:
    """What cannot be is said when the issuer is made."""
    for client, words in (
        (Client(id="x", redirect_uris=("http://app.example/",)), "https"),
        (Client(id="x", method="password"), "authenticates by"),
        (Client(id="x", method="client_secret_post"), "no secret"),
        (Client(id="x", method="private_key_jwt"), "neither jwks"),
    ):
        with pytest.raises(ValueError, match=words):
            Office(clients=[client])
    Office(
        clients=[Client(id="x", redirect_uris=("com.example.app:/back",))]
    )  # a private scheme, which the configuration may name


# -- documents -------------------------------------------------------------------------------------


async def test_a_document_is_a_client() -> None:
    """Nobody registers: the id is the address of what the client says of itself (AUR-03,
    AUR-07)."""
    office = Office()
    office.world.documents[PAPER] = DOCUMENT
    tokens = said(await office.redeem(await office.code(client_id=PAPER), client_id=PAPER))
    assert tokens["refresh_token"]
    (pending,) = office.people.begun
    assert (pending.client.is_document, pending.client.host, pending.client.name) == (
        True,
        "client.example",
        "A Client",
    )
    assert office.world.asked == [PAPER]


PAPERS: dict[str, Any] = {
    "another id": DOCUMENT | {"client_id": "https://client.example/oauth/other.json"},
    "an id in another spelling": DOCUMENT
    | {"client_id": "https://CLIENT.example/oauth/client.json"},
    "no id": {name: value for name, value in DOCUMENT.items() if name != "client_id"},
    "no name": DOCUMENT | {"client_name": None},
    "no redirect URIs": DOCUMENT | {"redirect_uris": []},
    "another redirect URI": DOCUMENT | {"redirect_uris": ["https://app.example/other"]},
    "a redirect URI that cannot be": DOCUMENT | {"redirect_uris": [BACK, "javascript:alert(1)"]},
    "a secret": DOCUMENT | {"client_secret": "x"},
    "a method with a secret": DOCUMENT | {"token_endpoint_auth_method": "client_secret_post"},
    "a list": [DOCUMENT],
    "no JSON": b"<html>",
    "wrong types": DOCUMENT | {"redirect_uris": BACK},
    "too large": DOCUMENT | {"client_name": "x" * 20_000},
    "too deep": b"[" * 10_000,
}


@pytest.mark.parametrize("document", PAPERS.values(), ids=PAPERS)
async def test_a_document_that_does_not_do(document: Any) -> None:
    """The person sees a page, and goes nowhere (AUR-08)."""
    office = Office()
    office.world.documents[PAPER] = document
    reply = await office.authorize(client_id=PAPER)
    assert (reply.status, reply.header("location")) == (400, None)
    assert error_of(
        await office.refresh("x", client_id=PAPER),
        400 if document == PAPERS["another redirect URI"] else 401,
    )


async def test_a_document_that_cannot_be_had() -> None:
    """A private address, another status, no JSON by its type: a page, on which nothing stands about
    our network (AUR-10).
    """
    office = Office()
    reply = await office.authorize(client_id=PAPER)
    assert reply.status == 400
    assert b"10.0.0.7" not in reply.body
    office.world.documents[PAPER] = DOCUMENT
    for headers, status in (
        ({"content-type": "text/html"}, 200),
        ({"content-type": "application/json"}, 302),
    ):
        office.world.headers = headers
        office.world.status = status
        assert (await office.authorize(client_id=PAPER)).status == 400
    office.world.headers = {"content-type": "application/json"}
    office.world.status = 200
    assert answer_of(await office.authorize(client_id=PAPER))["code"]


INSIDE = [
    "https://127.0.0.1/client.json",
    "https://localhost/client.json",
    "https://169.254.169.254/latest/meta-data",
    "https://[::1]/client.json",
]


@pytest.mark.parametrize(
    "url",
    [
        *INSIDE,
        "https://10.0.0.1/client.json",
        "https://2130706433/client.json",
        "https://printer.local:22/client.json",
    ],
)
async def test_nothing_inside_is_fetched(url: str) -> None:
    """The guarded fetcher, which is the one that is taken where none is given, reaches no private
    address (AUR-10, SEC-14).
    """
    office = Office(fetch=None)
    reply = await office.authorize(client_id=url)
    await office.issuer.aclose()
    assert reply.status == 400
    assert b"cannot be read: it could not be fetched" in reply.body


IDS = {
    "http": "http://client.example/client.json",
    "no path": "https://client.example",
    "the root": "https://client.example/",
    "a user": "https://user@client.example/client.json",
    "a fragment": f"{PAPER}#x",
    "dots": "https://client.example/a/../client.json",
    "dots that are escaped": "https://client.example/a/%2e%2E/client.json",
    "a file": "file:///etc/passwd",
    "capitals": "HTTPS://client.example/client.json",
}


@pytest.mark.parametrize("url", IDS.values(), ids=IDS)
async def test_an_id_that_names_no_document(url: str) -> None:
    """Nothing is fetched for it (AUR-08)."""
    office = Office()
    office.world.documents[url] = DOCUMENT | {"client_id": url}
    assert (await office.authorize(client_id=url)).status == 400
    assert office.world.asked == []


async def test_documents_can_be_off() -> None:
    """Nothing is fetched then."""
    office = Office(cimd=False)
    assert (
        said(await office.get("/.well-known/oauth-authorization-server"))[
            "client_id_metadata_document_supported"
        ]
        is False
    )
    assert (await office.authorize(client_id=PAPER)).status == 400
    assert office.world.asked == []


AGES = {
    "nothing said": ({}, 300),
    "an hour": ({"cache-control": "public, max-age=3600"}, 3600),
    "for ever": ({"cache-control": "max-age=99999999"}, 86_400),
    "not at all": ({"cache-control": "no-store, max-age=3600"}, 30),
    "no time": ({"cache-control": "max-age=0"}, 30),
}


@pytest.mark.parametrize("headers, seconds", AGES.values(), ids=AGES)
async def test_documents_are_kept(headers: dict[str, str], seconds: int) -> None:
    """As long as their headers say, within bounds (AUR-07)."""
    office = Office()
    office.world.documents[PAPER] = DOCUMENT
    office.world.headers |= headers
    await office.code(client_id=PAPER)
    office.clock.now += seconds - 1
    await office.code(client_id=PAPER)
    assert len(office.world.asked) == 1
    office.clock.now += 1
    await office.code(client_id=PAPER)
    assert len(office.world.asked) == 2


async def test_one_document_is_fetched_once_for_all_who_wait() -> None:
    """However many there are; and only so many documents at once."""
    office = Office()
    office.world.documents[PAPER] = DOCUMENT
    await asyncio.gather(*(office.code(client_id=PAPER) for _ in range(20)))
    assert office.world.asked == [PAPER]


async def test_only_so_many_documents_at_once() -> None:
    """A stranger who names many addresses does not keep us busy;
    those who came first are served."""
    gate = asyncio.Event()
    full = asyncio.Event()
    under_way: list[str] = []

    class Slow(World):
        """A world that answers once it is let."""

        async def __call__(self, request: Request) -> Answer:
            under_way.append(request.url)
            if len(under_way) == 16:
                full.set()
            await gate.wait()
            return await super().__call__(request)

    slow = Office(fetch=Slow())
    waiting = [
        asyncio.create_task(slow.authorize(client_id=f"https://client.example/{n}"))
        for n in range(16)
    ]
    await full.wait()
    assert (
        b"too many documents" in (await slow.authorize(client_id="https://client.example/17")).body
    )
    gate.set()
    assert {reply.status for reply in await asyncio.gather(*waiting)} == {400}
    assert len(under_way) == 16


async def test_a_document_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is waited for so long and no longer."""

    class Silent(World):
        """A world that never answers."""

        async def __call__(self, request: Request) -> Answer:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr(metadata_documents, "_SECONDS", 0.0)
    assert (
        b"it did not arrive within"
        in (await Office(fetch=Silent()).authorize(client_id=PAPER)).body
    )


async def test_a_document_with_keys() -> None:
    """A client that has no registration and yet proves who it is (AUR-03)."""
    office = Office()
    place = "https://client.example/keys"
    office.world.documents[PAPER] = DOCUMENT | {
        "token_endpoint_auth_method": "private_key_jwt",
        "jwks_uri": place,
    }
    office.world.documents[place] = {"keys": [KEY.public()]}
    code = await office.code(client_id=PAPER)
    assert error_of(await office.redeem(code, client_id=PAPER), 401) == "invalid_client"
    signed = assertion(KEY, issuer=PAPER, subject=PAPER, audience=URL, now=office.clock.now)
    told = {"client_assertion_type": ASSERTION, "client_assertion": signed}
    assert said(await office.redeem(code, client_id=PAPER, **told))["access_token"]


@given(
    st.text(max_size=30)
    | st.builds(
        "https://{}/{}".format,
        st.text("a.:@[]%\\ ", max_size=8),
        st.text("a.%2eE/\\#? ", max_size=12),
    )
)
def test_what_names_a_document(url: str) -> None:
    """Only what is one address in everybody's eyes."""
    if not document_problem(url):
        assert url.startswith("https://")
        assert not {"@", "#", "\\", " "} & set(url)
        assert "/../" not in f"{url}/"
