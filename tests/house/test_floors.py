"""The floors of the house hold, and the checker that says so finds each kind of breach."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import floors
from tests.house.conftest import Build
from tests.house.source import House, room

SOUND = {
    "__init__.py": "from interlock.server.app import Server\nfrom interlock.types import Tool\n",
    "sync.py": "import interlock\n",
    "types/__init__.py": "from .tools import Tool\n",
    "types/tools.py": "import msgspec\nTool = 1\n",
    "exchange.py": "from interlock.wire.revisions import Revision\nfrom . import types\n",
    "wire/revisions.py": "from ..types.tools import Tool\nRevision = 1\n",
    "protocol/server.py": "import re\nfrom interlock.wire import revisions\n",
    "transport/stdio.py": "import asyncio\nfrom interlock.protocol import server\n",
    "server/app.py": "from interlock.transport.stdio import asyncio\nServer = 1\n",
    "servers/weather.py": "from interlock import Server, types\nfrom interlock.types import Tool\n",
    "testing/plugin.py": "import pytest\n",
    "cli/__init__.py": "import click\nfrom interlock import demo\nfrom interlock.servers import weather\n",
    "demo/__init__.py": "from interlock import Server\n",
}

BREACHES = {
    "upward": (
        {"wire/codec.py": "import interlock.server.app\n"},
        "wire/codec.py:1: wire (floor 1) imports upward, interlock.server.app (floor 5)",
    ),
    "the face from below": (
        {"client/app.py": "from interlock import Server\n"},
        "client (floor 5) imports upward, interlock (floor 8)",
    ),
    "relative": (
        {"wire/codec.py": "from ..input_required import Asker\n", "input_required.py": ""},
        "wire (floor 1) imports upward, interlock.input_required",
    ),
    "relative, a module": (
        {"wire/codec.py": "from .. import input_required\n", "input_required.py": ""},
        "wire (floor 1) imports upward, interlock.input_required",
    ),
    "for type checking": (
        {
            "types/x.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from interlock.wire import revisions\n"
        },
        "types/x.py:3: types (floor 0) imports upward, interlock.wire.revisions",
    ),
    "inside a function": (
        {"types/x.py": "def f():\n    import interlock.wire.revisions\n"},
        "types/x.py:2: types (floor 0) imports upward",
    ),
    "by name": (
        {
            "types/x.py": 'from importlib import import_module\nimport_module("interlock.wire.revisions")\n'
        },
        "types/x.py:2: types (floor 0) imports upward, interlock.wire.revisions",
    ),
    "by a table of relative names": (
        {
            "__init__.py": 'from importlib import import_module\nT = {"a": ".servers.weather"}\nf = lambda n: import_module(T[n], n)\n'
        },
        "interlock (floor 8) imports upward, interlock.servers.weather (floor 9)",
    ),
    "client and server": (
        {"client/app.py": "from interlock.server import app\n"},
        "client imports server; they never know of each other",
    ),
    "a clock in a pure part": (
        {
            "auth/oauth/flow.py": "import time\n",
            "auth/__init__.py": "",
            "auth/oauth/__init__.py": "",
        },
        "auth/oauth/flow.py:1: interlock.auth.oauth is pure, yet imports time",
    ),
    "a shell from a pure part": (
        {
            "auth/oauth/flow.py": "from ..guard import Guard\n",
            "auth/guard.py": "",
            "auth/__init__.py": "",
            "auth/oauth/__init__.py": "",
        },
        "auth/oauth/flow.py:1: interlock.auth.oauth is pure, yet imports interlock.auth.guard",
    ),
    "transport and store": (
        {"transport/http.py": "import interlock.store\n", "store/__init__.py": ""},
        "transport imports store; they never know",
    ),
    "a product below the face": (
        {"servers/x.py": "from interlock.server.app import Server\n"},
        "it may use only the face of the house",
    ),
    "a product deep in the types": (
        {"servers/x.py": "from interlock.types.tools import Tool\n"},
        "servers imports interlock.types.tools; it may",
    ),
    "a product of a product": (
        {"host/x.py": "from interlock.servers import weather\n"},
        "host imports interlock.servers.weather; it may use only",
    ),
    "neighbours, both ways": (
        {"wire/x.py": "import interlock.exchange\n"},
        "exchange and wire import each other",
    ),
    "a room without a floor": (
        {"attic/x.py": ""},
        "interlock/attic/x.py: attic stands on no floor",
    ),
    "an import of such a room": (
        {"cli/x.py": "import interlock.cellar\n"},
        "cli/x.py:1: imports interlock.cellar, which stands on no floor",
    ),
    "asyncio in the wire": (
        {"wire/x.py": "import asyncio\n"},
        "wire/x.py:1: wire is pure, yet imports asyncio",
    ),
    "a part of an impure package": (
        {"schema.py": "from concurrent.futures import Future\n"},
        "schema is pure, yet imports concurrent.futures",
    ),
    "threads, late": (
        {"protocol/x.py": "def f():\n    import threading\n"},
        "protocol/x.py:2: protocol is pure, yet imports threading",
    ),
    "a clock": (
        {"protocol/x.py": "from time import monotonic\n"},
        "protocol has no clock, yet imports time",
    ),
    "a stranger": (
        {"server/x.py": "import requests\n"},
        "server/x.py:1: imports requests, which pyproject.toml does not name",
    ),
    "a guest in the wrong room": (
        {"server/x.py": "import pytest\n"},
        "imports pytest, which pyproject.toml does not name",
    ),
}


def test_nobody_imports_upward(house: House, pyproject: Path) -> None:
    """Rooms import only what stands below them; the lowest three floors have no loop, socket or thread."""
    assert house.sources
    found = list(floors.problems(house, pyproject))
    assert not found, "\n".join(found)


def test_a_sound_house_gives_no_alarm(build: Build, pyproject: Path) -> None:
    """The sample that every breach below is added to has none of its own."""
    assert list(floors.problems(build(SOUND), pyproject)) == []


@pytest.mark.parametrize("files, alarm", BREACHES.values(), ids=BREACHES)
def test_each_breach_is_found(
    build: Build, pyproject: Path, files: dict[str, str], alarm: str
) -> None:
    """One breach, one alarm, and it names the place."""
    found = list(floors.problems(build(SOUND | files), pyproject))
    assert [line for line in found if alarm in line], found
    assert len(found) == 1, found


def test_every_floor_stands_once() -> None:
    """No room is on two floors, and the rules name only floors and rooms that exist."""
    assert sum(map(len, floors.FLOORS.values())) == len(floors.FLOOR)
    assert set(floors.FLOORS) >= floors.APART | {floors.PURE, floors.PRODUCTS}
    assert {room(name) for name in floors.FACE} <= set(floors.FLOOR)
