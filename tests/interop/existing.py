"""An existing reference server and ours side by side: started at first use, with the same requests,
each with its own folder."""

from __future__ import annotations

import base64
import os
import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from interlock import CallToolResult, ImageContent, Stdio
from interlock.sync import Client
from scripts import existing_servers
from tests.servers.git.repos import AUTHOR, git, repository, write

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
OURS = {"sequentialthinking": "thinking", "sqlite": "database"}
PEERS = {"time": "servers", "git": "servers", "fetch": "servers", "sqlite": "servers-archived"}

Fact = Callable[[CallToolResult], Any]


class Call(NamedTuple):
    """A call on one side. `{place}` in an argument is that side's folder."""

    tool: str
    arguments: dict[str, Any]
    fact: Fact


class Same(NamedTuple):
    """The same request to the existing server and to ours."""

    there: Call
    here: Call


class Sides:
    """Two running servers, each with its own folder."""

    def __init__(self, stack: ExitStack, folder: Path, installed: Callable[[str], Path]) -> None:
        self._stack = stack
        self._folder = folder
        self._installed = installed
        self._open: dict[str, tuple[Client, Client]] = {}

    def place(self, server: str, side: str) -> Path:
        """The folder of the server on one side; both sides start with the same content."""
        place = self._folder / f"{server}-{side}"
        if not place.exists():
            place.mkdir()
            furnish(server, place)
        return place

    def both(self, server: str) -> tuple[Client, Client]:
        """Theirs and ours, started at first use."""
        if server not in self._open:
            self._installed(PEERS.get(server, "servers-npm"))
            there = self.place(server, "there")
            here = self.place(server, "here")
            options = (
                ["--allow-private-ips"] if server == "fetch" else []
            )  # the site of the test is on loopback
            theirs = existing_servers.started(server, there, *options)
            self._open[server] = (
                self._stack.enter_context(Client(theirs)),
                self._stack.enter_context(
                    Client(ours(server, here), elicit=lambda question: {"confirm": True})
                ),
            )
        return self._open[server]

    def ask(self, server: str, same: Same) -> tuple[Any, Any]:
        """The results of both sides."""
        found = []
        for client, call, side in zip(self.both(server), same, ("there", "here"), strict=True):
            result = client.call_tool(
                call.tool, self.filled(call.arguments, self.place(server, side))
            )
            assert not result.is_error, (side, result.text)
            found.append(call.fact(result))
        return found[0], found[1]

    def filled(self, value: Any, place: Path) -> Any:
        """Arguments for one side."""
        if isinstance(value, str):
            return value.replace("{place}", str(place))
        if isinstance(value, list):
            return [self.filled(one, place) for one in value]
        return (
            {name: self.filled(one, place) for name, one in value.items()}
            if isinstance(value, dict)
            else value
        )


def ours(server: str, place: Path) -> Stdio:
    """Our server for a folder."""
    arguments = {
        "filesystem": [str(place)],
        "git": [str(place)],
        "sqlite": ["--", str(place / "existing.db"), "--write=existing"],
    }
    command = [
        sys.executable,
        "-m",
        "interlock",
        "serve",
        OURS.get(server, server),
        *arguments.get(server, ()),
    ]
    settings = {
        "INTERLOCK_FETCH_LOOPBACK": "1",
        "INTERLOCK_MEMORY_DB": str(place / "graph.db"),
        "HOME": str(place),
    }
    return Stdio(command, env={"PATH": os.environ["PATH"], **settings})


def furnish(server: str, place: Path) -> None:
    """Create the test data in a folder."""
    if server == "filesystem":
        (place / "deep" / "er").mkdir(parents=True)
        (place / "notes.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
        (place / "deep" / "er" / "leaf.md").write_text("# Ärger\n", encoding="utf-8")
        (place / "pixel.png").write_bytes(PIXEL)
    elif server == "git":
        place.rmdir()
        made = repository(place, {"beds.txt": "roses\nbeans\n"})
        git(made, "branch", "spring")
        write(made, {"beds.txt": "roses\npeas\n", "tools.txt": "spade\n"})
        git(made, "config", "user.name", AUTHOR.partition(" <")[0])
        git(made, "config", "user.email", "ada@example.com")
    elif server == "sqlite":
        database = sqlite3.connect(place / "existing.db")
        database.executescript(
            "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO people "
            "VALUES (1, 'Ada'), (2, NULL)"
        )
        database.close()


# -- what is read off a result ---------------------------------------------------------------------


def text(result: CallToolResult) -> str:
    """Its text, without space at the ends."""
    return result.text.strip()


def data(*path: str | int) -> Fact:
    """The value at a path in the structured content."""

    def fact(result: CallToolResult) -> Any:
        value: Any = result.structured_content
        for step in path:
            value = value[step]
        return value

    return fact


def found(pattern: str) -> Fact:
    """The matches of a pattern in the text, in order."""
    return lambda result: sorted(set(re.findall(pattern, result.text, re.MULTILINE)))


def each(path: str, field: str) -> Fact:
    """One field of each record in a list of the structured content, in order."""
    return lambda result: sorted(one[field] for one in data(path)(result))


def changes(result: CallToolResult) -> list[str]:
    """The lines of a patch that are added or removed."""
    return re.findall(r"^[+-](?![+-]).*$", result.text, re.MULTILINE)


def picture(result: CallToolResult) -> tuple[str, object]:
    """The picture in a result."""
    (image,) = (block for block in result.content if isinstance(block, ImageContent))
    return image.mime_type, image.data


def leaves(tree: Any) -> list[str]:
    """The names of a tree, its own first."""
    return [tree["path"], *(name for one in tree.get("entries", ()) for name in leaves(one))]


def nothing(result: CallToolResult) -> None:
    """Nothing: the test compares only the effect of the call."""
