"""Runs the everyday tests under every other supported Python version that is installed on this
machine.

    python scripts/pythons.py                  # what `make check-all-pythons` runs
    python scripts/pythons.py --find           # only say which interpreters were found
    python scripts/pythons.py 3.13 -- -k log   # one version; options after -- go to pytest

An interpreter is looked for as `python3.X` on PATH and among the versions of pyenv. The version of
the interpreter that runs this script is left out, since `make test` has used it. `make test` runs
one half of the combinations of each test; the other half is divided over the versions here (see
`tests/endurance.py`). Each version gets an environment beside `.venv`, made by the Makefile from
the same locks. A version that is not installed is named and is not a failure.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14))
NOT_WORTH_REPEATING = (
    "tests/architecture",  # reads the source text, which is the same under every version
    "tests/docs",
    "packages/interlock-apps/tests/web/test_page_*",  # runs JavaScript in a browser
    "packages/interlock-issuer/tests/issuer/test_browser.py",
    "packages/interlock/tests/auth/test_login_in_a_browser.py",
)
SECONDS_TO_ANSWER = 20  # for an interpreter to say its version

_PARTS = ("4:2", "4:4")  # both together are the half that `make test` leaves out

_ASK = "import sys; print(*sys.version_info[:2], sys.implementation.name, sys.version_info[3])"

Version = tuple[int, int]


def main() -> int:
    """Run the tests under each interpreter found. Return 1 if they fail under one of them."""
    parser = argparse.ArgumentParser(
        description=" ".join((__doc__ or "").partition("\n\n")[0].split())
    )
    parser.add_argument("versions", nargs="*", help="versions such as 3.13 (default: all others)")
    parser.add_argument("--find", action="store_true", help="only list the interpreters")
    parser.add_argument("--pip-of", default=sys.executable, help="an interpreter that has pip")
    given, _, options = _split(sys.argv[1:])
    asked = parser.parse_args(given)
    own = (sys.version_info[0], sys.version_info[1])
    wanted = [_version(word) for word in asked.versions] or [
        version for version in SUPPORTED if version != own
    ]
    found = interpreters(wanted)
    _say(f"Python {_name(own)} is what the other tests use.")
    for version in wanted:
        where = found.get(version)
        _say(f"Python {_name(version)}: {where or 'NOT FOUND on PATH or in pyenv; NOT TESTED'}")
    if asked.find:
        return 0
    failed = [
        version
        for number, (version, interpreter) in enumerate(found.items())
        if not _test(version, interpreter, asked.pip_of, ["--cells", _PARTS[number % 2], *options])
    ]
    missing = [_name(version) for version in wanted if version not in found]
    if missing:
        _say(f"Not tested, because no interpreter was found: Python {', '.join(missing)}.")
    if failed:
        _say(f"The tests FAIL under Python {', '.join(map(_name, failed))}.")
    elif found:
        _say(f"The tests pass under Python {', '.join(map(_name, found))}.")
    return 1 if failed else 0


def interpreters(wanted: Sequence[Version]) -> dict[Version, Path]:
    """Return one working CPython interpreter for each requested version that is installed."""
    found: dict[Version, Path] = {}
    for version in wanted:
        for candidate in _candidates(version):
            if _version_of(candidate) == version:
                found[version] = candidate
                break
    return found


def _candidates(version: Version) -> Iterator[Path]:
    """Yield the files that may be an interpreter of a version: those on PATH first, then
    pyenv's."""
    program = f"python{_name(version)}"
    for folder in os.get_exec_path():
        if found := shutil.which(program, path=folder):
            yield Path(found)
    for versions in _pyenv_folders():
        # A version still in development ("3.14-dev") or a free-threaded one ("3.14.0t") comes last.
        folders = versions.glob(f"{_name(version)}*")
        for folder in sorted(folders, key=_patch, reverse=True):
            if (interpreter := folder / "bin" / program).exists():
                yield interpreter


def _pyenv_folders() -> Iterator[Path]:
    roots = [
        os.environ.get("PYENV_ROOT", ""),
        _output(["pyenv", "root"]),
        str(Path.home() / ".pyenv"),
    ]
    for root in dict.fromkeys(root for root in roots if root):
        yield Path(root) / "versions"


def _patch(folder: Path) -> int:
    """Return the third number of a pyenv version's name, and -1 for a name of another kind."""
    match = re.fullmatch(r"\d+\.\d+\.(\d+)", folder.name)
    return int(match[1]) if match else -1


def _version_of(interpreter: Path) -> Version | None:
    """Return the version that a released CPython reports, and None for any other program.

    A shim of pyenv fails if its version is installed but not selected.
    """
    words = _output([str(interpreter), "-c", _ASK]).split()
    if len(words) != 4 or words[2:] != ["cpython", "final"]:
        return None
    return int(words[0]), int(words[1])


def _output(command: Sequence[str]) -> str:
    """Return what a program prints, and nothing if it fails or does not exist."""
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS_TO_ANSWER, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""


def _test(version: Version, interpreter: Path, pip_of: str, options: Sequence[str]) -> bool:
    """Create the environment of a version and run the tests there. Return whether they pass."""
    name = f".venv-{_name(version)}"
    began = time.monotonic()
    _say(f"--- Python {_name(version)}: installing into {name} ...")
    make = ["make", f"VENV={name}", f"PY={interpreter}", f"PIP_OF={pip_of}", "compiled"]
    if subprocess.run(make, cwd=ROOT, env=_environment()).returncode:
        _say(f"--- Python {_name(version)}: the environment {name} could not be made")
        return False
    installed = time.monotonic()
    ignored = [f"--ignore-glob={ROOT / path}" for path in NOT_WORTH_REPEATING]
    pytest = [f"{name}/bin/python", "-m", "pytest", "-q", "-o", f"cache_dir={name}/.pytest_cache"]
    selected = ["--workers", "4", *ignored]
    selected += ["-m", "not slow and not interop", *options]
    passed = subprocess.run([*pytest, *selected], cwd=ROOT, env=_environment()).returncode == 0
    tested = time.monotonic()
    _say(
        f"--- Python {_name(version)}: {'passed' if passed else 'FAILED'}"
        f" (installed in {installed - began:.0f} s, tested in {tested - installed:.0f} s)"
    )
    return passed


def _environment() -> dict[str, str]:
    """Return the environment variables without those of a make that started this script."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}


def _split(arguments: list[str]) -> tuple[list[str], str, list[str]]:
    """Split the arguments at the first `--`."""
    if "--" not in arguments:
        return arguments, "", []
    at = arguments.index("--")
    return arguments[:at], "--", arguments[at + 1 :]


def _version(word: str) -> Version:
    major, _, minor = word.partition(".")
    return int(major), int(minor)


def _name(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def _say(words: str) -> None:
    print(words, flush=True)


if __name__ == "__main__":
    sys.exit(main())
