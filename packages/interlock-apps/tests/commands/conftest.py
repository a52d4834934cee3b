"""Fixtures of the command, for the commands of the apps."""

from __future__ import annotations

from tests.cli.conftest import (
    everyday,
    everyday_address,
    home,
    interlock,
    program_run,
    questions,
    questions_address,
)

__all__ = [
    "everyday",
    "everyday_address",
    "home",
    "interlock",
    "program_run",
    "questions",
    "questions_address",
]
