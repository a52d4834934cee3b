"""Checks a built site: no dead link, no asset of another host, and a search index that a page
from the disk can load."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
}
_RELATIONS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "manifest"}
_CSS_URL = re.compile(r"@import\s+[\"']?([^\"';)]+)|url\(\s*[\"']?([^\"')]+)")


# A parser of the standard library takes four times as long for the half million tags of the site.
_UNREAD = re.compile(r"<!--.*?-->|(<(script|style)\b[^>]*>).*?</\2>", re.DOTALL | re.IGNORECASE)
_VALUE = r"""(?:"[^"]*"|'[^']*'|[^\s"'>]+)"""
_TAG = re.compile(rf"<([a-zA-Z][\w-]*)((?:\s+[^\s\"'<>/=]+(?:\s*=\s*{_VALUE})?)+)\s*/?>")
_ATTRIBUTE = re.compile(rf"\s(id|name|href|src|data|rel)\s*=\s*({_VALUE})")


class _Page:
    """The links, anchors and assets of a page."""

    def __init__(self, text: str) -> None:
        self.links: list[str] = []
        self.assets: list[str] = []
        self.anchors: set[str] = set()
        for tag, attributes in _TAG.findall(_UNREAD.sub(r"\1", text)):
            if found := _ATTRIBUTE.findall(attributes):
                self._see(
                    tag.lower(), {name: unescape(value.strip("\"'")) for name, value in found}
                )

    def _see(self, tag: str, found: dict[str, str]) -> None:
        """Note what an element refers to."""
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in _LOADED and found.get(_LOADED[tag]):
            self.assets.append(found[_LOADED[tag]])
        if tag == "link" and _RELATIONS & set(found.get("rel", "").split()):
            self.assets.append(found.get("href", ""))


def problems(site: Path) -> Iterator[str]:
    """Return what is wrong with a site, one line each."""
    _exists.cache_clear()
    _resolved.cache_clear()
    site = site.resolve()
    pages: dict[Path, _Page] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = _Page(path.read_text(encoding="utf-8"))
    if not pages:
        yield "there are no pages"
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        for asset in page.assets:
            if urlsplit(asset).netloc:
                yield f"{name}: loads {asset}"
            elif asset and not asset.startswith("data:") and not _file(path, site, asset).exists():
                yield f"{name}: lacks {asset}"
        for link in dict.fromkeys(page.links):
            yield from _link_problems(name, path, site, link, pages)
    for path in sorted(site.rglob("*.css")):
        text = path.read_text(encoding="utf-8")
        for found in _CSS_URL.findall(text):
            target = (found[0] or found[1]).strip()
            if urlsplit(target).netloc:
                yield f"{path.relative_to(site)}: loads {target}"
    if not list(site.rglob("search.js*")):
        yield "there is no search index"


def _link_problems(
    name: str, path: Path, site: Path, link: str, pages: dict[Path, _Page]
) -> Iterator[str]:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or not link:
        return
    target = _file(path, site, parts.path) if parts.path else path
    if name == "404.html":
        return  # it is shown at any path
    if not _exists(target):
        yield f"{name}: links to {link}, which does not exist"
        return
    anchors = pages[target].anchors if target in pages else {unquote(parts.fragment)}
    if parts.fragment and unquote(parts.fragment) not in anchors:
        yield f"{name}: links to {link}, which has no such heading"


def _file(page: Path, site: Path, target: str) -> Path:
    """The file that a relative or absolute path of a page leads to."""
    path = unquote(urlsplit(target).path)
    return _resolved(str(site if path.startswith("/") else page.parent), path.lstrip("/"))


@cache
def _exists(place: Path) -> bool:
    return place.exists()


@cache
def _resolved(folder: str, path: str) -> Path:
    """A path within a folder; each page links to all others, so this is asked often."""
    place = Path(os.path.normpath(os.path.join(folder, path)))
    return place / "index.html" if place.is_dir() else place
