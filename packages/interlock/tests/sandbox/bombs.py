"""Uses as much of each resource as it can, run inside a sandbox: it prints how many processes it
could start, and how many mebibytes it could have, and then computes until it is ended.
"""

from __future__ import annotations

import os
import signal
import time

MOST = 300  # so that it ends without limits as well
SECONDS = 20


def processes() -> int:
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
    return len(started)


def memory() -> int:
    """The mebibytes that could be had."""
    pieces: list[bytearray] = []
    try:
        while len(pieces) < MOST:
            pieces.append(bytearray(1 << 20))
    except MemoryError:
        pass
    return len(pieces)


print(processes(), memory(), flush=True)
while time.process_time() < SECONDS:
    pass
print("not ended")
