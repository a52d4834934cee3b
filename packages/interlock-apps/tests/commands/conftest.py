"""Fixtures of the command, for the commands of the apps."""

from __future__ import annotations

from tests.cli.conftest import everyday, home, interlock, program_run, questions

__all__ = ["everyday", "home", "interlock", "program_run", "questions"]
