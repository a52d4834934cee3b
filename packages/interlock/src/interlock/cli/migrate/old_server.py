"""Starts a server of another SDK over stdio, from its file: the old side of a proof.

It runs under the Python that has the other SDK, and imports nothing of Interlock.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import os
import sys
from pathlib import Path
from typing import Any

_HIGH = {"FastMCP", "MCPServer"}


def load(path: Path) -> Any:
    """Import a file under its own name; one in a package under its dotted name."""
    name = path.stem
    top = path.parent
    while (top / "__init__.py").is_file():
        name = f"{top.name}.{name}"
        top = top.parent
    sys.path[:0] = [str(top)]
    sys.path.append(str(path.parent))
    if "." in name:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(f"old_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def server_in(module: Any, name: str) -> Any:
    """Return the server of a module: an object, or what a function of that name returns."""
    found = getattr(module, name) if name else None
    if found is None:
        kinds = [
            one
            for one in vars(module).values()
            if any(base.__name__ in {*_HIGH, "Server"} for base in type(one).__mro__)
        ]
        found = kinds[0] if kinds else None
    if inspect.isfunction(found):
        found = found()
    return found


async def low_level(server: Any) -> None:
    """Serve a low-level server over stdio."""
    stdio_server = importlib.import_module("mcp.server.stdio").stdio_server
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main(path: str, name: str) -> None:
    """Serve, with stdout kept for the protocol while the file is imported."""
    sys.argv[:] = [path]
    kept = os.dup(1)
    os.dup2(2, 1)
    server = server_in(load(Path(path)), name)
    os.dup2(kept, 1)
    if server is None:
        raise SystemExit(f"no server in {path}")
    if any(base.__name__ in _HIGH for base in type(server).__mro__):
        server.run(transport="stdio")
    else:
        asyncio.run(low_level(server))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
