"""Validation of structured tool results against their output schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import UNSET

from .. import types as t
from ..logs import limited

if TYPE_CHECKING:
    from ..schema import Validator

log = limited("interlock.client")


class OutputValidator:
    """Validates structured results against the output schemas of the last list of tools
    (`TOL-10`).
    """

    def __init__(self) -> None:
        self._schemas: dict[str, t.JSONObject] = {}
        self._validators: dict[str, Validator | None] = {}  # of the tools that have been called

    def learn(self, tools: Iterable[t.Tool]) -> None:
        """Store the schemas of a list.

        A schema is compiled when its tool is first called, because a list may have thousands.
        """
        self._validators = {}
        self._schemas = {
            tool.name: tool.output_schema for tool in tools if tool.output_schema is not None
        }

    def forget(self) -> None:
        """Drop the schemas: the list is out of date."""
        self._schemas = {}
        self._validators = {}

    def check(self, name: str, result: t.CallToolResult) -> None:
        """Raise ProtocolError if structured content is missing or does not match the schema.

        If a schema is invalid, a warning names it, and the results of its tool are not checked.
        """
        schema = self._schemas.get(name)
        if schema is None:
            return
        if name not in self._validators:
            self._validators[name] = _validator(name, schema)
        validator = self._validators[name]
        if validator is None or result.is_error:
            return
        if result.structured_content is UNSET:
            raise t.ProtocolError(
                f"The tool {name} has an output schema but gave no structured content."
            )
        if violations := validator.check(result.structured_content):
            words = "; ".join(f"{v.path or '/'}: {v.message}" for v in violations)
            raise t.ProtocolError(
                f"The structured content of the tool {name} does not fit its output schema: {words}"
            )


def _validator(name: str, output_schema: t.JSONObject) -> Validator | None:
    from ..schema import SchemaError  # late: not every client calls a tool with a schema
    from ..schema import compile as compile_schema  # late: as above

    try:
        return compile_schema(output_schema)
    except SchemaError as bad:
        log.warning(
            "the output schema of the tool %r cannot be used, so its results are not checked: %s",
            name,
            bad,
        )
        return None
