"""The roots of servers: folders of the person, for one server or for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from interlock.configs import Entry
from interlock.types import Root


class GrantedRoots:
    """The folders that each server gets as roots.

    Args:
        folders: Folders by server id; "" means all servers.
        entries: The configured servers, whose own folders are added.
    """

    def __init__(
        self, folders: Mapping[str, Sequence[str | Path]], entries: Iterable[Entry]
    ) -> None:
        self._folders: dict[str, list[Path]] = {
            server: [_absolute(folder) for folder in granted] for server, granted in folders.items()
        }
        for entry in entries:
            own = self._folders.setdefault(entry.id, [])
            own.extend(_absolute(folder) for folder in entry.roots)

    @property
    def granted(self) -> dict[str, tuple[str, ...]]:
        """The folders by server id; "" means all servers."""
        return {
            server: tuple(str(folder) for folder in folders)
            for server, folders in self._folders.items()
            if folders
        }

    def of(self, server: str) -> list[Root]:
        """Return the roots of a server: its own folders, and those for all (`ROO-06`).

        A folder that does not exist is left out.
        """
        return [
            Root(uri=folder.as_uri(), name=folder.name or str(folder))
            for folder in self._existing(server)
        ]

    def folders_of(self, server: str) -> list[str]:
        """Return the paths of the roots of a server, which it may write even in a sandbox."""
        return [str(folder) for folder in self._existing(server)]

    def _existing(self, server: str) -> list[Path]:
        folders = dict.fromkeys([*self._folders.get("", ()), *self._folders.get(server, ())])
        return [folder for folder in folders if folder.is_dir()]

    def granted_to(self, server: str) -> tuple[str, ...]:
        """Return the folders of a server, its own and those for all, also missing ones."""
        both = dict.fromkeys([*self._folders.get("", ()), *self._folders.get(server, ())])
        return tuple(str(folder) for folder in both)

    def grant(self, folder: str | Path, server: str = "") -> bool:
        """Grant a folder to a server, or to all; return whether that is new.

        Raises:
            ValueError: It is not a folder.
        """
        path = _absolute(folder)
        if not path.is_dir():
            raise ValueError(f"{path} is not a folder.")
        granted = self._folders.setdefault(server, [])
        if path in granted:
            return False
        granted.append(path)
        return True

    def revoke(self, folder: str | Path, server: str = "") -> bool:
        """Revoke a folder; return whether it was granted."""
        path = _absolute(folder)
        if path not in self._folders.get(server, ()):
            return False
        self._folders[server].remove(path)
        return True

    def reconfigure(self, before: Iterable[Entry], after: Iterable[Entry]) -> bool:
        """Grant the folders of a new configuration, and revoke those that only the old one had.

        Returns:
            Whether anything has changed.
        """
        was = self.granted
        old = {entry.id: [_absolute(folder) for folder in entry.roots] for entry in before}
        new = {entry.id: [_absolute(folder) for folder in entry.roots] for entry in after}
        for server in old.keys() - new.keys():
            self._folders.pop(server, None)
        for server, folders in new.items():
            configured = old.get(server, [])
            had = self._folders.get(server, [])
            kept = [path for path in had if path in folders or path not in configured]
            added = [path for path in folders if path not in configured and path not in had]
            self._folders[server] = [*kept, *added]
        return self.granted != was


def _absolute(folder: str | Path) -> Path:
    return Path(folder).expanduser().absolute()
