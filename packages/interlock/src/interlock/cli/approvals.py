"""What the person approved: commands in the person's own folder, features in `interlock.lock`, which may come with a project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from interlock_apps.fleet.pins import BadPins, Pins

from ..store import StoreError, data_folder


class Approvals(Pins):
    """Pins whose approved commands are kept apart, in the record of the person (`Allowed`).

    `interlock.lock` lies beside the configuration, may be kept in version control, and so may have been written by whoever wrote the
    configuration: it must not say by itself that its commands may be run (`SEC-17`). Both folders have to be there.
    """

    def __init__(
        self, path: Path, *, own: Path, here: Path, places: Mapping[str, Path] | None = None
    ) -> None:
        """Read nothing yet.

        Args:
            path: The `interlock.lock`.
            own: The person's own record.
            here: The configuration that servers are from.
            places: The configuration that a server is from, by its id, where it is another.
        """
        super().__init__(path)
        self._own, self._here = Allowed(own), here
        self._places = places if places is not None else {}

    def approved_command(self, server: str, digest: str) -> bool:
        """See Pins."""
        return self._own.has(self._places.get(server, self._here), server, digest)

    def approve_command(self, server: str, digest: str) -> None:
        """See Pins."""
        self._own.add(self._places.get(server, self._here), server, digest)


class Allowed:
    """The one record of which servers of which configurations may be started, or reached.

    The host and every command that starts a server of a configuration read and write it.
    """

    def __init__(self, path: Path) -> None:
        self._pins = Pins(path)

    def has(self, config: Path, server: str, approval: str) -> bool:
        """Whether the person allowed a server as it is configured now. Raises BadPins."""
        return self._pins.approved_command(_key(config, server), approval)

    def add(self, config: Path, server: str, approval: str) -> None:
        """Let a server be started, or reached, from now on. Raises BadPins."""
        self._pins.approve_command(_key(config, server), approval)


def _key(config: Path, server: str) -> str:
    """A server's name in the record: the same name in another configuration is another server."""
    return f"{config.resolve()}#{server}"


def record_path() -> Path:
    """The file of `Allowed`. Raises click.UsageError where its folder cannot be made."""
    return own_folder() / "approved.json"


def own_folder() -> Path:
    """The folder of a person's own rules, approvals and log, which is made. Raises click.UsageError where it cannot be had."""
    try:
        folder = data_folder().parent / "host"
    except StoreError as bad:
        raise click.UsageError(str(bad)) from None
    make_folder(folder)
    return folder


def make_folder(folder: Path) -> None:
    """Make a folder for the person alone. Raises click.UsageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as bad:
        raise click.UsageError(f"The folder {folder} cannot be made: {bad.strerror}.") from None


def open_approvals(path: Path, *, here: Path, places: Mapping[str, Path]) -> Approvals:
    """The approvals of a host, once both files were read. Raises click.UsageError."""
    make_folder(path.parent)
    approvals = Approvals(path, own=record_path(), here=here, places=places)
    try:
        approvals.known("-")  # reads the one file,
        approvals.approved_command("-", "-")  # and this the other
    except BadPins as bad:
        raise click.UsageError(str(bad)) from None
    return approvals
