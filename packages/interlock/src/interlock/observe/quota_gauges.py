"""The counters of quotas as metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ..quotas import QuotaUsage
from .meters import Gauge, Labels

_GAUGES = {
    "used": ("interlock_quota_used", "How much of a limited resource is in use."),
    "limit": ("interlock_quota_limit", "How much there is of a limited resource."),
    "holders": ("interlock_quota_holders", "How many callers use a limited resource."),
    "largest": ("interlock_quota_largest_holder", "How much the largest caller uses."),
    "refused": (
        "interlock_quota_refused_total",
        "How often a caller was refused because of a limited resource.",
    ),
    "evicted": (
        "interlock_quota_evicted_total",
        "How often something idle made room in a limited resource.",
    ),
}


def quota_gauges(usage: Callable[[], Mapping[str, QuotaUsage]]) -> Iterator[Gauge]:
    """Return a metric for each counter of quotas, with the resource as label.

    Args:
        usage: Returns the counters by resource.
    """
    for counter, (name, help) in _GAUGES.items():
        yield Gauge(name, help, _reader(usage, counter))


def _reader(
    usage: Callable[[], Mapping[str, QuotaUsage]], counter: str
) -> Callable[[], dict[Labels, float]]:
    def read() -> dict[Labels, float]:
        return {
            (("resource", resource),): float(getattr(found, counter))
            for resource, found in usage().items()
        }

    return read
