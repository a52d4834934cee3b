"""Development mode: exceptions shown to the author, and warnings about probable mistakes."""

from __future__ import annotations

import inspect
import os
import site
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, Final

from ... import types as t
from ...exchange import AnyResult, Exchange, Handler
from ...logs import limited
from ...types.errors import InterlockError
from .environment import RunningServer

log = limited("interlock.server")

MOST_CHARACTERS: Final = 2000
"""No description of an error is longer."""

_MOST_ERRORS = 5  # of a group, one after another
_CONTEXT_NAMES = frozenset({"ctx", "context"})


def explaining(handler: Handler) -> Handler:
    """Answer what middleware and handlers raise unforeseen with the error itself, not with
    "Internal error".
    """

    async def handle(x: Exchange) -> AnyResult:
        try:
            return await handler(x)
        except InterlockError:
            raise
        except Exception as bad:
            log.exception("%s failed", x.method)
            raise t.McpError(t.INTERNAL_ERROR, f"{x.method} failed: {describe(bad)}") from bad

    return handle


def describe(bad: BaseException, function: Callable[..., Any] | None = None) -> str:
    """Type, message and place of an error, as in `ValueError: disk full (server.py:12, in boom)`.

    Args:
        bad: The error.
        function: The author's function, whose definition is the place where the error has none in
            code of the author's: a result that does not fit is only found after the function.

    Returns:
        At most MOST_CHARACTERS characters.
    """
    words = "; ".join(_one(leaf, function) for leaf in _leaves(bad))
    return words if len(words) <= MOST_CHARACTERS else words[: MOST_CHARACTERS - 3] + "..."


def place_of(function: Callable[..., Any] | None) -> str:
    """Where a function is defined, as in `server.py:10, in boom`; empty where that is not known."""
    code = _code(function)
    return "" if code is None else _place(code.co_filename, code.co_firstlineno, code.co_name)


def warnings_of(server: RunningServer) -> list[str]:
    """What is surely a mistake in a server that could be loaded, in words for its author."""
    return [
        f"{kind} {name}: the parameter {parameter!r} has no annotation, so callers must give it as "
        f"an argument. To get the running call, annotate it: {parameter}: Context"
        for kind, name, function in _functions(server)
        for parameter in _unannotated(function)
    ]


def _functions(server: RunningServer) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    for tool in server.tools.all():
        yield "tool", tool.key, tool.call.function
    for prompt in server.prompts.all():
        yield "prompt", prompt.key, prompt.call.function


def _unannotated(function: Callable[..., Any]) -> list[str]:
    """The parameters that are called as the Context is everywhere, and that nothing says are it."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [
        parameter.name
        for parameter in parameters
        if parameter.name in _CONTEXT_NAMES and parameter.annotation is parameter.empty
    ]


def _one(bad: BaseException, function: Callable[..., Any] | None) -> str:
    what = "".join(traceback.format_exception_only(bad)).strip()
    place = _innermost(bad) or place_of(function)
    return f"{what} ({place})" if place else what


def _leaves(bad: BaseException) -> list[BaseException]:
    """The errors of a group, however deep; at most a handful, for the first ones tell what is
    wrong.
    """
    if not isinstance(bad, BaseExceptionGroup):
        return [bad]
    return [leaf for inner in bad.exceptions for leaf in _leaves(inner)][:_MOST_ERRORS]


def _innermost(bad: BaseException) -> str:
    """The last place in code of the author's that an error went through."""
    own = [
        frame
        for frame in traceback.extract_tb(bad.__traceback__)
        if not frame.filename.startswith(("<", *_foreign()))
    ]
    return _place(own[-1].filename, own[-1].lineno or 0, own[-1].name) if own else ""


def _foreign() -> tuple[str, ...]:
    """The folders of code that is not the author's: Python's own, installed packages, Interlock."""
    paths = sysconfig.get_paths()
    folders = {paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"]}
    folders |= {*site.getsitepackages(), site.getusersitepackages()}
    folders.add(str(Path(__file__).parents[1]))
    return tuple(folder.rstrip(os.sep) + os.sep for folder in folders)


def _place(path: str, line: int, name: str) -> str:
    return f"{_short(path)}:{line}, in {name}"


def _short(path: str) -> str:
    """A path from the working folder on, where it is in there; else the name of the file."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # Windows: on another drive
        return os.path.basename(path)
    return os.path.basename(path) if relative.startswith(os.pardir) else relative


def _code(function: Callable[..., Any] | None) -> CodeType | None:
    if function is None:
        return None
    inner: Any = inspect.unwrap(function)
    while hasattr(inner, "func"):  # functools.partial
        inner = inner.func
    code = getattr(inner, "__code__", None) or getattr(
        getattr(inner, "__func__", None), "__code__", None
    )
    return code if isinstance(code, CodeType) else None
