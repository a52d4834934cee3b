"""Puts the tests of all packages on the import path of this environment,
as one namespace package `tests`.

    python scripts/test_paths.py     # what `make dev` runs

Tests start programs such as `python -m tests.wired.server`; a `.pth` file also applies to these,
unlike a pytest setting.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Write the file."""
    homes = sorted({tests.parent for tests in ROOT.glob("packages/*/tests")})
    lines = "".join(f"{home}\n" for home in (ROOT, *homes))
    site = Path(sysconfig.get_path("purelib"))
    (site / "interlock-tests.pth").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
