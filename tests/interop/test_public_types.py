"""A second type checker knows every type of the public interface."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import peers

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.mark.parametrize("package", ["interlock", "interlock_issuer"])
def test_no_type_is_unknown(package: str, installed: Callable[[str], Path]) -> None:
    """Not one symbol has a type that a user's type checker cannot name."""
    program = installed("npm-pyright") / "node_modules" / "pyright" / "index.js"
    options = ["--outputjson", "--ignoreexternal", "--pythonpath", sys.executable]
    done = subprocess.run(
        [str(peers.node()), str(program), *options, "--verifytypes", package],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    symbols = json.loads(done.stdout)["typeCompleteness"]["symbols"]
    exported = [one for one in symbols if one["isExported"]]
    unknown = [
        f"{one['name']}: {note['message']}"
        for one in exported
        if not one["isTypeKnown"]
        for note in one.get("diagnostics", [{"message": "unknown"}])
    ]
    assert exported
    assert not unknown, "\n".join(unknown)
