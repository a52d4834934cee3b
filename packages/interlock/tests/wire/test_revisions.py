"""The page of history as code reads it: dates, eras, spans and codes. What it says is proved in
packages/interlock/tests/history.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import types as t
from interlock.exchange import Caller
from interlock.wire.revisions import (
    ABILITIES,
    ERRORS,
    HANDSHAKE_REVISIONS,
    METHODS,
    NEVER,
    NEWEST,
    OLDEST,
    REVISIONS,
    STATELESS_REVISIONS,
    Ability,
    Era,
    Side,
    era,
    error_code,
    has,
    speaks,
    supports,
)

R1, R2, R3, R4, R5 = REVISIONS


def test_five_revisions_in_two_eras() -> None:
    """Dates sort as they came, and every revision has one manner."""
    assert list(REVISIONS) == sorted(REVISIONS)
    assert HANDSHAKE_REVISIONS + STATELESS_REVISIONS == REVISIONS
    assert [era(r) for r in REVISIONS] == [Era.HANDSHAKE] * 4 + [Era.STATELESS]
    with pytest.raises(KeyError):
        era("2025-01-01")


SPOKEN = {
    "initialize": (R1, R2, R3, R4),
    "ping": (R1, R2, R3, R4),
    "logging/setLevel": (R1, R2, R3, R4),
    "resources/subscribe": (R1, R2, R3, R4),
    "tools/call": REVISIONS,
    "completion/complete": REVISIONS,
    "server/discover": (R5,),
    "subscriptions/listen": (R5,),
    "elicitation/create": (R3, R4),
    "sampling/createMessage": (R1, R2, R3, R4),
    "notifications/elicitation/complete": (R4,),
    "notifications/cancelled": REVISIONS,
    "tools/imagined": (),
}


@pytest.mark.parametrize("method, revisions", SPOKEN.items(), ids=SPOKEN)
def test_a_method_belongs_to_its_revisions(method: str, revisions: tuple[str, ...]) -> None:
    """Questions are requests of their own only where a server may send requests at all (`RPC-17`,
    `STA-18`, `ELI-19`).
    """
    spoken = tuple(r for r in REVISIONS if speaks(r, method))
    if method in ("elicitation/create", "sampling/createMessage"):
        spoken = tuple(r for r in spoken if era(r) is Era.HANDSHAKE)
    assert spoken == revisions


def test_requests_have_results_and_notifications_have_none() -> None:
    """The table tells the two apart by the name, as the protocol does."""
    for method, row in METHODS.items():
        assert (row.result is None) == method.startswith("notifications/"), method
        assert issubclass(row.params, t.Params | t.WireType), method
        assert row.sender in Side
        assert OLDEST <= row.since <= row.until <= NEWEST


def test_spans_include_both_ends() -> None:
    """None is all of history, and NEVER none of it."""
    assert [r for r in REVISIONS if has(r, (R2, R4))] == [R2, R3, R4]
    assert all(has(r, None) for r in REVISIONS)
    assert not any(has(r, NEVER) for r in REVISIONS)


CODES = {
    "resource_not_found": [-32002, -32002, -32002, -32002, -32602],
    "header_mismatch": [-32600, -32600, -32600, -32600, -32020],
    "missing_client_capability": [-32600, -32600, -32600, -32600, -32021],
    "unsupported_protocol_version": [-32602, -32602, -32602, -32602, -32022],
}


@pytest.mark.parametrize("name, codes", CODES.items(), ids=CODES)
def test_each_misfortune_has_its_code_in_each_revision(name: str, codes: list[int]) -> None:
    """(`ERR-07`, `ERR-08`, `ERR-09`, `ERR-12`, `ERR-14`, `ERR-16`)"""
    assert [error_code(name, r) for r in REVISIONS] == codes
    assert CODES.keys() == ERRORS.keys()


@pytest.mark.parametrize("ability", ABILITIES)
def test_each_ability_belongs_to_some_revisions_and_not_to_all(ability: Ability) -> None:
    """A row that is true or false everywhere would tell nobody anything."""
    assert {supports(revision, ability) for revision in REVISIONS} == {True, False}


@pytest.mark.parametrize(
    "ability, method",
    [("elicitation", "elicitation/create"), ("ping", "ping")],
)
def test_an_ability_that_is_a_method_has_the_span_of_the_method(
    ability: Ability, method: str
) -> None:
    """The two tables do not contradict each other."""
    for revision in REVISIONS:
        assert supports(revision, ability) is speaks(revision, method)


def test_an_unknown_ability_is_refused_with_the_list_of_those_there_are() -> None:
    """A slip in a name must not count as a plain no."""
    with pytest.raises(ValueError, match=r"unknown ability 'elicitaton'; there are .*elicitation"):
        supports(NEWEST, "elicitaton")  # type: ignore[arg-type]  # the slip


def test_a_caller_is_asked_for_what_its_revision_can_do() -> None:
    """`ctx.caller.supports(...)` is what authors write."""
    assert not Caller("2025-03-26").supports("elicitation")
    assert Caller("2025-06-18").supports("elicitation")


def test_the_guide_lists_every_ability() -> None:
    """An author finds each name where revisions are explained."""
    text = (Path(__file__).parents[4] / "docs" / "guide" / "revisions.md").read_text()
    assert [name for name in ABILITIES if f"`{name}`" not in text] == []
