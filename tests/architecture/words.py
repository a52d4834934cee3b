"""Texts that are forbidden in the whole repository: hosts of package registries, and paths of one
machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

# Split in two, so that this file can be searched like any other.
HOSTS = (
    "pypi" + ".org",
    "python" + "hosted.org",
    "registry.np" + "mjs",
    "registry.yarn" + "pkg",
    "deb.deb" + "ian",
    "debian" + ".org/debian",
)
MACHINE_PATH = re.compile(r"(?<![A-Za-z0-9_.])/(?:work|root|farm)/")
_BUILT = {"__pycache__", "node_modules", "build", "dist"}
_HIDDEN_BUT_OURS = {".ci", ".github", ".gitignore"}


def problems(top: Path) -> Iterator[str]:
    """Every line of the checkout that names a registry host or a path of this machine."""
    for path in files(top):
        text = path.read_bytes().decode("utf-8", "replace")
        if not MACHINE_PATH.search(text) and not any(host in text for host in HOSTS):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{path.relative_to(top).as_posix()}:{number}"
            yield from (
                f"{where}: names the registry host {host}" for host in HOSTS if host in line
            )
            if found := MACHINE_PATH.search(line):
                yield f"{where}: names a path of one machine, {found.group()}"


def files(folder: Path) -> Iterator[Path]:
    """The files of the checkout that people wrote: without build outputs, and without hidden files
    except our own."""
    for path in sorted(folder.iterdir()):
        hidden = path.name.startswith(".") and path.name not in _HIDDEN_BUT_OURS
        if path.is_symlink() or hidden or path.name in _BUILT or path.name.endswith(".egg-info"):
            continue
        if path.is_dir():
            yield from files(path)
        else:
            yield path
