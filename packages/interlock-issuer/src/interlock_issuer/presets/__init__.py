"""Presets of identity providers: `presets.get("auth0").verifier(domain="acme.eu.auth0.com")`."""

from __future__ import annotations

from .preset import Preset
from .products import PRESETS

__all__ = ["Preset", "get", "names"]


def names() -> list[str]:
    """The names of all presets."""
    return sorted(PRESETS)


def get(name: str) -> Preset:
    """The preset of a name. Raises ValueError, which says which there are."""
    found = PRESETS.get(name.lower())
    if found is None:
        raise ValueError(f"there is no preset {name!r}; there are {', '.join(names())}")
    return found
