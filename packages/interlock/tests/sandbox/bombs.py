"""Uses as much of a resource as it can, run inside a sandbox: `python bombs.py SCENE`, with the
resource in the variable BOMB.
"""

from __future__ import annotations

import os
import signal
import time

MOST = 300  # processes, so that the bomb ends without a limit as well


def forks() -> str:
    """The number of processes that could be started."""
    started: list[int] = []
    try:
        for _ in range(MOST):
            process = os.fork()
            if process == 0:
                signal.pause()
            started.append(process)
    except OSError:
        pass
    finally:
        for each in started:
            os.kill(each, signal.SIGKILL)
            os.waitpid(each, 0)
    return str(len(started))


def memory() -> str:
    """The mebibytes that could be had."""
    pieces: list[bytearray] = []
    try:
        while len(pieces) < MOST:
            pieces.append(bytearray(1 << 20))
    except MemoryError:
        pass
    return str(len(pieces))


def processor() -> str:
    """Nothing: it has to be ended."""
    while time.process_time() < 20:
        pass
    return "done"


print({"forks": forks, "memory": memory, "processor": processor}[os.environ["BOMB"]](), flush=True)
