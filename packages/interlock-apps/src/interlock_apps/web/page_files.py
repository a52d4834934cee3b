"""The static files of a page, served from memory, at addresses that a browser may cache forever."""

from __future__ import annotations

import hashlib
import mimetypes
import posixpath
import re
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_IMPORT = re.compile(
    r"""^(?:import|export)\b[^"'`;]*?["'](\.{1,2}/[\w./-]+)["']|\}\s*from\s*["'](\.{1,2}/[\w./-]+)["']""",
    re.MULTILINE,
)
_ADDRESS = re.compile(r'\b(href|src)="((?:static|kit)/[^"]+)"')
FOREVER = "private, max-age=31536000, immutable"
"""The Cache-Control of an address that contains the digest of the files."""


class PageFiles:
    """Files of a page and of the kit that pages share.

    A page has dozens of modules, and a browser that may not keep them asks for each of them
    whenever the page is opened. Therefore the page names its files below a digest of all of them:
    a browser keeps them, and other files have another digest.

    Args:
        folders: Folders by the first part of their files' addresses, such as `static`.
    """

    def __init__(self, folders: Mapping[str, Traversable]) -> None:
        self._files = {
            f"{first}/{name}": data
            for first, folder in folders.items()
            for name, data in _files_below(folder)
        }
        digest = hashlib.sha256()
        for address, data in sorted(self._files.items()):
            digest.update(f"{address}\0{len(data)}\0".encode() + data)
        self.version = f"v-{digest.hexdigest()[:16]}"
        """The first part of the addresses that may be cached."""

    def page(self, address: str) -> str:
        """The text of an HTML page, whose files have addresses that may be cached.

        It also names each module that its scripts import: a browser that had to read a module to
        know the next ones would wait once for each level of imports.
        """
        text = self._files[address].decode()
        scripts = re.findall(r'<script type="module" src="([^"]+)"', text)
        preloads = "".join(
            f'<link rel="modulepreload" href="{module}">\n'
            for module in self._imported(scripts)
            if module not in scripts
        )
        text = text.replace("</head>", f"{preloads}</head>")
        return _ADDRESS.sub(rf'\1="{self.version}/\2"', text)

    async def answer(self, request: Request) -> Response:
        """Serve a file, by its address with or without the version."""
        path = request.scope["path"].removeprefix("/")
        address = path.removeprefix(f"{self.version}/")
        data = self._files.get(address)
        if data is None:
            return PlainTextResponse("Not Found", 404)
        headers = {"cache-control": FOREVER} if address != path else {}
        suffix = posixpath.splitext(address)[1]
        kind = _TYPES.get(suffix) or mimetypes.guess_type(address)[0] or "application/octet-stream"
        return Response(data, media_type=kind, headers=headers)

    def _imported(self, modules: list[str]) -> list[str]:
        """The modules that some modules import, directly or through others, and they themselves."""
        found: dict[str, None] = {}
        waiting = list(modules)
        while waiting:
            module = waiting.pop(0)
            if module in found or module not in self._files:
                continue
            found[module] = None
            folder = posixpath.dirname(module)
            for one, other in _IMPORT.findall(self._files[module].decode()):
                waiting.append(posixpath.normpath(posixpath.join(folder, one or other)))
        return list(found)


def _files_below(folder: Traversable, before: str = "") -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.iterdir(), key=lambda one: one.name):
        if path.is_dir():
            yield from _files_below(path, f"{before}{path.name}/")
        else:
            yield f"{before}{path.name}", path.read_bytes()
