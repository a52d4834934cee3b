"""Type hints of a function, resolved through wrappers, partials and classes."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any

from msgspec import Struct


class Unresolved(Struct, frozen=True):
    """An annotation that cannot be evaluated: its text, and why."""

    text: str
    reason: str


def bare(function: Any) -> Any:
    """The plain function within a bound method, a partial, a wrapper, a callable object or a
    class.
    """
    for _ in range(100):  # wrappers that wrap each other would loop forever
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, MethodType | staticmethod | classmethod):
            function = function.__func__
        elif hasattr(function, "__wrapped__") and not hasattr(function, "__signature__"):
            function = function.__wrapped__
        elif isinstance(function, type):
            return vars(function).get("__init__", function)
        elif isinstance(call := vars(type(function)).get("__call__"), FunctionType):
            function = call
        else:
            break
    return function


def _signature_with_text(function: Callable[..., Any]) -> inspect.Signature:
    """`inspect.signature`; from Python 3.14 on it needs an option to accept unknown names.

    Raises TypeError if there is no signature.
    """
    options: dict[str, Any] = {}
    if sys.version_info >= (3, 14):
        options["annotation_format"] = import_module(
            "annotationlib"
        ).Format.FORWARDREF  # the module is new in 3.14
    try:
        return inspect.signature(function, **options)
    except (TypeError, ValueError) as bad:
        raise TypeError(
            f"{named(function)} cannot be called with arguments by name: {bad}"
        ) from None


def named(function: Any) -> str:
    """The name of a function for a message."""
    plain = bare(function)
    return str(
        getattr(plain, "__qualname__", None)
        or getattr(function, "__name__", None)
        or repr(function)
    )


def doc_of(function: Any) -> str | None:
    """The docstring of a function, not that of `partial`. For a callable object without one, that
    of its class.
    """
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type) or inspect.isroutine(function):
        return inspect.getdoc(function)
    return inspect.getdoc(bare(function)) or inspect.getdoc(type(function))


class FunctionHints(Struct, frozen=True):
    """What a function says about its parameters and its result.

    Attributes:
        parameters: The parameters by name, in order.
        types: The annotations of the parameters and, as "return", of the result. One that cannot be
            evaluated is Unresolved.
    """

    parameters: Mapping[str, inspect.Parameter]
    types: Mapping[str, Any]


def read_hints(
    function: Callable[..., Any], extra: Mapping[str, Any] | None = None
) -> FunctionHints:
    """Read the parameters of a function, and evaluate its annotations.

    Names are looked up in the function's module, then in running functions around it, then in
    `extra` (for names that a module imports only for type checkers).

    Raises TypeError if the function has no signature.
    """
    signature = _signature_with_text(function)
    written = {
        p.name: p.annotation for p in signature.parameters.values() if p.annotation is not p.empty
    }
    if signature.return_annotation is not signature.empty:
        written["return"] = signature.return_annotation
    return FunctionHints(signature.parameters, _resolved(function, written, extra or {}))


def _resolved(
    function: Callable[..., Any], written: Mapping[str, Any], extra: Mapping[str, Any]
) -> dict[str, Any]:
    plain = bare(function)
    try:
        return _read(plain, written, {}, {})
    # evaluating an annotation may raise anything; each is evaluated separately below
    except Exception:
        near = _around(plain)
        far = dict(extra)
    hints: dict[str, Any] = {}
    for name, annotation in written.items():
        try:
            hints.update(_read(plain, {name: annotation}, near, far))
        except (
            Exception
        ) as bad:  # evaluating an annotation may raise anything, and only the author can fix it
            hints[name] = Unresolved(
                getattr(annotation, "__forward_arg__", None) or str(annotation),
                str(bad) or type(bad).__name__,
            )
    return hints


def _read(
    plain: Any, annotations: Mapping[str, Any], near: dict[str, Any], far: dict[str, Any]
) -> dict[str, Any]:
    """Evaluate annotations where the function was defined. Names in `near` hide those of its
    module, which hide those in `far`.
    """

    def holder() -> None: ...

    holder.__annotations__ = dict(annotations)
    if hasattr(plain, "__type_params__"):
        holder.__type_params__ = plain.__type_params__  # type: ignore[attr-defined, unused-ignore] # from Python 3.12 on
    module = getattr(plain, "__globals__", {})
    return typing.get_type_hints(
        holder, {**far, **module} if far else module, near, include_extras=True
    )


def _around(plain: Any) -> dict[str, Any]:
    """The names that a function sees besides those of its module: its closure, and the locals of
    enclosing functions that are still running.
    """
    found: dict[str, Any] = {}
    module = getattr(plain, "__globals__", None)
    qualname = getattr(plain, "__qualname__", "")
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals is module and qualname.startswith(frame.f_code.co_qualname + "."):
            found = {**frame.f_locals, **found}
        if frame.f_back is None:
            break
        frame = frame.f_back
    code = getattr(plain, "__code__", None)
    closure = getattr(plain, "__closure__", None)
    for name, cell in zip(code.co_freevars if code else (), closure or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found
