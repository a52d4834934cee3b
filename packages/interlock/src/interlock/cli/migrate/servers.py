"""Finds the servers of a project that can be started: objects at the top level of its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import libcst as cst

from .survey import share, survey
from .syntax import dotted
from .tables import PEERS


def server_objects(sources: Mapping[Path, str]) -> list[tuple[Path, str]]:
    """Return the file and the name of each server that is assigned at the top level of a file."""
    modules = {
        path: cst.parse_module(text)
        for path, text in sources.items()
        if any(name in text for name in PEERS)
    }
    found = {path: survey(module) for path, module in modules.items()}
    share(found, modules)
    return [
        (path, name)
        for path, module in modules.items()
        for name in _assigned(module)
        if name in found[path].servers
    ]


def _assigned(module: cst.Module) -> list[str]:
    names = []
    for statement in module.body:
        if isinstance(statement, cst.SimpleStatementLine):
            for one in statement.body:
                if isinstance(one, cst.Assign) and isinstance(one.value, cst.Call):
                    names += [dotted(target.target) for target in one.targets]
                elif isinstance(one, cst.AnnAssign) and isinstance(one.value, cst.Call):
                    names.append(dotted(one.target))
    return list(dict.fromkeys(names))
