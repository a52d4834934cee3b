"""An injected clock: runs a Python program whose `time.time` has an offset that another process can
change.

Arguments: a file that holds the offset in seconds, as a native double; the program beside this one,
and its arguments.
"""

import mmap
import runpy
import struct
import sys
import time
from pathlib import Path


def shift(file: str) -> None:
    """Add the offset of a file to `time.time` from now on."""
    real = time.time
    with open(file, "rb") as opened:
        offset = mmap.mmap(opened.fileno(), 8, prot=mmap.PROT_READ)
    time.time = lambda: real() + struct.unpack_from("d", offset)[0]


if __name__ == "__main__":
    shift(sys.argv[1])
    program = str(Path(__file__).with_name(sys.argv[2]))
    sys.argv = [program, *sys.argv[3:]]
    runpy.run_path(program, run_name="__main__")
