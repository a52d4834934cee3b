"""The client's book of answers: what is kept, for whom, for how long, and what makes it stale."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import types as t
from interlock.protocol.response_cache import CACHEABLE, ResponseCache
from interlock.wire.revisions import METHODS, NEWEST, R4

ALICE = "alice"
BOB = "bob"
NOBODY = ""
FIRST = t.ListToolsRequestParams()


def tools(ttl_ms: int | None = 1000, scope: Any = "private", **more: Any) -> t.ListToolsResult:
    return t.ListToolsResult(tools=[], ttl_ms=ttl_ms, cache_scope=scope, **more)


def reading(ttl_ms: int = 1000, scope: Any = "private") -> t.ReadResourceResult:
    return t.ReadResourceResult(contents=[], ttl_ms=ttl_ms, cache_scope=scope)


def kept(
    result: Any, *, method: str = "tools/list", params: Any = FIRST, who: str = ALICE
) -> ResponseCache:
    book = ResponseCache()
    book.keep(method, params, NEWEST, who, result, 100.0)
    return book


def test_an_answer_is_fresh_for_as_long_as_it_says_and_no_longer() -> None:
    """From receipt on; what is stale is forgotten (`CAC-07`, `CAC-08`)."""
    answer = tools(ttl_ms=1500)
    book = kept(answer)
    for now, found in ((100.0, answer), (101.499, answer), (101.5, None), (101.0, None)):
        assert book.find("tools/list", FIRST, NEWEST, ALICE, now) is found


NOT_KEPT = {
    "no time": tools(ttl_ms=None),
    "no time at all": tools(ttl_ms=0),
    "a time in the past": tools(ttl_ms=-5),
    "questions in place of an answer": t.InputRequiredResult(
        result_type="input_required", request_state="s"
    ),
    "an unfinished list": tools(result_type="task"),
    "an answer of another kind": t.CallToolResult(content=[]),
    "bytes": b"{}",
    "nothing": None,
}


@pytest.mark.parametrize("result", NOT_KEPT.values(), ids=NOT_KEPT)
def test_what_may_not_be_kept_is_not(result: Any) -> None:
    """(`CAC-07`, `CAC-11`)"""
    assert kept(result).find("tools/list", FIRST, NEWEST, ALICE, 100.0) is None


@pytest.mark.parametrize("method", METHODS)
def test_only_the_six_methods_are_kept(method: str) -> None:
    """Whatever hints an answer to another has (`CAC-01`)."""
    found = kept(tools(), method=method).find(method, FIRST, NEWEST, ALICE, 100.0)
    assert (found is not None) == (method in CACHEABLE)
    assert len(CACHEABLE) == 6


def test_a_retry_with_answers_is_neither_kept_nor_served_from_the_book() -> None:
    """(`CAC-11`, `MRT-19`)"""
    plain = t.ReadResourceRequestParams(uri="x:y")
    for params in (
        t.ReadResourceRequestParams(uri="x:y", request_state="s"),
        t.ReadResourceRequestParams(uri="x:y", input_responses={}),
    ):
        book = kept(reading(), method="resources/read", params=params)
        assert book.find("resources/read", plain, NEWEST, ALICE, 100.0) is None
        book.keep("resources/read", plain, NEWEST, ALICE, reading(), 100.0)
        assert book.find("resources/read", params, NEWEST, ALICE, 100.0) is None


WHO = [
    # scope, who got it, who asks, and whether they find it
    ("private", ALICE, ALICE, True),
    ("private", ALICE, BOB, False),
    ("private", ALICE, NOBODY, False),
    ("private", NOBODY, NOBODY, True),
    ("private", NOBODY, ALICE, False),
    (None, ALICE, BOB, False),
    (None, ALICE, ALICE, True),
    ("public", ALICE, BOB, True),
    ("public", ALICE, NOBODY, True),
    ("public", NOBODY, ALICE, True),
]


@pytest.mark.parametrize("scope, owner, asker, found", WHO)
def test_a_private_answer_is_for_its_owner_only(
    scope: Any, owner: str, asker: str, found: bool
) -> None:
    """And what does not say is private; callers without a principal are one context of their own
    (`CAC-03`, `CAC-04`, `CAC-07`).
    """
    book = kept(tools(scope=scope), who=owner)
    assert (book.find("tools/list", FIRST, NEWEST, asker, 100.0) is not None) == found


def test_what_was_asked_for_makes_the_difference() -> None:
    """Method, URI, cursor - an empty one too - and revision (`CAC-02`, `PAG-03`)."""
    asked: list[tuple[str, Any, str]] = [
        ("tools/list", FIRST, NEWEST),
        ("tools/list", FIRST, R4),
        ("tools/list", t.ListToolsRequestParams(cursor="2"), NEWEST),
        ("prompts/list", t.ListPromptsRequestParams(), NEWEST),
        ("resources/read", t.ReadResourceRequestParams(uri="x:y"), NEWEST),
        ("resources/read", t.ReadResourceRequestParams(uri="x:z"), NEWEST),
        ("server/discover", t.DiscoverRequestParams(), NEWEST),
    ]
    book = ResponseCache()
    answers = [tools() for _ in asked]
    for (method, params, revision), answer in zip(asked, answers, strict=True):
        book.keep(method, params, revision, ALICE, answer, 100.0)
    for (method, params, revision), answer in zip(asked, answers, strict=True):
        assert book.find(method, params, revision, ALICE, 100.0) is answer


def test_a_cursor_that_is_empty_is_not_the_first_page() -> None:
    """(`CAC-02`, `PAG-03`)"""
    book = kept(tools())
    assert (
        book.find("tools/list", t.ListToolsRequestParams(cursor=""), NEWEST, ALICE, 100.0) is None
    )


def test_a_newer_answer_takes_the_place_of_the_older() -> None:
    """Also where it lives shorter."""
    book = kept(tools(ttl_ms=60_000))
    newer = tools(ttl_ms=1000)
    book.keep("tools/list", FIRST, NEWEST, ALICE, newer, 100.0)
    assert book.find("tools/list", FIRST, NEWEST, ALICE, 100.5) is newer
    assert book.find("tools/list", FIRST, NEWEST, ALICE, 102.0) is None


def test_an_answer_of_ones_own_comes_before_one_for_all() -> None:
    """A server may say less to the public."""
    book = ResponseCache()
    mine = tools()
    everybodys = tools(scope="public")
    book.keep("tools/list", FIRST, NEWEST, ALICE, mine, 100.0)
    book.keep("tools/list", FIRST, NEWEST, BOB, everybodys, 100.0)
    assert book.find("tools/list", FIRST, NEWEST, ALICE, 100.0) is mine
    assert book.find("tools/list", FIRST, NEWEST, BOB, 100.0) is everybodys


NOTICES = {
    # a notice, and which of the answers below it makes stale
    "notifications/tools/list_changed": {"tools/list"},
    "notifications/prompts/list_changed": {"prompts/list"},
    "notifications/resources/list_changed": {"resources/list", "resources/templates/list"},
    "notifications/message": set(),
    "notifications/imagined": set(),
}


@pytest.mark.parametrize("notice, stale", NOTICES.items(), ids=NOTICES)
def test_a_notice_makes_stale_what_it_is_about(notice: str, stale: set[str]) -> None:
    """All pages of it, everyone's, at once and whatever time is left; and nothing else
    (`CAC-09`).
    """
    book = ResponseCache()
    for method in CACHEABLE:
        params = (
            METHODS[method].params(uri="x:y")
            if method == "resources/read"
            else METHODS[method].params()
        )
        for who, scope in ((ALICE, "private"), (BOB, "public")):
            book.keep(method, params, NEWEST, who, reading(60_000, scope), 100.0)
    book.keep("tools/list", t.ListToolsRequestParams(cursor="2"), NEWEST, ALICE, tools(), 100.0)
    book.invalidate(notice)
    for method in CACHEABLE:
        params = (
            METHODS[method].params(uri="x:y")
            if method == "resources/read"
            else METHODS[method].params()
        )
        for who in (ALICE, BOB):
            assert (book.find(method, params, NEWEST, who, 100.0) is None) == (method in stale), (
                method
            )
    second = book.find("tools/list", t.ListToolsRequestParams(cursor="2"), NEWEST, ALICE, 100.0)
    assert (second is None) == ("tools/list" in stale)


UPDATES = [
    ("x:y", "x:y", True),
    ("x:y", "x:y/part", True),
    ("x:y/", "x:y/part", True),
    ("x:y", "x:yz", False),
    ("x:y", "x:z", False),
    ("x:y?a", "x:y", False),
]


@pytest.mark.parametrize("updated, uri, stale", UPDATES)
def test_an_update_makes_stale_what_was_read(updated: str, uri: str, stale: bool) -> None:
    """The resource and parts of it (`CAC-09`, `SUB-02`, `SUB-03`)."""
    params = t.ReadResourceRequestParams(uri=uri)
    book = kept(reading(), method="resources/read", params=params)
    book.invalidate(
        "notifications/resources/updated", t.ResourceUpdatedNotificationParams(uri=updated)
    )
    assert (book.find("resources/read", params, NEWEST, ALICE, 100.0) is None) == stale


def test_a_full_book_forgets_what_was_not_used_longest() -> None:
    """Reading counts as use; the book never grows beyond its size."""
    book = ResponseCache(most=3)

    def params(n: int) -> Any:
        return t.ReadResourceRequestParams(uri=f"x:{n}")

    for n in range(3):
        book.keep("resources/read", params(n), NEWEST, ALICE, reading(), 100.0)
    assert book.find("resources/read", params(0), NEWEST, ALICE, 100.0) is not None
    book.keep("resources/read", params(3), NEWEST, ALICE, reading(), 100.0)
    assert [
        book.find("resources/read", params(n), NEWEST, ALICE, 100.0) is not None for n in range(4)
    ] == [True, False, True, True]


def test_a_book_can_be_wiped() -> None:
    """As when the server was started anew."""
    book = kept(tools())
    book.clear()
    assert book.find("tools/list", FIRST, NEWEST, ALICE, 100.0) is None


whos = st.sampled_from([ALICE, BOB, NOBODY])
uris = st.sampled_from(["x:a", "x:b", "x:a/b"])
acts = st.one_of(
    st.tuples(
        st.just("keep"),
        whos,
        uris,
        st.integers(-1, 30),
        st.sampled_from(["public", "private", None]),
    ),
    st.tuples(st.just("update"), uris),
    st.tuples(st.just("wait"), st.integers(1, 10)),
)


@given(st.lists(acts, max_size=30))
def test_what_is_found_was_kept_for_the_one_who_asks_and_is_fresh(story: list[Any]) -> None:
    """Against a plain list of all that was kept, whatever happens (`CAC-02`, `CAC-03`, `CAC-07`,
    `CAC-09`).
    """
    book = ResponseCache()
    plain = []
    now = 0.0
    for act in story:
        match act:
            case ("keep", who, uri, seconds, scope):
                answer = reading(seconds * 1000, scope)
                book.keep(
                    "resources/read", t.ReadResourceRequestParams(uri=uri), NEWEST, who, answer, now
                )
                if seconds > 0:
                    plain.append((who, uri, now + seconds, scope, answer))
            case ("update", uri):
                book.invalidate(
                    "notifications/resources/updated", t.ResourceUpdatedNotificationParams(uri=uri)
                )
                plain = [
                    kept for kept in plain if kept[1] != uri and not kept[1].startswith(uri + "/")
                ]
            case ("wait", seconds):
                now += seconds
        for who in (ALICE, BOB, NOBODY):
            for uri in ("x:a", "x:b", "x:a/b"):
                found = book.find(
                    "resources/read", t.ReadResourceRequestParams(uri=uri), NEWEST, who, now
                )
                allowed = [
                    kept[4]
                    for kept in plain
                    if kept[1] == uri and now < kept[2] and (kept[3] == "public" or kept[0] == who)
                ]
                assert found is None or any(found is answer for answer in allowed)
