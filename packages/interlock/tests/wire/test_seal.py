"""Sealed state: it opens for whom it was closed and for nobody else, whatever a stranger does to
it.
"""

from __future__ import annotations

import base64
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.seal import BadSeal, Seal

pytest.importorskip("cryptography")

KEY = b"k" * 16
OTHER_KEY = b"o" * 32
NEW_KEY = b"n" * 64
BINDING = b'["alice","tools/call","pay",{"to":"bob"}]'
NOW = 1_800_000_000.0
PAYLOAD = {"pending": ["1.ab"], "journal": {"x": [1, 2.5, None, "ü"]}, "round": 2}

both_ways = pytest.mark.parametrize("encrypt", [True, False], ids=["encrypted", "plain"])


@pytest.fixture
def without_cryptography(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optional package is not installed."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "cryptography":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)


def raw(state: str) -> bytes:
    return base64.urlsafe_b64decode(state + "=" * (-len(state) % 4))


def text(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    payload=json_values,
    binding=st.binary(),
    key=st.binary(min_size=16, max_size=80),
    encrypt=st.booleans(),
)
def test_what_was_closed_opens_the_same(
    payload: Any, binding: bytes, key: bytes, encrypt: bool
) -> None:
    """Any JSON value, for any request, with any key; the state is one word of URL-safe letters."""
    seal = Seal([key], encrypt=encrypt)
    state = seal.close(payload, binding, NOW)
    assert seal.open(state, binding, NOW) == payload
    assert state.isascii()
    assert state.replace("-", "a").replace("_", "a").isalnum()


@both_ways
def test_every_changed_byte_is_noticed(encrypt: bool) -> None:
    """One bit flipped anywhere, one byte more or less, and it does not open (`MRT-06`,
    `MRT-07`).
    """
    seal = Seal([KEY], encrypt=encrypt)
    sealed = raw(seal.close(PAYLOAD, BINDING, NOW))
    forged = [
        sealed[:n] + bytes([sealed[n] ^ 1 << n % 8]) + sealed[n + 1 :] for n in range(len(sealed))
    ]
    forged += [sealed[:n] for n in range(len(sealed))] + [
        sealed + b"\0",
        b"\0" + sealed,
        sealed[1:],
        sealed * 2,
    ]
    for state in map(text, forged):
        with pytest.raises(BadSeal):
            seal.open(state, BINDING, NOW)


@both_ways
def test_one_kind_of_seal_does_not_pass_for_the_other(encrypt: bool) -> None:
    """The letter that names the kind is no way round the check."""
    seal = Seal([KEY], encrypt=encrypt)
    sealed = raw(seal.close(PAYLOAD, BINDING, NOW))
    for kind in (b"m", b"e", b"x", b""):
        if kind != sealed[:1]:
            with pytest.raises(BadSeal):
                seal.open(text(kind + sealed[1:]), BINDING, NOW)


@given(state=st.text())
def test_any_text_opens_or_is_a_bad_seal(state: str) -> None:
    """Nothing that a client can send raises anything else (`MRT-06`)."""
    with pytest.raises(BadSeal):
        Seal([KEY]).open(state, BINDING, NOW)


@pytest.mark.parametrize(
    "state",
    [
        "",
        "=",
        "e",
        "m",
        "AAAA",
        "m" * 200,
        "é",
        "a b",
        "a\nb",
        "\ud800",
        "AA==AA",
        "-_" * 50,
        "+/" * 50,
    ],
)
def test_no_state_at_all_is_a_bad_seal(state: str) -> None:
    """Also what is not base64, or base64 of another alphabet."""
    with pytest.raises(BadSeal):
        Seal([KEY]).open(state, BINDING, NOW)


@both_ways
@pytest.mark.parametrize(
    "other",
    [b"", BINDING + b" ", BINDING[:-1], BINDING.replace(b"alice", b"mallo"), b"\0" + BINDING],
)
def test_it_opens_only_for_the_request_it_was_closed_for(other: bytes, encrypt: bool) -> None:
    """Principal, method and arguments are all in the binding (`MRT-08`)."""
    seal = Seal([KEY], encrypt=encrypt)
    with pytest.raises(BadSeal, match="another request"):
        seal.open(seal.close(PAYLOAD, BINDING, NOW), other, NOW)


def test_binding_and_payload_cannot_be_pushed_into_each_other() -> None:
    """Without encryption the bytes of both are authenticated together; where one ends is
    authenticated too.
    """
    seal = Seal([KEY], encrypt=False)
    sealed = raw(seal.close("x", b"ab", NOW))
    mac = sealed[1:33]
    body = sealed[33:]
    with pytest.raises(BadSeal):
        seal.open(text(b"m" + mac + b"b" + body), b"a", NOW)


@both_ways
def test_it_expires(encrypt: bool) -> None:
    """It can be used for as long as was said and no longer, and the words say so (`MRT-08`)."""
    seal = Seal([KEY], seconds=60, encrypt=encrypt)
    state = seal.close(PAYLOAD, BINDING, NOW)
    assert seal.open(state, BINDING, NOW + 60) == PAYLOAD
    with pytest.raises(BadSeal, match="expired"):
        seal.open(state, BINDING, NOW + 60.001)


@both_ways
def test_keys_can_be_changed_without_a_gap(encrypt: bool) -> None:
    """The first key closes, every key opens; a key that was taken away opens nothing more."""
    old, both, new = (Seal(keys, encrypt=encrypt) for keys in ([KEY], [NEW_KEY, KEY], [NEW_KEY]))
    before = old.close(1, BINDING, NOW)
    after = both.close(2, BINDING, NOW)
    assert (
        both.open(before, BINDING, NOW),
        both.open(after, BINDING, NOW),
        new.open(after, BINDING, NOW),
    ) == (1, 2, 2)
    for seal, state in ((old, after), (new, before), (Seal([OTHER_KEY]), before)):
        with pytest.raises(BadSeal):
            seal.open(state, BINDING, NOW)


def test_encrypted_state_cannot_be_read_and_never_looks_the_same() -> None:
    """With the cryptography package state is encrypted unless told otherwise."""
    seal = Seal([KEY])
    states = {seal.close("the card number", BINDING, NOW) for _ in range(20)}
    assert len(states) == 20
    assert all(b"card" not in raw(state) for state in states)
    assert b"card" in raw(Seal([KEY], encrypt=False).close("the card number", BINDING, NOW))


def test_a_seal_needs_a_key_worth_the_name() -> None:
    """A short key among long ones is refused too."""
    for keys in ([], [b"short"], [KEY, b"x" * 15]):
        with pytest.raises(ValueError, match="16 random bytes"):
            Seal(keys)


@pytest.mark.usefixtures("without_cryptography")
def test_without_cryptography_state_is_authenticated_all_the_same() -> None:
    """What was closed elsewhere with encryption is a bad seal, not a crash."""
    seal = Seal([KEY])
    state = seal.close(PAYLOAD, BINDING, NOW)
    assert raw(state)[:1] == b"m"
    assert seal.open(state, BINDING, NOW) == PAYLOAD
    with pytest.raises(BadSeal):
        seal.open(text(b"e" + b"\0" * 80), BINDING, NOW)
    with pytest.raises(BadSeal):
        seal.open(state, b"another", NOW)


@pytest.mark.usefixtures("without_cryptography")
def test_encryption_that_was_asked_for_is_not_silently_left_out() -> None:
    """Whoever says encrypt=True hears at once that it cannot be."""
    with pytest.raises(ValueError, match="cryptography"):
        Seal([KEY], encrypt=True)


def test_a_server_with_cryptography_opens_what_one_without_has_closed() -> None:
    """Workers that were not all installed alike still understand each other in this direction."""
    assert Seal([KEY]).open(Seal([KEY], encrypt=False).close(7, BINDING, NOW), BINDING, NOW) == 7
