"""Docstrings of the public API: every name has one, and three parameters or more are documented.

The rule: each public name of the modules below, and each public method of its classes, has a
docstring. A function or method with three parameters or more (besides `self`) has a section
`Args:`; so has a class whose constructor has that many, in the docstring of the class. Records need
`Attributes:` instead. Exempt are methods that override a documented one or refer to it ("See
`Verifier.verify`."), errors, wire types (their
fields have the names of the specification), objects that only the library makes, and
`interlock.sync` and `RunningServer`, which repeat the methods of `Client` and `Server`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from interlock.types.base import WireType

MODULES = [
    "interlock",
    "interlock.addresses",
    "interlock.auth",
    "interlock.auth.tokens",
    "interlock.caches",
    "interlock.configs",
    "interlock.doctor",
    "interlock.http11.fetch",
    "interlock.lazy_names",
    "interlock.logs",
    "interlock.models.model_choice",
    "interlock.rates",
    "interlock.redaction",
    "interlock.schema",
    "interlock.skills",
    "interlock.sync",
    "interlock.testing",
    "interlock.typed.form_fields",
    "interlock.types",
    "interlock.untrusted.invisible",
    "interlock.untrusted.urls",
]
MANY = 3
# Objects that the library creates for callers: their constructors are not called by users.
HANDED_OUT = {"Context", "HttpServer", "RunningServer", "SessionState", "Watch"}


def public(module: str) -> Iterator[tuple[str, Any]]:
    """Our classes and functions that a module exports, by name."""
    loaded = importlib.import_module(module)
    names = getattr(loaded, "__all__", None) or [n for n in vars(loaded) if not n.startswith("_")]
    for name in names:
        value = getattr(loaded, name)
        ours = str(getattr(value, "__module__", "")).startswith("interlock")
        if ours and (inspect.isclass(value) or inspect.isfunction(value)):
            yield f"{module}.{name}", value


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class defines itself."""
    for name, value in vars(kind).items():
        if not name.startswith("_"):
            function = value.fget if isinstance(value, property) else value
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function):
                yield name, function


def parameters(function: Any) -> list[str]:
    """The names of a function's parameters besides `self` and `cls`."""
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return []
    return [name for name in found if name not in ("self", "cls")]


def is_repeated(kind: type, name: str) -> bool:
    """Whether a base class documents the method, or the docstring refers to an interface."""
    doc = inspect.getdoc(getattr(kind, name)) or ""
    return doc.startswith("See `") or any(name in vars(base) for base in kind.__mro__[1:])


def missing() -> Iterator[str]:
    """The public names without the required documentation."""
    for module in MODULES:
        for where, value in public(module):
            doc = inspect.getdoc(value) or ""
            if not doc:
                yield f"{where}: no docstring"
            if module == "interlock.sync":
                continue
            if inspect.isfunction(value):
                if len(parameters(value)) >= MANY and "Args:" not in doc:
                    yield f"{where}: no Args:"
                continue
            constructed = "__init__" in vars(value) or hasattr(value, "__struct_fields__")
            exempt = issubclass(value, BaseException | WireType) or value.__name__ in HANDED_OUT
            documented = "Args:" in doc or "Attributes:" in doc
            if constructed and not exempt and not documented and len(parameters(value)) >= MANY:
                yield f"{where}: no Args: or Attributes:"
            for name, function in methods(value):
                if is_repeated(value, name) or value.__name__ == "RunningServer":
                    continue
                doc = inspect.getdoc(function) or ""
                if not doc:
                    yield f"{where}.{name}: no docstring"
                elif len(parameters(function)) >= MANY and "Args:" not in doc:
                    yield f"{where}.{name}: no Args:"


def test_the_public_names_are_documented() -> None:
    found = set(missing())
    assert not found, "\n".join(sorted(found))


@pytest.mark.parametrize("module", MODULES)
def test_there_are_names_to_document(module: str) -> None:
    assert list(public(module))
