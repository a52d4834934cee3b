"""Diagnosis of a server's authorization, without logging in: what is wrong, and who can fix it."""

from __future__ import annotations

from .findings import Finding, Report
from .walk import examine

__all__ = ["Finding", "Report", "examine"]
