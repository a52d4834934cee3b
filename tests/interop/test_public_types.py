"""A second type checker knows every type of the public interface."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import dist, peers

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_no_type_is_unknown(tmp_path: Path, installed: Callable[[str], Path]) -> None:
    """Not one symbol of the wheel has a type that a user's type checker cannot name."""
    (wheel,) = (one for one in dist.build(tmp_path) if one.name.startswith("interlock-"))
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path / "site")
    program = installed("npm-pyright") / "node_modules" / "pyright" / "index.js"
    options = ["--outputjson", "--ignoreexternal", "--verifytypes", "interlock"]
    # It asks the Python on the path where packages are.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [str(peers.node()), str(program), *options],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    symbols = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    # The migrator is a program, not an interface, and its bases are in the package of an extra.
    exported = [
        one
        for one in symbols
        if one["isExported"] and not one["name"].startswith("interlock.cli.migrate.")
    ]
    unknown = [
        f"{one['name']}: {note['message']}"
        for one in exported
        if not one["isTypeKnown"] and not one["isTypeAmbiguous"]
        for note in one.get("diagnostics", [{"message": "unknown"}])
    ]
    assert exported
    assert not unknown, "\n".join(unknown)
