"""Diagnosis of MCP servers: one table of rules that `interlock doctor` and `interlock lint` share.

`examine` checks a server from its command or URL to its catalogue, `examine_host` an installed
product with its servers and its logs, and `examine_catalogue` what an open client's server lists.
Each returns a `DiagnosticReport`. The rules are pure (`RULES`); gatherers do the I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazily

if TYPE_CHECKING:
    from .diagnostics import (
        CheckedPart,
        Diagnostic,
        DiagnosticReport,
        DiagnosticRule,
        RuleFinding,
        Severity,
    )
    from .examination import examine, examine_catalogue, examine_host, installed_hosts
    from .options import ExamineOptions
    from .table import PARTS, RULES

# Imported at first use: the rules import the compilers of schemas.
_MODULES = {
    ".diagnostics": (
        "CheckedPart",
        "Diagnostic",
        "DiagnosticReport",
        "DiagnosticRule",
        "RuleFinding",
        "Severity",
    ),
    ".examination": ("examine", "examine_catalogue", "examine_host", "installed_hosts"),
    ".options": ("ExamineOptions",),
    ".table": ("PARTS", "RULES"),
}

__all__ = [
    "PARTS",
    "RULES",
    "CheckedPart",
    "Diagnostic",
    "DiagnosticReport",
    "DiagnosticRule",
    "ExamineOptions",
    "RuleFinding",
    "Severity",
    "examine",
    "examine_catalogue",
    "examine_host",
    "installed_hosts",
]

__getattr__, __dir__ = lazily(__name__, _MODULES)
