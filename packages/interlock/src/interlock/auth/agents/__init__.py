"""Agents: how a client reaches the user for a login, by a browser, a terminal, or not at all."""

from __future__ import annotations

from .browser import Browser
from .default import default_agent
from .headless import Headless
from .interface import Agent
from .pasting import Pasting
from .terminal import Terminal

__all__ = ["Agent", "Browser", "Headless", "Pasting", "Terminal", "default_agent"]
