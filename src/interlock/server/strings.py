"""Functions whose arguments come as strings: the variables of a URI template, the arguments of a prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from .. import types as t
from .docstrings import parse
from .hints import Unresolved, doc_of, hints_of, named, signature_with_text
from .signature import is_context


class Strings:
    """Reads strings as the types of a function's parameters.

    A string that is to become a number, a date and the like is read as such; one for a list, an object or a union is read as
    JSON where it is that. Raises TypeError for a function that cannot be called with names.
    """

    def __init__(self, function: Callable[..., Any], context_type: type[Any]) -> None:
        self.context: str | None = None
        self.arguments: list[t.PromptArgument] = []
        self.choices: dict[str, list[str]] = {}
        self._types: dict[str, Any] = {}
        described = parse(doc_of(function)).params
        hints = hints_of(function, {context_type.__name__: context_type})
        for name, parameter in signature_with_text(function).parameters.items():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"parameter {name!r} of {function!r} cannot be given by name; use plain parameters")
            hint = hints.get(name, str)
            if isinstance(hint, Unresolved):
                raise TypeError(f"parameter {name!r} of {named(function)} is annotated {hint.text!r}, which cannot be read: {hint.reason}")
            if is_context(hint, context_type):
                self.context = name
                continue
            plain, words = _plain(hint)
            self._types[name] = plain
            required = parameter.default is parameter.empty
            self.arguments.append(t.PromptArgument(name=name, description=words or described.get(name), required=required))
            if choices := _choices(plain):
                self.choices[name] = choices

    @property
    def names(self) -> set[str]:
        """The parameters' names, without the one for the Context."""
        return set(self._types)

    @property
    def required(self) -> set[str]:
        """The parameters without a default."""
        return {argument.name for argument in self.arguments if argument.required}

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values to call the function with. Raises McpError (-32602) naming what is missing, unknown or unfit (`PRM-02`)."""
        missing = [a.name for a in self.arguments if a.required and a.name not in given]  # in the function's order
        if missing:
            raise t.McpError(t.INVALID_PARAMS, f"Missing required argument{'s' * (len(missing) > 1)}: {', '.join(missing)}")
        unknown = [name for name in given if name not in self._types]
        if unknown:
            known = ", ".join(self._types) or "none"
            raise t.McpError(t.INVALID_PARAMS, f"Unknown argument{'s' * (len(unknown) > 1)}: {', '.join(unknown)} (known: {known})")
        return {name: self._value(name, value) for name, value in given.items()}

    def _value(self, name: str, value: Any) -> Any:
        kind = self._types[name]
        if kind is str or kind is Any:
            return value
        try:
            return msgspec.convert(value, kind, strict=False)
        except (msgspec.ValidationError, TypeError) as bad:
            why = str(bad)
        try:
            return msgspec.json.decode(value, type=kind) if isinstance(value, str) else msgspec.convert(value, kind)
        except (msgspec.DecodeError, TypeError):
            raise t.McpError(t.INVALID_PARAMS, f"Argument {name} does not fit: {why}") from None


def _plain(hint: Any) -> tuple[Any, str | None]:
    """A type without its annotations, and the words for it where there are some."""
    if get_origin(hint) is not Annotated:
        return hint, None
    inner, *notes = get_args(hint)
    for note in notes:
        words = note if isinstance(note, str) else getattr(note, "description", None)
        if words:
            return inner, words
    return inner, None


def _choices(kind: Any) -> list[str]:
    if get_origin(kind) is Literal:
        return [value for value in get_args(kind) if isinstance(value, str)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [member.value for member in kind if isinstance(member.value, str)]
    return ["true", "false"] if kind is bool else []
