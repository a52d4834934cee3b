"""The repository that the tests are in, for servers that are used over it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).parents[4]


def clone(folder: Path) -> Path:
    """A clone of this repository in a folder that is made, with files of its own: no hard links,
    which the filesystem server refuses.

    Where the tests are in no repository, as in an unpacked archive, the test fails in continuous
    integration, and elsewhere is skipped.
    """
    if not (TOP / ".git").exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            f"NOT TESTED over this repository: {TOP} is no git checkout"
        )
    subprocess.run(
        ["git", "clone", "--quiet", "--no-hardlinks", str(TOP), str(folder)],
        check=True,
        capture_output=True,
    )
    return folder
