"""Builds the documentation site, and checks it.

    python -m scripts.site            # what `make docs` runs: into build/site
    python -m scripts.site FOLDER     # into another folder

The site can be read from the disk: it loads nothing from elsewhere, and its search works offline.
`llms.txt` lists the pages for models, with their sources in Markdown beside the HTML.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from scripts import peers

from . import checks, source

ROOT: Final = Path(__file__).resolve().parents[2]
NAME: Final = "Interlock"
DESCRIPTION: Final = (
    "The Model Context Protocol in Python: servers, clients, a host and tools, under all revisions."
)

_FOREIGN_WORKER: Final = "https://unpkg.com/iframe-worker/shim"

_CONFIG = """[project]
site_name = {name}
site_description = {description}
docs_dir = "docs"
site_dir = "site"
use_directory_urls = false
copyright = "MIT licence"
nav = {nav}

[project.theme]
variant = "modern"
language = "en"
font = false
features = [
    "navigation.tabs",
    "navigation.sections",
    "navigation.indexes",
    "navigation.prune",
    "navigation.top",
    "navigation.footer",
    "toc.follow",
    "search.highlight",
    "content.code.copy",
]

[[project.theme.palette]]
media = "(prefers-color-scheme)"
toggle.icon = "lucide/sun-moon"
toggle.name = "Switch to light"

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Switch to dark"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Switch to the setting of the system"

[project.plugins.offline]

[project.markdown_extensions.tables]
[project.markdown_extensions.toc]
permalink = true
slugify = {{ object = "pymdownx.slugs.slugify", kwds = {{ case = "lower" }} }}
[project.markdown_extensions.pymdownx.highlight]
[project.markdown_extensions.pymdownx.superfences]
[project.markdown_extensions.pymdownx.inlinehilite]
"""


def build(place: Path) -> list[str]:
    """Build the site into a folder, which is replaced. Returns what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="site-") as name:
        folder = Path(name)
        nav = source.write(folder / "docs")
        config = _CONFIG.format(
            name=json.dumps(NAME), description=json.dumps(DESCRIPTION), nav=_toml(nav)
        )
        (folder / "zensical.toml").write_text(config, encoding="utf-8")
        python = peers.INSTALLERS["docs"]()
        subprocess.run([str(python), "-m", "zensical", "build", "--clean"], cwd=folder, check=True)
        _own_worker(folder / "site")
        for page in sorted((folder / "docs").rglob("*.md")):
            beside = folder / "site" / page.relative_to(folder / "docs")
            beside.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, beside)
        (folder / "site" / "llms.txt").write_text(llms(folder / "docs", nav), encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(folder / "site", place)
    return list(checks.problems(place))


def _own_worker(site: Path) -> None:
    """Put our script for a search from the disk in the place of the one that Zensical would load
    from the network.
    """
    shutil.copyfile(Path(__file__).with_name("worker.js"), site / "assets" / "worker.js")
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        ours = os.path.relpath(site / "assets" / "worker.js", page.parent).replace(os.sep, "/")
        page.write_text(text.replace(_FOREIGN_WORKER, ours), encoding="utf-8")


def llms(docs: Path, nav: list[Any]) -> str:
    """Return the list of pages for models: a title, a link and the first sentence of each."""
    lines = [f"# {NAME}", "", f"> {DESCRIPTION}"]
    for section in nav:
        ((heading, items),) = section.items()
        lines += ["", f"## {heading}", ""]
        for path in _paths(items):
            text = (docs / path).read_text(encoding="utf-8")
            lines.append(f"- [{source.title(docs / path)}]({path}){_about(text)}")
    return "\n".join(lines) + "\n"


def _paths(items: list[Any]) -> list[str]:
    found: list[str] = []
    for item in items:
        below = next(iter(item.values())) if isinstance(item, dict) else item
        found += _paths(below) if isinstance(below, list) else [below]
    return found


def _about(text: str) -> str:
    """The first sentence of a page's first paragraph."""
    for paragraph in re.split(r"\n\n+", text)[1:]:
        if re.match(r"[A-Z`\[]", paragraph) and not paragraph.startswith("`from "):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
            sentence = re.split(r"(?<=[.])\s", plain, maxsplit=1)[0]
            return f": {sentence}"
    return ""


def _toml(value: Any) -> str:
    """A navigation in TOML: strings, lists, and tables in one line."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return (
        "{" + ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    )


def main() -> int:
    """Build and check; return 0 if nothing is wrong."""
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "site"
    began = time.perf_counter()
    wrong = build(place)
    pages = sum(1 for _ in place.rglob("*.html"))
    print(f"{pages} pages in {time.perf_counter() - began:.1f} s: {place / 'index.html'}")
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
