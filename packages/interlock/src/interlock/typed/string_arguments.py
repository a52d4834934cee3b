"""Functions with string arguments: URI template variables and prompt arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import msgspec

from .. import types as t
from ..wire.jsonrpc import READ_ERRORS
from .adapters import Foreign, Misfit, dec_hook
from .annotations import TypeAdapter, adapter_of, is_union, unwrapped, words_of
from .depends import dependency_of
from .docstrings import parse
from .json_schema import SchemaBuilder
from .signature import is_context
from .type_hints import Unresolved, doc_of, named, read_hints

_ERRORS = (*READ_ERRORS, Misfit)


class Strings:
    """Converts strings to the types of a function's parameters.

    A string becomes a number, a date and so on. For a list, an object or a union it is decoded as
    JSON if it is JSON, unless the type is a string. Raises TypeError for a function that cannot be
    called with keyword arguments, or has a type that strings cannot be converted to.

    Attributes:
        context: The parameter for the Context.
        injected: What provides the parameters that are dependencies.
        arguments: The arguments of a prompt.
        choices: The values of arguments whose type lists them.
    """

    def __init__(self, function: Callable[..., Any], context_type: type[Any]) -> None:
        self.context: str | None = None
        self.injected: dict[str, Any] = {}
        self.arguments: list[t.PromptArgument] = []
        self.choices: dict[str, list[str]] = {}
        self._adapters: dict[str, TypeAdapter | Foreign | None] = {}  # None keeps the string
        described = parse(doc_of(function)).params
        hints = read_hints(function, {context_type.__name__: context_type})
        for name, parameter in hints.parameters.items():
            if parameter.kind in (
                parameter.POSITIONAL_ONLY,
                parameter.VAR_POSITIONAL,
                parameter.VAR_KEYWORD,
            ):
                raise TypeError(
                    f"parameter {name!r} of {function!r} cannot be given by name; use plain"
                    " parameters"
                )
            hint = hints.types.get(name, str)
            if isinstance(hint, Unresolved):
                raise TypeError(
                    f"parameter {name!r} of {named(function)} is annotated {hint.text!r}, which"
                    f" cannot be read: {hint.reason}"
                )
            if is_context(hint, context_type):
                self.context = name
                continue
            try:
                if (provider := dependency_of(parameter, hint)) is not None:
                    self.injected[name] = provider
                    continue
                self._adapters[name] = _adapter(hint)
            except TypeError as bad:
                raise TypeError(
                    f"parameter {name!r} of {named(function)} cannot be used: {bad}"
                ) from None
            annotated = words_of(hint)
            words = annotated.get("description") or described.get(name)
            required = parameter.default is parameter.empty
            self.arguments.append(
                t.PromptArgument(
                    name=name, title=annotated.get("title"), description=words, required=required
                )
            )
            if choices := _choices(hint):
                self.choices[name] = choices

    @property
    def names(self) -> set[str]:
        """The names of the parameters, without the one for the Context."""
        return set(self._adapters)

    @property
    def required(self) -> set[str]:
        """The parameters without a default."""
        return {argument.name for argument in self.arguments if argument.required}

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments for the call.

        Raises McpError (-32602), which names missing, unknown and invalid arguments (`PRM-02`).
        """
        missing = [
            a.name for a in self.arguments if a.required and a.name not in given
        ]  # in the order of the function
        if missing:
            raise t.McpError(
                t.INVALID_PARAMS,
                f"Missing required argument{'s' * (len(missing) > 1)}: {', '.join(missing)}",
            )
        unknown = [name for name in given if name not in self._adapters]
        if unknown:
            known = ", ".join(self._adapters) or "none"
            raise t.McpError(
                t.INVALID_PARAMS,
                f"Unknown argument{'s' * (len(unknown) > 1)}: {', '.join(unknown)} (known:"
                f" {known})",
            )
        return {name: self._value(name, value) for name, value in given.items()}

    def _value(self, name: str, value: Any) -> Any:
        adapter = self._adapters[name]
        if adapter is None:
            return value
        try:
            return _lax(adapter, value)
        except _ERRORS as bad:
            why = str(bad)
        if isinstance(value, str):
            try:
                return adapter.decode(value.encode())
            except _ERRORS as bad:
                # an error within JSON is more specific
                why = str(bad) if value.lstrip()[:1] in ("{", "[") else why
        raise t.McpError(t.INVALID_PARAMS, f"Argument {name} does not fit: {why}")


def _adapter(hint: Any) -> TypeAdapter | Foreign | None:
    """The adapter of a parameter's type; None for strings. Raises TypeError if strings cannot be
    converted.
    """
    if hint in (str, Any):
        return None
    adapter = adapter_of(hint)
    SchemaBuilder().draw(adapter)  # raises TypeError for a type without a JSON form
    return adapter


def _lax(adapter: TypeAdapter | Foreign, value: Any) -> Any:
    """Convert a string, or the strings of an exploded variable, to a type."""
    if isinstance(adapter, Foreign):
        return adapter.decode(msgspec.json.encode(value))
    return msgspec.convert(value, adapter.type, strict=False, dec_hook=dec_hook)


def _choices(hint: Any) -> list[str]:
    """The strings that a type allows, if it lists all of them."""
    kind = unwrapped(hint)
    if is_union(kind):
        members = [_choices(member) for member in get_args(kind) if member is not NoneType]
        return [choice for member in members for choice in member] if all(members) else []
    if get_origin(kind) is Literal:
        return [value for value in get_args(kind) if isinstance(value, str)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [member.value for member in kind if isinstance(member.value, str)]
    return ["true", "false"] if kind is bool else []
