"""Stands in for packages that a corpus file imports and that are not installed.

Python imports this file when it starts, if its folder is on PYTHONPATH. The names of the packages
are in CORPUS_STUBS. Both servers of a comparison get the same ones.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

_NAMES = frozenset(os.environ.get("CORPUS_STUBS", "").split(","))


class _Stub(ModuleType):
    """A module whose names are all there."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        kind = type(name, (Exception if name.endswith(("Error", "Exception")) else object,), {})
        made: Any = kind if name[:1].isupper() and kind.__base__ is Exception else MagicMock()
        setattr(self, name, made)
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what nobody else has found."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in _NAMES:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is in it."""


sys.meta_path.append(_Finder())
