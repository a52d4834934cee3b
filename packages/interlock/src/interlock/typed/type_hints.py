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
    """An annotation that cannot be read: its text, and why."""

    text: str
    reason: str


def bare(function: Any) -> Any:
    """The plain function within a bound method, a partial, a wrapper, a callable object or a
    class.
    """
    for _ in range(100):  # wrappers that wrap each other would go on for ever
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


def signature_with_text(function: Callable[..., Any]) -> inspect.Signature:
    """`inspect.signature`, which from Python 3.14 on must be told that a name may be unknown.

    Raises TypeError where there is none.
    """
    options: dict[str, Any] = {}
    if sys.version_info >= (3, 14):
        options["annotation_format"] = import_module(
            "annotationlib"
        ).Format.FORWARDREF  # a module that is new in 3.14
    try:
        return inspect.signature(function, **options)
    except (TypeError, ValueError) as bad:
        raise TypeError(
            f"{named(function)} cannot be called with arguments by name: {bad}"
        ) from None


def named(function: Any) -> str:
    """What to call a function in a sentence."""
    plain = bare(function)
    return str(
        getattr(plain, "__qualname__", None)
        or getattr(function, "__name__", None)
        or repr(function)
    )


def doc_of(function: Any) -> str | None:
    """The docstring that was written for a function: not that of `partial`, and of a callable
    object that of its class at last.
    """
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type) or inspect.isroutine(function):
        return inspect.getdoc(function)
    return inspect.getdoc(bare(function)) or inspect.getdoc(type(function))


def hints_of(
    function: Callable[..., Any], extra: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The annotations of the parameters and, as "return", of the result; Unresolved where one
    cannot be read.

    Names are looked up in the function's module, then in the functions around it while they run,
    then in `extra` (for what a module imports only for type checkers).
    """
    signature = signature_with_text(function)
    written = {
        p.name: p.annotation for p in signature.parameters.values() if p.annotation is not p.empty
    }
    if signature.return_annotation is not signature.empty:
        written["return"] = signature.return_annotation
    plain = bare(function)
    try:
        return _read(plain, written, {}, {})
    except Exception:  # whatever an annotation's text raises; below it is found out which one
        near = _around(plain)
        far = dict(extra or {})
    hints: dict[str, Any] = {}
    for name, annotation in written.items():
        try:
            hints.update(_read(plain, {name: annotation}, near, far))
        except (
            Exception
        ) as bad:  # the text of an annotation may raise anything, and is the author's to repair
            hints[name] = Unresolved(
                getattr(annotation, "__forward_arg__", None) or str(annotation),
                str(bad) or type(bad).__name__,
            )
    return hints


def _read(
    plain: Any, annotations: Mapping[str, Any], near: dict[str, Any], far: dict[str, Any]
) -> dict[str, Any]:
    """Annotations evaluated where the function was written; `near` hides the names of its module,
    which hide `far`.
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
    """The names that a function can see beside those of its module: its closure, and what surrounds
    it while that still runs.
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
        except ValueError:  # not filled yet
            continue
    return found
