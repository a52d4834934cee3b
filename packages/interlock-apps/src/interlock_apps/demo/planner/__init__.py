"""A model that is none: it plans one kind of holiday by fixed rules, without a network, and says so
wherever it speaks.
"""

from __future__ import annotations

from .model import Planner

__all__ = ["Planner"]
