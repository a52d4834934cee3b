"""Vendors third-party JavaScript for the pages into `web/kit/vendor`, checked against digests.

    python -m scripts.vendor                  # as `vendor.json` says: the same versions, the same
    files
    python -m scripts.vendor preact@11.2.0    # another version of one package, whose digest is then
    recorded

npm fetches the packages; there is no build step. Imports of bare names become relative, so that
browsers need no import map, and references to source maps, which are not vendored, are removed. The
licences are beside the modules. `vendor.json` records the version, licence and registry digest of
each package, and the origin and digest of each file.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import posixpath
import re
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.peers import ROOT, NotInstalled, npm, run

VENDOR = ROOT / "packages/interlock-apps/src/interlock_apps/web/kit/vendor"
RECORD = VENDOR / "vendor.json"
SOURCE_MAP = re.compile(r"\n?//# sourceMappingURL=\S+\s*$")
# A name begins with a letter or @; anything else is a text that ends with one of the two words.
IMPORT = re.compile(r"""((?<!["'])\bfrom\s*|(?<!["'])\bimport\s*)(["'])([@a-zA-Z][^"'\s]*)\2""")


class Different(Exception):
    """A package differs from the recorded one."""


def digest(data: bytes) -> str:
    """The digest of a file, in the form that registries use."""
    return "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()


def pack(name: str, version: str, folder: Path) -> bytes:
    """Fetch the package from the registry. Raises NotInstalled."""
    run(
        [
            *npm(),
            "pack",
            f"{name}@{version}",
            "--ignore-scripts",
            "--loglevel=error",
            "--pack-destination",
            str(folder),
        ],
        cwd=folder,
    )
    (found,) = folder.glob("*.tgz")
    return found.read_bytes()


def rewritten(text: str, places: Mapping[str, str], file: str) -> str:
    """Return a module with relative imports.

    Raises Different for an import of a module that is not vendored.
    """

    def place(found: re.Match[str]) -> str:
        target = places.get(found[3])
        if target is None:
            raise Different(f"{file} imports {found[3]}, which vendor.json does not have")
        return f'{found[1]}"./{posixpath.relpath(target, posixpath.dirname(file) or ".")}"'

    return IMPORT.sub(place, SOURCE_MAP.sub("\n", text))


def files(
    package: Mapping[str, Any], archive: bytes, places: Mapping[str, str]
) -> dict[str, bytes]:
    """The files of a package for the folder, by name. Raises Different."""
    made = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for file, entry in package["files"].items():
            inside = tar.extractfile(f"package/{entry['from']}")
            if inside is None:
                raise Different(f"{entry['from']} is no file")
            data = inside.read()
            made[file] = (
                rewritten(data.decode(), places, file).encode() if file.endswith(".js") else data
            )
    return made


def vendor(record: dict[str, Any], wanted: Mapping[str, str]) -> None:
    """Fetch all packages, write their files, and record them.

    Raises Different and NotInstalled.
    """
    packages = record["packages"]
    places = {
        entry["as"]: file
        for package in packages.values()
        for file, entry in package["files"].items()
        if "as" in entry
    }
    written: dict[str, bytes] = {}
    for name, package in packages.items():
        version = wanted.get(name, package["version"])
        with tempfile.TemporaryDirectory() as folder:
            archive = pack(name, version, Path(folder))
        if version == package["version"] and package["integrity"] not in ("", digest(archive)):
            raise Different(f"{name} {version} is not what was recorded: {digest(archive)}")
        package["version"], package["integrity"] = version, digest(archive)
        for file, data in files(package, archive, places).items():
            package["files"][file]["digest"] = digest(data)
            written[file] = data
    for file, data in written.items():
        (VENDOR / file).write_bytes(data)
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Vendor the recorded packages, with the named versions; return 0 on success."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    wanted = {
        name: version for name, _, version in (argument.rpartition("@") for argument in arguments)
    }
    if unknown := [
        name or argument
        for (name, argument) in zip(wanted, arguments, strict=True)
        if name not in record["packages"]
    ]:
        print(
            f"vendor.json has no {', '.join(unknown)}; it has {', '.join(record['packages'])}",
            file=sys.stderr,
        )
        return 2
    try:
        vendor(record, wanted)
    except (Different, NotInstalled) as bad:
        print(bad, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
