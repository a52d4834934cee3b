"""Builds the container images of `containers/Dockerfile`, where a builder answers.

    python scripts/images.py    # what `make images` runs, after `make dist`

Without a builder (a Docker engine, Podman or Buildah) it says so, and fails only in CI.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("interlock", "server", "issuer")


def builder() -> list[str] | None:
    """Return the command that builds an image; None if nothing on this machine can."""
    for program, probe, build in (
        ("docker", ["info"], ["build"]),
        ("podman", ["info"], ["build"]),
        ("buildah", ["version"], ["build"]),
    ):
        found = shutil.which(program)
        if found and subprocess.run([found, *probe], capture_output=True).returncode == 0:
            return [found, *build]
    return None


def main() -> int:
    """Build every image; return 0 on success."""
    command = builder()
    if command is None:
        print(
            "NO IMAGE WAS BUILT: this machine has no Docker engine, Podman or Buildah.",
            file=sys.stderr,
        )
        return 1 if os.environ.get("CI") else 0
    for target in TARGETS:
        tag = "interlock" if target == "interlock" else f"interlock:{target}"
        words = ["--file", "containers/Dockerfile", "--target", target, "--tag", tag, "."]
        done = subprocess.run([*command, *words], cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
