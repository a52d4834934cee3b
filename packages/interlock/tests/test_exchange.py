"""The one shape: exchanges, who asks, and middleware around handlers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import types as t
from interlock.exchange import MUTE, AnyResult, Caller, Exchange, Handler, Principal, stack
from interlock.wire.revisions import NEWEST, REVISIONS, Era

CALLER = Caller(NEWEST)
ROOTS = t.ListRootsRequest()


async def echo(x: Exchange) -> AnyResult:
    """A handler that says what it was asked."""
    return t.CallToolResult(content=[t.TextContent(x.method)])


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_callers_manner_is_that_of_its_revision(revision: str) -> None:
    """Nothing else decides it."""
    assert Caller(revision).era is (Era.STATELESS if revision == NEWEST else Era.HANDSHAKE)


words = st.text(max_size=3) | st.text("ab,'\n", max_size=3)


@given(one=st.tuples(words, words, words), other=st.tuples(words, words, words))
def test_two_principals_share_a_key_only_if_they_are_the_same(one: Any, other: Any) -> None:
    """Whatever their names are made of; scopes are what one may do, not who one is (`CAC-03`,
    `MRT-08`)."""
    first, second = (Principal(subject=s, issuer=i, client=c) for s, i, c in (one, other))
    assert (first.key == second.key) == (one == other)
    assert Principal(subject="a", scopes=frozenset({"x"})).key == Principal(subject="a").key


def test_a_name_with_a_line_break_does_not_make_another_principal() -> None:
    """An issuer that may choose its subjects freely must not reach another's."""
    keys = [
        Principal(subject=s, issuer=i, client=c).key
        for s, i, c in (("b\nc", "a", ""), ("b", "a", "c\n"), ("b", "a\nb", "c"), ("b", "a", "c"))
    ]
    assert len(set(keys)) == len(keys)


async def test_middleware_stands_around_a_handler_in_the_order_it_was_given() -> None:
    """The first is the outermost: first to see the exchange, last to see the result."""
    seen: list[str] = []

    def noting(name: str) -> Any:
        def layer(handler: Handler) -> Handler:
            async def handle(x: Exchange) -> AnyResult:
                seen.append(f"{name} in")
                result = await handler(x)
                seen.append(f"{name} out")
                return result

            return handle

        return layer

    result = await stack(echo, noting("a"), noting("b"))(Exchange("tools/call", None, CALLER))
    assert seen == ["a in", "b in", "b out", "a out"]
    assert isinstance(result, t.CallToolResult)
    assert result.text == "tools/call"


async def test_no_middleware_is_the_handler_itself() -> None:
    """Nothing is put around it."""
    assert stack(echo) is echo


async def test_an_exchange_made_by_hand_has_all_it_needs() -> None:
    """Whoever listens to nothing, waits for nothing and asks nobody need not say so: a test is an
    exchange called by hand."""
    x = Exchange("tools/call", t.CallToolRequestParams(name="x"), CALLER)
    x.notify("notifications/progress", None)
    await x.drain()
    assert x.transport.request is None
    assert x.transport.mirrored is None
    assert x.transport.release(None) is False
    assert x.asker is MUTE
    with pytest.raises(t.Unanswerable):
        await x.asker.ask(ROOTS)


async def test_what_must_happen_once_happens_where_nobody_can_be_asked() -> None:
    """Without questions nothing runs again."""
    done = []

    async def deed() -> int:
        done.append(1)
        return len(done)

    assert await MUTE.once("deed", deed) == 1
    assert done == [1]
