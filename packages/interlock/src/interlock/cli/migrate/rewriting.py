"""Rewrites one file: servers, decorators, contexts, types, and how servers run."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

import libcst as cst
from libcst.metadata import ParentNodeProvider, QualifiedNameProvider

from ... import types
from . import tables
from .survey import HIGH, FileSurvey, raises_in
from .syntax import (
    annotation_names,
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
from .tables import MARK, NAMES, Respelling

_WIDTH: Final = 96
_STATEMENTS: Final = (cst.SimpleStatementLine, cst.BaseCompoundStatement)
_DECORATORS: Final = ("tool", "prompt", "resource")
_RUNS: Final[dict[str, str]] = {
    "run": "",
    "run_async": "",
    "run_stdio_async": "stdio",
    "run_http_async": "http",
    "run_streamable_http_async": "http",
    "run_sse_async": "sse",
}
_APPS: Final = ("http_app", "streamable_http_app")
_HANDLERS: Final = frozenset(
    {
        "call_tool",
        "get_prompt",
        "list_prompts",
        "list_resource_templates",
        "list_resources",
        "list_tools",
        "progress_notification",
        "read_resource",
        "set_logging_level",
        "subscribe_resource",
        "unsubscribe_resource",
    }
)
"""Decorators of low-level servers, which have marks of their own."""

_ERRORS: Final = frozenset(
    {
        "ArithmeticError",
        "AssertionError",
        "ConnectionError",
        "Exception",
        "FileExistsError",
        "FileNotFoundError",
        "KeyError",
        "LookupError",
        "NotImplementedError",
        "OSError",
        "PermissionError",
        "RuntimeError",
        "TimeoutError",
        "TypeError",
        "ValueError",
        "IndexError",
    }
)
"""Built-in errors whose message the other SDKs send to the client."""

_MASKED: Final = (
    "the message of an error other than ToolError does not reach the client: raise ToolError where "
    "the model must read it"
)
_TYPES: Final = ("mcp.types.", "mcp_types.", "mcp.")


def replacement(name: str) -> Respelling | None:
    """Return what replaces a name of a peer; None if nothing is known of it.

    Args:
        name: Its qualified name.
    """
    own = last(name)
    if (
        name.startswith(_TYPES)
        and hasattr(types, own)
        and name.rpartition(".")[0]
        in (
            "mcp",
            "mcp.types",
            "mcp_types",
        )
    ):
        return NAMES.get(own) or Respelling(f"interlock.types.{own}")
    if own == "Message" and not name.startswith(("mcp.types", "mcp_types")):
        return Respelling("interlock.types.PromptMessage")
    return NAMES.get(own)


class Marking(cst.CSTTransformer):
    """A transformer that can leave marks: comments above the statement that it looks at.

    Attributes:
        imports: What the new code imports: module, name, and the name under which it is known.
        marks: The number of marks.
    """

    METADATA_DEPENDENCIES = (QualifiedNameProvider, ParentNodeProvider)

    def __init__(self) -> None:
        super().__init__()
        self.imports: set[tuple[str, str, str]] = set()
        self.marks = 0
        self._marks: list[list[str]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Begin a statement."""
        if isinstance(node, _STATEMENTS):
            self._marks.append([])
        return super().on_visit(node)

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """End a statement: its marks go above it."""
        made: Any = super().on_leave(original_node, updated_node)
        if not isinstance(original_node, _STATEMENTS):
            return made
        found = list(dict.fromkeys(self._marks.pop()))
        if not found:
            return made
        if isinstance(made, cst.FlattenSentinel):
            nodes = list(made)
            nodes[0] = marked(nodes[0], found)
            made = cst.FlattenSentinel(nodes)
        elif isinstance(made, _STATEMENTS):
            made = marked(made, found)
        self.marks += len(found)
        return made

    def mark(self, words: str) -> None:
        """Leave a mark at the present statement."""
        if words and self._marks:
            self._marks[-1].append(words)

    def add_import(self, name: str, known: str = "") -> str:
        """Import a name into the file. Returns the name under which the file knows it."""
        module, _, own = name.rpartition(".")
        self.imports.add((module, own, known or own))
        return known or own


def marked(node: Any, words: Sequence[str]) -> Any:
    """Return a statement with marks above it."""
    lines = [
        cst.EmptyLine(comment=cst.Comment(line))
        for text in words
        for line in textwrap.wrap(
            f"{MARK}{text}", _WIDTH, subsequent_indent="#   ", break_long_words=False
        )
    ]
    return node.with_changes(leading_lines=[*node.leading_lines, *lines])


class Rewriter(Marking):
    """Rewrites servers, decorators, contexts and types of one file.

    Attributes:
        blocking: The functions that now run a server themselves, and are no longer async.
    """

    def __init__(self, found: FileSurvey) -> None:
        super().__init__()
        self.found = found
        self.blocking: set[str] = set()
        self._runs: list[bool] = []  # whether each open function runs a server
        self._http: dict[str, cst.Arg] = {}  # options that move from a constructor to run()
        self._in_server_class = 0

    # -- names -------------------------------------------------------------------------------------

    def visit_Import(self, node: cst.Import) -> bool:
        """Imports are rewritten at the end."""
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        """Imports are rewritten at the end."""
        return False

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """Rename what was imported by its own name."""
        parent: Any = self.get_metadata(ParentNodeProvider, original_node, None)
        if (
            (isinstance(parent, cst.Attribute) and parent.attr is original_node)
            or (isinstance(parent, cst.Arg) and parent.keyword is original_node)
            or (isinstance(parent, cst.Param) and parent.name is original_node)
            or isinstance(parent, cst.NamedExpr | cst.NameItem)
        ):
            return updated_node
        name = peer_name(self, original_node)
        if not name:
            return updated_node
        change = replacement(name)
        if change is None or not change.new:
            return updated_node  # its import stays, and is marked
        self.mark(change.mark and f"{original_node.value}: {change.mark}")
        is_alias = original_node.value != last(name)
        known = self.add_import(change.new, original_node.value if is_alias else "")
        return cst.Name(known)

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        """Rename attributes of modules, contexts, servers and protocol types."""
        name = peer_name(self, original_node)
        if name:
            return self._module_attribute(name, original_node, updated_node)
        path = dotted(original_node)
        if path:
            base, _, rest = self._of(path, self.found.contexts)
            if base:
                return self._context_attribute(base, rest, original_node, updated_node)
            base, _, rest = self._of(path, self.found.servers)
            if base and rest.startswith("request_context."):
                self.add_import("interlock.get_context")
                rest = rest.removeprefix("request_context.")
                known = rest if rest in tables.CONTEXT else f"request_context.{rest}"
                return self._context_attribute("get_context()", known, original_node, updated_node)
            if base and "." not in rest:
                return self._server_attribute(base, rest, original_node, updated_node)
        own = original_node.attr.value
        if own in tables.FIELDS and own != "_meta" and self.found.sdks:
            return updated_node.with_changes(attr=cst.Name(tables.FIELDS[own]))
        return updated_node

    @staticmethod
    def _of(path: str, names: set[str]) -> tuple[str, str, str]:
        """Split a path into a known name and the rest; empty if it does not begin with one."""
        for name in sorted(names, key=len, reverse=True):
            if path.startswith(f"{name}."):
                return name, ".", path[len(name) + 1 :]
        return "", "", ""

    def _module_attribute(
        self, name: str, original: cst.Attribute, updated: cst.Attribute
    ) -> cst.BaseExpression:
        parent: Any = self.get_metadata(ParentNodeProvider, original, None)
        if isinstance(parent, cst.Attribute) and peer_name(self, parent):
            return updated  # the whole chain counts
        change = replacement(name)
        if change is None or not change.new:
            if change is not None and change.mark:
                self.mark(f"{last(name)}: {change.mark}")
            return updated
        self.mark(change.mark and f"{last(name)}: {change.mark}")
        module, _, own = change.new.rpartition(".")
        if module == "interlock.types":
            base = dotted(original.value)
            known = base if base and "." not in base else "types"
            self.imports.add(("interlock", "types", known))
            return cst.Attribute(value=cst.Name(known), attr=cst.Name(own))
        return cst.Name(self.add_import(change.new))

    def _context_attribute(
        self, base: str, rest: str, original: cst.Attribute, updated: cst.Attribute
    ) -> cst.BaseExpression:
        parent: Any = self.get_metadata(ParentNodeProvider, original, None)
        if (
            isinstance(parent, cst.Attribute)
            and parent.value is original
            and f"{rest}.{parent.attr.value}" in tables.CONTEXT
        ):
            return updated  # the longest path counts
        change = tables.CONTEXT.get(rest)
        if change is None:
            if "." not in rest and rest not in tables.CONTEXT_KEPT:
                self.mark(f"{base}.{rest} does not exist; see the methods of Context")
            return updated
        self.mark(change.mark and f"{base}.{rest}: {change.mark}")
        return expression(f"{base}.{change.new}") if change.new else updated

    def _server_attribute(
        self, base: str, name: str, original: cst.Attribute, updated: cst.Attribute
    ) -> cst.BaseExpression:
        change = tables.SERVER_METHODS.get(name)
        if change is None or (base in self.found.low and name in _HANDLERS):
            return updated
        if base == "self" and not self._in_server_class:
            return updated
        self.mark(change.mark and f"{base}.{name}: {change.mark}")
        parent: Any = self.get_metadata(ParentNodeProvider, original, None)
        if change.new == "get_context()" and not (
            isinstance(parent, cst.Attribute) and parent.value is original
        ):
            self.add_import("interlock.get_context")
            return expression(change.new)
        return updated

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        """The parameter of a Context is the type of the lifespan's state."""
        if last(peer_name(self, original_node.value)) != "Context":
            return updated_node
        state = original_node.slice[1].slice if len(original_node.slice) > 1 else None
        if isinstance(state, cst.Index) and code_of(state.value) not in ("None", "Any"):
            kept = updated_node.slice[1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            return updated_node.with_changes(slice=[kept])
        return updated_node.value

    # -- classes and functions ---------------------------------------------------------------------

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        """Note a class that derives from a server."""
        self._in_server_class += node.name.value in self.found.classes

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        """End such a class."""
        self._in_server_class -= original_node.name.value in self.found.classes
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """Begin a function."""
        self._runs.append(False)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """Rewrite features: their errors, context parameters, and routes."""
        if self._runs.pop():
            self.blocking.add(original_node.name.value)
        feature = self._feature(original_node)
        if feature == "tool" and not self._is_newest_sdk:
            updated_node = with_tool_errors(self, original_node, updated_node)
        if feature in ("tool", "prompt"):
            self._mark_types(original_node)
        if any("structured_output=False" in code_of(one) for one in original_node.decorators):
            updated_node = self._unstructured(updated_node)
        updated_node = self._without_context_defaults(original_node, updated_node)
        return self._with_route(original_node, updated_node)

    _helpers_raise = False
    _plain_classes: frozenset[str] | set[str] = frozenset()

    @property
    def _is_newest_sdk(self) -> bool:
        """Whether the file is of the SDK 2.x, which hides the messages of errors too."""
        return self._is_sdk_2 and "fastmcp" not in self.found.sdks

    _is_sdk_2 = False

    def visit_Module(self, node: cst.Module) -> None:
        """Note which SDK the file is of."""
        code = node.code
        self._is_sdk_2 = any(
            word in code for word in ("MCPServer", "mcp.server.mcpserver", "ServerRequestContext")
        )
        self._plain_classes = {
            one.name.value
            for one in every_node(node)
            if isinstance(one, cst.ClassDef) and not one.bases and not one.decorators
        }
        self._helpers_raise = any(
            isinstance(one, cst.FunctionDef)
            and not self._feature(one)
            and one.name.value not in self.found.handlers
            and self._raises_own_errors(one)
            for one in every_node(node)
        )

    def _feature(self, function: cst.FunctionDef) -> str:
        """The kind of feature that a function is; empty if it is none."""
        for decorator in function.decorators:
            node = decorator.decorator
            name = dotted(node.func if isinstance(node, cst.Call) else node)
            base, _, method = self._of(name, self.found.high)
            if base and method in _DECORATORS:
                return method
        return ""

    def _raises_own_errors(self, function: cst.FunctionDef) -> bool:
        return function.name.value != "__init__" and any(
            isinstance(one.exc, cst.Call) and dotted(one.exc.func) in _ERRORS
            for one in raises_in(function)
        )

    def _mark_types(self, function: cst.FunctionDef) -> None:
        """Mark types that mean something else here."""
        for one in parameters(function):
            kinds = [] if one.annotation is None else annotation_names(one.annotation.annotation)
            if any(isinstance(kind, cst.Name) and kind.value == "bytes" for kind in kinds):
                self.mark(
                    f"{one.name.value}: a bytes argument is base64 here; the other SDKs take text"
                )
        annotations = [
            one.annotation.annotation for one in parameters(function) if one.annotation is not None
        ]
        if function.returns is not None:
            annotations.append(function.returns.annotation)
        for annotation in annotations:
            for kind in annotation_names(annotation):
                if isinstance(kind, cst.Name) and kind.value in self._plain_classes:
                    self.mark(
                        f"{kind.value} is a plain class, which has no JSON: make it a dataclass, "
                        "or annotate Any"
                    )

    def _unstructured(self, function: cst.FunctionDef) -> cst.FunctionDef:
        """A tool without an output schema: a text has none, and all else has no annotation."""
        returns = function.returns
        if returns is None or code_of(returns.annotation) == "str":
            return function
        self.mark(
            "structured_output: an object is still sent as data too; return text if it must not"
        )
        return function.with_changes(returns=None)

    def _without_context_defaults(
        self, original: cst.FunctionDef, updated: cst.FunctionDef
    ) -> cst.FunctionDef:
        """A Context needs no default: the parameter precedes those that have one."""
        named = {
            one.name.value
            for one in parameters(original)
            if one.default is not None
            and isinstance(one.default, cst.Call)
            and last(peer_name(self, one.default.func)) == "CurrentContext"
        }
        if not named:
            return updated
        given = updated.params
        every = [*given.params, *given.kwonly_params]
        plain = [
            one.with_changes(default=None, equal=cst.MaybeSentinel.DEFAULT)
            for one in every
            if one.name.value in named
        ]
        self.add_import("interlock.Context")
        plain = [
            one
            if one.annotation is not None
            else one.with_changes(annotation=cst.Annotation(cst.Name("Context")))
            for one in plain
        ]
        return updated.with_changes(
            params=given.with_changes(
                params=[
                    *(one.with_changes(comma=cst.MaybeSentinel.DEFAULT) for one in plain),
                    *(one for one in given.params if one.name.value not in named),
                ],
                kwonly_params=[one for one in given.kwonly_params if one.name.value not in named],
            )
        )

    def _with_route(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef:
        """A custom route is an ASGI app: Starlette makes one of a function of a request."""
        made = []
        for decorator in updated.decorators:
            made.append(decorator)
            node = decorator.decorator
            if isinstance(node, cst.Call) and dotted(node.func).endswith(".route"):
                base = dotted(node.func).rpartition(".")[0]
                if base in self.found.high and any(
                    "custom_route" in code_of(one.decorator) for one in original.decorators
                ):
                    known = self.add_import("starlette.routing.request_response")
                    made.append(cst.Decorator(decorator=cst.Name(known)))
        return updated.with_changes(decorators=made)

    # -- calls -------------------------------------------------------------------------------------

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Rewrite a call."""
        name = peer_name(self, original_node.func)
        own = last(name)
        path = dotted(original_node.func)
        if own in HIGH or (self._in_server_class and code_of(original_node.func) in _SUPER):
            return self._constructed(updated_node)
        if own == "Server":
            return self._constructed(updated_node)
        if name:
            made = self._peer_call(own, name, original_node, updated_node)
            if made is not None:
                return made
        base, _, method = self._of(path, self.found.high | self.found.low)
        if base and "." not in method:
            return self._server_call(base, method, original_node, updated_node)
        base, _, method = self._of(path, self.found.contexts)
        if base:
            return self._context_call(method, updated_node)
        if isinstance(original_node.func, cst.Attribute):
            of = last(peer_name(self, original_node.func.value))
            change = tables.SERVER_METHODS.get(original_node.func.attr.value)
            if of in HIGH and change is not None:
                self.mark(f"{of}.{original_node.func.attr.value}: {change.mark}")
        return updated_node

    def _peer_call(
        self, own: str, name: str, original: cst.Call, updated: cst.Call
    ) -> cst.BaseExpression | None:
        change = replacement(name)
        if own == "Message":
            return self._message(updated)
        if change is not None and change.new.startswith("interlock.types."):
            return self._typed(last(change.new), updated)
        if own in ("UserMessage", "AssistantMessage"):
            content = argument(updated, "content", 0)
            if content is not None:
                return updated.with_changes(args=[cst.Arg(value=content.value)])
        if own in ("McpError", "MCPError"):
            return self._protocol_error(updated)
        if own == "ToolResult":
            return self._tool_result(updated)
        return None

    def _message(self, call: cst.Call) -> cst.Call:
        """A message of a prompt: user(content) or assistant(content)."""
        content = argument(call, "content", 0)
        role = argument(call, "role", 1)
        words = code_of(role.value).strip("\"'") if role is not None else "user"
        if content is None or words not in ("user", "assistant"):
            self.mark("Message: use user(content) or assistant(content)")
            return call
        known = self.add_import(f"interlock.{words}")
        return call.with_changes(func=cst.Name(known), args=[cst.Arg(value=content.value)])

    def _typed(self, kind: str, call: cst.Call) -> cst.Call:
        """A protocol type: fields in snake_case, no `type`, and URIs as strings."""
        known = getattr(getattr(types, kind, None), "__struct_fields__", None)
        made: list[cst.Arg] = []
        for one in call.args:
            name = one.keyword.value if one.keyword is not None else ""
            if name in ("type", "method") and (known is None or name not in known):
                continue
            if name in tables.FIELDS:
                one = one.with_changes(keyword=cst.Name(tables.FIELDS[name]))
                name = tables.FIELDS[name]
            if name == "uri":
                one = one.with_changes(value=_as_text(one.value))
            if name and known is not None and name not in known:
                self.mark(f"{kind} has no field {name!r}: it was left out")
                continue
            made.append(one)
        return with_arguments(call, made)

    def _protocol_error(self, call: cst.Call) -> cst.Call:
        """McpError takes the code, the message and the data themselves."""
        data = argument(call, "error", 0)
        inner = data.value if data is not None else None
        if isinstance(inner, cst.Call) and last(dotted(inner.func)) == "ErrorData":
            return call.with_changes(args=inner.args)
        if data is not None and len(call.args) == 1:
            self.mark("McpError takes the code, the message and the data themselves")
        return call

    def _tool_result(self, call: cst.Call) -> cst.Call:
        """The data comes first, then the content."""
        data = argument(call, "structured_content")
        content = argument(call, "content", 0)
        meta = argument(call, "meta")
        if data is None:
            self.mark(
                "ToolResult needs data; return the text or the content itself if there is none"
            )
            return call
        made = [cst.Arg(value=data.value)]
        if content is not None:
            is_list = isinstance(content.value, cst.List)
            text = isinstance(
                content.value, cst.SimpleString | cst.FormattedString | cst.ConcatenatedString
            )
            if not is_list and not text and not isinstance(content.value, cst.Call):
                self.mark("ToolResult: if this content is a list, write *content")
            made.append(cst.Arg(value=content.value, star="*" if is_list else ""))
        if meta is not None:
            made.append(keyword("meta", meta.value))
        return with_arguments(call, made)

    # -- constructors ------------------------------------------------------------------------------

    def _constructed(self, call: cst.Call) -> cst.Call:
        made: list[cst.Arg] = []
        info: list[cst.Arg] = []
        for n, one in enumerate(call.args):
            name = one.keyword.value if one.keyword is not None else ""
            if not name:
                if one.star or n == 0:
                    made.append(one)
                elif n == 1 and not one.star:
                    # both FastMCP and the SDK take the instructions second
                    made.append(keyword("instructions", one.value))
                else:
                    self.mark("an option without a name was not understood")
                    made.append(one)
                continue
            change = tables.SERVER_OPTIONS.get(name)
            if change is None:
                self.mark(f"Server has no option {name!r}")
                continue
            self.mark(change.mark and f"{name}: {change.mark}")
            kind, _, option = change.new.rpartition(".")
            if kind == "info":
                info.append(keyword(option, one.value))
            elif kind == "lenient":
                made.append(keyword("lenient", _negated(one.value)))
            elif kind == "run":
                self._http |= {
                    moved.keyword.value: moved
                    for moved in self._http_options(option, one.value)
                    if moved.keyword is not None
                }
            elif change.new:
                made.append(one)
        if not call.args or (made and made[0].keyword is not None and not _names(made)):
            made.insert(0, cst.Arg(value=expression('"server"')))
        if info:
            known = self.add_import("interlock.ServerInfo")
            made.append(keyword("info", cst.Call(func=cst.Name(known), args=_with_commas(info))))
        if self._helpers_raise and not self._is_newest_sdk:
            self.mark(_MASKED)
        return with_arguments(call, made)

    def _http_options(self, name: str, value: cst.BaseExpression) -> list[cst.Arg]:
        """The options of run() for an option of another name or meaning."""
        if name == "sessions":
            return [keyword("sessions", _negated(value))]
        if name == "security":
            if not isinstance(value, cst.Call):
                self.mark("the hosts and origins that may use the server: hosts=, origins=")
                return []
            found = []
            for one in value.args:
                known = one.keyword.value if one.keyword is not None else ""
                option = {"allowed_hosts": "hosts", "allowed_origins": "origins"}.get(known)
                if option is not None:
                    found.append(keyword(option, one.value))
                elif known == "enable_dns_rebinding_protection" and code_of(one.value) == "False":
                    found.append(keyword("hosts", '"*"'))
            return found
        return [keyword(name, value)]

    # -- servers -----------------------------------------------------------------------------------

    def _server_call(
        self, base: str, method: str, original: cst.Call, updated: cst.Call
    ) -> cst.BaseExpression:
        if method in _DECORATORS:
            return self._decorator(method, updated)
        if method in _RUNS and base in self.found.high:
            return self._run(base, method, original, updated)
        if method in _APPS:
            return self._app(base, updated)
        if method == "custom_route":
            return updated.with_changes(func=expression(f"{base}.route"), args=updated.args[:2])
        if method == "mount":
            return self._mount(updated)
        if method in ("add_tool", "add_prompt", "add_resource"):
            if method == "add_resource" and len(original.args) < 2:
                self.mark("add_resource takes a URI and a function, a text, bytes or a path")
            elif any(
                isinstance(one.value, cst.Call) and dotted(one.value.func) != "partial"
                for one in original.args[:1]
            ):
                self.mark(f"{method} takes a function, and its options by keyword")
            return self._decorator(method.partition("_")[2], updated)
        return updated

    def _decorator(self, kind: str, call: cst.Call) -> cst.Call:
        made: list[cst.Arg] = []
        for one in call.args:
            name = one.keyword.value if one.keyword is not None else ""
            if not name:
                made.append(one)
                continue
            change = tables.TOOL_OPTIONS.get(name)
            if change is None:
                self.mark(f"{kind} has no option {name!r}")
                continue
            self.mark(change.mark and f"{name}: {change.mark}")
            if name == "task":
                if code_of(one.value) == "True":
                    self.mark("task: give the server extensions=[Tasks()]")
                    made.append(keyword("task", '"optional"'))
                elif code_of(one.value) != "False":
                    self.mark('task: "optional" or "required", and extensions=[Tasks()]')
            elif name == "annotations" and kind == "resource":
                if isinstance(one.value, cst.Dict):
                    self.mark("annotations: hints are for tools; a resource has an Annotations")
                else:
                    made.append(one)
            elif kind == "resource" and name == "uri":
                made.insert(0, cst.Arg(value=one.value))
            elif name == "output_schema" and code_of(one.value) == "None":
                self.mark("output_schema: leave out the return annotation for text only")
            elif change.new:
                made.append(
                    one.with_changes(keyword=cst.Name(change.new)) if change.new != name else one
                )
        return with_arguments(call, made)

    def _run(self, base: str, method: str, original: cst.Call, updated: cst.Call) -> cst.Call:
        transport = argument(updated, "transport", 0)
        kind = _RUNS[method]
        value: cst.BaseExpression | None = None
        if not kind and transport is not None:
            value = transport.value
            literal = code_of(value).strip("\"'")
            kind = literal if isinstance(value, cst.SimpleString) else "?"
        kind = "http" if kind == "streamable-http" else kind or "stdio"
        options: dict[str, cst.Arg] = {}
        if kind != "stdio":
            options |= self._http
            options |= self._options_of_run(updated)
        if kind == "?" and value is not None:
            self.mark(
                'run() knows "stdio" and "http"; the transport "sse" is run("http", '
                "legacy_sse=True). Options of HTTP are for HTTP only"
            )
            made = [cst.Arg(value=value)]
            if options:
                return with_arguments(updated, [*made, *options.values()])
            return with_arguments(updated.with_changes(func=expression(f"{base}.run")), made)
        if kind == "sse":
            options["legacy_sse"] = keyword("legacy_sse", "True")
            kind = "http"
        made = [] if kind == "stdio" else [cst.Arg(value=expression(f'"{kind}"'))]
        is_async = method != "run"
        if is_async and self._runs:
            self._runs[-1] = True
        return with_arguments(
            updated.with_changes(func=expression(f"{base}.run")), [*made, *options.values()]
        )

    def _options_of_run(self, call: cst.Call) -> dict[str, cst.Arg]:
        made: dict[str, cst.Arg] = {}
        for one in call.args:
            name = one.keyword.value if one.keyword is not None else ""
            if not name or name == "transport":
                if one.star == "**":
                    made["**"] = one
                    self.mark("the options in ** have other names: sessions, path, host, port")
                continue
            change = tables.RUN_OPTIONS.get(name)
            if change is None:
                self.mark(f"run() has no option {name!r}")
                continue
            self.mark(change.mark and f"{name}: {change.mark}")
            if change.new:
                for moved in self._http_options(change.new, one.value):
                    if moved.keyword is not None:
                        made[moved.keyword.value] = moved
        return made

    def _app(self, base: str, call: cst.Call) -> cst.Call:
        options = {name: one for name, one in self._http.items() if name not in ("host", "port")}
        options |= {
            name: one
            for name, one in self._options_of_run(call).items()
            if name not in ("host", "port")
        }
        if "path" not in options and (path := argument(call, "path", 0)) is not None:
            options["path"] = keyword("path", path.value)
        return with_arguments(
            call.with_changes(func=expression(f"{base}.http_app")), list(options.values())
        )

    def _mount(self, call: cst.Call) -> cst.Call:
        made: list[cst.Arg] = []
        server = argument(call, "server", 0)
        prefix = argument(call, "prefix") or argument(call, "namespace", 1)
        if server is not None:
            made.append(cst.Arg(value=server.value))
        if prefix is not None:
            made.append(keyword("prefix", prefix.value))
            self.mark(
                "mount: names are PREFIX__NAME (two underscores), and URIs keep their own form"
            )
        for one in call.args:
            name = one.keyword.value if one.keyword is not None else ""
            if name and name not in ("server", "prefix", "namespace", "as_proxy"):
                self.mark(f"mount has no option {name!r}")
        return with_arguments(call, made)

    # -- contexts ----------------------------------------------------------------------------------

    def _context_call(self, method: str, call: cst.Call) -> cst.Call:
        if method in ("sample", "session.create_message"):
            made = []
            for one in call.args:
                name = one.keyword.value if one.keyword is not None else ""
                change = tables.SAMPLE_OPTIONS.get(name) if name else None
                if name and change is None:
                    self.mark(f"ctx.sample has no option {name!r}")
                    continue
                if change is not None:
                    self.mark(change.mark and f"{name}: {change.mark}")
                    if not change.new:
                        continue
                    one = one.with_changes(keyword=cst.Name(change.new))
                made.append(one)
            return with_arguments(call, made)
        if method in ("elicit", "session.elicit"):
            renamed = {"schema": "kind", "response_type": "kind", "requestedSchema": "kind"}
            return with_arguments(
                call,
                [
                    one.with_changes(keyword=cst.Name(renamed[one.keyword.value]))
                    if one.keyword is not None and one.keyword.value in renamed
                    else one
                    for one in call.args
                ],
            )
        if method in ("read_resource",):
            return call.with_changes(
                args=[one.with_changes(value=_as_text(one.value)) for one in call.args]
            )
        return call


def with_tool_errors(
    transformer: Marking, original: cst.FunctionDef, updated: cst.FunctionDef
) -> cst.FunctionDef:
    """Return a tool whose own built-in errors are ToolErrors: their messages reach the model."""
    codes = [
        code_of(one)
        for one in raises_in(original)
        if isinstance(one.exc, cst.Call) and dotted(one.exc.func) in _ERRORS and one.exc.args
    ]
    if not codes:
        return updated
    transformer.add_import("interlock.ToolError")
    return updated.with_changes(body=updated.body.visit(_Raising(codes)))


class _Raising(cst.CSTTransformer):
    """Makes ToolErrors of the errors that some raise statements name."""

    def __init__(self, codes: Sequence[str]) -> None:
        super().__init__()
        self._codes = set(codes)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def leave_Raise(self, original_node: cst.Raise, updated_node: cst.Raise) -> cst.Raise:
        if code_of(original_node) in self._codes and isinstance(updated_node.exc, cst.Call):
            return updated_node.with_changes(
                exc=updated_node.exc.with_changes(func=cst.Name("ToolError"))
            )
        return updated_node


_SUPER: Final = ("super().__init__",)


def _names(arguments: Sequence[cst.Arg]) -> bool:
    return any(
        one.star == "**" or (one.keyword is not None and one.keyword.value == "name")
        for one in arguments
    )


def _with_commas(arguments: Sequence[cst.Arg]) -> list[cst.Arg]:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    return [
        one.with_changes(comma=comma if n + 1 < len(arguments) else cst.MaybeSentinel.DEFAULT)
        for n, one in enumerate(arguments)
    ]


def _negated(value: cst.BaseExpression) -> cst.BaseExpression:
    opposite: Mapping[str, str] = {"True": "False", "False": "True"}
    code = code_of(value)
    return expression(opposite.get(code, f"not ({code})"))


def _as_text(value: cst.BaseExpression) -> cst.BaseExpression:
    """An expression of a URI as a string: a call of a URL type is replaced by its argument."""
    if isinstance(value, cst.Call) and last(dotted(value.func)) in (
        "AnyUrl",
        "FileUrl",
        "AnyHttpUrl",
    ):
        return value.args[0].value
    if isinstance(
        value, cst.SimpleString | cst.FormattedString | cst.ConcatenatedString
    ) or code_of(value).startswith("str("):
        return value
    return cst.Call(func=cst.Name("str"), args=[cst.Arg(value=value)])
