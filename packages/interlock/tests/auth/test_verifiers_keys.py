"""The keys of an issuer: found, kept, changed without a gap, and never asked for more often than is
good for anybody.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import types as t
from interlock.auth.guard import Guard
from interlock.auth.keys import SigningKey
from interlock.auth.tokens.interface import BadToken, Unverifiable
from interlock.auth.tokens.jwt import Jwt
from interlock.auth.tokens.remote_keys import RemoteKeys
from interlock.auth.tokens.verdict_cache import Verdicts
from tests.auth.guarded import ISSUER, JWKS, KEY, RESOURCE, Inner, ask, bearer, issuer_pages, token
from tests.auth.network import NOW, Answer, Clock, Web

NEXT = SigningKey.generate()


def verifier(web: Web, **settings: Any) -> Jwt:
    """A verifier of the issuer's tokens that has to fetch its keys, and does not know the time."""
    return Jwt(ISSUER, keys=RemoteKeys(ISSUER, fetch=web, **settings))


async def good(by: Jwt, shown: str, now: float) -> str:
    return (await by.verify(shown, resource=RESOURCE, now=now)).principal.subject


def long(key: SigningKey = KEY, **changes: Any) -> str:
    return token(key, exp=NOW + 10_000_000, **changes)


async def test_the_issuers_metadata_says_where_the_keys_are() -> None:
    """AUT-05: the metadata, then the keys, once each for any number of tokens."""
    web = Web(issuer_pages(KEY))
    by = verifier(web)
    for _ in range(3):
        assert await good(by, token(), NOW) == "jane"
    assert [request.url for request in web.asked] == [
        f"{ISSUER}/.well-known/oauth-authorization-server",
        JWKS,
    ]


async def test_the_place_of_the_keys_can_be_given() -> None:
    web = Web({"https://keys.example.com/jwks": Answer({"keys": [KEY.public()]})})
    assert (
        await good(Jwt(ISSUER, jwks_uri="https://keys.example.com/jwks", fetch=web), token(), NOW)
        == "jane"
    )
    assert len(web.asked) == 1


@pytest.mark.parametrize(
    "place",
    [
        "http://keys.example.com/jwks",
        "ftp://keys.example.com/jwks",
        "file:///etc/passwd",
        "",
        "https://a@b.example/",
    ],
)
async def test_keys_come_by_tls_only(place: str) -> None:
    """AUT-05, SEC-06: who could change the keys on their way could sign for anybody.

    Also where the metadata names the place.
    """
    with pytest.raises(ValueError, match="jwks_uri"):
        Jwt(ISSUER, jwks_uri=place)
    pages = issuer_pages(KEY)
    pages[f"{ISSUER}/.well-known/oauth-authorization-server"] = Answer(
        {"issuer": ISSUER, "jwks_uri": place}
    )
    with pytest.raises(Unverifiable):
        await good(verifier(Web(pages)), token(), NOW)


async def test_metadata_of_another_issuer_is_not_taken() -> None:
    """AUT-05: the document that an issuer's address leads to must say that it is that issuer's."""
    pages = issuer_pages(KEY)
    pages[f"{ISSUER}/.well-known/oauth-authorization-server"] = Answer(
        {"issuer": "https://evil.example", "jwks_uri": JWKS}
    )
    with pytest.raises(Unverifiable):
        await good(verifier(Web(pages)), token(), NOW)


async def test_64_requests_at_once_fetch_the_keys_once() -> None:
    """AUT-05: however many wait while the key server is slow, there is one request to it, and one
    verification of one token.
    """
    web = Web(issuer_pages(KEY))
    began, gate = web.hold()
    inner = Inner()
    clock = Clock()
    app = Guard(verifier(web), resource=RESOURCE, clock=clock)(inner)
    shown = [token(sub=f"user-{n % 8}") for n in range(64)]
    asking = [asyncio.create_task(ask(app, headers=bearer(one))) for one in shown]
    await began.wait()
    asking[0].cancel()  # whoever began it may go away
    gate.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert [got.status for got in answers[1:]] == [200] * 63  # type: ignore[union-attr]  # the rest are answers
    assert web.count(JWKS) == 1
    assert {scope["interlock.principal"].subject for scope in inner.scopes} == {
        f"user-{n}" for n in range(8)
    }


async def test_who_waits_for_keys_may_go_away() -> None:
    """AUT-05: the fetch goes on for the others, and nobody begins another while it is under way, be
    it allowed or not.
    """
    web = Web(issuer_pages(KEY))
    began, gate = web.hold()
    by = verifier(web, pause=0)
    first = asyncio.create_task(good(by, token(), NOW))
    await began.wait()
    others = [asyncio.create_task(good(by, token(), NOW + n)) for n in range(8)]
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    gate.set()
    assert await asyncio.gather(*others) == ["jane"] * 8
    assert web.count(JWKS) == 1


async def test_one_token_at_once_is_verified_once() -> None:
    """AUT-05: 64 calls with a new token, one verification; and none for those that follow."""
    asked: list[str] = []
    began = asyncio.Event()
    gate = asyncio.Event()
    by = Jwt(ISSUER, keys={"keys": [KEY.public()]})

    async def slow(shown: str, resource: str, now: float) -> Any:
        asked.append(shown)
        began.set()
        await gate.wait()
        return await by.verify(shown, resource=resource, now=now)

    verdicts = Verdicts(slow)
    asking = [
        asyncio.create_task(verdicts.find_out(b"k", token(), RESOURCE, NOW)) for _ in range(64)
    ]
    await began.wait()
    asking[0].cancel()
    await asyncio.gather(asking[0], return_exceptions=True)
    gate.set()
    assert {verified.principal.subject for verified in await asyncio.gather(*asking[1:])} == {
        "jane"
    }
    assert len(asked) == 1
    assert verdicts.known(b"k", NOW) is not None


async def test_a_new_key_is_found_as_soon_as_a_token_names_it() -> None:
    """AUT-05: keys rotate without a gap."""
    web = Web(issuer_pages(KEY))
    by = verifier(web, pause=30)
    assert await good(by, long(), NOW) == "jane"
    web.pages |= issuer_pages(KEY, NEXT)
    assert await good(by, long(NEXT), NOW + 31) == "jane"
    assert await good(by, long(), NOW + 31) == "jane"
    web.pages |= issuer_pages(NEXT)
    later = NOW + 31 + 3600
    assert (
        await good(by, long(NEXT), later) == "jane"
    )  # the keys are stale, so that they are fetched; these do meanwhile
    await by._keys._wait()
    with pytest.raises(BadToken, match="the issuer has no key with the id"):
        await good(by, long(), later)
    assert web.count(JWKS) == 3


async def test_a_flood_of_unknown_keys_is_one_request_for_each_interval() -> None:
    """AUT-05: who invents key ids cannot make us ask the issuer more often than every `pause`
    seconds, one after another or at once.
    """
    web = Web(issuer_pages(KEY))
    by = verifier(web, pause=30)
    assert await good(by, long(), NOW) == "jane"
    for second in range(60):
        tokens = [long(NEXT, header={"kid": f"k{second}-{n}"}) for n in range(3)]
        said = await asyncio.gather(
            *(good(by, one, NOW + second) for one in tokens), return_exceptions=True
        )
        assert {type(bad) for bad in said} == {BadToken}
        assert await good(by, long(), NOW + second) == "jane"
    assert web.count(JWKS) == 2  # the first, and one 30 seconds later
    assert await good(by, long(), NOW + 60) == "jane"


async def test_tokens_of_other_issuers_ask_nobody() -> None:
    web = Web(issuer_pages(KEY))
    with pytest.raises(BadToken, match="another issuer"):
        await good(verifier(web), token(iss="https://evil.example"), NOW)
    assert web.asked == []


@pytest.mark.parametrize(
    "away",
    [
        t.Unreachable("nobody is there"),
        Answer(status=500),
        Answer(b"<html>sorry</html>"),
        Answer({"keys": []}),
        Answer({"keys": [{"kty": "oct", "k": "AAAA"}]}),
        Answer({"error": "x"}),
        Answer(b"x" * 300_000),
        Answer(status=302, headers={"location": "https://evil.example/jwks"}),
    ],
)
async def test_old_keys_are_kept_while_the_issuer_is_away(away: Any) -> None:
    """AUT-05: whatever comes in place of the keys, also more than there is room for, does not take
    the place of the old; but not for ever.
    """
    web = Web(issuer_pages(KEY))
    by = verifier(web, pause=30, fresh=3600, most=86_400)
    assert await good(by, long(), NOW) == "jane"
    web.pages[JWKS] = away
    for hours in (2, 10, 23):
        assert await good(by, long(), NOW + hours * 3600) == "jane"
        await by._keys._wait()
    assert web.count(JWKS) == 4
    with pytest.raises(Unverifiable):
        await good(by, long(), NOW + 25 * 3600)
    web.pages |= issuer_pages(KEY)
    assert await good(by, long(), NOW + 26 * 3600) == "jane"


async def test_without_keys_nobody_is_let_in_and_the_issuer_is_left_in_peace() -> None:
    """AUT-05: 503 until there are keys; one request for each interval."""
    web = Web({})
    clock = Clock()
    inner = Inner()
    app = Guard(verifier(web, pause=30), resource=RESOURCE, clock=clock)(inner)
    for _ in range(5):
        got = await ask(app, headers=bearer(token()))
        assert (got.status, got.header("retry-after")) == (503, "30")
        assert ISSUER not in got.body.decode()  # what is behind us is nobody's business
    asked = len(web.asked)
    web.pages |= issuer_pages(KEY)
    assert (await ask(app, headers=bearer(token()))).status == 503
    assert len(web.asked) == asked
    clock.now += 30
    assert (await ask(app, headers=bearer(token()))).status == 200
    assert len(inner.scopes) == 1


async def test_a_key_server_that_never_answers_is_given_up() -> None:
    """AUT-05: a document that does not come in time is as if nobody was there."""
    web = Web(issuer_pages(KEY))
    web.hold()
    with pytest.raises(Unverifiable):
        await good(verifier(web, patience=0.01), token(), NOW)


@pytest.mark.parametrize(
    "header, again",
    [
        (None, 3600),
        ("max-age=600", 600),
        ("public, Max-Age=600, must-revalidate", 600),
        ("max-age=1", 60),  # not more often than is good for it
        ("max-age=0", 60),
        ("no-store", 60),
        ("no-cache", 60),
        ("max-age=99999999", 3600),  # nor for longer than is good for us
        ("s-maxage=600", 3600),
        ("max-age=nonsense", 3600),
    ],
)
async def test_keys_are_kept_for_as_long_as_is_said_within_bounds(
    header: str | None, again: float
) -> None:
    web = Web(issuer_pages(KEY, **({} if header is None else {"cache_control": header})))
    by = verifier(web, pause=1)
    await good(by, long(), NOW)
    await good(by, long(), NOW + again - 1)
    await by._keys._wait()
    assert web.count(JWKS) == 1
    await good(by, long(), NOW + again)
    await by._keys._wait()
    assert web.count(JWKS) == 2


async def test_stale_keys_hold_nobody_up() -> None:
    """AUT-05: while new keys are fetched, the old ones are in use."""
    web = Web(issuer_pages(KEY))
    by = verifier(web)
    await good(by, long(), NOW)
    web.hold()
    assert await good(by, long(), NOW + 4000) == "jane"
    await by.aclose()


async def test_a_clock_that_was_set_back_does_no_harm() -> None:
    web = Web(issuer_pages(KEY))
    by = verifier(web)
    await good(by, long(), NOW + 1_000_000)
    assert await good(by, long(), NOW) == "jane"


def test_a_verifier_outlives_an_event_loop() -> None:
    """A fetch that an ended loop has left behind is waited for by nobody."""
    web = Web(issuer_pages(KEY))
    by = verifier(web, pause=0)

    async def given_up() -> None:
        began, _ = web.hold()
        task = asyncio.create_task(good(by, token(), NOW))
        await began.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(given_up())
    web.gate = None
    assert asyncio.run(good(by, token(), NOW)) == "jane"
