"""Architecture rules: which package may import which,
by the table of layers in `docs/ARCHITECTURE.md`."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.source import Import, Source, SourceTree

LIBRARY = "interlock"
DISTRIBUTIONS = {
    "interlock": "interlock",
    "interlock-issuer": "interlock_issuer",
    "interlock-apps": "interlock_apps",
    "interlock-servers": "interlock_servers",
}
"""The distributions in `packages/`, each with the package that it holds."""

APART = {4, 5}
"""On these layers the packages never import each other. On other layers a package may import its
neighbour, but not in both directions."""

PURE = 2
"""Layers 0 to 2 are pure: they use no event loops, sockets, processes or threads."""
IMPURE = {
    "_thread", "asyncio", "concurrent", "http.client", "http.server", "multiprocessing", "select",
    "selectors",
    "signal", "socket", "socketserver", "ssl", "subprocess", "threading", "urllib.request",
}  # fmt: skip

CLOCKLESS = {"protocol"}
"""State machines that receive the time as an argument and do not read a clock."""

PURE_PARTS = {
    "interlock.auth.oauth": (
        "interlock.auth.oauth",
        "interlock.types",
        "interlock.http11.fetch",
        "interlock.version",
        "interlock.addresses",
        "interlock.redaction",
        "interlock.untrusted",
        "interlock.caches",
        "interlock.lazy_names",
        "interlock.protocol.handshake.messages",
    )
}
"""Parts of a package that are equally pure and use no clock, with the modules of the library that
they may import."""

ACTING = {3: {"http11", "store"}, 4: {"transport", "sandbox"}}
"""The modules below layer 5 that may open sockets, processes and files."""

APPS = ({"fleet"}, {"web"}, {"host", "gateway", "inspector"}, {"commands", "demo"})
"""The packages of `interlock_apps` from the bottom up.
Those in the middle never import each other."""

# Distributions whose module has another name.
OTHERWISE = {
    "argon2_cffi": "argon2",
    "python_dateutil": "dateutil",
    "ruamel.yaml": "ruamel",
    "prompt_toolkit": "prompt_toolkit",
    "markdown_it_py": "markdown_it",
    "opentelemetry_sdk": "opentelemetry",
    "pydocket": "docket",
}

# A pytest plugin imports pytest, which is installed wherever the plugin is loaded. An adapter to a
# framework imports that framework when it is first used.
GUESTS = {
    "interlock.testing": {"pytest", "_pytest"},
    "interlock.integrations": {"agents", "langchain_core", "mcp", "pydantic_ai", "pydantic_core"},
    "interlock.deprecation": {"typing_extensions"},  # for type checkers, which all include it
}

_ROW = re.compile(r"^\|\s*(\d+)\s*\|(.*?)\|", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")


@dataclass(frozen=True)
class Plan:
    """The intended architecture.

    Attributes:
        layers: The number of the layer of each package of the library.
        public: The modules of the library that other distributions may import.
        dependencies: For each package of a distribution,
            the modules of its dependencies and extras.
    """

    layers: Mapping[str, int]
    public: frozenset[str]
    dependencies: Mapping[str, frozenset[str]]


def read_plan(top: Path) -> Plan:
    """Read the plan from `docs/ARCHITECTURE.md`,
    `docs/api.txt` and the `pyproject.toml` of each distribution."""
    return Plan(
        layers=layer_table((top / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")),
        public=public_modules((top / "docs/api.txt").read_text(encoding="utf-8")),
        dependencies={
            package: dependencies(top / "packages" / name / "pyproject.toml")
            for name, package in DISTRIBUTIONS.items()
        },
    )


def layer_table(text: str) -> dict[str, int]:
    """The layers in the table of a Markdown page: number, then names in backticks."""
    return {
        name: int(number) for number, names in _ROW.findall(text) for name in _NAME.findall(names)
    }


def public_modules(text: str) -> frozenset[str]:
    """The modules in a list: one per line, with comments after `#`."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return frozenset(line for line in lines if line)


def dependencies(pyproject: Path) -> frozenset[str]:
    """The modules of the dependencies and extras of one distribution."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project.get("optional-dependencies", {})
    lines = [*project["dependencies"], *(line for extra in extras.values() for line in extra)]
    names = {re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0] for line in lines}
    plain = {name.replace("-", "_").lower() for name in names}
    return frozenset({OTHERWISE.get(name, name) for name in plain})


def problems(source_tree: SourceTree, plan: Plan) -> Iterator[str]:
    """Every import that the plan forbids, one line each."""
    sideways: dict[tuple[str, str], str] = {}
    for source in source_tree.sources:
        own = package_of(source.name)
        if own.startswith(f"{LIBRARY}.") and _leaf(own) not in plan.layers:
            yield f"{source.where}: {own} is on no layer of docs/ARCHITECTURE.md"
            continue
        part = next((part for part in PURE_PARTS if _is_beneath(source.name, part)), None)
        for found in source_tree.imports(source):
            at = f"{source.where}:{found.line}"
            if part is not None:
                yield from _in_pure_part(part, found, at)
            if top_of(found.target) not in DISTRIBUTIONS.values():
                yield from _outside(source, found, at, plan)
            elif package_of(found.target) != own:
                yield from _between(source, found, at, plan)
                sideways.setdefault((own, package_of(found.target)), at)
    for (one, other), at in sideways.items():
        if one < other and (other, one) in sideways and _same_layer(one, other, plan):
            yield f"{at}: {one} and {other} import each other (see {sideways[other, one]})"


def _same_layer(one: str, other: str, plan: Plan) -> bool:
    if not top_of(one) == top_of(other) == LIBRARY:
        return False
    layer = plan.layers.get(_leaf(one))
    return layer == plan.layers.get(_leaf(other)) and layer not in APART


def drawn(source_tree: SourceTree, plan: Plan) -> dict[str, int]:
    """The layers that the imports allow:
    for each package of the library the lowest layer that it could stand on.

    A package is above everything that it imports; on a layer whose packages may use each other, it
    may be beside them.
    """
    uses: dict[str, set[str]] = {name: set() for name in plan.layers}
    for source in source_tree.sources:
        own = package_of(source.name)
        for found in source_tree.imports(source):
            other = package_of(found.target)
            if top_of(own) == top_of(other) == LIBRARY and own != other:
                uses.setdefault(_leaf(own), set()).add(_leaf(other))
    present = {
        _leaf(package_of(source.name))
        for source in source_tree.sources
        if top_of(source.name) == LIBRARY
    }
    return {
        name: max((plan.layers.get(other, -1) for other in uses[name]), default=0)
        for name in present
        if name in uses
    }


def top_of(name: str) -> str:
    """The first part of a dotted name."""
    return name.partition(".")[0]


def package_of(name: str) -> str:
    """The package of a module for the rules: its first two parts.

    `interlock` itself is called `interlock.interlock`, because it has its own layer.
    """
    parts = name.split(".")
    if len(parts) == 1:
        return f"{name}.{name}"
    return ".".join(parts[:2])


def _leaf(package: str) -> str:
    return package.rpartition(".")[2]


def _is_beneath(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}.")


def _in_pure_part(part: str, found: Import, at: str) -> Iterator[str]:
    ours = top_of(found.target) == LIBRARY
    if ours and not any(_is_beneath(found.target, place) for place in PURE_PARTS[part]):
        yield f"{at}: {part} is pure, yet imports {found.target}"
    if not ours and any(_is_beneath(found.target, name) for name in (*IMPURE, "time")):
        yield f"{at}: {part} is pure, yet imports {found.target}"


def _outside(source: Source, found: Import, at: str, plan: Plan) -> Iterator[str]:
    own = package_of(source.name)
    top = top_of(found.target)
    layer = plan.layers.get(_leaf(own)) if top_of(own) == LIBRARY else None
    if (
        layer is not None
        and layer <= PURE
        and any(_is_beneath(found.target, name) for name in IMPURE)
    ):
        yield f"{at}: {own} is pure, yet imports {found.target}"
    if top_of(own) == LIBRARY and _leaf(own) in CLOCKLESS and top == "time":
        yield f"{at}: {own} has no clock, yet imports time"
    known = plan.dependencies[top_of(own)] | plan.dependencies[LIBRARY]
    if top not in sys.stdlib_module_names and top not in known and top not in GUESTS.get(own, ()):
        yield f"{at}: imports {top}, which the pyproject.toml of {top_of(own)} does not name"


def _between(source: Source, found: Import, at: str, plan: Plan) -> Iterator[str]:
    own = package_of(source.name)
    other = package_of(found.target)
    if top_of(own) != top_of(other):
        yield from _between_distributions(own, found, at, plan)
    elif top_of(own) == LIBRARY:
        yield from _between_layers(own, found, at, plan)
    elif top_of(own) == "interlock_apps":
        yield from _between_apps(own, found, at)


def _between_distributions(own: str, found: Import, at: str, plan: Plan) -> Iterator[str]:
    if top_of(own) == LIBRARY:
        yield f"{at}: the library imports {found.target}"
    elif top_of(found.target) != LIBRARY:
        yield f"{at}: {top_of(own)} imports {found.target}; only the library is shared"
    elif found.target not in plan.public:
        yield f"{at}: {own} imports {found.target}, which docs/api.txt does not list as public"


def _between_layers(own: str, found: Import, at: str, plan: Plan) -> Iterator[str]:
    other = package_of(found.target)
    if _leaf(other) not in plan.layers:
        yield f"{at}: imports {found.target}, which is on no layer of docs/ARCHITECTURE.md"
        return
    here = plan.layers[_leaf(own)]
    there = plan.layers[_leaf(other)]
    if there > here:
        yield f"{at}: {own} (layer {here}) imports upward, {found.target} (layer {there})"
    elif there == here and here in APART:
        yield f"{at}: {own} imports {other}; packages of layer {here} stay apart"


def _between_apps(own: str, found: Import, at: str) -> Iterator[str]:
    here = _level(_leaf(own))
    there = _level(_leaf(package_of(found.target)))
    if there > here:
        yield f"{at}: {own} imports upward, {found.target}"
    elif there == here == 2:
        yield f"{at}: {own} imports {found.target}; programs stay apart"


def _level(name: str, levels: Sequence[set[str]] = APPS) -> int:
    return next((number for number, names in enumerate(levels) if name in names), len(levels))
