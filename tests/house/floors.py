"""Who may import whom: the table of floors and the rules that read it."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import House, Import, Source, room

FLOORS: dict[int, tuple[str, ...]] = {
    0: (
        "types",
        "schema",
        "version",
        "keywords",
        "lazily",
        "addresses",
        "settings",
        "buckets",
        "caches",
        "deprecation",
        "logs",
        "invisible",
        "lookalikes",
        "meta_keys",
        "urls",
        "redaction",
    ),
    1: ("wire", "exchange"),
    2: ("protocol",),
    3: ("input_required", "eager", "bell", "extension", "fetch", "skills", "lifespan"),
    4: ("transport", "store"),
    5: ("server", "client", "auth"),
    6: ("tasks", "configs"),
    7: ("testing",),
    8: ("interlock", "sync"),
    9: ("host", "gateway", "inspector", "servers", "issuer"),
    10: ("cli", "demo", "tour", "__main__"),
}
FLOOR = {name: number for number, names in FLOORS.items() for name in names}

# On these floors the rooms never know of each other. On the others one may use its neighbour, but not both one another.
APART = {4, 5, 9}

# What the rooms on floor 9 may import, to the letter.
FACE = {
    "interlock",
    "interlock.lazily",
    "interlock.sync",
    "interlock.types",
    "interlock.schema",
    "interlock.skills",
    "interlock.auth",
    "interlock.auth.oauth",
    "interlock.auth.tokens",
    "interlock.logs",
    "interlock.configs",
    "interlock.store",
    "interlock.invisible",
    "interlock.urls",
    "interlock.redaction",
    "interlock.addresses",
    "interlock.caches",
}
PRODUCTS = 9

# Floors 0 to 2 decide; they do not do. No loops, sockets, processes or threads, whatever the road to them.
PURE = 2
IMPURE = {
    "_thread", "asyncio", "concurrent", "http.client", "http.server", "multiprocessing", "select", "selectors",
    "signal", "socket", "socketserver", "ssl", "subprocess", "threading", "urllib.request",
}  # fmt: skip
# The conversations are told the time, they do not look it up.
CLOCKLESS = {"protocol"}
# Parts of a room that are as pure, and clockless too: what of the house they may import, to the letter or beneath it.
PURE_PARTS = {
    "interlock.auth.oauth": (
        "interlock.auth.oauth",
        "interlock.types",
        "interlock.fetch",
        "interlock.protocol.handshake.messages",
        "interlock.version",
        "interlock.addresses",
        "interlock.lazily",
        "interlock.redaction",
    )
}

# Distributions whose module is called otherwise.
OTHERWISE = {"argon2_cffi": "argon2", "python_dateutil": "dateutil", "ruamel.yaml": "ruamel"}

# A plugin for pytest imports pytest; who loads it has it.
GUESTS = {
    "testing": {"pytest", "_pytest"},
    "deprecation": {"typing_extensions"},  # for type checkers, which all bring it
}


def problems(house: House, pyproject: Path) -> Iterator[str]:
    """Every import that the plan of the house does not allow, one line each."""
    sideways: dict[tuple[str, str], str] = {}
    known = distributions(pyproject)
    for source in house.sources:
        if source.room not in FLOOR:
            yield f"{source.where}: {source.room} stands on no floor"
            continue
        part = next((part for part in PURE_PARTS if _is_beneath(source.name, part)), None)
        for found in house.imports(source):
            at = f"{source.where}:{found.line}"
            if part is not None:
                yield from _in_pure_part(part, found, at)
            if found.target.partition(".")[0] != "interlock":
                yield from _outside(source, found, at, known)
            elif room(found.target) not in FLOOR:
                yield f"{at}: imports {found.target}, which stands on no floor"
            elif room(found.target) != source.room:
                yield from _between_rooms(source.room, found, at)
                sideways.setdefault((source.room, room(found.target)), at)
    for (one, other), at in sideways.items():
        if (
            one < other
            and (other, one) in sideways
            and FLOOR[one] == FLOOR[other]
            and FLOOR[one] not in APART
        ):
            yield f"{at}: {one} and {other} import each other (see {sideways[other, one]})"


def distributions(pyproject: Path) -> set[str]:
    """The modules of the distributions that pyproject.toml names, dependencies and extras alike."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    asked = [
        *project["dependencies"],
        *(line for lines in project["optional-dependencies"].values() for line in lines),
    ]
    named = {
        re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0].replace("-", "_").lower()
        for line in asked
    }
    return named | {OTHERWISE[name] for name in named & OTHERWISE.keys()}


def _is_beneath(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}.")


def _in_pure_part(part: str, found: Import, at: str) -> Iterator[str]:
    ours = found.target.partition(".")[0] == "interlock"
    if ours and not any(_is_beneath(found.target, place) for place in PURE_PARTS[part]):
        yield f"{at}: {part} is pure, yet imports {found.target}"
    if not ours and any(_is_beneath(found.target, name) for name in (*IMPURE, "time")):
        yield f"{at}: {part} is pure, yet imports {found.target}"


def _outside(source: Source, found: Import, at: str, known: set[str]) -> Iterator[str]:
    top = found.target.partition(".")[0]
    if FLOOR[source.room] <= PURE and any(
        found.target == name or found.target.startswith(name + ".") for name in IMPURE
    ):
        yield f"{at}: {source.room} is pure, yet imports {found.target}"
    if source.room in CLOCKLESS and top == "time":
        yield f"{at}: {source.room} has no clock, yet imports time"
    if (
        top not in sys.stdlib_module_names
        and top not in known
        and top not in GUESTS.get(source.room, ())
    ):
        yield f"{at}: imports {top}, which pyproject.toml does not name"


def _between_rooms(own: str, found: Import, at: str) -> Iterator[str]:
    other = room(found.target)
    here, there = FLOOR[own], FLOOR[other]
    if there > here:
        yield f"{at}: {own} (floor {here}) imports upward, {found.target} (floor {there})"
    elif here == PRODUCTS and found.target not in FACE:
        yield f"{at}: {own} imports {found.target}; it may use only the face of the house"
    elif there == here and here in APART:
        yield f"{at}: {own} imports {other}; they never know of each other"
