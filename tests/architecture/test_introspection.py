"""Every public name supports introspection: `help`, `inspect.signature` and, with listed
exceptions, type hints."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

MODULES = [
    "interlock",
    "interlock.types",
    "interlock.schema",
    "interlock.store",
    "interlock.auth",
    "interlock.testing",
    "interlock.sync",
]

# Names in annotations that are missing at run time, each for a reason that matters more than its
# hint.
UNRESOLVED = {
    "Skills": "few servers have skills",
    "Skill": "few clients use skills",
    "SkillListing": "few clients use skills",
    "TaskHandle": "few clients use tasks",
    "FallbackModel": "few servers ask models",
    "AppOptions": "the HTTP endpoint is only loaded by servers on the web",
    "HttpOptions": "the HTTP server is only loaded by servers on the web",
    "RunOptions": "a server in memory or over stdio has none of them",
    "Routes": "few servers have routes",
    "Csp": "apps are only loaded by servers that have them",
    "jsonschema_rs": "it is loaded when the first schema is compiled",
    "KeyringBackend": "an optional package",
    "SigningKey": "joserfc is loaded by whoever signs",
    "Memory": "a server that runs as a program has its peer elsewhere",
    "ServerSource": "few servers are mounted",
    "ClientSource": "few clients are mounted",
    "Mount": "few servers mount others",
    "Source": "few servers mount others",
    "UpstreamState": "few servers mount others",
    "SkillFeature": "few servers have skills",
}


def public(module: str) -> Iterator[tuple[str, Any]]:
    """The public names of a module, with their objects."""
    loaded = importlib.import_module(module)
    listed = getattr(loaded, "__all__", None)
    for name in listed if listed is not None else dir(loaded):
        value = getattr(loaded, name)
        ours = getattr(value, "__module__", "") or ""
        if listed is not None or (not name.startswith("_") and ours == module):
            yield f"{module}.{name}", value


NAMES = {name: value for module in MODULES for name, value in public(module)}
CALLABLE = {
    name: value
    for name, value in NAMES.items()
    if callable(value) and typing.get_origin(value) is None
}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_for_authors_lists_its_names(module: str) -> None:
    """So `import *`, and an editor that completes, offer these and no others."""
    assert importlib.import_module(module).__all__


def parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A class or function itself, and the public methods and properties of a class."""
    yield name, value
    if not inspect.isclass(value):
        return
    for member, of in inspect.getmembers(value):
        if member.startswith("_") and member != "__init__":
            continue
        function = of.fget if isinstance(of, property) else of
        if inspect.isfunction(function) or inspect.ismethod(function):
            yield f"{name}.{member}", function


@cache
def unresolved(function: Any) -> str | None:
    """The first name in the annotations that is missing at run time, if there is one."""
    try:
        typing.get_type_hints(function, include_extras=True)
    except NameError as bad:
        return str(bad.name)
    return None


@pytest.mark.parametrize("name", CALLABLE)
def test_help_and_signatures_work(name: str) -> None:
    """For a name and all its methods; notebooks, editors and documentation tools use them."""
    assert pydoc.render_doc(CALLABLE[name])
    for part, function in parts(name, CALLABLE[name]):
        assert inspect.signature(function) is not None, part


@pytest.mark.parametrize("name", CALLABLE)
def test_type_hints_can_be_resolved(name: str) -> None:
    """All except the names that are not loaded on purpose; each of these exceptions is still
    necessary."""
    for part, function in parts(name, CALLABLE[name]):
        missing = unresolved(function)
        assert missing is None or missing in UNRESOLVED, f"{part}: {missing} is not defined"


def test_help_of_the_packages_works() -> None:
    """`help(interlock)` shows all of it."""
    for module in MODULES:
        assert pydoc.render_doc(importlib.import_module(module))


def test_every_name_that_is_not_resolved_is_one_that_is_met() -> None:
    """An exception without a use is removed from the list."""
    met: set[str | None] = set()
    for name, value in CALLABLE.items():
        for _, function in parts(name, value):
            met.add(unresolved(function))
    assert met - {None} <= UNRESOLVED.keys()
    assert "AppOptions" in met
