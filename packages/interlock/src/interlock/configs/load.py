"""The one place that reads files: configurations merged from several of them, and files of
variables.
"""

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
    """Read configurations from files and make one of them. It never raises for what is in them, or
    for a file that is not there.

    A server that stands in several files is taken from none of them: which was meant cannot be
    known.

    Args:
        paths: The files, in the order in which their servers are wanted.
        env: What variables are filled in from.
        ask: Asks a person for what a file wants to be asked; None, as without it, is no answer:
            then defaults count. What it raises goes through.
        folder: What `${workspaceFolder}` is; None: for each file the folder it belongs to.
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
    """One configuration of several. An id that stands in more than one of them is left out, with a
    Problem that says where it stands.
    """
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
    """The variables in a file of lines NAME=value: quotes are taken off, nothing is filled in.
    Raises UnusableEntry.
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
    """The text of a file. Raises UnusableEntry with what to do."""
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
    """The folder that a file's servers work in: its own, or the project around that of a
    product.
    """
    folder = Path(os.path.abspath(path)).parent
    return folder.parent if folder.name in PROJECT_FOLDERS else folder
