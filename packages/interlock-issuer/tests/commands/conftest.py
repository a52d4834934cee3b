"""Fixtures of the command line, for the commands of the issuer."""

from __future__ import annotations

from tests.cli.conftest import home, interlock

__all__ = ["home", "interlock"]
