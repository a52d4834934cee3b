"""Builds the wheels and source archives of all distributions.

    python scripts/dist.py                 # what `make dist` runs: into dist/
    python scripts/dist.py FOLDER          # into another folder
    python scripts/dist.py --tag v1.2.3    # only if this tag has the version of the distributions

The build backend (flit-core) is in the environment already, so nothing is fetched. The same sources
give the same bytes, whenever and wherever they are built.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

from flit_core import buildapi

ROOT = Path(__file__).resolve().parent.parent
DISTRIBUTIONS = ("interlock", "interlock-issuer", "interlock-apps", "interlock-servers")
_EPOCH = "1767225600"  # the time of all files in the archives: the first day of 2026


def build(folder: Path) -> list[Path]:
    """Build one wheel for each distribution into a folder, and return their paths."""
    return [_built(name, folder, buildapi.build_wheel) for name in DISTRIBUTIONS]


def build_sources(folder: Path) -> list[Path]:
    """Build one source archive for each distribution into a folder, and return their paths."""
    return [_built(name, folder, buildapi.build_sdist) for name in DISTRIBUTIONS]


def check_tag(tag: str) -> None:
    """Check that a tag is `v` and the version of every distribution.

    Raises:
        SystemExit: It is not; the text names the distributions that differ.
    """
    versions = {name: version(name) for name in DISTRIBUTIONS}
    wrong = [f"{name} is {found}" for name, found in versions.items() if tag != f"v{found}"]
    if wrong:
        raise SystemExit(f"The tag {tag} is not the version: {', '.join(wrong)}.")


def version(name: str) -> str:
    """Return the version of a distribution."""
    text = (ROOT / "packages" / name / "pyproject.toml").read_text(encoding="utf-8")
    found: str = tomllib.loads(text)["project"]["version"]
    return found


def _built(name: str, folder: Path, backend: Callable[[str], str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", _EPOCH)
    with chdir(ROOT / "packages" / name):
        return folder / backend(str(folder))


def main() -> int:
    """Build everything and print the size of each file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist")
    parser.add_argument("--tag", help="the tag of a release, such as v1.2.3")
    options = parser.parse_args()
    if options.tag:
        check_tag(options.tag)
    folder = options.folder.resolve()
    for file in [*build(folder), *build_sources(folder)]:
        print(f"{file.stat().st_size:>9,} bytes  {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
