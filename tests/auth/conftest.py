"""A real browser."""

from __future__ import annotations

from tests.browser import chromium

__all__ = ["chromium"]
