"""Database server: SQLite and PostgreSQL, read-only unless you allow writing.

`interlock serve database FILE_OR_URL...` runs it. Without arguments INTERLOCK_DATABASE_URLS names
the databases, separated by spaces. Each can be given a name (`shop=orders.db`).
INTERLOCK_DATABASE_WRITE lists the names of the writable ones.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from interlock.lazy_names import lazily

if TYPE_CHECKING:
    from interlock import Server

    from .databases import Databases
    from .engine import Engine
    from .limits import DatabaseLimits
    from .serving import database_server, server_of

__all__ = ["Databases", "Engine", "DatabaseLimits", "database_server", "server", "server_of"]

# Loaded at first use: the processes that read SQLite files need only a part of this package.
_load, __dir__ = lazily(
    __name__,
    {
        ".databases": ("Databases",),
        ".engine": ("Engine",),
        ".limits": ("DatabaseLimits",),
        ".serving": ("database_server", "server_of"),
    },
)
server: Server  # for the databases of the environment; created on demand


def __getattr__(name: str) -> object:
    if name == "server":
        return _load("server_of")()
    return _load(name)


if __name__ == "__main__":
    _load("server_of")(*sys.argv[1:]).run()
