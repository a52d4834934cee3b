"""The `interlock` command: run servers, talk to any server, install them into clients."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its exit code; `interlock --help` lists the codes.

    Args:
        arguments: The words after `interlock`; None: those of this process.
    """
    from .head_start import start_server  # late: so that `import interlock.cli` is fast

    # The server of a file starts while the command that uses it is loaded.
    start_server(sys.argv[1:] if arguments is None else arguments)
    from .program import program  # late: as above

    # At exit, the interpreter would search all objects for garbage, which takes 40 to 60 ms.
    atexit.register(gc.freeze)
    program.main(None if arguments is None else list(arguments), prog_name="interlock")
