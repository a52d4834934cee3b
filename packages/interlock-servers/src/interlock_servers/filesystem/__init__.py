"""Filesystem server: reads, searches, changes and watches files in allowed folders only.

`interlock serve filesystem FOLDER...` runs it. Without arguments INTERLOCK_FILESYSTEM_FOLDERS names
the folders. A client's roots narrow them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from interlock import Server, ServerInfo, ServerLimits, settings_of

from .limits import PREFIX, FilesystemLimits
from .openat import check_platform
from .read_tools import add_looking
from .resources import add_folder, add_resources
from .roots import FOLDERS_VARIABLE, AllowedRoots
from .watch import FolderWatcher
from .write_tools import add_changing

__all__ = [
    "FOLDERS_VARIABLE",
    "AllowedRoots",
    "FilesystemLimits",
    "filesystem_server",
    "server",
    "server_of",
]


def filesystem_server(
    folders: Sequence[str | os.PathLike[str]] | None = None, limits: FilesystemLimits | None = None
) -> Server:
    """Return a server for some folders, by default those of the environment, with its limits.

    The folders are opened when the first client connects.
    """
    allowed = AllowedRoots(folders, limits)

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[AllowedRoots]:
        await asyncio.to_thread(allowed.open)
        listed = [folder.uri(()) for folder in allowed.folders]
        try:
            for folder in allowed.folders:
                add_folder(server, folder)
            watcher = FolderWatcher(server, allowed)
            allowed.watcher = watcher
            async with watcher.running():
                yield allowed
        finally:
            for uri in listed:
                server.remove_resource(uri)
            allowed.close()

    made = Server(
        "filesystem",
        "1.0.0",
        info=ServerInfo(
            title="Files and folders",
            description="Read, write, search and watch files in the folders that you allow.",
        ),
        instructions=(
            "list_allowed_folders lists the folders where you may work. Paths are "
            "absolute; if only one folder is allowed, they can be relative. Read a file "
            "before you edit it, and send its version. trash_file can be undone. "
            "Permanent deletion always asks the user."
        ),
        lifespan=lifespan,
        limits=ServerLimits(page_size=200),
    )
    add_looking(made)
    add_changing(made)
    add_resources(made)
    return made


def server_of(*folders: str) -> Server:
    """Return the server for the folders on the command line, or in the environment.

    Raises OSError or ValueError.
    """
    check_platform()
    settings_of(FilesystemLimits, PREFIX)
    for folder in folders:
        if not os.path.isdir(folder):
            raise NotADirectoryError(f"{folder} is not a folder.")
    return filesystem_server(folders or None)


server = filesystem_server()
"""For the folders of the environment."""
