"""Approvals: commands in the user's trust record, features in `interlock.lock`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from interlock.cli.user_folder import make_folder, trust_record_path
from interlock.configs import BadRecord, TrustRecord

from ..fleet.pins import Pins


class Approvals(Pins):
    """Pins whose approved commands are in the user's own trust record.

    `interlock.lock` is beside the configuration and may come with a project, so its author could
    approve the commands of the project. Therefore it never approves a command (`SEC-17`). Both
    folders must exist.
    """

    def __init__(
        self, path: Path, *, own: Path, here: Path, places: Mapping[str, Path] | None = None
    ) -> None:
        """Create the approvals; no file is read yet.

        Args:
            path: The `interlock.lock`.
            own: The trust record.
            here: The configuration file of the servers.
            places: The configuration files, by id, of the servers that come from another file.
        """
        super().__init__(path)
        self._record = TrustRecord(own)
        self._here = here
        self._places = places if places is not None else {}

    def approved_command(self, server: str, digest: str) -> bool:
        """See Pins."""
        return self._record.allows(self._places.get(server, self._here), server, digest)

    def approve_command(self, server: str, digest: str) -> None:
        """See Pins."""
        self._record.allow(self._places.get(server, self._here), server, digest)


def open_approvals(path: Path, *, here: Path, places: Mapping[str, Path]) -> Approvals:
    """Return the approvals of a host, after reading both files.

    Raises:
        click.UsageError: One of the files cannot be read.
    """
    make_folder(path.parent)
    approvals = Approvals(path, own=trust_record_path(), here=here, places=places)
    try:
        approvals.known("-")  # reads interlock.lock
        approvals.approved_command("-", "-")  # reads the trust record
    except BadRecord as bad:
        raise click.UsageError(str(bad)) from None
    return approvals
