"""Describes every public name of the libraries, from their docstrings, as Markdown."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import griffe

ROOT: Final = Path(__file__).resolve().parents[2]

MODULES: Final = (
    "interlock",
    "interlock.auth",
    "interlock.auth.tokens",
    "interlock.sync",
    "interlock.testing",
    "interlock.store",
    "interlock.middleware",
    "interlock.skills",
    "interlock.configs",
    "interlock.doctor",
    "interlock.types",
    "interlock_issuer",
)
"""The public modules that have a page, in the order of the navigation."""

_SIMPLE: Final = ("BaseException", "Struct", "NamedTuple")


def pages() -> dict[str, str]:
    """Return the pages by path below `reference/api/`, without the suffix."""
    loader = griffe.GriffeLoader(
        search_paths=[str(path) for path in sorted((ROOT / "packages").glob("*/src"))],
        docstring_parser=griffe.Parser.google,
        docstring_options={"warnings": False},
    )
    loader.finder = _Finder(loader.finder.search_paths, _needed())
    for name in sorted({name.partition(".")[0] for name in MODULES}):
        loader.load(name)
    loader.resolve_aliases(implicit=False, external=False)
    found: dict[str, str] = {}
    for name in MODULES:
        found |= _module(name, loader.modules_collection[name])
    return found


class _Finder(griffe.ModuleFinder):
    """Finds only the modules that are needed: reading all of them takes several seconds."""

    def __init__(self, search_paths: Sequence[Path], needed: set[str]) -> None:
        super().__init__(search_paths)
        self._needed = needed

    def submodules(self, module: griffe.Module) -> list[tuple[tuple[str, ...], Path]]:
        """Return the needed modules below a package."""
        return [
            (parts, path)
            for parts, path in super().submodules(module)
            if ".".join((module.path, *parts)) in self._needed
        ]


def _needed() -> set[str]:
    """The modules with a page, those that define the names they export, and their packages."""
    needed: set[str] = set()
    waiting = list(MODULES)
    while waiting:
        name = waiting.pop()
        file = _file(name) if name not in needed else None
        if file is not None:
            needed.add(name)
            waiting += filter(None, [name.rpartition(".")[0]])
            waiting += _origins(name, file)
    return needed


def _file(module: str) -> Path | None:
    """The file of a module; None if there is none."""
    for folder in (ROOT / "packages").glob("*/src"):
        place = folder.joinpath(*module.split("."))
        for path in (place / "__init__.py", place.with_suffix(".py")):
            if path.is_file():
                return path
    return None


def _origins(module: str, file: Path) -> Iterator[str]:
    """The modules that a module imports exported names from."""
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(file.read_text(encoding="utf-8"))
    exported = _exported(tree)
    for node in ast.walk(tree) if exported else ():
        if isinstance(node, ast.ImportFrom):
            names = {alias.asname or alias.name for alias in node.names}
            if names & exported:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = above if node.level else []
                origin = ".".join([*base, *filter(None, [node.module])])
                yield origin
                yield from (f"{origin}.{alias.name}" for alias in node.names)


def _exported(tree: ast.Module) -> set[str]:
    """The names in `__all__`; none if there is no such list."""
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and target.id == "__all__" and value is not None:
            constants = (one for one in ast.walk(value) if isinstance(one, ast.Constant))
            return {one.value for one in constants if isinstance(one.value, str)}
    return set()


def public(module: griffe.Module) -> list[str]:
    """Return the public names of a module: those in `__all__`, or else those that it defines itself
    and that begin without an underscore.
    """
    exported = module.exports
    if exported is not None:
        return sorted(name for name in map(str, exported) if not name.startswith("_"))
    return sorted(
        name
        for name, member in module.members.items()
        if not name.startswith("_") and not isinstance(member, griffe.Alias)
    )


def _module(name: str, module: griffe.Module) -> dict[str, str]:
    """The page of a module, and one for each of its classes that has methods."""
    lines = [f"# {name}", "", *_summary(module)]
    pages: dict[str, str] = {}
    rows: list[str] = []
    details: list[str] = []
    for each in public(module):
        member = _target(module, each)
        if member is None:
            continue
        first = _first_sentence(member)
        if isinstance(member, griffe.Class) and list(_methods(member)):
            path = f"{name}.{each}"
            pages[path] = "\n".join([f"# {each}", "", *_class(each, member, name, 2)]) + "\n"
            rows.append(f"| [`{each}`]({path}.md) | {first} |")
        else:
            rows.append(f"| [`{each}`](#{each.lower()}) | {first} |")
            details += [f"## {each}", "", *_object(each, member, name), ""]
    lines += ["", "| name | |", "|---|---|", *rows, "", *details]
    return {name: "\n".join(lines) + "\n", **pages}


def _target(module: griffe.Module, name: str) -> griffe.Object | None:
    """The object behind a public name; None for a plain value without a docstring."""
    member = module.members.get(name)
    if member is None:
        return None
    try:
        found = member.final_target if isinstance(member, griffe.Alias) else member
    except griffe.AliasResolutionError:
        return None
    return found if isinstance(found, griffe.Object) else None


def _summary(thing: griffe.Object) -> list[str]:
    return list(_docstring(thing))


def _object(name: str, thing: griffe.Object, module: str) -> Iterator[str]:
    if isinstance(thing, griffe.Class):
        yield from _class(name, thing, module, 3)
    elif isinstance(thing, griffe.Function):
        yield from _code(f"{_async(thing)}def {name}{_signature(thing)}")
        yield from _docstring(thing)
    elif isinstance(thing, griffe.Attribute):
        annotation = f": {thing.annotation}" if thing.annotation else ""
        value = f" = {thing.value}" if thing.value and len(str(thing.value)) < 100 else ""
        yield from _code(f"{name}{annotation}{value}")
        yield from _docstring(thing)
    else:
        yield from _docstring(thing)


def _class(name: str, thing: griffe.Class, module: str, level: int) -> Iterator[str]:
    bases = ", ".join(str(base) for base in thing.bases)
    constructor = thing.members.get("__init__")
    signature = (
        _signature(constructor)
        if isinstance(constructor, griffe.Function)
        else f"({_fields(thing)})"
    )
    yield f"`from {module} import {name}`"
    yield ""
    yield from _code(f"class {name}{signature.partition(' -> ')[0]}")
    if bases:
        yield f"Bases: `{bases}`"
        yield ""
    yield from _docstring(thing)
    if isinstance(constructor, griffe.Function) and constructor.docstring and not thing.docstring:
        yield from _docstring(constructor)
    for method in _methods(thing):
        yield f"{'#' * level} {method.name}"
        yield ""
        if isinstance(method, griffe.Function):
            yield from _code(f"{_async(method)}def {method.name}{_signature(method)}")
        else:
            yield from _code(f"{method.name}: {getattr(method, 'annotation', '')}")
        yield from _docstring(method)


def _methods(thing: griffe.Class) -> Iterator[griffe.Object]:
    """The documented public methods and properties of a class, in the order of the source."""
    for name, member in thing.members.items():
        if name.startswith("_") or isinstance(member, griffe.Alias) or not member.docstring:
            continue
        if isinstance(member, griffe.Function) or "property" in member.labels:
            yield member


def _fields(thing: griffe.Class) -> str:
    """The fields of a record, as its constructor takes them."""
    found = []
    for name, member in thing.members.items():
        if isinstance(member, griffe.Attribute) and member.annotation and not name.startswith("_"):
            if "ClassVar" in str(member.annotation):
                continue
            default = f" = {member.value}" if member.value is not None else ""
            found.append(f"{name}: {member.annotation}{default}")
    return _wrapped(found)


def _signature(function: griffe.Function) -> str:
    parts: list[str] = []
    seen_keyword = False
    for parameter in function.parameters:
        if parameter.name in ("self", "cls") and not parts:
            continue
        kind = parameter.kind
        if kind is griffe.ParameterKind.keyword_only and not seen_keyword:
            seen_keyword = True
            parts.append("*")
        prefix = {
            griffe.ParameterKind.var_positional: "*",
            griffe.ParameterKind.var_keyword: "**",
        }.get(kind, "")
        seen_keyword = seen_keyword or prefix == "*"
        text = f"{prefix}{parameter.name}"
        if parameter.annotation is not None:
            text += f": {parameter.annotation}"
        if parameter.default is not None and not prefix:
            text += f" = {parameter.default}"
        parts.append(text)
    returns = f" -> {function.returns}" if function.returns is not None else ""
    return f"({_wrapped(parts)}){returns}"


def _wrapped(parts: list[str]) -> str:
    """Parameters in one line if they fit, else one a line."""
    line = ", ".join(parts)
    return line if len(line) < 70 else "\n" + "".join(f"    {part},\n" for part in parts)


def _async(function: griffe.Function) -> str:
    return "async " if "async" in function.labels else ""


def _code(text: str) -> list[str]:
    return ["```python", text, "```", ""]


def _docstring(thing: griffe.Object) -> Iterator[str]:
    """The sections of a docstring."""
    if thing.docstring is None:
        return
    for section in thing.docstring.parse(griffe.Parser.google, warnings=False):
        kind = section.kind.value
        if kind == "text":
            yield from (section.value, "")
        elif kind in ("parameters", "other parameters", "attributes", "raises"):
            head = {"raises": "raises", "attributes": "attribute"}.get(kind, "parameter")
            yield from (f"| {head} | |", "|---|---|")
            for item in section.value:
                name = getattr(item, "name", None) or str(item.annotation or "")
                yield f"| `{name}` | {_line(item.description)} |"
            yield ""
        elif kind in ("returns", "yields"):
            word = kind.capitalize()
            yield from (f"**{word}** " + " ".join(_line(i.description) for i in section.value), "")
        elif kind == "examples":
            for _, text in section.value:
                yield from _code(text)
        else:
            yield from (_line(getattr(section.value, "description", "")), "")


def _first_sentence(thing: griffe.Object) -> str:
    text = thing.docstring.value if thing.docstring is not None else ""
    first = _line(text.partition("\n\n")[0])
    return re.split(r"(?<=[.:])\s", first, maxsplit=1)[0].rstrip(":")


def _line(text: str) -> str:
    """A text in one line, for a cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()
