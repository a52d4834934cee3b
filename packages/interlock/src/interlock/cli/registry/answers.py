"""Runs requests to the MCP registry for a command, and turns their errors into its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import click

from ...registry.client import ADDRESS, VARIABLE, RegistryError, registry_address
from ...untrusted.invisible import visible_line
from .. import exits

T = TypeVar("T")

registry_option: Final = click.option(
    "--registry", metavar="URL", help=f"Another registry.  [{VARIABLE}, or {ADDRESS}]"
)


class RegistryFailed(click.ClickException):
    """The registry refused, or could not be reached."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(visible_line(message))
        self.status = status

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # reason: click has it as a class variable
        """The exit code: a refusal has a status."""
        return exits.REFUSED if self.status else exits.UNREACHABLE


def address_of(given: str | None) -> str:
    """Return the address of the registry. Raises click.UsageError for an invalid one."""
    try:
        return registry_address(given)
    except ValueError as bad:
        raise click.UsageError(str(bad)) from None


def answer(request: Coroutine[Any, Any, T]) -> T:
    """Return the result of a request. Raises RegistryFailed."""
    try:
        return asyncio.run(request)
    except RegistryError as bad:
        raise RegistryFailed(str(bad), bad.status) from None
