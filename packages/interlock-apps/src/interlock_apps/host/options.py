"""The options of a host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from interlock.observe.spans import Tracing

from ..fleet.hub import HubOptions
from ..fleet.policy import Rule
from ..fleet.policy_file import PolicyFile
from .loop.budget import Budget
from .server_requests import RequestLimits

DISCOVERY = 0.05
TASK_WAIT = 5.0


@dataclass(frozen=True, kw_only=True)
class HostOptions:
    """The limits and rules of a host.

    Attributes:
        budget: The limits of a turn.
        requests: How often servers may ask the person and models.
        discovery: The share of a model's context that the list of tools may take. Beyond it the
            model gets a tool search instead.
        ask_to_start: Whether the person is asked before a server with an unapproved command or
            address is started or contacted.
        log_required: Whether calls are refused while the log cannot be written. The policy can
            require that too (`Policy.log_required`).
        save_rules: Called with all saved rules whenever one is added or removed; None: decisions
            hold until the host closes.
        policy_file: The file of the policy, to which rules are written on request; None: rules are
            remembered instead.
        file_copies: The folder in which copies of files are kept before a call that may change
            them, so that the change can be undone; None: no copies are kept.
        hub: How servers are reached and kept up.
        task_wait: The time in seconds for which a turn waits for a call that became a task. After
            that the task goes on by itself, and its result becomes a later message. None: the turn
            waits until the task ends.
        tracing: A tracing system, such as `interlock.observe.opentelemetry.OpenTelemetry`: a trace
            for each turn, with the requests to models and the calls of tools.
    """

    budget: Budget = field(default_factory=Budget)
    requests: RequestLimits = field(default_factory=RequestLimits)
    discovery: float = DISCOVERY
    ask_to_start: bool = True
    log_required: bool = False
    save_rules: Callable[[Sequence[Rule]], None] | None = None
    policy_file: PolicyFile | None = None
    file_copies: Path | None = None
    hub: HubOptions = field(default_factory=HubOptions)
    task_wait: float | None = TASK_WAIT
    tracing: Tracing | None = None
