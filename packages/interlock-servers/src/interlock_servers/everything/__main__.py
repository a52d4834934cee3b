"""`python -m interlock_servers.everything` runs the server over stdio."""

from __future__ import annotations

from . import server

server.run()
