"""The files that a confined program gets: system folders, its own program, its working folder, and
what its policy names.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from .errors import SandboxUnavailable
from .policy import SandboxPolicy

SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store",
    "/sys/devices/system/cpu",
    # of /etc only what programs need to run: there are keys and passwords in the rest
    "/etc/alternatives", "/etc/ca-certificates", "/etc/debian_version", "/etc/fonts",
    "/etc/gai.conf", "/etc/gitconfig", "/etc/group", "/etc/host.conf", "/etc/hosts",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/locale.alias",
    "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd",
    "/etc/pki/ca-trust", "/etc/pki/tls/cert.pem", "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf", "/etc/protocols", "/etc/resolv.conf", "/etc/services",
    "/etc/ssl/cert.pem", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone",
)  # fmt: skip
"""The folders and files of the system that every confined program can read."""

_PROGRAM_FOLDERS = ("bin", "Scripts")
_SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts")
_MOST_LINKS = 40
# What runs later with the rights of the user is not writable, even in a writable working folder,
# where the mechanism can say that.
_RUN_LATER = (
    ".git/hooks", ".git/config", ".mcp.json", "mcp.json", ".vscode", ".cursor", ".claude",
    ".gemini", ".codex", ".zed", ".idea", ".envrc",
)  # fmt: skip


class Grants(Struct, frozen=True, kw_only=True):
    """The files of one confined program, as absolute paths.

    Attributes:
        read: What it may read.
        write: What it may read and write.
        hidden: Holes within these that it may not read.
        unwritable: Holes within `write` that it may not write.
        protected: Files within its working folder that it should not write, where the mechanism
            can say so: they are run later, outside the sandbox.
        program: The program, as an absolute path.
        folder: Its working folder.
    """

    read: tuple[str, ...]
    write: tuple[str, ...]
    hidden: tuple[str, ...]
    unwritable: tuple[str, ...]
    protected: tuple[str, ...]
    program: str
    folder: str


def grants_of(
    sandbox: SandboxPolicy, command: Sequence[str], path: str | None, cwd: str | None, home: str
) -> Grants:
    """Return the files that a command gets.

    Args:
        sandbox: The policy.
        command: The program and its arguments.
        path: The PATH of its environment.
        cwd: Its working folder; None for that of this process, if it is a folder of its own.
        home: The folder that it gets as its home.

    Raises:
        SandboxUnavailable: A folder or the program does not exist, or the working folder would open
            the whole home folder.
    """
    folder = _working_folder(cwd, home)
    program = _located(command[0], path, folder)
    asked = os.path.abspath(cwd if cwd is not None else os.getcwd())
    named = {name: _absolute(getattr(sandbox, name), asked) for name in ("read", "write")}
    for name, key in (("read", "allowRead"), ("write", "allowWrite")):
        for each in named[name]:
            if not os.path.exists(each):
                raise SandboxUnavailable(
                    f"The sandbox cannot open {each}, which does not exist. Create it, or take it "
                    f"out of {key}."
                )
    _check_links([*named["read"], *named["write"]], [*named["write"], folder, home])
    read = [*filter(os.path.exists, SYSTEM), *named["read"]]
    read += program_files(program, path)
    read += _script_folder([program, *command[1:]], folder)
    write = [*named["write"], folder, home]
    hidden: list[str] = []
    unwritable: list[str] = []
    for denied in _absolute(sandbox.deny_read, asked):
        read = [each for each in read if not is_within(each, denied)]
        write = [each for each in write if not is_within(each, denied)]
        if any(is_within(denied, each) for each in (*read, *write)):
            hidden.append(_existing(denied, "denyRead"))
    for denied in _absolute(sandbox.deny_write, asked):
        read += [each for each in write if is_within(each, denied)]
        write = [each for each in write if not is_within(each, denied)]
        if any(is_within(denied, each) for each in write):
            unwritable.append(_existing(denied, "denyWrite"))
    protected = [
        os.path.join(folder, name)
        for name in _RUN_LATER
        if folder in write and folder not in named["write"]
    ]
    return Grants(
        read=tuple(dict.fromkeys(read)),
        write=tuple(dict.fromkeys(write)),
        hidden=tuple(hidden),
        unwritable=tuple(unwritable),
        protected=tuple(filter(os.path.exists, protected)),
        program=program,
        folder=folder,
    )


def is_within(path: str, folder: str) -> bool:
    """Whether a path is a folder or file, or within it, after symbolic links."""
    one = os.path.realpath(path)
    other = os.path.realpath(folder)
    return one == other or one.startswith(other.rstrip("/") + "/")


def is_in_system(path: str) -> bool:
    """Whether a path is within the folders of the system, after symbolic links."""
    real = os.path.realpath(path)
    return any(real == each or real.startswith(each + "/") for each in _real_system())


@functools.cache
def _real_system() -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(os.path.realpath, SYSTEM)))


def user_home() -> str:
    """Return the home folder of the user."""
    return os.path.realpath(os.path.expanduser("~"))


def _working_folder(cwd: str | None, home: str) -> str:
    """Return the working folder, or a folder of its own in place of a shared one."""
    folder = os.path.abspath(cwd if cwd is not None else os.getcwd())
    shared = (
        is_within(user_home(), folder)
        or os.path.realpath(folder) == os.path.realpath(tempfile.gettempdir())
        or is_in_system(folder)
    )
    if not shared:
        if not os.path.isdir(folder):
            raise SandboxUnavailable(f"The working folder {folder} does not exist.")
        return folder
    if cwd is not None:
        raise SandboxUnavailable(
            f"The sandbox does not open {folder} as a working folder, because it holds more than "
            'the files of this server. Set "cwd" to a folder of its own.'
        )
    own = os.path.join(home, "work")
    os.makedirs(own, mode=0o700, exist_ok=True)
    return own


def _located(program: str, path: str | None, folder: str) -> str:
    """Return the absolute path of a program."""
    if os.sep in program:
        found: str | None = os.path.normpath(os.path.join(folder, program))
    else:
        found = shutil.which(program, path=path if path is not None else os.defpath)
    if found is None or not os.path.isfile(found) or not os.access(found, os.X_OK):
        raise SandboxUnavailable(f"The server could not be started: {program}: no such program")
    return os.path.abspath(found)


def _absolute(paths: Iterable[str], folder: str) -> list[str]:
    return [os.path.abspath(os.path.join(folder, os.path.expanduser(each))) for each in paths]


def _check_links(paths: Sequence[str], writable: Sequence[str]) -> None:
    """Refuse a path that leads out of a folder which the program can write: at an earlier start,
    it may have put a link to your keys there.
    """
    for path in paths:
        for folder in writable:
            inside = path.startswith(folder.rstrip("/") + "/")
            if inside and not is_within(path, folder):
                raise SandboxUnavailable(
                    f"The sandbox does not open {path}, because it is a link out of {folder}, "
                    "which the server can write. Name the target itself."
                )


def _existing(path: str, key: str) -> str:
    """Return a path that is to be a hole in a folder; a hole can only cover what exists."""
    if not os.path.exists(path):
        raise SandboxUnavailable(
            f"{path} of {key} is within a folder that is open, and does not exist, so the sandbox "
            "cannot keep it closed. Create it, or open less."
        )
    return path


# -- the files of a program ------------------------------------------------------------------------


def program_files(program: str, path: str | None) -> list[str]:
    """Return what a program outside of the system's folders needs to run: its own folder, and those
    of its interpreter.

    Args:
        program: The program as an absolute path.
        path: The PATH of its environment.
    """
    found: list[str] = []
    waiting = [program]
    seen: set[str] = set()
    while waiting and len(seen) < _MOST_LINKS:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        found.append(each)
        folder = _folder_of(each)
        if folder is not None:
            found.append(folder)
            waiting += _base_interpreter(folder)
            if folder == sys.prefix:
                found += _linked_sources()
        if os.path.islink(each):
            waiting.append(os.path.join(os.path.dirname(each), os.readlink(each)))
        else:
            waiting += _interpreter(each, path)
    return [os.path.normpath(each) for each in found if not is_in_system(each)]


def _folder_of(program: str) -> str | None:
    """Return the folder of the installation around a program, or its `bin` if that would open the
    home folder or more; None if the program is not in an installation.
    """
    parent = os.path.dirname(program)
    home = user_home()
    if os.path.basename(parent) in _PROGRAM_FOLDERS:
        prefix = os.path.dirname(parent)
        if is_within(home, prefix) or os.path.realpath(prefix) == f"{home}/.local":
            return parent
        # not any folder that happens to hold a program: its other files may be private
        if os.path.isdir(os.path.join(prefix, "lib")):
            return prefix
    return None


def _base_interpreter(folder: str) -> Iterator[str]:
    """Yield the interpreter that a virtual environment is made from."""
    try:
        lines = Path(folder, "pyvenv.cfg").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        key, _, value = line.partition("=")
        # an interpreter has to be there: the file may come with a project and name any folder
        base = os.path.join(value.strip(), "python3")
        if key.strip() == "home" and os.path.isabs(base) and os.access(base, os.X_OK):
            yield base


def _linked_sources() -> Iterator[str]:
    """Yield the source folders that packages of this Python environment are installed from."""
    packages = Path(sysconfig.get_paths()["purelib"])
    for file in packages.glob("*.pth"):
        for line in file.read_text("utf-8", "replace").splitlines():
            if os.path.isabs(line.strip()) and os.path.isdir(line.strip()):
                yield line.strip()


def _interpreter(file: str, path: str | None) -> Iterator[str]:
    """Yield the interpreter in the first line of a script."""
    try:
        with open(file, "rb") as script:
            first = script.readline(512).decode("utf-8", "replace")
    except OSError:
        return
    words = first[2:].split() if first.startswith("#!") else []
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
        named = shutil.which(words[0], path=path) if words else None
        words = [named] if named else []
    if words and os.path.isabs(words[0]) and os.access(words[0], os.X_OK):
        yield words[0]


def _script_folder(command: Sequence[str], folder: str) -> list[str]:
    """Return the folder of the script that an interpreter runs: of its package, if it is in one."""
    if len(command) < 2 or not command[1].endswith(_SCRIPTS):
        return []
    script = os.path.abspath(os.path.join(folder, command[1]))
    if not os.path.isfile(script):
        return []
    home = user_home()
    top = os.path.dirname(script)
    for parent in map(str, Path(script).parents):
        if is_within(home, parent):
            break
        if any(os.path.exists(os.path.join(parent, name)) for name in _PACKAGE_FILES):
            top = parent
            break
    return [script] if is_within(home, top) else [script, top]


_PACKAGE_FILES = ("package.json", "pyproject.toml")
