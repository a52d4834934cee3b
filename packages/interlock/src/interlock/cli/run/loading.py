"""Finds the server object in a Python file."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import click

from ... import Server
from .. import exits

PREFERRED = ("server", "mcp", "app")


class TargetError(click.ClickException):
    """A file does not contain a server that can be run. This is not a usage error, so no usage is
    shown.
    """

    exit_code = exits.USAGE


def load_server(path: Path, name: str | None, arguments: Sequence[str] = ()) -> Server:
    """Import a file, under its own name and not as `__main__`, and return the server in it.

    An exception of the file itself is passed on.

    Args:
        path: The file.
        name: The name of the object in it. None: the only server there, or the one called `server`,
            `mcp` or `app`. A function with that name is called and returns the server.
        arguments: The `sys.argv` of the file, after its own name.

    Raises:
        TargetError: There is no server, or more than one.
    """
    if not path.is_file():
        raise TargetError(f"There is no file {path}.")
    # The objects of the file are finalized at exit as in any program, those in cycles too.
    atexit.unregister(gc.freeze)
    module = _import(path.resolve(), arguments)
    return _named(module, path, name) if name is not None else _only(module, path)


def _named(module: ModuleType, path: Path, name: str) -> Server:
    found = getattr(module, name, None)
    if found is None:
        raise TargetError(f"There is no {name} in {path}.{_hint(module)}")
    if callable(found) and not isinstance(found, Server | type):
        found = found()
    if not isinstance(found, Server):
        raise TargetError(
            f"{name} in {path} is {_kind(found)} and not an Interlock Server.{_hint(module)}"
        )
    return found


def _only(module: ModuleType, path: Path) -> Server:
    servers = _servers(module)
    if not servers:
        found = next((n for n in PREFERRED if hasattr(module, n)), None)
        words = f" {found} in it is {_kind(getattr(module, found))}." if found else ""
        raise TargetError(f"There is no Interlock Server in {path}.{words}")
    if len({id(server) for server in servers.values()}) == 1:
        return next(iter(servers.values()))
    for name in PREFERRED:
        if name in servers:
            return servers[name]
    raise TargetError(
        f"{path} has more than one server: {', '.join(servers)}. Choose one: "
        f"{path}:{next(iter(servers))}"
    )


def _servers(module: ModuleType) -> dict[str, Server]:
    return {name: value for name, value in vars(module).items() if isinstance(value, Server)}


def _hint(module: ModuleType) -> str:
    servers = _servers(module)
    return f" The servers in it: {', '.join(servers)}." if servers else ""


def _kind(value: Any) -> str:
    kind = type(value)
    return f"a {kind.__module__}.{kind.__qualname__}"


def _import(path: Path, arguments: Sequence[str]) -> ModuleType:
    """Run a file as a module. A file in a package gets its dotted name, so that relative imports
    work.
    """
    name = path.stem
    top = path.parent
    while (top / "__init__.py").is_file():
        name = f"{top.name}.{name}"
        top = top.parent
    if str(top) not in sys.path:
        sys.path.insert(0, str(top))
    if str(path.parent) not in sys.path:
        # The file is in a package: the other files there have dotted names, and must not shadow
        # other modules.
        sys.path.append(str(path.parent))
    sys.argv[:] = [str(path), *arguments]
    if "." in name:
        return importlib.import_module(name)
    if name in sys.modules or name in sys.stdlib_module_names:
        name = f"interlock_file_{name}"  # the file may have the name of an existing module
    loader = _Uncached(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise TargetError(f"{path} is not a Python file.")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class _Uncached(importlib.machinery.SourceFileLoader):
    """Compiles a file each time, as for a script: cached byte code may be outdated if the file
    changed within a second and kept its size.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return compile(self.get_data(path), path, "exec", dont_inherit=True)


@contextlib.contextmanager
def wire_kept_clear() -> Iterator[None]:
    """While a file is imported, its output goes to stderr and its stdin is empty, because stdin and
    stdout carry the protocol.
    """
    sys.stdout.flush()
    kept_in = os.dup(0)
    kept_out = os.dup(1)
    stdout = sys.stdout
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        sys.stdout = stdout
        os.dup2(kept_in, 0)
        os.dup2(kept_out, 1)
        os.close(kept_in)
        os.close(kept_out)
