"""Runs a command beside everything that it must not reach: as root or as an ordinary user, under
one mechanism.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import interlock
from interlock.sandbox import mechanism_states

HERE = Path(__file__).parent
USERS = ("root", "ordinary")
MECHANISMS = ("bubblewrap", "landlock")
_NOBODY = 65534


class Ran(NamedTuple):
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str


def need(mechanism: str) -> None:
    """Skip the test, with the reason, where a mechanism does not work."""
    for state in mechanism_states():
        if state.name == mechanism and state.problem:
            pytest.skip(f"NOT SHOWN HERE: {mechanism}: {state.problem}")


def python_of(user: str) -> str:
    """The interpreter that a user can run. Skips the test where there is none."""
    am_root = os.geteuid() == 0
    if user == "root" and not am_root:
        pytest.skip("NOT SHOWN HERE: only root can run it as root")
    if user == "root" or not am_root:
        return sys.executable
    found = _python_of_nobody()
    if not found:
        pytest.skip(
            "NOT SHOWN HERE: an ordinary user cannot run this Python, and there is none "
            "of its version elsewhere"
        )
    return found


@functools.cache
def _python_of_nobody() -> str:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, shutil.which(version, path=os.defpath)):
        if python is None:
            continue
        try:
            subprocess.run([python, "-c", ""], user=_NOBODY, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    return ""


def run_beside(
    mechanism: str,
    user: str,
    script: str,
    policy: dict[str, Any] | None = None,
) -> Ran:
    """Run a script of this folder beside the scene of `outside.py`.

    Args:
        mechanism: The only mechanism to use; "none" for no sandbox.
        user: "root" or "ordinary".
        script: The file of the script, which gets the scene as its argument.
        policy: The arguments of `Sandbox`.
    """
    if mechanism != "none":
        need(mechanism)
    python = python_of(user)
    packages = sysconfig.get_paths()["purelib"]
    source = str(Path(interlock.__file__).parent.parent)
    folder = Path(tempfile.mkdtemp(prefix="interlock-scene-"))
    started: dict[str, Any] = {}
    if user == "ordinary" and os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)
        started = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
    words = [mechanism, str(folder), json.dumps(policy or {}), python, str(HERE / script)]
    try:
        ran = subprocess.run(
            [python, "-B", str(HERE / "outside.py"), *words],
            env={
                "PATH": os.defpath,
                "HOME": str(folder / "home"),
                "CANARY_VARIABLE": "CANARY",
                "PYTHONPATH": f"{source}:{packages}",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            cwd=folder,
            **started,
        )
    finally:
        shutil.rmtree(folder)
    return Ran(ran.returncode, ran.stdout, ran.stderr)
