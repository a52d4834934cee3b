"""The acts of the feature panels: tools, resources, prompts, tasks, skills, apps and questions."""

from __future__ import annotations

from collections.abc import Mapping

from .act import Act

FEATURE_ACTS: Mapping[str, Act] = {}
"""The acts by name."""
