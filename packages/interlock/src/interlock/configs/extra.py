"""Optional dependencies: tomlkit and ruamel.yaml, from the extra `install`."""

from __future__ import annotations

from importlib.util import find_spec

from .text_edits import Uneditable


def require(module: str, syntax: str) -> None:
    """Check that a module of the extra `install` is installed.

    Raises:
        Uneditable: It is not installed.
    """
    try:
        is_there = find_spec(module) is not None
    except ModuleNotFoundError:  # a submodule of a package that is not installed
        is_there = False
    if not is_there:
        raise Uneditable(f"{syntax} needs another package: pip install 'interlock[install]'")
