"""A process that exchanges two names in a folder as fast as it can, until it is killed: `python
swapper.py FOLDER ONE OTHER`.
"""

from __future__ import annotations

import ctypes
import os
import sys


def main() -> None:
    """Exchange, for ever. A line is printed once it has begun."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(sys.argv[1], os.O_RDONLY)
    one, other = (os.fsencode(name) for name in sys.argv[2:4])
    exchange = 2
    if libc.renameat2(fd, one, fd, other, exchange):
        sys.exit(os.strerror(ctypes.get_errno()))
    print("swapping", flush=True)
    while True:
        libc.renameat2(fd, one, fd, other, exchange)


if __name__ == "__main__":
    main()
