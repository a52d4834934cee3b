"""JSON Schema, bounded: schemas made ready once, values checked against them, and nothing ever
fetched.
"""

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
