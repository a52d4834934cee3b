"""Loads configurations from files and merges them, and reads `.env` files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from .documents import MOST_BYTES
from .drafts import UnusableEntry
from .entries import Config, Entry, Input, Problem
from .products import PROJECT_FOLDERS
from .reading import read_config, wanted_inputs

_LINE = re.compile(r"(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*(?P<value>.*)")
_QUOTED = re.compile(r"""(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>[^']*)')[ \t]*(?:#.*)?""")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def load_config(
    *paths: Path,
    env: Mapping[str, str] = os.environ,
    ask: Callable[[Input], str | None] | None = None,
    folder: Path | None = None,
) -> Config:
    """Read configurations from files and merge them.

    An invalid or missing file raises no error, but becomes a `Problem`. A server that is in several
    files is left out, because it is unclear which one was meant.

    Args:
        paths: The files, in the order for their servers.
        env: The environment for variables.
        ask: Asks the user for an input of a file. Without it, or if it returns None, the default is
            used. Its exceptions are passed on.
        folder: The value of `${workspaceFolder}`; None: for each file the folder that it belongs
            to.
    """
    configs: list[Config] = []
    for path in paths:
        try:
            text = _read(path)
        except UnusableEntry as bad:
            configs.append(Config(problems=(Problem(where=str(path), words=str(bad)),)))
            continue
        own = folder if folder is not None else _folder_of(path)
        wanted = wanted_inputs(text, source=path.name, folder=own) if ask is not None else ()
        answers = {
            input.id: said
            for input in wanted
            if ask is not None and (said := ask(input)) is not None
        }
        configs.append(
            read_config(
                text,
                env=env,
                inputs=answers,
                folder=own,
                source=str(path),
                read_file=read_variables,
            )
        )
    return merge(*configs)


def merge(*configs: Config) -> Config:
    """Merge configurations. An id that several of them have is left out, with a Problem."""
    sources: dict[str, list[Entry]] = {}
    for config in configs:
        for entry in config.entries:
            sources.setdefault(entry.id, []).append(entry)
    problems = [problem for config in configs for problem in config.problems]
    for id, entries in sources.items():
        if len(entries) > 1:
            files = ", ".join(entry.source or "a configuration" for entry in entries)
            problems.append(
                Problem(
                    where=id,
                    words=f"left out: it is in {files}; rename or remove all but one",
                    id=id,
                )
            )
    return Config(
        entries=tuple(entries[0] for entries in sources.values() if len(entries) == 1),
        problems=tuple(problems),
    )


def read_variables(path: Path) -> dict[str, str]:
    """Read a file of lines NAME=value. Quotes are removed. Variables in values are not filled in.

    Raises:
        UnusableEntry: The file cannot be read.
    """
    variables: dict[str, str] = {}
    for number, line in enumerate(_read(path).splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise UnusableEntry(f"line {number}: it must be NAME=value")
        variables[found["name"]] = _unquoted(found["value"])
    return variables


def _unquoted(value: str) -> str:
    quoted = _QUOTED.fullmatch(value)
    if quoted is None:
        return re.split(r"(?:^|[ \t])#", value, maxsplit=1)[0].rstrip()
    if quoted["single"] is not None:
        return quoted["single"]
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), quoted["double"])


def _read(path: Path) -> str:
    """Return the text of a file. Raises UnusableEntry, which says what to do."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UnusableEntry(
                f"it is larger than {MOST_BYTES >> 20} MiB, the limit for configurations"
            )
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise UnusableEntry("this file does not exist; create it, or name another") from None
    except IsADirectoryError:
        raise UnusableEntry("it is a folder; name the file in it") from None
    except PermissionError:
        raise UnusableEntry("you may not read it; change its permissions") from None
    except UnicodeDecodeError:
        raise UnusableEntry("it is not UTF-8; save it as UTF-8") from None
    except (OSError, ValueError) as bad:
        raise UnusableEntry(
            f"it cannot be read ({getattr(bad, 'strerror', None) or 'its name is invalid'})"
        ) from None


def _folder_of(path: Path) -> Path:
    """Return the working folder for the servers of a file: its own folder, or the project around
    it.
    """
    folder = Path(os.path.abspath(path)).parent
    return folder.parent if folder.name in PROJECT_FOLDERS else folder
