"""System calls that open or rename one name in an opened folder without following a link (openat).

Each step of a path goes through `step`. It opens one name relative to a descriptor and never
follows a link. Even if somebody swaps a name between two steps, the opened file is inside the
folder of the descriptor. On Linux the kernel also checks (`openat2`) that the name stays beneath
the descriptor and on its mount. Elsewhere only the first check applies.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys

# Flags of every open: follow no link, do not inherit, do not wait for the other end of a FIFO, do
# not get a controlling terminal.
_ALWAYS = sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY")
)
FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)

_OPENAT2 = 437  # the same on all architectures
_NO_XDEV = 1
_NO_MAGICLINKS = 2
_NO_SYMLINKS = 4
_BENEATH = 8
_NOREPLACE = 1
# File systems that are interfaces to the kernel: proc, sysfs, devpts, cgroup, cgroup2, debugfs,
# tracefs, securityfs, bpf, selinux, efivarfs, pstore, configfs, binfmt_misc, mqueue.
_SPECIAL = frozenset(
    {
        0x9FA0,
        0x62656572,
        0x1CD1,
        0x27E0EB,
        0x63677270,
        0x64626720,
        0x74726163,
        0x73636673,
        0xCAFE4A11,
        0xF97CFF8C,
        0xDE5E81E4,
        0x6165676C,
        0x62656570,
        0x42494E4D,
        0x19800202,
    },
)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_libc = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


def check_platform() -> None:
    """Raise OSError if the system cannot open names relative to a descriptor: nothing would be
    safe.
    """
    calls = {os.open, os.stat, os.rename, os.unlink, os.mkdir, os.rmdir, os.readlink, os.link}
    if (
        not calls <= os.supports_dir_fd
        or os.scandir not in os.supports_fd
        or not hasattr(os, "O_NOFOLLOW")
    ):
        raise OSError(
            f"The filesystem server does not work on {sys.platform}: this system cannot "
            "open files relative to an open folder, so paths could escape the allowed "
            "folders."
        )


def step(name: str, flags: int, dir_fd: int, *, mode: int = 0, mounts: bool = False) -> int:
    """Open one name in an opened folder, without following a link.

    Raises OSError: ELOOP or ENOTDIR for a link.
    """
    check_name(name)
    flags |= _ALWAYS
    if _second_wall:
        resolve = _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH | (0 if mounts else _NO_XDEV)
        return _openat2(name, flags, dir_fd, mode, resolve)
    return os.open(name, flags, mode, dir_fd=dir_fd)


def top(path: str) -> int:
    """Open a folder by an absolute path without links.

    Raises OSError: ELOOP if the path contains a link, as far as the kernel can check; otherwise if
    the last name is a link.
    """
    if _second_wall:
        return _openat2(
            path, FOLDER | _ALWAYS, -100, 0, _NO_MAGICLINKS | _NO_SYMLINKS
        )  # an absolute path ignores the descriptor
    return os.open(path, FOLDER | _ALWAYS)


def check_name(name: str) -> None:
    """Raise OSError if a text is not a single name in a folder."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise OSError(errno.EINVAL, "no name of a file")


def again(dir_fd: int) -> int:
    """Open an opened folder again, with a separate position and lock."""
    return os.open(".", FOLDER | _ALWAYS, dir_fd=dir_fd)


def _openat2(name: str, flags: int, dir_fd: int, mode: int, resolve: int) -> int:
    assert _libc is not None
    how = _OpenHow(flags, mode if flags & os.O_CREAT else 0, resolve)
    while True:
        fd = _libc.syscall(
            _OPENAT2, dir_fd, os.fsencode(name), ctypes.byref(how), ctypes.sizeof(how)
        )
        if fd >= 0:
            return int(fd)
        code = ctypes.get_errno()
        if code not in (errno.EINTR, errno.EAGAIN):
            raise OSError(code, os.strerror(code), name)


def _has_second_wall() -> bool:
    """Whether openat2 exists and may be used."""
    if _libc is None:
        return False
    try:
        at = os.open("/", FOLDER | os.O_CLOEXEC)
        try:
            os.close(_openat2(".", FOLDER | _ALWAYS, at, 0, _BENEATH))
        finally:
            os.close(at)
    except OSError:
        return False
    return True


def rename_new(source: str, source_fd: int, target: str, target_fd: int) -> None:
    """Rename without replacing: raises FileExistsError if the new name exists."""
    check_name(source)
    check_name(target)
    if _libc is not None and hasattr(_libc, "renameat2"):
        if not _libc.renameat2(
            source_fd, os.fsencode(source), target_fd, os.fsencode(target), _NOREPLACE
        ):
            return
        code = ctypes.get_errno()
        if code not in (errno.ENOSYS, errno.EINVAL):  # some file systems do not support it
            raise OSError(code, os.strerror(code), target)
    if stat.S_ISDIR(os.stat(source, dir_fd=source_fd, follow_symlinks=False).st_mode):
        os.mkdir(target, dir_fd=target_fd)  # a folder can replace only an empty folder
        try:
            os.rename(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)
        except OSError:
            os.rmdir(target, dir_fd=target_fd)
            raise
    else:
        os.link(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd, follow_symlinks=False)
        os.unlink(source, dir_fd=source_fd)


def is_special(fd: int) -> bool:
    """Whether a descriptor is on a file system that is an interface to the kernel instead of
    storage.
    """
    if _libc is None:
        return False
    room = (ctypes.c_long * 64)()
    return not _libc.fstatfs(fd, ctypes.byref(room)) and (room[0] & 0xFFFFFFFF) in _SPECIAL


_second_wall = _has_second_wall()
