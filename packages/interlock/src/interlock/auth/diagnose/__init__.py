"""The authorization of a server looked at step by step, without logging in: what is there, what is
wrong, and who has to repair it.
"""

from __future__ import annotations

from .findings import Finding, Report
from .walk import examine

__all__ = ["Finding", "Report", "examine"]
