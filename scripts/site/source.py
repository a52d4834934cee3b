"""Puts together the pages of the site: those of the repository, and those made from the code."""

from __future__ import annotations

import posixpath
import re
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

from . import api, commands, messages

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"

_LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
_HEADING = re.compile(r"^# +(.+?)\s*$", re.MULTILINE)
_SECTION = re.compile(r"^([A-Z][^\n]*):$\n((?:(?!^[A-Z][^\n]*:$).)*)", re.MULTILINE | re.DOTALL)
_BULLET = re.compile(r"\[[^\]]+\]\(([^)#]+\.md)\)")


def write(folder: Path) -> list[Any]:
    """Write all pages into an empty folder, and return the navigation."""
    shutil.copytree(DOCS, folder)
    for example in sorted((ROOT / "examples").glob("*.py")):
        text = example.read_text(encoding="utf-8")
        _write(folder / "examples" / f"{example.stem}.md", _listing(example.name, text))
    readme = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    _write(folder / "examples" / "index.md", readme)
    for name in ("CHANGELOG", "SECURITY", "VERSIONING", "CONTRIBUTING"):
        _write(folder / f"{name}.md", (ROOT / f"{name}.md").read_text(encoding="utf-8"))
    for path, text in _generated().items():
        _write(folder / "reference" / f"{path}.md", text)
    for page in folder.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(_relinked(text, page, folder), encoding="utf-8")
    return navigation(folder)


def _generated() -> dict[str, str]:
    """The pages made from the code, by path below `reference`. Two processes make them."""
    with ProcessPoolExecutor(2) as pool:
        modules = pool.submit(api.pages)
        errors = pool.submit(messages.page)
        described = pool.submit(commands.pages).result()
        return {
            "messages": errors.result(),
            "commands/index": commands.index(list(described)),
            **{f"commands/{name}": text for name, text in described.items()},
            **{f"api/{path}": text for path, text in modules.result().items()},
        }


def navigation(folder: Path) -> list[Any]:
    """Return the navigation in the form of Zensical: titles, with a page or a list each."""

    def pages(*paths: str) -> list[Any]:
        return [{title(folder / path): path} for path in paths]

    def below(pattern: str) -> list[str]:
        return sorted(path.relative_to(folder).as_posix() for path in folder.glob(pattern))

    cookbook = _listed(folder / "cookbook" / "index.md", folder)
    described = [path for path in below("reference/commands/*.md") if "index" not in path]
    api_pages = [f"reference/api/{name}.md" for name in api.MODULES]
    return [
        {"Start": ["index.md", *pages("tutorial.md"), {"Quickstarts": pages(*_hosts(folder))}]},
        {"Cookbook": ["cookbook/index.md", *pages(*cookbook)]},
        {"Guide": ["guide/index.md", *_guide(folder), *pages("examples/index.md")]},
        {"Servers": pages(*below("servers/*.md"))},
        {
            "Reference": [
                {"Python": [_with_classes(path, folder) for path in api_pages]},
                {"Commands": ["reference/commands/index.md", *pages(*described)]},
                *pages("reference/messages.md"),
            ]
        },
        {
            "Project": [
                *pages("CHANGELOG.md", "SECURITY.md", "VERSIONING.md", "CONTRIBUTING.md"),
                *pages("ARCHITECTURE.md", *below("design/*.md"), "requirements.md"),
            ]
        },
    ]


def title(page: Path) -> str:
    """Return the first heading of a page, without marks."""
    found = _HEADING.search(page.read_text(encoding="utf-8"))
    assert found is not None, page
    return found[1].replace("`", "").removeprefix("Quickstart: ")


def _with_classes(path: str, folder: Path) -> Any:
    """A module in the navigation, with the pages of its classes below it."""
    name = Path(path).stem
    classes = sorted(
        page.relative_to(folder).as_posix()
        for page in (folder / "reference" / "api").glob(f"{name}.[A-Z]*.md")
    )
    return {name: [path, *({Path(one).stem.rpartition(".")[2]: one} for one in classes)]}


def _hosts(folder: Path) -> list[str]:
    return [path for path in _listed(folder / "index.md", folder) if path.startswith("quickstart/")]


def _listed(page: Path, folder: Path) -> list[str]:
    """The pages that a page links to, in its order, each once."""
    found = (page.parent / path for path in _BULLET.findall(page.read_text(encoding="utf-8")))
    paths = (posixpath.normpath(path.relative_to(folder).as_posix()) for path in found)
    return list(dict.fromkeys(paths))


def _guide(folder: Path) -> list[Any]:
    """The pages of the guide, under the headings of its table of contents."""
    index = folder / "guide" / "index.md"
    sections = []
    for heading, text in _SECTION.findall(index.read_text(encoding="utf-8")):
        names = [name for name in _BULLET.findall(text) if "/" not in name]
        if names:
            pages = [{title(folder / "guide" / name): f"guide/{name}"} for name in names]
            sections.append({heading: pages})
    return sections


def _relinked(text: str, page: Path, folder: Path) -> str:
    """A page whose links to files beyond the documentation lead to their pages on the site."""
    inside = page.relative_to(folder).as_posix()
    of_docs = (DOCS / inside).exists()
    origin = f"docs/{inside}" if of_docs else inside.replace("examples/index.md", "examples/x")

    def link(found: re.Match[str]) -> str:
        target = found[2]
        if "://" in target or target.startswith("mailto:") or inside.startswith("reference/"):
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), target))
        place = _place(path)
        if place is None:
            return found[0]
        relative = posixpath.relpath(place, posixpath.dirname(inside) or ".")
        return f"{found[1]}{relative}{found[3]}"

    return _LINK.sub(link, text)


def _place(path: str) -> str | None:
    """The page of a file of the repository; None if it has none."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path == "examples/README.md":
        return "examples/index.md"
    if path.startswith("examples/") and path.endswith(".py"):
        return f"{path.removesuffix('.py')}.md"
    if path in ("README.md", "docs"):
        return "index.md"
    return path if path.endswith(".md") and "/" not in path else None


def _listing(name: str, text: str) -> str:
    return f"# {name}\n\n```python\n{text}```\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
