"""Tools whose author describes the arguments by a JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from .. import types as t
from ..schema import SchemaError, Validator, compile
from .depends import dependency_of
from .lenient import coerced
from .signature import MOST_COERCED, ArgumentsError, is_context
from .type_hints import read_hints


class ArgumentsSchema:
    """Checks arguments against a schema, which is compiled when it is first needed.

    Args:
        schema: The input schema.
        lenient: Whether values sent as strings are converted to the type in the schema.
    """

    def __init__(self, schema: t.JSONObject, *, lenient: bool = True) -> None:
        self.schema = schema
        self.lenient = lenient
        self._validator: Validator | None = None

    def compile(self) -> Validator:
        """Compile the schema. Raises SchemaError."""
        if self._validator is None:
            self._validator = compile(self.schema)
        return self._validator

    def decode(self, raw: bytes | Raw) -> Any:
        """Decode the JSON of the arguments, and check them.

        Raises:
            ArgumentsError: The arguments do not fit.
            SchemaError: The schema cannot be compiled.
        """
        try:
            arguments = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ArgumentsError("the arguments are not valid JSON") from None
        validator = self.compile()
        violations = validator.check(arguments)
        if violations and self.lenient and len(bytes(raw)) <= MOST_COERCED:
            meant = coerced(arguments, self.schema, self.schema)
            if meant != arguments:
                arguments = meant
                violations = validator.check(arguments)
        if violations:
            raise ArgumentsError(
                "; ".join(f"${v.path.replace('/', '.')}: {v.message}" for v in violations)
            )
        return arguments


class RawSignature:
    """Checks the arguments against the author's schema, and passes them on as one dict.

    The function takes that dict as its first parameter, and may take a Context. Raises TypeError
    for any other function, and ValueError for an invalid schema.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        schema: Mapping[str, Any],
        context_type: type[Any],
        *,
        lenient: bool = True,
    ) -> None:
        self.lenient = lenient
        self.schema: t.JSONObject = dict(schema)
        if self.schema.get("type") != "object":
            raise ValueError(
                'an input schema describes an object: it needs "type": "object" at its root'
            )
        self._arguments = ArgumentsSchema(self.schema, lenient=lenient)
        try:
            self._arguments.compile()
        except SchemaError as bad:
            raise ValueError(f"the input schema cannot be used: {bad}") from None
        hints = read_hints(function, {context_type.__name__: context_type})
        parameters = hints.parameters
        self.context = next(
            (name for name in parameters if is_context(hints.types.get(name), context_type)), None
        )
        provided = {
            name: dependency_of(parameter, hints.types.get(name))
            for name, parameter in parameters.items()
        }
        self.injected: dict[str, Any] = {
            name: provider for name, provider in provided.items() if provider is not None
        }
        rest = [
            parameter
            for name, parameter in parameters.items()
            if name != self.context and name not in self.injected
        ]
        if len(rest) != 1 or rest[0].kind not in (
            rest[0].POSITIONAL_OR_KEYWORD,
            rest[0].KEYWORD_ONLY,
        ):
            taken = ", ".join(map(str, rest)) or "nothing"
            raise TypeError(
                "a function with an input schema takes the arguments as one dict, in one plain"
                f" parameter, not {taken}"
            )
        self._parameter = rest[0].name

    def decode(self, raw: bytes | Raw) -> dict[str, Any]:
        """The keyword arguments for the call. Raises ArgumentsError."""
        return {self._parameter: self._arguments.decode(raw)}
