"""Rewrites clients: sessions and their transports become one Client, whose lists are lists."""

from __future__ import annotations

from typing import Any, Final

import libcst as cst
from libcst.metadata import ParentNodeProvider

from . import tables
from .rewriting import Marking
from .survey import FileSurvey
from .syntax import (
    argument,
    code_of,
    dotted,
    every_node,
    expression,
    keyword,
    last,
    parameters,
    peer_name,
    with_arguments,
)

_TRANSPORTS: Final = frozenset(
    {"stdio_client", "streamablehttp_client", "streamable_http_client", "sse_client"}
)
_RAISES: Final = (
    "call_tool of FastMCP raises ToolError if the tool fails; here result.is_error is true, and "
    "result.value() raises"
)


_CALLBACKS: Final = {"sampling_callback": "sample", "elicitation_callback": "elicit"}
"""Callbacks of sessions, which get a context and params, and the answers that get the params."""


class Clients(Marking):
    """Rewrites the clients of one file."""

    def __init__(self, found: FileSurvey) -> None:
        super().__init__()
        self.found = found
        self._targets: dict[str, cst.BaseExpression] = {}  # by the name of a read stream
        self._data: set[str] = set()
        self._callbacks: set[str] = set()  # functions that do not use the context they get

    # -- opening -----------------------------------------------------------------------------------

    def visit_With(self, node: cst.With) -> None:
        """Note which streams lead to which target."""
        for item in node.items:
            if not isinstance(item.item, cst.Call) or item.asname is None:
                continue
            if last(peer_name(self, item.item.func)) in _TRANSPORTS:
                names = _names_of(item.asname.name)
                if names:
                    self._targets[names[0]] = self._target(item.item)

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> Any:
        """Remove the block of the transport: the client opens it."""
        kept = [
            new
            for old, new in zip(original_node.items, updated_node.items, strict=True)
            if not (
                isinstance(old.item, cst.Call)
                and last(peer_name(self, old.item.func)) in _TRANSPORTS
                and old.asname is not None
            )
        ]
        if len(kept) == len(original_node.items):
            return updated_node
        if kept:
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            return updated_node.with_changes(items=kept)
        body: list[Any] = list(updated_node.body.body)
        first = body[0]
        body[0] = first.with_changes(
            leading_lines=[*updated_node.leading_lines, *first.leading_lines]
        )
        return cst.FlattenSentinel(body)

    def _target(self, call: cst.Call) -> cst.BaseExpression:
        """The target of a client for the call of a transport."""
        name = last(peer_name(self, call.func))
        if name == "stdio_client":
            found = argument(call, "server", 0)
            return found.value if found is not None else call
        url = argument(call, "url", 0)
        rest = [one for one in call.args if url is None or one is not url]
        if url is None:
            return call
        if not rest:
            return url.value
        made = [cst.Arg(value=url.value)]
        for one in rest:
            option = one.keyword.value if one.keyword is not None else ""
            if option == "headers":
                made.append(keyword("headers", one.value))
            elif option == "auth":
                self.mark(f"auth: {tables.CLIENT_OPTIONS['auth'].mark}")
            elif option not in ("timeout", "sse_read_timeout", "terminate_on_close"):
                self.mark(f"{option}: the transport has no such option; see Http")
        if len(made) == 1:
            return url.value
        self.add_import("interlock.Http")
        return with_arguments(cst.Call(func=cst.Name("Http")), made)

    # -- calls -------------------------------------------------------------------------------------

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Rewrite the constructors and methods of clients."""
        name = peer_name(self, original_node.func)
        own = last(name)
        if own == "ClientSession":
            return self._session(updated_node)
        if own in ("Client", "create_connected_server_and_client_session"):
            return self._options(updated_node)
        if own in ("StdioServerParameters", "StdioTransport"):
            return self._command(updated_node)
        if own in ("StreamableHttpTransport", "SSETransport"):
            if argument(updated_node, "auth") is not None:
                self.mark(f"auth: {tables.CLIENT_OPTIONS['auth'].mark}")
            return updated_node
        base, _, method = dotted(original_node.func).rpartition(".")
        if base not in self.found.clients:
            return updated_node
        change = tables.CLIENT_METHODS.get(method)
        if change is not None and (change.new or change.mark):
            self.mark(change.mark and f"{base}.{method}: {change.mark}")
            if change.new:
                updated_node = updated_node.with_changes(
                    func=updated_node.func.with_changes(attr=cst.Name(change.new))
                )
        if method in ("call_tool", "call_tool_mcp"):
            return self._call_tool(base, original_node, updated_node)
        if method in tables.CLIENT_LISTS and original_node.args:
            self.mark(f"{method} returns all pages: it takes no cursor")
            return updated_node.with_changes(args=[])
        if method == "read_resource" and updated_node.args:
            first = updated_node.args[0]
            if isinstance(first.value, cst.Call) and last(dotted(first.value.func)) == "AnyUrl":
                return updated_node.with_changes(
                    args=[
                        first.with_changes(value=first.value.args[0].value),
                        *updated_node.args[1:],
                    ]
                )
        return updated_node

    def _session(self, call: cst.Call) -> cst.Call:
        """A session over two streams: a client of the target that they lead to."""
        streams = [
            one
            for one in call.args
            if one.keyword is None or one.keyword.value in ("read_stream", "write_stream")
        ]
        target = self._targets.get(dotted(streams[0].value)) if streams else None
        rest = [one for one in call.args if one not in streams]
        if target is None:
            self.mark("a Client takes a target (a command, a URL, a server) in place of streams")
            target = streams[0].value if streams else expression("None")
        return self._options(call.with_changes(args=[cst.Arg(value=target), *rest]))

    def _options(self, call: cst.Call) -> cst.Call:
        made: list[cst.Arg] = []
        answers: list[cst.Arg] = []
        for one in call.args:
            name = one.keyword.value if one.keyword is not None else ""
            change = tables.CLIENT_OPTIONS.get(name) if name else None
            if name in _CALLBACKS and dotted(one.value) in self._callbacks:
                answers.append(keyword(_CALLBACKS[name], one.value))
                continue
            if name in ("server", "transport"):
                made.insert(0, cst.Arg(value=one.value))
                continue
            if name and change is None:
                self.mark(f"Client has no option {name!r}")
                continue
            if change is not None:
                self.mark(change.mark and f"{name}: {change.mark}")
                if not change.new:
                    continue
                one = one.with_changes(keyword=cst.Name(change.new))
            made.append(one)
        if answers:
            self.add_import("interlock.Answers")
            inner = with_arguments(cst.Call(func=cst.Name("Answers")), answers)
            made.append(keyword("answers", inner))
        return with_arguments(call, made)

    def _command(self, call: cst.Call) -> cst.Call:
        """The command and its arguments are one list."""
        command = argument(call, "command", 0)
        args = argument(call, "args", 1)
        if command is None:
            return call
        if args is None:
            joined: Any = cst.List([cst.Element(command.value)])
        elif isinstance(args.value, cst.List):
            joined = args.value.with_changes(
                elements=[
                    cst.Element(
                        command.value,
                        comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
                        if args.value.elements
                        else cst.MaybeSentinel.DEFAULT,
                    ),
                    *args.value.elements,
                ]
            )
        else:
            joined = expression(f"[{code_of(command.value)}, *{code_of(args.value)}]")
        made = [cst.Arg(value=joined)]
        for name in ("env", "cwd"):
            if (found := argument(call, name)) is not None:
                made.append(keyword(name, found.value))
        return with_arguments(call, made)

    def _call_tool(self, base: str, original: cst.Call, call: cst.Call) -> cst.Call:
        made = []
        for one in call.args:
            name = one.keyword.value if one.keyword is not None else ""
            change = tables.CALL_OPTIONS.get(name) if name else None
            if name and change is None:
                self.mark(f"call_tool has no option {name!r}")
                continue
            if change is not None:
                self.mark(change.mark and f"{name}: {change.mark}")
                if not change.new:
                    continue
                one = one.with_changes(keyword=cst.Name(change.new))
            made.append(one)
        if not self.found.clients[base] and not self._is_read_as_value(original):
            self.mark(_RAISES)
        return with_arguments(call, made)

    def _is_read_as_value(self, call: cst.Call) -> bool:
        """Whether `.data` of the result is read, so that value() raises as before."""
        waiting: Any = self.get_metadata(ParentNodeProvider, call, None)
        outer: Any = self.get_metadata(ParentNodeProvider, waiting, None) if waiting else None
        if isinstance(outer, cst.Attribute):
            return outer.attr.value == "data"
        if isinstance(outer, cst.Assign):
            return dotted(outer.targets[0].target) in self._data
        return False

    # -- results -----------------------------------------------------------------------------------

    def visit_Module(self, node: cst.Module) -> None:
        """Note the names whose `.data` is read."""
        self._data = {
            dotted(one.value)
            for one in every_node(node)
            if isinstance(one, cst.Attribute) and one.attr.value == "data" and dotted(one.value)
        }
        given = {
            dotted(one.value)
            for one in every_node(node)
            if isinstance(one, cst.Arg)
            and one.keyword is not None
            and one.keyword.value in _CALLBACKS
        }
        self._callbacks = {
            one.name.value
            for one in every_node(node)
            if isinstance(one, cst.FunctionDef)
            and one.name.value in given
            and _ignores_context(one)
        }

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """A callback gets the params alone."""
        if original_node.name.value not in self._callbacks:
            return updated_node
        given = updated_node.params
        return updated_node.with_changes(params=given.with_changes(params=given.params[1:]))

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        """The items of a list are the list; the data of a result is its value."""
        own = original_node.attr.value
        if own in tables.CLIENT_LISTS.values():
            if dotted(original_node.value) in self.found.results:
                return updated_node.value
            inner = original_node.value
            if isinstance(inner, cst.Await) and isinstance(inner.expression, cst.Call):
                base, _, method = dotted(inner.expression.func).rpartition(".")
                if self.found.clients.get(base) and tables.CLIENT_LISTS.get(method) == own:
                    return updated_node.value
        if own == "data" and self._is_call(original_node.value):
            return cst.Call(func=updated_node.with_changes(attr=cst.Name("value")))
        if own in ("resourceTemplates",) and dotted(original_node.value) in self.found.results:
            return updated_node.value
        if own == "nextCursor" and dotted(original_node.value) in self.found.results:
            self.mark("lists come whole: there is no cursor")
        return updated_node

    def _is_call(self, value: cst.BaseExpression) -> bool:
        if dotted(value) in self.found.calls:
            return True
        if isinstance(value, cst.Await) and isinstance(value.expression, cst.Call):
            base, _, method = dotted(value.expression.func).rpartition(".")
            return self.found.clients.get(base) is False and method == "call_tool"
        return False

    def leave_Await(self, original_node: cst.Await, updated_node: cst.Await) -> cst.BaseExpression:
        """FastMCP's read_resource returns the contents themselves."""
        call = original_node.expression
        if isinstance(call, cst.Call):
            base, _, method = dotted(call.func).rpartition(".")
            if self.found.clients.get(base) is False and method == "read_resource":
                whole = updated_node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
                return cst.Attribute(value=whole, attr=cst.Name("contents"))
        return updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> Any:
        """A client is connected when its block begins: the explicit handshake is left out."""
        if len(original_node.body) == 1 and isinstance(original_node.body[0], cst.Expr):
            value = original_node.body[0].value
            if isinstance(value, cst.Await) and isinstance(value.expression, cst.Call):
                base, _, method = dotted(value.expression.func).rpartition(".")
                if base in self.found.clients and method == tables.OPENING:
                    return cst.RemoveFromParent()
        return updated_node


def _ignores_context(function: cst.FunctionDef) -> bool:
    """Whether a callback has two parameters and does not use the first."""
    given = parameters(function)
    return len(given) == 2 and not any(
        isinstance(one, cst.Name) and one.value == given[0].name.value
        for one in every_node(function.body)
    )


def _names_of(target: cst.BaseExpression) -> list[str]:
    if isinstance(target, cst.Tuple):
        return [dotted(one.value) for one in target.elements]
    name = dotted(target)
    return [name] if name else []
