"""A real browser for the demo."""

from __future__ import annotations

from tests.browser import chromium

__all__ = ["chromium"]
