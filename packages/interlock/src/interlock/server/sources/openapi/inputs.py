"""The arguments of an operation's tool: one for each parameter and for each field of the body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from ....types import JSONObject
from .document import ApiDocument, member
from .names import argument_names
from .operations import ApiBody, ApiOperation, ApiParameter
from .schemas import SchemaConverter

# What makes a schema more than a list of members, so that its members cannot be arguments.
_COMBINED = frozenset(
    {
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "discriminator",
        "patternProperties",
        "minProperties",
        "maxProperties",
        "dependentRequired",
        "dependentSchemas",
        "propertyNames",
    }
)


class ApiArgument(Struct, frozen=True):
    """One argument of a tool, and its destination in the request.

    Attributes:
        name: The name of the argument.
        target: Whether it is a parameter, a field of the body, or the whole body.
        parameter: The parameter, if it is one.
        field: The name of the field of the body, if it is one.
    """

    name: str
    target: Literal["parameter", "field", "body"]
    parameter: ApiParameter | None = None
    field: str = ""


class OperationInput(Struct, frozen=True):
    """The arguments of a tool.

    Attributes:
        arguments: The arguments, in the order of the request.
        schema: The input schema of the tool.
    """

    arguments: tuple[ApiArgument, ...]
    schema: JSONObject


def input_of(
    document: ApiDocument,
    operation: ApiOperation,
    converter: SchemaConverter,
    hidden: frozenset[tuple[str, str]] = frozenset(),
) -> OperationInput:
    """Return the arguments of an operation.

    Args:
        document: The document of the operation.
        operation: The operation.
        converter: Converts the schemas of requests.
        hidden: The parameters that callers never see, as pairs of a place and a name in lower case:
            credentials and headers of the configuration.

    Raises:
        OpenApiError: A schema cannot be converted.
    """
    parameters = [
        parameter
        for parameter in operation.parameters
        if (parameter.place, parameter.name.lower()) not in hidden
    ]
    body = operation.body
    fields = fields_of(document, body) if body is not None else None
    wanted: list[tuple[str, str]] = [(parameter.place, parameter.name) for parameter in parameters]
    if fields is not None:
        wanted += [("body", name) for name in fields]
    elif body is not None:
        wanted.append(("request", "body"))
    names = argument_names(wanted)
    reached: set[str] = set()
    properties: JSONObject = {}
    required: list[str] = []
    arguments: list[ApiArgument] = []
    for name, parameter in zip(names, parameters, strict=False):
        arguments.append(ApiArgument(name, "parameter", parameter))
        schema = converter.convert(parameter.schema, reached)
        properties[name] = _described(schema, parameter.description)
        if parameter.required:
            required.append(name)
    rest = names[len(parameters) :]
    if body is not None and fields is None:
        arguments.append(ApiArgument(rest[0], "body"))
        properties[rest[0]] = _body_schema(body, converter, reached)
        if body.required:
            required.append(rest[0])
    elif body is not None and fields is not None:
        whole = document.resolve(body.schema)
        needed = whole.get("required")
        for name, field in zip(rest, fields, strict=True):
            arguments.append(ApiArgument(name, "field", field=field))
            properties[name] = converter.convert(fields[field], reached)
            if isinstance(needed, list) and field in needed:
                required.append(name)
    schema = {"type": "object", "properties": properties}
    if not properties:
        del schema["properties"]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    if definitions := converter.definitions(reached):
        schema["$defs"] = definitions
    return OperationInput(tuple(arguments), schema)


def fields_of(document: ApiDocument, body: ApiBody) -> Mapping[str, Any] | None:
    """Return the fields of a body that are arguments of their own, by name; None if the body is one
    argument.

    The members of a plain object are arguments, which models fill in better than a nested object.
    An optional body with required members stays one argument: it is given whole or not at all.
    """
    if not (body.is_json or body.is_form):
        return None
    schema = document.resolve(body.schema) if isinstance(body.schema, dict) else {}
    properties = member(schema, "properties")
    if not properties or schema.get("type", "object") != "object":
        return None
    if not _COMBINED.isdisjoint(schema) or schema.get("nullable") is True:
        return None
    if schema.get("additionalProperties", False) is not False:
        return None
    if not body.required and schema.get("required"):
        return None
    return {
        name: part
        for name, part in properties.items()
        if not (isinstance(part, dict) and part.get("readOnly") is True)
    }


def is_binary(schema: Any) -> bool:
    """Whether a schema of the document is one of bytes, which an argument has in Base64."""
    if not isinstance(schema, dict):
        return False
    if schema.get("format") in ("binary", "byte") or schema.get("type") == "file":
        return True
    return "contentMediaType" in schema and "contentEncoding" not in schema


def _body_schema(body: ApiBody, converter: SchemaConverter, reached: set[str]) -> Any:
    if body.is_json or body.is_form:
        return _described(converter.convert(body.schema, reached), body.description)
    if body.kind.startswith("text/") or body.kind.endswith(("/xml", "+xml")):
        return _described({"type": "string"}, body.description or f"The body as {body.kind}.")
    schema = {"type": "string", "contentEncoding": "base64", "contentMediaType": body.kind}
    return _described(schema, body.description or "The body in Base64.")


def _described(schema: Any, description: str) -> Any:
    """Return a schema with the description of its parameter, which says more than its own."""
    if not description:
        return schema
    if not isinstance(schema, dict):
        return {"description": description}
    return {**schema, "description": description}
