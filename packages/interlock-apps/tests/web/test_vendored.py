"""Vendored JavaScript is what was recorded; our own sets no HTML; nothing comes from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from pathlib import Path

import pytest

from scripts.vendor import Different, rewritten

KIT = Path(str(resources.files("interlock_apps.web") / "kit"))
STATIC = Path(str(resources.files("interlock_apps.host.pages") / "static"))
RECORD = json.loads((KIT / "vendor" / "vendor.json").read_text(encoding="utf-8"))
FILES = {
    name: entry
    for package in RECORD["packages"].values()
    for name, entry in package["files"].items()
}
OURS = sorted([*KIT.glob("*.js"), *STATIC.glob("*.js")])
# What turns text into elements or code. Cut in two, so that a search finds only real uses.
MARKUP = (
    "inner" + "HTML",
    "outer" + "HTML",
    "insertAdjacent" + "HTML",
    "dangerously",
    "document.write",
    "ev" + "al(",
    "new Func" + "tion",
    "createContextual",
    "DOMParser",
    "srcdoc",
    "setHTML",
)


@pytest.mark.parametrize("name", FILES)
def test_a_vendored_file_is_what_was_recorded(name: str) -> None:
    """Its digest, without any network."""
    data = (KIT / "vendor" / name).read_bytes()
    assert (
        "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        == FILES[name]["digest"]
    )


def test_nothing_else_lies_beside_them() -> None:
    """Each file is recorded, or declares types; each package has a version, a licence, a digest."""
    types = {f"{name.removesuffix('.js')}.d.ts" for name in FILES if name.endswith(".js")}
    found = {path.name for path in (KIT / "vendor").iterdir()}
    assert found - types == {*FILES, "vendor.json"}
    for name, package in RECORD["packages"].items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"]), name
        assert package["licence"] in {"MIT", "Apache-2.0", "BSD-3-Clause"}
        assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", package["integrity"])
        assert [file for file in package["files"] if file.endswith(".LICENSE")]


@pytest.mark.parametrize(
    "path", [*OURS, *sorted((KIT / "vendor").glob("*.js"))], ids=lambda path: path.name
)
def test_modules_import_only_what_lies_here(path: Path) -> None:
    """Paths from where the module lies, to files that are there: no bare name, no other host."""
    text = path.read_text(encoding="utf-8")
    for _, found in re.findall(
        r"""(?:\bfrom\s*|^import\s*)(["'])([@./\w][^"'\s<>$]*)\1""", text, re.MULTILINE
    ):
        if path.parent == STATIC and found.startswith("../kit/"):
            assert (KIT / found.removeprefix("../kit/")).is_file(), found
        else:
            assert found.startswith("./"), found
            assert (path.parent / found).is_file(), found
    assert "sourceMapping" + "URL" not in text


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_modules_make_no_markup_out_of_text(path: Path) -> None:
    """No HTML of anybody is parsed or set, and no text becomes code; each module says what it is
    for.
    """
    text = path.read_text(encoding="utf-8")
    assert [word for word in MARKUP if word in text] == []
    assert text.startswith("// @ts-check\n// ")


def test_the_page_itself_has_nothing_inline() -> None:
    """No script and no style but by address, so that the strictest policy holds."""
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script[^>]*>", page) == ['<script type="module" src="static/main.js">']
    assert not re.search(r"<style|style=|\son\w+=|https?:", page)


def test_imports_are_rewritten() -> None:
    """Bare names become paths, what points at a source map goes, and a name that is not here is
    refused.
    """
    places = {"preact": "preact.js", "preact/hooks": "hooks.js"}
    text = (
        'import{h as t}from"preact";import "preact/hooks";export * from \'./own.js\';\n//# source'
        + "MappingURL=x.map\n"
    )
    assert (
        rewritten(text, places, "signals.js")
        == 'import{h as t}from"./preact.js";import "./hooks.js";export * from \'./own.js\';\n'
    )
    with pytest.raises(Different, match="left-pad"):
        rewritten('import x from "left-pad"', places, "signals.js")
