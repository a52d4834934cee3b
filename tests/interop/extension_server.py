"""Our server with the extension of `packages/interlock/tests/extension_package`, over stdio,
or over HTTP at a port."""

import sys
from pathlib import Path

sys.path.insert(
    0, str(Path(__file__).parents[2] / "packages/interlock/tests/extension_package/src")
)

from catalog_search.__main__ import make_server, sample

server = make_server(sample())

if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("http", port=int(sys.argv[1]))
    else:
        server.run()
