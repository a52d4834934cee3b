"""The formatter (prettier) and the type checker (TypeScript) for JavaScript and CSS.

    python -m scripts.javascript             # check
    python -m scripts.javascript --format    # rewrite the files

npm installs both below `.peers/`, as the lock beside this file says. Vendored modules are not
changed. To prettier, templates of htm are strings: keep their lines short by hand.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.peers import INSTALLERS, ROOT, NotInstalled, node

HERE = Path(__file__).parent
FOLDERS = ("packages", "tests", "benchmarks", "examples", "scripts/site")
SUFFIXES = (".js", ".mjs", ".cjs", ".css")


def files() -> list[Path]:
    """The project's own files that the formatter formats."""
    return sorted(
        path
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SUFFIXES and "vendor" not in path.parts
    )


def prettier(*options: str) -> int:
    """Run the formatter over all files; return its exit code.

    Raises:
        NotInstalled: npm could not install it.
    """
    program = INSTALLERS["javascript"]() / "node_modules" / "prettier" / "bin" / "prettier.cjs"
    config = f"--config={HERE / 'prettier.json'}"
    paths = [str(path) for path in files()]
    command = [str(node()), str(program), config, "--log-level=warn", *options, *paths]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def tsc() -> int:
    """Check the types of the pages' modules; return the exit code.

    Raises:
        NotInstalled: npm could not install the type checker.
    """
    program = INSTALLERS["javascript"]() / "node_modules" / "typescript" / "bin" / "tsc"
    command = [str(node()), str(program), "--project", str(HERE), "--pretty", "false"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def main(arguments: Sequence[str]) -> int:
    """Check or format; return 0 if there are no errors."""
    try:
        if "--format" in arguments:
            return prettier("--write")
        formatted = prettier("--check")
        if formatted:
            print("`make format` formats these files", file=sys.stderr)
        return tsc() or formatted
    except NotInstalled as missing:
        print(f"NOT CHECKED: JavaScript and CSS. {missing}", file=sys.stderr)
        return 1 if "CI" in os.environ else 0
