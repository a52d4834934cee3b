"""The error of a sandbox that cannot enforce its policy."""

from __future__ import annotations

from ..types import Unreachable


class SandboxUnavailable(Unreachable):
    """The policy of a sandbox cannot be enforced here, so the program was not started. The message
    says why, and what to change.
    """
