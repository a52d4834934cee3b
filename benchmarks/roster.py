"""Who is measured: one row for each peer."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from .install import PEERS, node, python_of

PROGRAMS = Path(__file__).parent / "programs"
HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"


@dataclass(frozen=True)
class Peer:
    """A library that is measured, and the program that stands for it.

    The program takes a role: `server CATALOGUE` serves tools over standard input and output, `client REVISION COMMAND...` starts
    that command as its server, `memory REVISION` is both ends in one process; the last two take their orders as
    `programs/orders.py` says.
    """

    name: str
    title: str
    program: str
    environment: str | None = None  # a Python environment below .peers; None is the interpreter that runs us
    revisions: tuple[str, ...] = (STATELESS, HANDSHAKE)
    env: dict[str, str] = field(default_factory=dict)

    def command(self, *role: str) -> list[str]:
        """Return the command that plays a role."""
        if self.program.endswith(".mjs"):
            return [str(node()), str(self._beside_its_packages()), *role]
        python = python_of(self.environment) if self.environment else sys.executable
        return [str(python), str(PROGRAMS / self.program), *role]

    def environ(self) -> dict[str, str]:
        """Return the environment variables of the program: ours, without what would change how Python runs, and the peer's own."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return ours | self.env

    def _beside_its_packages(self) -> Path:
        # An ES module finds packages only in the folders above its own file.
        program = PEERS / "typescript" / self.program
        if not program.exists() or program.read_bytes() != (PROGRAMS / self.program).read_bytes():
            shutil.copy2(PROGRAMS / self.program, program)
        return program


PEERS_BY_NAME: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("official", "Python SDK", "official.py", "official"),
        Peer(
            "fastmcp",
            "FastMCP",
            "fastmcp_peer.py",
            "fastmcp",
            env={"FASTMCP_LOG_LEVEL": "WARNING", "FASTMCP_CHECK_FOR_UPDATES": "off"},
        ),
        Peer("typescript", "TypeScript SDK", "typescript.mjs"),
        Peer("interlock", "Interlock", "interlock_peer.py"),
    )
}
