"""The measured peers of the benchmark: one row for each peer."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from scripts import peers

PROGRAMS = Path(__file__).parent / "programs"
HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
# Cells that only Interlock plays: sessions in a SQLite file, changes, very many sessions.
OURS = ("http-stored-16", "http-workers-16", "http-told", "http-sessions-mb")
ROLES = ("server", "web", "held", "client", "web-client", "memory")
LOCKED = ("guarded", "locked-client")


@dataclass(frozen=True)
class Peer:
    """A measured library, and the program that uses it.

    The program takes a role. `server CATALOGUE` serves tools over standard input and output; `web
    REVISION CATALOGUE PORT
    MODE`
    serves them over HTTP in the given mode (`Place` in `cells.py`), and `guarded`, with the same
    arguments, to callers with a valid token (`tickets.py`); `client REVISION COMMAND...` starts
    that command as its server; `web-client REVISION URL` calls a running server, and
    `locked-client REVISION URL` one that requires a log-in first; `memory REVISION` is both ends in
    one process. The last four read their orders as `programs/orders.py` describes.
    """

    name: str
    title: str
    program: str
    environment: str | None = (
        None  # an environment that `scripts/peers.py` installs; None is the current interpreter
    )
    revisions: tuple[str, ...] = (STATELESS, HANDSHAKE)
    env: dict[str, str] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()  # cells of features that it lacks
    roles: tuple[str, ...] = ROLES

    def plays(self, role: str, revision: str) -> bool:
        """Whether it is measured in a role and a revision."""
        return role in self.roles and revision in self.revisions

    def command(self, *role: str) -> list[str]:
        """Return the command for a role."""
        place = installed(self.environment) if self.environment else Path(sys.executable)
        if self.program.endswith(".mjs"):
            return [str(peers.node()), str(self._beside_its_packages(place)), *role]
        return [str(place), str(PROGRAMS / self.program), *role]

    def environ(self) -> dict[str, str]:
        """Return the environment variables of the program: ours, without what would change how
        Python runs, and the peer's own."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return ours | self.env

    def _beside_its_packages(self, place: Path) -> Path:
        # An ES module finds packages only in the folders above its own file.
        program = place / self.program
        if not program.exists() or program.read_bytes() != (PROGRAMS / self.program).read_bytes():
            shutil.copy2(PROGRAMS / self.program, program)
        return program


@cache
def installed(environment: str) -> Path:
    """Install an environment if it is missing; return its interpreter, or the folder with its Node
    packages."""
    try:
        return peers.INSTALLERS[environment]()
    except peers.NotInstalled as bad:
        raise SystemExit(str(bad)) from bad


PEERS_BY_NAME: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            "official",
            "Python SDK",
            "official.py",
            "python-2",
            lacks=OURS,
            roles=(*ROLES, *LOCKED),
        ),
        Peer(
            "fastmcp",
            "FastMCP",
            "fastmcp_peer.py",
            "fastmcp",
            lacks=("http-listen-kb", *OURS),
            env={"FASTMCP_LOG_LEVEL": "WARNING", "FASTMCP_CHECK_FOR_UPDATES": "off"},
            roles=(*ROLES, *LOCKED),
        ),
        Peer("typescript", "TypeScript SDK", "typescript.mjs", "typescript", lacks=OURS),
        Peer("interlock", "Interlock", "interlock_peer.py", roles=(*ROLES, *LOCKED)),
        Peer("floor", "floor", "floor.py", lacks=("http-session-kb", *OURS), roles=("web", "held")),
    )
}
