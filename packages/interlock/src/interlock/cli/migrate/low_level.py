"""Rewrites low-level servers: one handler for all tools becomes a tool for each entry of a list.

A low-level server has a handler that lists tools and a handler that gets a name and arguments. The
list becomes a plain function, and a loop adds each tool with its schema; the handler stays as it
is, with the name bound. In the SDK 2.x both handlers get a context and params; they get the form of
those of 1.x first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import libcst as cst

from .rewriting import Marking, marked, with_tool_errors
from .survey import FileSurvey
from .syntax import (
    code_of,
    dotted,
    every_node,
    last,
    own_statements,
    parameters,
    peer_name,
    statements,
    waits,
    with_arguments,
)

_KINDS: Final = ("list_tools", "call_tool", "list_resources", "read_resource")
_BY_HAND: Final[dict[str, str]] = {
    "list_prompts": "write one function for each prompt, with @server.prompt(NAME): its parameters "
    "are the arguments of the prompt",
    "get_prompt": "write one function for each prompt, with @server.prompt(NAME)",
    "list_resource_templates": "write one function for each template, with "
    "@server.resource(URI_TEMPLATE): its parameters are the variables",
    "completion": "use @server.completion, which gets value, argument and ref and returns strings",
    "set_logging_level": "leave it out: each client sets its own level",
    "progress_notification": "leave it out, or use middleware",
    "subscribe_resource": "leave it out: clients can subscribe to every resource",
    "unsubscribe_resource": "leave it out: clients can subscribe to every resource",
}
_LISTED: Final = (
    "the {0} are listed once, when this line runs; where they change later, call "
    "server.add_{1} and server.remove_{1} instead"
)
_TOOLS: Final = """\
for tool in {list}:
    {server}.add_tool(
        partial({call}, tool.name),
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=tool.annotations,
        icons=tool.icons,
        meta=tool.meta,
    )
"""
_RESOURCES: Final = """\
for resource in {list}:
    {server}.add_resource(
        resource.uri,
        partial({call}, {uri}),
        name=resource.name,
        title=resource.title,
        description=resource.description,
        mime_type=resource.mime_type,
    )
"""


class LowLevel(Marking):
    """Rewrites the low-level servers of one file.

    Attributes:
        blocking: The functions that now run a server themselves.
    """

    def __init__(self, found: FileSurvey) -> None:
        super().__init__()
        self.found = found
        self.blocking: set[str] = set()
        self._runs: list[bool] = []
        self._given: dict[tuple[str, str], str] = {}  # (server, kind): handler, of the SDK 2.x
        self._handlers: dict[str, tuple[str, str]] = {}  # handler: (server, kind)
        self._loops: dict[str, str] = {}  # (server): code after its handlers

    # -- finding handlers --------------------------------------------------------------------------

    def visit_Module(self, node: cst.Module) -> None:
        """Find the handlers of all servers."""
        for one in every_node(node):
            if isinstance(one, cst.FunctionDef):
                for decorator in one.decorators:
                    server, kind = self._decorated(decorator)
                    if kind in _KINDS:
                        self._handlers[one.name.value] = (server, kind)
                    if kind:
                        self.found.handlers.add(one.name.value)
            if isinstance(one, cst.Assign) and isinstance(one.value, cst.Call):
                server = dotted(one.targets[0].target)
                if server in self.found.low:
                    for given in one.value.args:
                        name = given.keyword.value if given.keyword is not None else ""
                        if name.startswith("on_"):
                            kind = name.removeprefix("on_")
                            self._given[server, kind] = dotted(given.value)
                            self._handlers[dotted(given.value)] = (server, kind)
                            self.found.handlers.add(dotted(given.value))

    def _decorated(self, decorator: cst.Decorator) -> tuple[str, str]:
        node = decorator.decorator
        name = dotted(node.func if isinstance(node, cst.Call) else node)
        server, _, kind = name.rpartition(".")
        return (server, kind) if server in self.found.low else ("", "")

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """Take the handlers out of the constructor of the SDK 2.x."""
        server = dotted(original_node.targets[0].target)
        value = updated_node.value
        if server not in self.found.low or not isinstance(value, cst.Call):
            return updated_node
        kept = []
        for one in value.args:
            name = one.keyword.value if one.keyword is not None else ""
            if not name.startswith("on_"):
                kept.append(one)
                continue
            kind = name.removeprefix("on_")
            if kind not in _KINDS:
                self.mark(f"{name}: {_BY_HAND.get(kind, 'use middleware')}")
        return updated_node.with_changes(value=with_arguments(value, kept))

    # -- handlers ----------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """Begin a function."""
        self._runs.append(False)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """Turn the handlers into plain functions."""
        if self._runs.pop():
            self.blocking.add(original_node.name.value)
        kept = []
        for decorator in updated_node.decorators:
            _, kind = self._decorated(decorator)
            if kind in _BY_HAND:
                self.mark(f"{kind}: {_BY_HAND[kind]}")
            if not kind or kind in _BY_HAND:
                kept.append(decorator)
            elif "validate_input" in code_of(decorator.decorator):
                self.mark("arguments are always checked against the schema of the tool")
        _, kind = self._handlers.get(original_node.name.value, ("", ""))
        if not kind:
            return updated_node
        is_newest = any(name == original_node.name.value for name in self._given.values())
        updated_node = updated_node.with_changes(
            decorators=kept,
            lines_after_decorators=() if not kept else updated_node.lines_after_decorators,
        )
        if is_newest:
            updated_node = self._of_newest(kind, original_node, updated_node)
        if kind.startswith("list_"):
            if waits(original_node):
                self.mark("this list awaits: add its features in the lifespan of the server")
            else:
                updated_node = updated_node.with_changes(asynchronous=None)
        if kind == "call_tool" and not is_newest:
            updated_node = with_tool_errors(self, original_node, updated_node)
        return updated_node

    def _of_newest(
        self, kind: str, original: cst.FunctionDef, updated: cst.FunctionDef
    ) -> cst.FunctionDef:
        """A handler of the SDK 2.x (context, params) in the form of 1.x."""
        given = [one.name.value for one in parameters(original)]
        if len(given) != 2:
            self.mark("this handler has other parameters than a context and params")
            return updated
        context, params = given
        uses_context = any(
            isinstance(one, cst.Name) and one.value == context
            for one in own_statements(original.body)
        )
        if kind.startswith("list_"):
            return updated.with_changes(params=cst.Parameters())
        fields = {
            "call_tool": {"name": "name", "arguments": "arguments"},
            "read_resource": {"uri": "uri"},
        }[kind]
        body: Any = updated.body.visit(_UnpackedParams(params, fields))
        rest = [
            one for one in every_node(body) if isinstance(one, cst.Name) and one.value == params
        ]
        if rest:
            self.mark(f"{params} is no longer given: {', '.join(fields)} are")
        if uses_context:
            self.found.contexts.add(context)
        form = {
            "call_tool": "name: str, arguments: dict[str, Any]",
            "read_resource": "uri: str",
        }[kind]
        if kind == "call_tool":
            self.add_import("typing.Any")
        if uses_context:
            form += f", {context}: Context"
            self.add_import("interlock.Context")
        made = cst.ensure_type(statements(f"def f({form}): pass\n")[0], cst.FunctionDef).params
        return updated.with_changes(params=made, body=body)

    # -- loops -------------------------------------------------------------------------------------

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        """Add the loops of servers at the top level."""
        return updated_node.with_changes(body=self._with_loops(updated_node.body))

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        """Add the loops of servers in a function."""
        return updated_node.with_changes(body=self._with_loops(updated_node.body))

    def _with_loops(self, body: Sequence[Any]) -> list[Any]:
        """Statements with a loop after the last of the two handlers and the server."""
        at: dict[tuple[str, str], int] = {}
        servers: dict[str, int] = {}
        functions: dict[str, cst.FunctionDef] = {}
        for n, one in enumerate(body):
            if isinstance(one, cst.FunctionDef):
                functions[one.name.value] = one
                if one.name.value in self._handlers:
                    at[self._handlers[one.name.value]] = n
            elif isinstance(one, cst.SimpleStatementLine):
                for part in one.body:
                    if isinstance(part, cst.Assign):
                        servers[dotted(part.targets[0].target)] = n
        after: dict[int, list[Any]] = {}
        for (server, kind), n in at.items():
            if not kind.startswith("list_"):
                continue
            call = "call_tool" if kind == "list_tools" else "read_resource"
            other = at.get((server, call))
            if other is None:
                continue
            place = max(n, other, servers.get(server, 0))
            made = self._loop(server, kind, call, functions)
            after.setdefault(place, []).extend(made)
        if not after:
            return list(body)
        made_body: list[Any] = []
        for n, one in enumerate(body):
            made_body.append(one)
            made_body += after.get(n, [])
        return made_body

    def _loop(
        self, server: str, kind: str, call: str, functions: dict[str, cst.FunctionDef]
    ) -> list[cst.BaseStatement]:
        names = {of: name for name, of in self._handlers.items()}
        lists = functions[names[server, kind]]
        handler = functions[names[server, call]]
        self.add_import("functools.partial")
        is_newest = (server, kind) in self._given
        listed = f"{lists.name.value}()"
        field = kind.removeprefix("list_")
        if is_newest or "Result" in (code_of(lists.returns.annotation) if lists.returns else ""):
            listed += f".{field}"
        code = (_TOOLS if kind == "list_tools" else _RESOURCES).format(
            list=listed, server=server, call=handler.name.value, uri=_uri_for(handler)
        )
        loop = statements(code)[0]
        if not _is_fixed(lists):
            loop = marked(loop, [_LISTED.format(field, field.removesuffix("s"))])
            self.marks += 1
        assert isinstance(loop, cst.For)
        return [loop.with_changes(leading_lines=[cst.EmptyLine(indent=False), *loop.leading_lines])]

    # -- running -----------------------------------------------------------------------------------

    def leave_With(self, original_node: cst.With, updated_node: cst.With) -> Any:
        """`async with stdio_server()` around the run of a server becomes `server.run()`."""
        names = [
            last(peer_name(self, one.item.func)) if isinstance(one.item, cst.Call) else ""
            for one in original_node.items
        ]
        if names != ["stdio_server"]:
            return updated_node
        body: list[Any] = []
        ran = False
        for one in updated_node.body.body:
            call = _awaited_call(one)
            if call is not None and dotted(call.func).endswith(".run"):
                server = dotted(call.func).rpartition(".")[0].removesuffix("._mcp_server")
                ran = True
                body += statements(f"{server}.run()\n")
                continue
            body.append(one)
        if not ran:
            self.mark("run the server with server.run(), which opens the streams itself")
            return updated_node
        if self._runs:
            self._runs[-1] = True
        first = body[0]
        body[0] = first.with_changes(leading_lines=updated_node.leading_lines)
        return cst.FlattenSentinel(body)


class _UnpackedParams(cst.CSTTransformer):
    """Replaces `params.name` by `name`, and `params.arguments or {}` by `arguments`."""

    def __init__(self, params: str, fields: dict[str, str]) -> None:
        super().__init__()
        self._params = params
        self._fields = fields

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        if dotted(original_node.value) == self._params and (
            name := self._fields.get(original_node.attr.value)
        ):
            return cst.Name(name)
        return updated_node

    def leave_BooleanOperation(
        self, original_node: cst.BooleanOperation, updated_node: cst.BooleanOperation
    ) -> cst.BaseExpression:
        if code_of(updated_node) == "arguments or {}":
            return updated_node.left.with_changes(lpar=(), rpar=())
        return updated_node


def _awaited_call(statement: Any) -> cst.Call | None:
    """The call of a statement that consists of one awaited call."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        only = statement.body[0]
        if (
            isinstance(only, cst.Expr)
            and isinstance(only.value, cst.Await)
            and isinstance(only.value.expression, cst.Call)
        ):
            return only.value.expression
    return None


def _uri_for(handler: cst.FunctionDef) -> str:
    """The URI that a handler of resources gets: a string, or the URL type of its annotation."""
    given = parameters(handler)
    if given and given[0].annotation is not None:
        kind = dotted(given[0].annotation.annotation)
        if last(kind) in ("AnyUrl", "FileUrl", "AnyHttpUrl"):
            return f"{kind}(resource.uri)"
    return "resource.uri"


def _is_fixed(lists: cst.FunctionDef) -> bool:
    """Whether a list handler only returns an expression without variables of its own."""
    body = [
        one
        for one in lists.body.body
        if not (
            isinstance(one, cst.SimpleStatementLine)
            and isinstance(one.body[0], cst.Expr)
            and isinstance(one.body[0].value, cst.SimpleString | cst.ConcatenatedString)
        )
    ]
    return (
        len(body) == 1
        and isinstance(body[0], cst.SimpleStatementLine)
        and isinstance(body[0].body[0], cst.Return)
    )
