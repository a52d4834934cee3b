"""Opens the proxy's port within a network namespace, gives the socket to the process outside, and
becomes the confined program.

Run as `python -I -S listen.py FD PORT PROGRAM ARGS...`. A socket stays in the namespace where it
was made, so the process outside accepts its connections, and no process has to stay here. It uses
modules without Python code only, because it delays the start of every confined server.
"""

import _socket
import posix
import sys

_SCM_RIGHTS = 1


def main() -> None:
    """Open the port, send the socket, and run the program."""
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", int(sys.argv[2])))
    listener.listen(128)
    given = listener.fileno().to_bytes(4, sys.byteorder)
    outside = _socket.socket(fileno=int(sys.argv[1]))
    outside.sendmsg([b"\0"], [(_socket.SOL_SOCKET, _SCM_RIGHTS, given)])
    outside.close()
    listener.close()
    try:
        posix.execv(sys.argv[3], sys.argv[3:])
    except OSError as bad:
        sys.stderr.write(f"{sys.argv[3]}: {bad.strerror}\n")
    posix._exit(127)


main()
