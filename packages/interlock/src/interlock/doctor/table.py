"""The table of rules, by part, in the order in which the parts are checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .diagnostics import DiagnosticRule
from .rules import (
    authorization,
    command,
    configuration,
    connection,
    host,
    http,
    lists,
    log,
    network,
    prompts,
    resources,
    schemas,
    start,
    tools,
)

PARTS: Final[Mapping[str, tuple[DiagnosticRule, ...]]] = {
    "host": host.RULES,
    "configuration": configuration.RULES,
    "log": log.RULES,
    "command": command.RULES,
    "start": start.RULES,
    "network": network.RULES,
    "http": http.RULES,
    "authorization": authorization.RULES,
    "connection": connection.RULES,
    "catalogue": (
        *lists.RULES,
        *tools.RULES,
        *schemas.RULES,
        *resources.RULES,
        *prompts.RULES,
    ),
}
"""The rules of each part. `interlock lint` applies those of the catalogue."""

RULES: Final[Mapping[str, DiagnosticRule]] = {
    rule.id: rule for rules in PARTS.values() for rule in rules
}
"""Every rule, by its id."""
