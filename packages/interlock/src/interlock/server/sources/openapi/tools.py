"""Tools for the operations of an OpenAPI document: listing, arguments, result."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from .... import types as t
from ....logs import limited
from ....schema import SchemaError
from ....typed.raw_schema import ArgumentsSchema
from ...catalogue.features import with_tags
from .document import ApiDocument
from .inputs import input_of
from .operations import ApiOperation
from .responses import output_of
from .schemas import SchemaConverter

log = limited("interlock.server")

LONGEST_DESCRIPTION = 1024  # characters; some models take no more
SEARCH = "search_operations"
CALL = "call_operation"
_ANNOTATIONS = {
    "GET": t.ToolAnnotations(read_only_hint=True),
    "PUT": t.ToolAnnotations(idempotent_hint=True),
    "DELETE": t.ToolAnnotations(destructive_hint=True, idempotent_hint=True),
}


class OperationTool:
    """The tool of one operation.

    Attributes:
        operation: The operation.
        input: The arguments.
        output: The output schema; None for text.
        listing: The tool as it is listed.
    """

    def __init__(
        self,
        document: ApiDocument,
        operation: ApiOperation,
        requests: SchemaConverter,
        responses: SchemaConverter,
        hidden: frozenset[tuple[str, str]],
        output_schema_bytes: int,
    ) -> None:
        self.operation = operation
        self.input = input_of(document, operation, requests, hidden)
        self.output = output_of(document, operation, responses, output_schema_bytes)
        self.listing = t.Tool(
            name=operation.name,
            description=description_of(operation),
            input_schema=self.input.schema,
            output_schema=self.output.schema if self.output is not None else None,
            annotations=_ANNOTATIONS.get(operation.method),
            meta=with_tags(None, operation.tags),
        )
        self._arguments = ArgumentsSchema(self.input.schema)
        self._is_checked = True

    def decode(self, raw: bytes | Raw) -> dict[str, Any]:
        """Decode and check the JSON of the arguments.

        Raises:
            ArgumentsError: They do not fit.
        """
        if self._is_checked:
            try:
                decoded: dict[str, Any] = self._arguments.decode(raw)
                return decoded
            except SchemaError as bad:
                # The API checks them too. Patterns of other regular expression engines are common.
                log.warning("arguments of %s are not checked: %s", self.operation.name, bad)
                self._is_checked = False
                self._arguments = ArgumentsSchema({"type": "object"})
        decoded = self._arguments.decode(raw)
        return decoded


def description_of(operation: ApiOperation) -> str | None:
    """Return the description for the model: what the document says, or else method and path."""
    parts = [operation.summary, operation.description]
    if operation.summary and operation.description.startswith(operation.summary.rstrip(".")):
        parts = [operation.description]
    text = "\n\n".join(part for part in parts if part) or operation.place
    if operation.deprecated:
        text = f"Deprecated. {text}"
    return text if len(text) <= LONGEST_DESCRIPTION else f"{text[: LONGEST_DESCRIPTION - 3]}..."


def search_tools(title: str, count: int) -> tuple[t.Tool, t.Tool]:
    """Return the two tools of a large document: one finds operations, the other calls them."""
    search = t.Tool(
        name=SEARCH,
        description=(
            f"Find operations of {title or 'the API'}, which has {count}. Returns their names,"
            f" descriptions and input schemas. Call one with {CALL}."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "description": "Words for what you want to do, or the name of an operation.",
                },
                "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        annotations=t.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
    call = t.Tool(
        name=CALL,
        description=f"Call an operation that {SEARCH} has found.",
        input_schema={
            "type": "object",
            "properties": {
                "operation": {"type": "string", "description": "The name of the operation."},
                "arguments": {
                    "type": "object",
                    "description": "The arguments, by the input schema of the operation.",
                },
            },
            "required": ["operation"],
            "additionalProperties": False,
        },
    )
    return search, call
