"""A real browser, and hosts with pages for it."""

from __future__ import annotations

from tests.browser import chromium

__all__ = ["chromium"]
