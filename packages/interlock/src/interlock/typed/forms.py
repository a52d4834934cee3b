"""Elicitation forms: a Python type as a flat JSON Schema, and answers as values of the type."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, get_type_hints

import msgspec
from msgspec import defstruct
from msgspec.structs import asdict

from .. import types as t
from ..logs import limited
from ..wire.jsonrpc import READ_ERRORS
from .adapters import Foreign, Misfit
from .annotations import TypeAdapter, adapter_of
from .json_schema import SchemaBuilder

_PRIMITIVES = frozenset({"string", "number", "integer", "boolean"})
_WRAPPED = "value"
_SECRETS = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesstoken",
    "refreshtoken",
    "privatekey",
    "creditcard",
    "cardnumber",
    "cvv",
    "cvc",
)
"""Endings of field names that request a secret, without separators between words."""
log = limited("interlock.server")


class Form:
    """A form for `kind`: a dataclass, TypedDict, NamedTuple, Struct, attrs class or pydantic model
    with primitive fields; a single primitive type, Literal or Enum; or a JSON Schema that is
    already flat (`ELI-06`).

    Raises TypeError for a type that a form cannot represent.
    """

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self._wrapped = False
        self._tuple = (
            kind
            if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")
            else None
        )
        self._adapter: TypeAdapter | Foreign | None = None
        if isinstance(kind, Mapping):
            schema: t.JSONObject = {"type": "object", **kind}
        else:
            self._adapter = adapter_of(kind if self._tuple is None else _by_name(kind))
            sheet = SchemaBuilder()
            schema = _inline(sheet.finish(sheet.draw(self._adapter)))
            if schema.get("type") != "object":
                self._wrapped = True
                schema = {
                    "type": "object",
                    "properties": {_WRAPPED: schema},
                    "required": [_WRAPPED],
                }
        self._checks = _flattened(schema, kind)
        for name in self._checks["properties"]:
            if _asks_for_a_secret(name):
                log.warning(
                    "a form must not ask for secrets such as %r: send the person to a page, with"
                    " ctx.elicit_url",
                    name,
                )
        self.schema = _without_patterns(self._checks)

    def read(self, content: t.JSONObject | None) -> Any:
        """Convert the person's answer to the type.

        Raises McpError (-32602) if it does not fit (`ELI-35`).
        """
        data = content or {}
        if self._adapter is None:
            return self._checked(data)
        if self._wrapped and _WRAPPED not in data:
            raise t.McpError(t.INVALID_PARAMS, "The answer to the form is empty.")
        try:
            value = self._adapter.decode(
                msgspec.json.encode(data[_WRAPPED] if self._wrapped else data)
            )
            return value if self._tuple is None else self._tuple(**asdict(value))
        except (*READ_ERRORS, Misfit) as bad:
            raise t.McpError(t.INVALID_PARAMS, f"The answer does not fit the form: {bad}") from None

    def _checked(self, data: t.JSONObject) -> t.JSONObject:
        from ..schema import compile  # imported late: most servers never need a validator for forms

        violations = compile(self._checks).check(data)
        if violations:
            words = "; ".join(f"{v.path or '/'}: {v.message}" for v in violations)
            raise t.McpError(t.INVALID_PARAMS, f"The answer does not fit the form: {words}")
        return data


def _asks_for_a_secret(name: str) -> bool:
    """Whether the name of a field suggests that its value is a secret (`ELI-15`, `ELI-16`)."""
    letters = "".join(character for character in name.lower() if character.isalnum())
    return letters.endswith(_SECRETS)


def _by_name(kind: Any) -> Any:
    """A Struct with the fields of a NamedTuple, because a form has names but no positions."""
    hints = get_type_hints(kind, include_extras=True)
    defaults = kind._field_defaults
    fields: list[Any] = [
        (name, hints[name], *([defaults[name]] if name in defaults else []))
        for name in kind._fields
    ]
    return defstruct(kind.__name__, fields, kw_only=True)


@lru_cache(maxsize=256)
def _form_of(kind: Any) -> Form:
    return Form(kind)


def form(kind: Any) -> Form:
    """The form for a type, which is made once."""
    try:
        return _form_of(kind)
    except TypeError as bad:
        if "unhashable" in str(bad):
            return Form(kind)
        raise


def _inline(schema: t.JSONObject) -> t.JSONObject:
    """The schema with its references inlined: forms cannot have references."""
    definitions = schema.get("$defs", {})

    def walk(node: Any, depth: int) -> Any:
        if depth > 16:
            raise TypeError("a form cannot ask for a type that contains itself")
        if isinstance(node, dict):
            if "$ref" in node:
                rest = {key: value for key, value in node.items() if key != "$ref"}
                return {**walk(definitions[node["$ref"].rpartition("/")[2]], depth + 1), **rest}
            return {key: walk(value, depth + 1) for key, value in node.items() if key != "$defs"}
        return [walk(item, depth + 1) for item in node] if isinstance(node, list) else node

    inlined: t.JSONObject = walk(schema, 0)
    return inlined


def _flattened(schema: t.JSONObject, kind: Any) -> t.JSONObject:
    if not schema.get("properties") and schema.get("additionalProperties"):
        raise TypeError(f"a form cannot ask for {kind!r}: its fields have no names")
    properties = {
        name: _property(name, node, kind) for name, node in schema.get("properties", {}).items()
    }
    flat: t.JSONObject = {"type": "object", "properties": properties}
    if required := [name for name in schema.get("required", ()) if name in properties]:
        flat["required"] = required
    return flat


def _without_patterns(schema: t.JSONObject) -> t.JSONObject:
    """The schema as it is sent: without `pattern`, which forms do not have in any revision
    (`X-06`).
    """
    properties = {
        name: {key: value for key, value in node.items() if key != "pattern"}
        for name, node in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _property(name: str, node: t.JSONObject, kind: Any) -> t.JSONObject:
    """One field in the form that elicitation allows: a primitive, a choice, or a multiple
    choice.
    """
    node = dict(node)
    for union in ("anyOf", "oneOf"):
        options = [option for option in node.get(union, ()) if option.get("type") != "null"]
        if options and not all("const" in option for option in options):
            if len(options) != 1:
                raise TypeError(
                    f"a form cannot ask for {name!r} of {kind!r}: a field has one primitive type"
                )
            del node[union]
            node = {**options[0], **node}
            if node.get("default", ...) is None:
                del node["default"]
    if "enum" in node and "type" not in node:
        values = [value for value in node["enum"] if value is not None]
        if not all(isinstance(value, str) for value in values):
            raise TypeError(f"a form cannot ask for {name!r} of {kind!r}: choices are strings")
        node |= {"type": "string", "enum": values}
    kinds = node.get("type")
    if isinstance(kinds, list):
        node["type"] = next((k for k in kinds if k != "null"), None)
        if node.get("default", ...) is None:
            del node["default"]
    choice = node.get("type") == "array" and (
        "enum" in node.get("items", {}) or "anyOf" in node.get("items", {})
    )
    if node.get("type") not in _PRIMITIVES and not choice:
        raise TypeError(
            f"a form cannot ask for {name!r} of {kind!r}: fields are strings, numbers, booleans"
            " and choices of strings"
        )
    if choice:
        node["items"].setdefault("type", "string") if "enum" in node["items"] else None
    if node.get("type") == "string" and node.get("format") not in (
        None,
        "email",
        "uri",
        "date",
        "date-time",
    ):
        del node["format"]
    return node
