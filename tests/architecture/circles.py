"""Import cycles between files: groups of files that import each other, directly or through
others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.architecture.source import SourceTree

# Files that are still in an import cycle. Remove a file once its cycle is cut; do not add files.
OPEN = frozenset(
    {
        "interlock_servers.git.index",
        "interlock_servers.git.repositories",
    }
)


def problems(source_tree: SourceTree) -> Iterator[str]:
    """Every cycle with a file outside the list above, and every listed file that is not in a
    cycle."""
    found = cycles(graph(source_tree))
    for cycle in found:
        if not OPEN.issuperset(cycle):
            yield f"import cycle: {', '.join(cycle)}"
    for name in sorted(OPEN - {name for cycle in found for name in cycle}):
        yield f"{name} is in no import cycle any more: take it out of OPEN"


def graph(source_tree: SourceTree) -> dict[str, set[str]]:
    """For each file, the files that it imports: for type checking and inside functions too."""
    return {
        source.name: {
            found.target
            for found in source_tree.imports(source)
            if found.target in source_tree.modules and found.target != source.name
        }
        for source in source_tree.sources
    }


def cycles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """The strongly connected groups of more than one file (Tarjan's algorithm, without
    recursion)."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for root in imports:
        if root in index:
            continue
        index[root] = lowest[root] = len(index)
        stack.append(root)
        path = [(root, iter(sorted(imports[root])))]
        while path:
            name, others = path[-1]
            for other in others:
                if other not in index:
                    index[other] = lowest[other] = len(index)
                    stack.append(other)
                    path.append((other, iter(sorted(imports[other]))))
                    break
                if other in stack:
                    lowest[name] = min(lowest[name], index[other])
            else:
                path.pop()
                if path:
                    parent = path[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[name])
                if lowest[name] == index[name]:
                    start = stack.index(name)
                    if len(stack) - start > 1:
                        found.append(sorted(stack[start:]))
                    del stack[start:]
    return sorted(found)
