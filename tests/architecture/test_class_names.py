"""Class names: each is unique in a distribution, and in one reference server.

Each reference server is its own package tree: two of them may have a class `Limits`. The files
directly below `interlock_servers` form one more tree.
"""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.architecture.conftest import Build
from tests.architecture.source import SourceTree

# `interlock.sync` offers blocking versions of these classes under the same names, on purpose: you
# make a program synchronous by changing its import.
TWINS = "interlock.sync"


def tree_of(module: str) -> str:
    """The package tree in which a class name must be unique."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "interlock_servers" and len(parts) > 2 else parts[0]


def repeated(source_tree: SourceTree) -> list[str]:
    """The names of classes that occur more than once in a tree, with their modules."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for source in source_tree.sources:
        if source.name == TWINS:
            continue
        for node, _ in source.nodes:
            if isinstance(node, ast.ClassDef):
                found[tree_of(source.name), node.name].append(source.name)
    return [
        f"{name}: {', '.join(modules)}"
        for (_, name), modules in sorted(found.items())
        if len(modules) > 1
    ]


def test_no_class_name_stands_twice(source_tree: SourceTree) -> None:
    found = repeated(source_tree)
    assert not found, "\n".join(found)


def test_a_name_that_stands_twice_is_found(build: Build) -> None:
    text = '"""What this file is for."""\nclass Page:\n    pass\n'
    assert repeated(build({"wire/a.py": text, "store/b.py": text})) == [
        "Page: interlock.store.b, interlock.wire.a"
    ]
