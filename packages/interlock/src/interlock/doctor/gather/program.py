"""Gathers facts about a command without running it: the program on the PATH, its shebang, its
script.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from ...redaction import shown_arguments
from ..facts import CommandFacts

_HEAD = 256  # bytes of a program that are read
_BINARY = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa", b"\xca\xfe\xba\xbe")
_INTERPRETERS = re.compile(r"(?:python[\d.]*|node|deno|bun|ruby|sh|bash|zsh|tsx|pythonw)(?:\.exe)?")
_SCRIPT = re.compile(r".*\.(?:py|js|mjs|cjs|ts|rb|sh)", re.IGNORECASE)
_NO_SCRIPT = ("-m", "-c", "-e", "--eval", "-p", "--print")


def command_facts(
    command: Sequence[str],
    env: Mapping[str, str],
    folder: str | None = None,
    launch_path: str = "",
) -> CommandFacts:
    """Return the facts about a command.

    Args:
        command: The program and its arguments.
        env: All variables that the process would get.
        folder: The working folder; None for that of this process.
        launch_path: The PATH that a product gives its servers; empty if it is not known.
    """
    search_path = env.get("PATH", os.defpath)
    shown = shown_arguments(command)
    facts = CommandFacts(
        command=shown,
        search_path=search_path,
        launch_path=launch_path,
        folder=folder or "",
        folder_exists=folder is None or Path(folder).is_dir(),
    )
    if not facts.folder_exists:
        return facts
    where = Path(folder) if folder is not None else Path.cwd()
    program, is_executable = _program(command[0], where, search_path)
    head = _head(program) if program and is_executable else b""
    interpreter, has_interpreter = _interpreter(head, search_path)
    return CommandFacts(
        command=shown,
        search_path=search_path,
        launch_path=launch_path,
        folder=folder or "",
        program=program,
        is_executable=is_executable,
        on_launch_path=_is_on_launch_path(command[0], env, launch_path),
        head=head,
        interpreter=interpreter,
        has_interpreter=has_interpreter,
        missing_script=_missing_script(command, where),
    )


def _program(name: str, where: Path, search_path: str) -> tuple[str, bool]:
    """The file of a program, and whether it may be executed; an empty text if there is none."""
    if os.path.dirname(name):
        path = where / name
        if sys.platform == "win32" and (found := shutil.which(str(path))):
            return found, True
        return (str(path), _is_program(path)) if path.exists() else ("", False)
    if found := shutil.which(name, path=search_path):
        return found, True
    for part in search_path.split(os.pathsep):
        path = Path(part or ".") / name
        if path.is_file():
            return str(path), False
    return "", False


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _head(program: str) -> bytes:
    """The first bytes of a script; empty for a binary program, and where files have no shebang."""
    if sys.platform == "win32":
        return b""
    try:
        with open(program, "rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return b""
    return b"" if head.startswith(_BINARY) or b"\x00" in head else head


def _interpreter(head: bytes, search_path: str) -> tuple[str, bool]:
    """The interpreter that a shebang names, and whether it exists."""
    if not head.startswith(b"#!"):
        return "", True
    words = head[2:].partition(b"\n")[0].decode("utf-8", "replace").strip(" \t").split(" ")
    if PurePath(words[0]).name == "env":
        named = [
            word for word in words[1:] if word and not word.startswith("-") and "=" not in word
        ]
        name = named[0] if named else ""
        return name, bool(name) and shutil.which(name, path=search_path) is not None
    return words[0], os.access(words[0], os.X_OK)


def _is_on_launch_path(name: str, env: Mapping[str, str], launch_path: str) -> bool:
    """Whether the program is found as the product searches it."""
    if not launch_path or os.path.dirname(name) or env.get("PATH") != os.environ.get("PATH"):
        return True
    return shutil.which(name, path=launch_path) is not None


def _missing_script(command: Sequence[str], where: Path) -> str:
    """The script that an interpreter shall run, if it does not exist."""
    if not _INTERPRETERS.fullmatch(PurePath(command[0]).name):
        return ""
    for word in command[1:]:
        if word in _NO_SCRIPT:
            return ""
        if _SCRIPT.fullmatch(word) and not word.startswith("-"):
            return "" if (where / word).exists() else str(where / word)
    return ""
