"""The planner: a rule-based substitute for a model, which plans one kind of holiday."""

from __future__ import annotations

from .model import Planner

__all__ = ["Planner"]
