"""The gateway: one endpoint for many servers, with identities, policy, limits and an audit.

A guard hook imports `Asked` and `Verdict` from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.lazy_names import lazily

if TYPE_CHECKING:
    from ..fleet.policy import Verdict
    from .asked import Asked

# Loaded at first use: the commands need a part of the gateway only.
_ROOMS = {
    "..fleet.policy": ("Verdict",),
    ".asked": ("Asked",),
}

__all__ = ["Asked", "Verdict"]

__getattr__, __dir__ = lazily(__name__, _ROOMS)
