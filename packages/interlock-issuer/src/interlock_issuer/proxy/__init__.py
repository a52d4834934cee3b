"""The OAuth proxy: users log in at another provider and get tokens of this issuer."""

from __future__ import annotations

from .app import OAuthProxy
from .upstream import Upstream

__all__ = ["OAuthProxy", "Upstream"]
