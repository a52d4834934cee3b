"""The state of the servers that a server has mounted, for its metrics and its operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from ...observe.meters import Gauge, Labels

if TYPE_CHECKING:
    from .mount import Mount

_UNKNOWN = "it has not answered yet"


class UpstreamState(Struct, frozen=True):
    """The state of one mounted source.

    Attributes:
        name: The prefix of the mount, or the name of the source.
        problem: Why it cannot be used now; None if it can.
        token_refreshes: How often its OAuth tokens were refreshed in this process, by outcome: ok,
            refused, failed.
    """

    name: str
    problem: str | None
    token_refreshes: Mapping[str, int] = {}


def upstream_states(mounts: Iterable[Mount]) -> list[UpstreamState]:
    """Return the state of each mounted source."""
    found = []
    for mount in mounts:
        source = mount.source
        problem: str | None = getattr(source, "problem", None)
        if problem is None and source.offered is None:
            problem = _UNKNOWN
        found.append(
            UpstreamState(
                mount.prefix or source.name, problem, getattr(source, "token_refreshes", {})
            )
        )
    return found


def upstream_gauges(mounts: Iterable[Mount]) -> Iterator[Gauge]:
    """Return the state of the mounted sources as metrics."""

    def up() -> dict[Labels, float]:
        return {
            (("upstream", each.name),): float(each.problem is None)
            for each in upstream_states(mounts)
        }

    def refreshes() -> dict[Labels, float]:
        return {
            (("upstream", each.name), ("outcome", outcome)): count
            for each in upstream_states(mounts)
            for outcome, count in each.token_refreshes.items()
        }

    yield Gauge("interlock_upstream_up", "Whether each mounted server can be used: 1 or 0.", up)
    yield Gauge(
        "interlock_upstream_token_refreshes_total",
        "Refreshes of the OAuth tokens for mounted servers, by outcome.",
        refreshes,
    )
