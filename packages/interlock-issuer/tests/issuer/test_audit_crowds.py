"""One who asks for everything again and again leaves room for the others: requests of one address
are counted, those that wait are bounded.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from interlock_issuer.grants import authorization, device_flow
from interlock_issuer.http.rate_limit import REQUESTS
from interlock_issuer.interfaces import Client
from tests.issuer.exchange import Reply, Sent, ask
from tests.issuer.office import BACK, FORM, Office, request, said

TV = Client(id="tv", grants=("urn:ietf:params:oauth:grant-type:device_code",))
METADATA = b'{"client_name": "one more", "redirect_uris": ["https://more.example/back"]}'


async def knock(place: Office, what: str, address: str) -> Reply:
    """One request of a stranger that leaves a record behind."""
    sent: dict[str, Any] = {
        "authorize": ("GET", "/authorize", urlencode(request()), {}, b""),
        "device": ("POST", "/device_authorization", "", FORM, b"client_id=tv"),
        "register": ("POST", "/register", "", {"content-type": "application/json"}, METADATA),
    }
    return await ask(place.issuer, Sent(*sent[what], address=address, secure=True))


def office() -> Office:
    """One where people take their time."""
    place = Office(clients=[Client(id="app", redirect_uris=("https://app.example/back",)), TV])
    place.people.will = "wait"
    return place


def is_refused(what: str, reply: Reply) -> bool:
    if what == "authorize":
        return "temporarily_unavailable" in (reply.header("location") or "")
    return reply.status == 429


@pytest.mark.parametrize("what", ["authorize", "device", "register"])
async def test_one_address_does_not_fill_the_house(what: str) -> None:
    """After a burst others still are let in, and a minute later the same one is again.

    Of IPv6 a network is one.
    """
    place = office()
    for kind, mine, same, other in (
        ("IPv4", "203.0.113.9", "203.0.113.9", "203.0.113.10"),
        ("IPv6", "2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"),
    ):
        replies = [await knock(place, what, mine) for _ in range(REQUESTS[what].burst)]
        assert (kind, [reply for reply in replies if is_refused(what, reply)]) == (kind, [])
        assert (kind, is_refused(what, await knock(place, what, same))) == (kind, True)
        assert (kind, is_refused(what, await knock(place, what, other))) == (kind, False)
        place.clock.now += 60
        assert (kind, is_refused(what, await knock(place, what, same))) == (kind, False)


@pytest.mark.parametrize(
    "what, module, name",
    [("authorize", authorization, "MOST_PENDING"), ("device", device_flow, "MOST_WAITING")],
)
async def test_what_waits_is_bounded(
    what: str, module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks, there is an end; and once those that wait have ended there is room again."""
    monkeypatch.setattr(module, name, 5)
    place = office()
    outcome = [is_refused(what, await knock(place, what, f"203.0.113.{n}")) for n in range(8)]
    assert outcome == [False] * 5 + [True] * 3
    place.clock.now += 3600
    assert not is_refused(what, await knock(place, what, "203.0.113.99"))


async def test_one_address_does_not_send_us_round_the_world() -> None:
    """Client ids that are addresses: so many new ones a minute are looked at, known ones always,
    and others may go on (AUR-10).
    """
    place = office()
    known = "https://app.example/client.json"
    place.world.documents[known] = {
        "client_id": known,
        "client_name": "App",
        "redirect_uris": ["https://app.example/back"],
    }

    async def find(id: str, address: str) -> str:
        query = urlencode(request(client_id=id, redirect_uri="https://app.example/back"))
        return (
            await ask(place.issuer, Sent("GET", "/authorize", query, address=address, secure=True))
        ).body.decode()

    assert "not known" not in await find(known, "203.0.113.9")
    for n in range(REQUESTS["document"].burst - 1):
        assert "cannot be read" in await find(f"https://many.example/{n}", "203.0.113.9")
    asked = len(place.world.asked)
    assert "too many client metadata documents" in await find(
        "https://many.example/more", "203.0.113.9"
    )
    assert "not known" not in await find(known, "203.0.113.9")
    assert len(place.world.asked) == asked
    assert "cannot be read" in await find("https://many.example/more", "203.0.113.10")


@pytest.mark.parametrize("restarted", [False, True])
async def test_unused_registrations_make_room(restarted: bool) -> None:
    """Where there are as many registrations as there may be, the oldest one that nobody has used
    makes room, of the network with the most of them; a client that has had a token stays.
    """
    place = Office(registrations=20)
    used = await place.register({"redirect_uris": [BACK], "token_endpoint_auth_method": "none"})
    mine = said(used, 201)["client_id"]
    await place.redeem(await place.code(client_id=mine), client_id=mine)
    one = json.loads((await knock(place, "register", "198.51.100.7")).body)["client_id"]
    repository = place.issuer._registration._clients.repository
    for _ in range(5):
        place.clock.now += 60
        for _ in range(10):
            assert (await knock(place, "register", "203.0.113.9")).status == 201
        if restarted:
            place.issuer._registration._unused.clear()
            place.issuer._registration._listed_at = float("-inf")
    assert (await knock(place, "register", "198.51.100.8")).status == 201
    assert await repository.get(mine) is not None
    assert await repository.get(one) is not None
    assert await place.issuer.count_registrations() <= 20


def test_the_number_of_registrations_is_above_0() -> None:
    with pytest.raises(ValueError, match="registrations"):
        Office(registrations=0)
