"""Makes functions plain that only awaited the run of a server, which now blocks by itself."""

from __future__ import annotations

from typing import Final

import libcst as cst

from .rewriting import Marking
from .syntax import code_of, dotted, last, waits, with_arguments

_RUNNERS: Final = ("asyncio.run", "anyio.run", "trio.run")
_STAYS: Final = (
    "server.run() opens an event loop of its own: call it in a plain function. In a running loop, "
    "use await server.serve_http(...)"
)


class Blocking(Marking):
    """Makes the named functions plain, and calls them without a runner.

    Attributes:
        blocking: The names of functions that block until the server ends.
        is_changed: Whether a function became plain in this pass.
    """

    def __init__(self, blocking: set[str]) -> None:
        super().__init__()
        self.blocking = blocking
        self.plain: set[str] = set()

    def leave_Await(self, original_node: cst.Await, updated_node: cst.Await) -> cst.BaseExpression:
        """`await serve()` becomes `serve()`."""
        inner = updated_node.expression
        if isinstance(inner, cst.Call) and self._blocks(inner):
            return inner
        return updated_node

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """An async function that awaits nothing else becomes plain."""
        if original_node.asynchronous is None or not self._runs_server(updated_node):
            return updated_node
        if waits(updated_node):
            self.mark(_STAYS)
            return updated_node
        self.plain.add(original_node.name.value)
        return updated_node.with_changes(asynchronous=None)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """`asyncio.run(serve(path))` and `anyio.run(serve, path)` become `serve(path)`."""
        if dotted(original_node.func) not in _RUNNERS or not updated_node.args:
            return updated_node
        first = updated_node.args[0].value
        if isinstance(first, cst.Call) and self._blocks(first):
            return first
        name = dotted(first)
        if name and (last(name) in self.blocking or name.endswith((".run", ".run_async"))):
            rest = [
                one
                for one in updated_node.args[1:]
                if one.keyword is None or one.keyword.value not in ("backend", "debug")
            ]
            if last(name) in self.blocking:
                return with_arguments(cst.Call(func=first), rest)
        return updated_node

    def _blocks(self, call: cst.Call) -> bool:
        return last(dotted(call.func)) in self.blocking

    def _runs_server(self, function: cst.FunctionDef) -> bool:
        return function.name.value in self.blocking or any(
            f"{name}(" in code_of(function.body) for name in self.blocking
        )
