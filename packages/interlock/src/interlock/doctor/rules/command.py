"""Rules about the command of a server: the program, its PATH, its shebang, its script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..diagnostics import RuleFinding, rule
from ..facts import CommandFacts


@rule(
    "folder-not-found",
    "error",
    "The working folder does not exist",
    advice="Create the folder, or correct `cwd`.",
    stops=True,
)
def folder_not_found(facts: CommandFacts) -> Iterator[RuleFinding]:
    """A process cannot be started in a folder that does not exist."""
    if not facts.folder_exists:
        yield RuleFinding(f"there is no folder {facts.folder}", facts.folder)


@rule(
    "command-not-found",
    "error",
    "The program of the command is not found",
    advice="Install the program, or write its whole path.",
    stops=True,
)
def command_not_found(facts: CommandFacts) -> Iterator[RuleFinding]:
    """No file of this name exists, on the PATH or at the path."""
    if facts.folder_exists and not facts.program:
        name = facts.command[0]
        if "/" in name or "\\" in name:
            yield RuleFinding(f"there is no file {name}", name)
        else:
            yield RuleFinding(f"there is no program {name} on the PATH {facts.search_path}", name)


@rule(
    "command-not-executable",
    "error",
    "The file of the command is not executable",
    advice="Make it executable (chmod +x), or start it with its interpreter.",
    stops=True,
)
def command_not_executable(facts: CommandFacts) -> Iterator[RuleFinding]:
    """The file exists and may not be executed."""
    if facts.program and not facts.is_executable:
        yield RuleFinding(f"{facts.program} is not an executable file", facts.program)


@rule(
    "shebang-missing",
    "error",
    "The script does not name its interpreter",
    advice="Make `#!/usr/bin/env python3` (or your interpreter) its first line.",
    stops=True,
)
def shebang_missing(facts: CommandFacts) -> Iterator[RuleFinding]:
    """An executable text file without a shebang: `Exec format error`."""
    if _is_script(facts) and not facts.head.startswith(b"#!"):
        yield RuleFinding(
            f"the first line of {facts.program} does not begin with #!", facts.program
        )


@rule(
    "shebang-line-end",
    "error",
    "The first line of the script ends with a carriage return",
    advice="Save the file with the line ends of Unix (LF).",
    stops=True,
)
def shebang_line_end(facts: CommandFacts) -> Iterator[RuleFinding]:
    """With CRLF line ends, the system searches an interpreter whose name ends with \\r."""
    if _is_script(facts) and _first_line(facts).endswith(b"\r"):
        yield RuleFinding(f"the interpreter of {facts.program} would be {facts.interpreter!r}")


@rule(
    "interpreter-not-found",
    "error",
    "The interpreter of the script does not exist",
    advice="Install the interpreter, or correct the first line of the script.",
    stops=True,
)
def interpreter_not_found(facts: CommandFacts) -> Iterator[RuleFinding]:
    """The shebang names a program that does not exist."""
    if _is_script(facts) and not facts.has_interpreter and not _first_line(facts).endswith(b"\r"):
        yield RuleFinding(
            f"the first line of {facts.program} names {facts.interpreter}, which does not exist",
            facts.program,
        )


@rule(
    "script-not-found",
    "error",
    "The script of the command does not exist",
    advice="Correct the path. A relative one counts from the working folder.",
    stops=True,
)
def script_not_found(facts: CommandFacts) -> Iterator[RuleFinding]:
    """The interpreter exists, and the script that it shall run does not."""
    if facts.missing_script:
        yield RuleFinding(f"there is no file {facts.missing_script}", facts.missing_script)


@rule(
    "not-on-launch-path",
    "warning",
    "The product may not find the program",
    advice="Write the whole path of the program in the configuration.",
)
def not_on_launch_path(facts: CommandFacts) -> Iterator[RuleFinding]:
    """Desktop programs do not get the PATH of a shell, to which nvm, pyenv and uv add folders."""
    if facts.program and not facts.on_launch_path:
        yield RuleFinding(
            f"{facts.command[0]} is {facts.program}, which is not on the PATH of the product "
            f"({facts.launch_path})",
            facts.program,
        )


def _is_script(facts: CommandFacts) -> bool:
    """Whether the program is an executable text file."""
    return bool(facts.head) and facts.is_executable


def _first_line(facts: CommandFacts) -> bytes:
    return facts.head.partition(b"\n")[0]


RULES: Final = (
    folder_not_found,
    command_not_found,
    command_not_executable,
    shebang_missing,
    shebang_line_end,
    interpreter_not_found,
    script_not_found,
    not_on_launch_path,
)
