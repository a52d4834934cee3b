"""Files as resources: `file://` URIs with completion of paths."""

from __future__ import annotations

import os
import stat

from interlock import Context, McpError, ResourceContents, Server, ToolError, types

from .reading import contents_of
from .resolve import OutsideRoots, PathNotFound, RootFolder, without_bad_bytes
from .results import FolderEntries
from .roots import AllowedRoots, CallProgress, CallRoots
from .walk import listed, names_of

FILE = "file:///{+path}"
_MOST_COMPLETED = 5_000


def add_resources(made: Server) -> None:
    """Add the template for all files, and its completion."""

    @made.resource(FILE, name="file", title="A file or folder", cache_scope="private")
    def file(path: str, ctx: Context[AllowedRoots]) -> ResourceContents | FolderEntries | None:
        """A file by its absolute path: text as text, anything else as bytes.

        A folder is the list of its entries, as data.
        """
        return _read(f"/{path}", ctx)

    @made.completion(FILE, "path")
    def complete_path(value: str, ctx: Context[AllowedRoots]) -> list[str]:
        try:
            with ctx.lifespan_state.call_roots(ctx) as call_roots:
                return _completed(value, call_roots)
        except ToolError:
            # Unanswerable, for instance: the client has roots, and the newest revision does not
            # allow to ask for them here
            return []


def add_folder(made: Server, folder: RootFolder) -> None:
    """List an allowed folder as a resource."""
    path = folder.path

    def read(ctx: Context[AllowedRoots]) -> ResourceContents | FolderEntries | None:
        """What is in the folder, as data. Watch it to hear of all that changes below it."""
        return _read(path, ctx)

    name = os.fsencode(folder.parts[-1] if folder.parts else "/").decode(errors="replace")
    made.add_resource(
        folder.uri(()),
        read,
        name=name,
        title=f"The folder {name}",
        mime_type="application/json",
        replace=True,
    )


def _read(path: str, ctx: Context[AllowedRoots]) -> ResourceContents | FolderEntries | None:
    try:
        with ctx.lifespan_state.call_roots(ctx) as call_roots, call_roots.find(path) as place:
            found = place.stat()
            if found is None:
                return None
            if place.name is None or stat.S_ISDIR(found.st_mode):
                return listed(call_roots, place, CallProgress(ctx, call_roots.limits))
            return contents_of(place, call_roots.limits)
    except (PathNotFound, OutsideRoots):
        return None
    except ToolError as bad:
        raise McpError(types.INVALID_PARAMS, str(bad)) from None


def _completed(value: str, call_roots: CallRoots) -> list[str]:
    """The paths that begin with the text: allowed folders, and the content of the last folder in
    it.
    """
    wanted = f"/{value}"
    found = [
        f"{without_bad_bytes(folder.path)[1:]}/"
        for folder in call_roots.folders
        if folder.path.startswith(wanted)
    ]
    above, _, begun = wanted.rpartition("/")
    try:
        with call_roots.find(above or "/") as place:
            for name, is_folder in names_of(place, _MOST_COMPLETED):
                if name.startswith(begun):
                    found.append(f"{above}/{name}"[1:] + ("/" if is_folder else ""))
    except (ToolError, OSError):
        pass  # the text does not name an accessible folder
    return found
