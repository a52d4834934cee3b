"""What was approved: features in `interlock.lock`, which may come with a project, commands in a file of the person's own."""

from __future__ import annotations

from pathlib import Path

from ...host.pins import Pins


class Approvals(Pins):
    """Pins whose approved commands are kept apart.

    `interlock.lock` lies beside the configuration, may be kept in version control, and so may have been written by whoever wrote the
    configuration: it must not say by itself that its commands may be run (`SEC-17`). What the person approved is in `own`, by the place of
    the configuration, `here`. Both folders have to be there.
    """

    def __init__(self, path: Path, *, own: Path, here: Path) -> None:
        super().__init__(path)
        self._own, self._here = Pins(own), str(here.resolve())

    def approved_command(self, server: str, digest: str) -> bool:
        """See Pins."""
        return self._own.approved_command(f"{self._here}#{server}", digest)

    def approve_command(self, server: str, digest: str) -> None:
        """See Pins."""
        self._own.approve_command(f"{self._here}#{server}", digest)
