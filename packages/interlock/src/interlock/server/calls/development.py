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
"""The maximum length of the description of an error, in characters."""

_MOST_ERRORS = 5  # the errors of a group that are described
_CONTEXT_NAMES = frozenset({"ctx", "context"})


def explaining(handler: Handler) -> Handler:
    """Return middleware that answers unexpected errors of middleware and handlers with the error
    itself instead of "Internal error".
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
    """Return type, message and place of an error, as in `ValueError: disk full (server.py:12, in
    boom)`.

    Args:
        bad: The error.
        function: The author's function. Its definition is the place of an error that no line of the
            author raised: for example, a result of the wrong type is found after the function has
            returned.

    Returns:
        At most MOST_CHARACTERS characters.
    """
    words = "; ".join(_one(leaf, function) for leaf in _leaves(bad))
    return words if len(words) <= MOST_CHARACTERS else words[: MOST_CHARACTERS - 3] + "..."


def place_of(function: Callable[..., Any] | None) -> str:
    """Return where a function is defined, as in `server.py:10, in boom`; empty if that is
    unknown.
    """
    code = _code(function)
    return "" if code is None else _place(code.co_filename, code.co_firstlineno, code.co_name)


def warnings_of(server: RunningServer) -> list[str]:
    """Return warnings for the author about mistakes in a server that loaded without an error."""
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
    """Return the parameters that have a usual name of the Context, but no annotation."""
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
    """Return the errors in a group and its nested groups: a handful at most, because the first ones
    say what is wrong.
    """
    if not isinstance(bad, BaseExceptionGroup):
        return [bad]
    return [leaf for inner in bad.exceptions for leaf in _leaves(inner)][:_MOST_ERRORS]


def _innermost(bad: BaseException) -> str:
    """Return the last line of the author's code that an error went through."""
    own = [
        frame
        for frame in traceback.extract_tb(bad.__traceback__)
        if not frame.filename.startswith(("<", *_foreign()))
    ]
    return _place(own[-1].filename, own[-1].lineno or 0, own[-1].name) if own else ""


def _foreign() -> tuple[str, ...]:
    """Return the folders of code that is not the author's: Python, installed packages and
    Interlock.
    """
    paths = sysconfig.get_paths()
    folders = {paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"]}
    folders |= {*site.getsitepackages(), site.getusersitepackages()}
    folders.add(str(Path(__file__).parents[1]))
    return tuple(folder.rstrip(os.sep) + os.sep for folder in folders)


def _place(path: str, line: int, name: str) -> str:
    return f"{_short(path)}:{line}, in {name}"


def _short(path: str) -> str:
    """Return a path relative to the working folder if it is in there; otherwise the name of the
    file.
    """
    try:
        relative = os.path.relpath(path)
    except ValueError:  # Windows: the file is on another drive
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
