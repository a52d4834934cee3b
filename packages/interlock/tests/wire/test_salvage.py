"""Messages that the strict decoder refuses: their id is found, their lone surrogates are replaced,
and the work is bounded.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.salvage import SalvagedMessage, split, trace, without_lone_surrogates

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=True),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
IDS = st.integers() | st.text()
KINDS = st.sampled_from(["method", "result", "error"])


def written(value: Any, *, ascii: bool) -> bytes:
    """JSON, with NaN and Infinity where a value has them."""
    return json.dumps(value, ensure_ascii=ascii).encode("utf-8", "replace")


@given(
    st.dictionaries(st.text(), VALUES, max_size=4), IDS, KINDS, VALUES, st.randoms(), st.booleans()
)
def test_the_top_level_id_is_found_wherever_it_stands(
    others: dict[str, Any], id: Any, kind: str, value: Any, order: Any, ascii: bool
) -> None:
    """Among other members in any order, with NaN and other ids anywhere below them."""
    taken = {"id", "method", "result", "error"}
    members = [*((k, v) for k, v in others.items() if k not in taken), ("id", id), (kind, value)]
    order.shuffle(members)
    assert trace(written(dict(members), ascii=ascii)) == SalvagedMessage(id, kind != "method")


@given(VALUES, IDS, st.integers(0, 400))
def test_a_message_that_was_cut_off_has_its_id_or_none(value: Any, id: Any, end: int) -> None:
    """Never another one: half of a number is not taken for a number."""
    frame = written({"id": id, "result": value}, ascii=True)
    assert trace(frame[:end]).id in (None, id)


@given(st.binary() | st.text(alphabet='{}[]",:\\01udid ').map(str.encode))
def test_any_bytes_at_all_are_scanned_without_an_exception(frame: bytes) -> None:
    """What is found is an id that JSON has; a batch is split into pieces of itself."""
    found = trace(frame).id
    assert found is None or isinstance(found, int | str)
    for piece in split(frame):
        assert piece
        assert piece in frame
    repaired = without_lone_surrogates(frame)
    assert repaired is None or repaired != frame


@given(st.lists(VALUES.filter(lambda value: value is not None), min_size=1))
def test_a_batch_is_split_into_its_members(members: list[Any]) -> None:
    """Whatever they hold, NaN too, and no white space around them."""
    assert split(written(members, ascii=True)) == [written(m, ascii=True) for m in members]


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_only_lone_surrogates_are_replaced(text: str) -> None:
    """The text is the same as Python reads it, with U+FFFD for each half of a pair."""
    frame = json.dumps(text).encode()
    want = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in json.loads(frame))
    assert json.loads(without_lone_surrogates(frame) or frame) == want


@pytest.mark.parametrize(
    "frame",
    [
        b'{"x":' + b"[" * 2_000_000 + b',"id":1}',
        b'{"x":' + b'{"":' * 2_000_000 + b',"id":1}',
        b"{" + b'"a":1,' * 500_000 + b'"id":1}',
        b"[" + b"1," * 500_000,
    ],
    ids=["brackets", "braces", "members", "a batch"],
)
def test_a_scan_ends_early_where_there_is_too_much_to_look_at(frame: bytes) -> None:
    """It is better not to know the id than to hold everybody else up."""
    assert trace(frame).id is None
    assert len(split(frame)) < 100_000


@pytest.mark.parametrize("size, repaired", [(10, True), (4 * 1024 * 1024, False)])
def test_lone_surrogates_are_replaced_in_messages_of_a_usual_size(
    size: int, repaired: bool
) -> None:
    """Larger ones are left alone; the strict decoder refuses them."""
    frame = b'"' + b"a" * size + rb'\ud800"'
    assert (without_lone_surrogates(frame) is not None) is repaired


def test_a_batch_that_was_cut_off_is_split_as_far_as_it_goes() -> None:
    """The last member may be half of one."""
    batch = b'[{"a":"]"}, {"b":NaN} ,[1,{}], 7, {"c":'
    assert split(batch) == [b'{"a":"]"}', b'{"b":NaN}', b"[1,{}]", b"7", b'{"c":']
