"""Finds what a file uses of other SDKs: servers, contexts, clients, and how it runs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, QualifiedNameProvider

from .syntax import (
    annotation_names,
    dotted,
    every_node,
    last,
    own_statements,
    parameters,
    peer_name,
)
from .tables import PEERS

HIGH = frozenset({"FastMCP", "MCPServer"})
SESSIONS = frozenset({"Client", "ClientSession"})


@dataclass
class FileSurvey:
    """What a file uses.

    Attributes:
        high: The names of servers with decorators, such as `mcp` and `self.app`.
        low: The names of low-level servers.
        contexts: The names of contexts.
        clients: The names of clients, and whether a client is a session of the official SDK or a
            client whose lists are results.
        classes: The names of classes that derive from a server.
        makers: The names of functions that return a server.
        sdks: The peers that the file imports.
        results: The names of results of lists, whose items are in an attribute.
        calls: The names of results of FastMCP's `call_tool`.
        handlers: The names of handlers of low-level servers.
    """

    high: set[str] = field(default_factory=set)
    low: set[str] = field(default_factory=set)
    contexts: set[str] = field(default_factory=set)
    clients: dict[str, bool] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    makers: set[str] = field(default_factory=set)
    sdks: set[str] = field(default_factory=set)
    results: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    handlers: set[str] = field(default_factory=set)

    @property
    def servers(self) -> set[str]:
        """The names of all servers."""
        return self.high | self.low


def survey(module: cst.Module) -> FileSurvey:
    """Look through a file."""
    visitor = _Survey()
    MetadataWrapper(module, unsafe_skip_copy=True).visit(visitor)
    return visitor.found


def share(found: dict[Path, FileSurvey], modules: dict[Path, cst.Module]) -> None:
    """Let files know the servers, classes and functions that they import from one another."""
    changed = True
    while changed:
        changed = False
        for path, module in modules.items():
            for source, alias in _imports(module):
                origin = next((p for p in found if p != path and _is_module(p, source)), None)
                if origin is None:
                    continue
                name = dotted(alias.name)
                local = dotted(alias.asname.name) if alias.asname is not None else name
                theirs = found[origin]
                mine = found[path]
                for there, here in (
                    (theirs.high, mine.high),
                    (theirs.low, mine.low),
                    (theirs.classes, mine.classes),
                    (theirs.makers, mine.makers),
                ):
                    if name in there and local not in here:
                        here.add(local)
                        changed = True


def _imports(module: cst.Module) -> Iterable[tuple[str, cst.ImportAlias]]:
    for node in every_node(module):
        if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            source = dotted(node.module) if node.module is not None else ""
            for alias in node.names:
                yield source or dotted(alias.name), alias


def _is_module(path: Path, name: str) -> bool:
    parts = name.split(".")
    own = [*path.with_suffix("").parts]
    if own[-1] == "__init__":
        own.pop()
    return own[-len(parts) :] == parts


class _Survey(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (QualifiedNameProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.found = FileSurvey()

    # -- imports -----------------------------------------------------------------------------------

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        if node.module is not None and not node.relative:
            self._note(dotted(node.module))

    def visit_Import(self, node: cst.Import) -> None:
        for alias in node.names:
            self._note(dotted(alias.name))

    def _note(self, name: str) -> None:
        if name.split(".")[0] in PEERS:
            self.found.sdks.add("fastmcp" if name.split(".")[0] == "fastmcp" else "mcp")

    # -- servers and clients -----------------------------------------------------------------------

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self._assigned(dotted(target.target), node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if node.value is not None:
            self._assigned(dotted(node.target), node.value)
        for name in annotation_names(node.annotation.annotation):
            self._by_type(dotted(node.target), name)

    def visit_WithItem(self, node: cst.WithItem) -> None:
        if node.asname is not None:
            self._assigned(dotted(node.asname.name), node.item)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        for base in node.bases:
            if (
                last(peer_name(self, base.value)) in HIGH
                or dotted(base.value) in self.found.classes
            ):
                self.found.classes.add(node.name.value)
                self.found.high.add("self")

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        for parameter in parameters(node):
            if parameter.annotation is not None:
                for name in annotation_names(parameter.annotation.annotation):
                    self._by_type(parameter.name.value, name)
            elif (
                parameter.default is not None
                and last(peer_name(self, getattr(parameter.default, "func", parameter.default)))
                == "CurrentContext"
            ):
                self.found.contexts.add(parameter.name.value)
        if node.returns is not None and last(peer_name(self, node.returns.annotation)) in HIGH:
            self.found.makers.add(node.name.value)

    def _assigned(self, name: str, value: cst.BaseExpression) -> None:
        if isinstance(value, cst.Await):
            value = value.expression
        if name and isinstance(value, cst.Attribute) and value.attr.value == "request_context":
            self.found.contexts.add(name)
        if not name or not isinstance(value, cst.Call):
            return
        made = peer_name(self, value.func)
        called = dotted(value.func)
        if last(made) in HIGH or called in self.found.classes or called in self.found.makers:
            self.found.high.add(name)
        elif last(made) == "Server":
            self.found.low.add(name)
        elif last(made) in SESSIONS or last(made) == "create_connected_server_and_client_session":
            # FastMCP's client returns lists; the sessions and the client of the SDK return results
            self.found.clients[name] = not made.startswith("fastmcp")
        elif last(made) == "get_context" or called.endswith(".get_context"):
            self.found.contexts.add(name)
        elif isinstance(value.func, cst.Attribute):
            of = dotted(value.func.value)
            method = value.func.attr.value
            if of in self.found.high and method in ("as_proxy", "from_openapi", "from_fastapi"):
                self.found.high.add(name)
            if last(peer_name(self, value.func.value)) in HIGH and method in (
                "as_proxy",
                "from_openapi",
                "from_fastapi",
            ):
                self.found.high.add(name)
            if self.found.clients.get(of) and method.startswith("list_"):
                self.found.results.add(name)
            if self.found.clients.get(of) is False and method == "call_tool":
                self.found.calls.add(name)

    def _by_type(self, name: str, annotation: cst.CSTNode) -> None:
        found = peer_name(self, annotation)
        kind = last(found)
        if kind in HIGH or dotted(annotation) in self.found.classes:  # type: ignore[arg-type]  # reason: annotation_names finds expressions only
            self.found.high.add(name)
        elif kind == "Context":
            self.found.contexts.add(name)
        elif kind in SESSIONS:
            self.found.clients[name] = not found.startswith("fastmcp")
        elif kind == "Server":
            self.found.low.add(name)


def raises_in(function: cst.FunctionDef) -> Sequence[cst.Raise]:
    """Return the raise statements of a function that no `try` of it surrounds."""
    guarded: set[int] = set()
    own: list[Any] = own_statements(function.body)
    for one in own:
        if isinstance(one, cst.Try | cst.TryStar):
            guarded |= {id(inner) for inner in every_node(one.body) if isinstance(inner, cst.Raise)}
    return [one for one in own if isinstance(one, cst.Raise) and id(one) not in guarded]
