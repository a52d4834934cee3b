"""JSON Schema validation with bounded cost and without network access."""

from __future__ import annotations

from .parameters import defaults, header_parameters
from .survey import DIALECTS, SchemaError
from .validator import Validator, Violation, compile

__all__ = [
    "DIALECTS",
    "SchemaError",
    "Validator",
    "Violation",
    "compile",
    "defaults",
    "header_parameters",
]
