"""Opens ports in the network namespaces of confined programs, on behalf of the process that starts
them.

Run as `python -I -S listen.py FD`. Each request on the socket FD is `PID PORT`: a process of this
program enters the namespaces of PID, opens PORT on the loopback there, and sends the socket back. A
socket stays in the namespace where it was made, so the process outside accepts its connections, and
nothing has to stay in the namespace. A namespace of users can only be entered by a process with one
thread, which the process that starts servers is not. It uses modules without Python code only,
because it delays the first start.
"""

import _socket
import posix
import sys

_SCM_RIGHTS = 1
_NEW_USERS = 0x10000000
_NEW_NETWORK = 0x40000000


def main() -> None:
    """Answer requests until the other side has ended."""
    link = _socket.socket(fileno=int(sys.argv[1]))
    while request := link.recv(64):
        process, port = request.split()
        child = posix.fork()
        if not child:
            _answer(link, process.decode(), int(port))
        posix.waitpid(child, 0)


def _answer(link: _socket.socket, process: str, port: int) -> None:
    """Send the socket, or the number of the error, and end this process."""
    try:
        _enter(process)
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        # Its loopback may not be up yet, and it has no other device.
        listener.bind(("0.0.0.0", port))  # as above: nobody else can reach it
        listener.listen(128)
        given = listener.fileno().to_bytes(4, sys.byteorder)
        link.sendmsg([b"0"], [(_socket.SOL_SOCKET, _SCM_RIGHTS, given)])
    except OSError as bad:
        link.send(str(bad.errno or 1).encode())
    finally:
        posix._exit(0)


def _enter(process: str) -> None:
    """Enter the namespaces of users and network of a process."""
    users = posix.open(f"/proc/{process}/ns/user", posix.O_RDONLY)
    network = posix.open(f"/proc/{process}/ns/net", posix.O_RDONLY)
    _set_namespace(users, _NEW_USERS)
    _set_namespace(network, _NEW_NETWORK)


def _set_namespace(descriptor: int, kind: int) -> None:
    if sys.version_info >= (3, 12):
        posix.setns(descriptor, kind)
        return
    import _ctypes  # Python 3.11 has no setns

    library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is this program
    function = _ctypes.dlsym(library, "setns")
    if _ctypes.call_function(function, (descriptor, kind)):
        raise OSError(1, "the namespace cannot be entered")


main()
