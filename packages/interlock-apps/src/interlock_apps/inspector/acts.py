"""The table of acts: every request that the inspector's page can make.

No act starts a command: the targets are those of the command line, and an act names one of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlock import REVISIONS

from ..web.page_site import ActError
from .act import Act, ActParams
from .feature_acts import FEATURE_ACTS
from .session import Connection, Inspector
from .targets import AUTO


class ConnectParams(ActParams, frozen=True):
    """Connect, or connect again, to a target. `revision` is "auto" or a revision."""

    connection: str
    revision: str = ""


class DisconnectParams(ActParams, frozen=True):
    """Close a connection."""

    connection: str


async def _connect(inspector: Inspector, params: ConnectParams) -> None:
    if params.revision not in ("", AUTO, *REVISIONS):
        raise ActError(f"Unknown revision {params.revision!r}.")
    await _live(inspector, params.connection).open(params.revision or None)


async def _disconnect(inspector: Inspector, params: DisconnectParams) -> None:
    await _live(inspector, params.connection).close()


def _live(inspector: Inspector, name: str) -> Connection:
    found = inspector.connections.get(name)
    if found is None or found.target.transport is None:
        raise ActError(f"{name} is not a server that the command line named.")
    return found


ACTS: Mapping[str, Act] = {
    "connect": Act(ConnectParams, _connect),
    "disconnect": Act(DisconnectParams, _disconnect),
    **FEATURE_ACTS,
}
"""The acts by name."""

