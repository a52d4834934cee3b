"""Builds the wheels of all distributions.

    python scripts/dist.py            # what `make dist` runs: into dist/
    python scripts/dist.py FOLDER     # into another folder

The build backend (flit-core) is in the environment already, so nothing is fetched.
"""

from __future__ import annotations

import os
import sys
from contextlib import chdir
from pathlib import Path

from flit_core import buildapi

ROOT = Path(__file__).resolve().parent.parent
DISTRIBUTIONS = ("interlock", "interlock-issuer", "interlock-apps", "interlock-servers")


def build(folder: Path) -> list[Path]:
    """Build one wheel for each distribution into a folder, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    wheels = []
    for name in DISTRIBUTIONS:
        with chdir(ROOT / "packages" / name):
            wheels.append(folder / buildapi.build_wheel(str(folder)))
    return wheels


def main() -> int:
    """Build the wheels and print the size of each."""
    # The same files give the same bytes, whenever they are built.
    os.environ.setdefault("SOURCE_DATE_EPOCH", "1767225600")
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve()
    for wheel in build(folder):
        print(f"{wheel.stat().st_size:>9,} bytes  {wheel}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
