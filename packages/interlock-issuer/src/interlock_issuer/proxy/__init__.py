"""The OAuth proxy: people log in at another authorization server, and get tokens of our own."""

from __future__ import annotations

from .app import OAuthProxy
from .upstream import Upstream

__all__ = ["OAuthProxy", "Upstream"]
