"""bubblewrap: confinement by Linux namespaces. The program sees a file system of its own, with
nothing but what it was granted, no process but its own, and no network but a loopback.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from .grants import Grants

PROXY_PORT: Final = 3128
"""The port of the proxy on the loopback of the namespace, where no other program listens."""
_PROBE_SECONDS = 10

# `--die-with-parent`: nothing outlives the server. The kernel sends that signal when the thread
# ends that started bubblewrap; the threads of an event loop's executor live as long as the loop.
_NAMESPACES = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--die-with-parent", "--cap-drop", "ALL",
)  # fmt: skip


def problem() -> str:
    """Return why bubblewrap does not work here; empty if it does. It is run once to find out: a
    container or a kernel setting may forbid what it needs.
    """
    if shutil.which("bwrap") is None:
        return "the program bwrap is not installed"
    probe = [
        *program(), *_NAMESPACES, "--unshare-net", "--ro-bind", "/", "/", "--proc", "/proc",
        "--dev", "/dev", "--", "/bin/sh", "-c", "exit 0",
    ]  # fmt: skip
    try:
        ran = subprocess.run(
            probe,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as bad:
        return f"bwrap cannot be run ({bad})"
    if ran.returncode == 0:
        return ""
    return f"bwrap fails here ({ran.stderr.strip().splitlines()[-1:] or [ran.returncode]})"


def program() -> list[str]:
    """Return the command of bubblewrap, without options."""
    return [shutil.which("bwrap") or "bwrap"]


def options(
    grants: Grants,
    env: Mapping[str, str],
    *,
    temporary: str,
    network: bool,
    info_fd: int | None,
    block_fd: int | None,
    filter_fd: int | None,
) -> list[str]:
    """Return the options of bubblewrap for a program. They hold its environment, so they must not
    be on a command line, which other users can see.

    Args:
        grants: Its files.
        env: Its environment.
        temporary: The folder that it gets as /tmp.
        network: Whether the network of the machine is open to it.
        info_fd: Where bubblewrap writes the id of the process in the namespaces; None for nowhere.
        block_fd: The program starts when this can be read; None for at once.
        filter_fd: The descriptor of a seccomp filter; None without one.
    """
    words = [*_NAMESPACES, "--clearenv"]
    for name, value in env.items():
        words += ["--setenv", name, value]
    if not network:
        words.append("--unshare-net")
    if filter_fd is not None:
        words += ["--seccomp", str(filter_fd)]
    if info_fd is not None:
        words += ["--info-fd", str(info_fd)]
    if block_fd is not None:
        words += ["--block-fd", str(block_fd)]
    mounts = [*_base(temporary), *_granted(grants)]
    # a folder is mounted before what is in it; of the same path, the later one wins
    for _, mount in sorted(mounts, key=lambda mount: mount[0].rstrip("/").count("/")):
        words += mount
    return [*words, "--remount-ro", "/", "--chdir", grants.folder]


def _base(temporary: str) -> Iterator[tuple[str, list[str]]]:
    # read-only: settings of the kernel belong to root, also to the root of a user namespace
    yield "/proc", ["--proc", "/proc", "--remount-ro", "/proc"]
    yield "/dev", ["--dev", "/dev"]
    yield "/tmp", ["--bind", temporary, "/tmp"]


def _granted(grants: Grants) -> Iterator[tuple[str, list[str]]]:
    """Yield each mount with its path."""
    real_write = [os.path.realpath(path) for path in grants.write]
    real_read = [os.path.realpath(path) for path in grants.read]
    for path, real in zip(grants.read, real_read, strict=True):
        if not any(_is_in(real, each) for each in real_write):
            yield from _mounts("--ro-bind", path, real, [*real_read, *real_write])
    for path, real in zip(grants.write, real_write, strict=True):
        yield from _mounts("--bind", path, real, real_write)
    for path in map(os.path.realpath, grants.hidden):
        if os.path.isdir(path):
            yield path, ["--tmpfs", path, "--remount-ro", path]
        else:
            yield path, ["--ro-bind", os.devnull, path]
    for path in map(os.path.realpath, (*grants.unwritable, *grants.protected)):
        yield path, ["--ro-bind", path, path]


def _mounts(
    option: str, path: str, real: str, granted: Sequence[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yield the mounts of a path, and of the path after symbolic links, that others do not give."""
    if os.path.islink(path) and os.path.dirname(path) == "/":
        yield path, ["--symlink", os.readlink(path), path]
    elif real != path and not any(_is_in(path, each) for each in granted):
        yield path, [option, real, path]
    if not any(_is_in(real, each) for each in granted if each != real):
        yield real, [option, real, real]


def _is_in(path: str, folder: str) -> bool:
    """Whether a real path is a real folder, or within it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
