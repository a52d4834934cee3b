"""Token buckets as rate limits."""

from __future__ import annotations

from interlock.rates import TokenBucket


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    """A full bucket gives all its tokens at once; then one comes back each `1 / rate` seconds."""
    bucket = TokenBucket(rate=0.5, burst=3)
    assert bucket.left(100.0) == 3
    assert [bucket.acquire(100.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert bucket.left(100.0) == 0
    assert bucket.acquire(100.0) == 2.0
    assert bucket.left(102.0) == 1
    assert bucket.acquire(102.0) == 0.0
    assert bucket.acquire(102.0) > 0


def test_a_bucket_is_never_fuller_than_its_burst() -> None:
    """Waiting longer than it takes to fill the bucket brings nothing more."""
    bucket = TokenBucket(rate=10, burst=2)
    bucket.acquire(0.0)
    assert bucket.left(1_000.0) == 2
    assert [bucket.acquire(1_000.0) == 0.0 for _ in range(3)] == [True, True, False]
