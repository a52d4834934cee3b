"""Bounded caches: what is evicted, by number and by size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlock.caches import BoundedCache


def test_the_least_recently_used_entry_is_evicted() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert list(cache) == ["a", "c"]
    assert cache.get("b") is None


def test_a_peek_is_not_a_use() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.peek("a") == 1
    cache.put("c", 3)
    assert "a" not in cache


def test_a_value_put_again_is_replaced_and_counts_once() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(most_size=10)
    cache.put("a", b"12345", 5)
    cache.put("b", b"123", 3)
    cache.put("a", b"1234567", 7)
    assert list(cache) == ["b", "a"]
    assert cache.size == 10


def test_entries_make_room_until_the_total_size_fits() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(most_size=10)
    cache.put("a", b"123", 3)
    cache.put("b", b"123", 3)
    cache.put("c", b"123456789", 9)
    assert list(cache) == ["c"]
    assert cache.size == 9


def test_a_value_larger_than_the_cache_is_not_kept_and_evicts_nothing_else() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(most_size=4)
    cache.put("a", b"123", 3)
    cache.put("b", b"12345", 5)
    assert list(cache) == ["a"]
    cache.put("a", b"12345", 5)
    assert len(cache) == 0
    assert cache.size == 0


def test_evicted_entries_are_reported_and_removed_ones_are_not() -> None:
    evicted: list[tuple[str, int]] = []
    cache: BoundedCache[str, int] = BoundedCache(1, on_evict=lambda *e: evicted.append(e))
    cache.put("a", 1)
    assert cache.pop("a") == 1
    assert cache.pop("a") is None
    cache.put("b", 2)
    cache.put("c", 3)
    assert evicted == [("b", 2)]


def test_entries_are_removed_by_their_keys() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(most_size=10)
    for key in ("tools/1", "tools/2", "prompts/1"):
        cache.put(key, b"1", 1)
    assert cache.remove_if(lambda key: key.startswith("tools/"))
    assert not cache.remove_if(lambda key: key.startswith("tools/"))
    assert list(cache) == ["prompts/1"]
    assert cache.size == 1
    cache.clear()
    assert cache.size == len(cache) == 0


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 60))))
def test_a_cache_never_exceeds_its_bounds(puts: list[tuple[str, int]]) -> None:
    """In number and in size. What was put last is there, unless it alone is too large."""
    cache: BoundedCache[str, int] = BoundedCache(3, most_size=100)
    for key, size in puts:
        cache.put(key, size, size * 2)
        assert len(cache) <= 3
        assert cache.size == sum(2 * (cache.peek(one) or 0) for one in cache) <= 100
        assert cache.get(key) == (size if size <= 50 else None)
