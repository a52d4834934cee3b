"""The shared services of one HTTP endpoint: the handler, the server's identity, limits, clock,
counters and logs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...exchange import Handler
from ...protocol.identity import Identity
from .access_log import AccessLog
from .error_responses import ErrorResponder
from .limits import Limits
from .running_calls import RunningCalls
from .shutdown import Shutdown
from .ticker import Ticker


@dataclass(frozen=True, slots=True)
class Services:
    """The collaborators that the parts of one endpoint share. None of them refers to a part."""

    handler: Handler
    identity: Identity
    limits: Limits
    log: AccessLog
    errors: ErrorResponder
    ticker: Ticker
    calls: RunningCalls
    shutdown: Shutdown
