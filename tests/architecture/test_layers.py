"""The imports respect the layers, and the checker finds each kind of violation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture import layers
from tests.architecture.source import SourceTree

PLAN = layers.Plan(
    layers={
        "types": 0,
        "wire": 1,
        "exchange": 1,
        "protocol": 2,
        "input_required": 3,
        "transport": 4,
        "store": 3,
        "server": 5,
        "client": 5,
        "auth": 5,
        "interlock": 7,
        "sync": 7,
        "testing": 7,
        "cli": 7,
    },
    public=frozenset({"interlock", "interlock.types"}),
    dependencies={
        "interlock": frozenset({"msgspec", "click"}),
        "interlock_issuer": frozenset(),
        "interlock_apps": frozenset({"starlette"}),
        "interlock_servers": frozenset({"protego"}),
    },
)

SOUND = {
    "interlock/__init__.py": (
        "from interlock.server.app import Server\nfrom interlock.types import Tool\n"
    ),
    "interlock/sync.py": "import interlock\n",
    "interlock/types/__init__.py": "from .tools import Tool\n",
    "interlock/types/tools.py": "import msgspec\nTool = 1\n",
    "interlock/exchange.py": "from interlock.wire.revisions import Revision\nfrom . import types\n",
    "interlock/wire/revisions.py": "from ..types.tools import Tool\nRevision = 1\n",
    "interlock/protocol/server.py": "import re\nfrom interlock.wire import revisions\n",
    "interlock/transport/stdio.py": "import asyncio\nfrom interlock.protocol import server\n",
    "interlock/server/app.py": "from interlock.transport.stdio import asyncio\nServer = 1\n",
    "interlock/testing/plugin.py": "import pytest\n",
    "interlock/cli/__init__.py": "import click\n",
    "interlock_servers/fetch.py": (
        "import protego\nfrom interlock import Server, types\nfrom interlock.types import Tool\n"
    ),
    "interlock_apps/fleet/hub.py": "from interlock import Client\n",
    "interlock_apps/host/app.py": "import starlette\nfrom interlock_apps.fleet import hub\n",
    "interlock_apps/commands/ask.py": "from ..host import app\n",
}

BREACHES = {
    "upward": (
        {"interlock/wire/codec.py": "import interlock.server.app\n"},
        (
            "interlock/wire/codec.py:1: interlock.wire (layer 1) imports upward, "
            "interlock.server.app (layer 5)"
        ),
    ),
    "the public API from below": (
        {"interlock/client/app.py": "from interlock import Server\n"},
        "interlock.client (layer 5) imports upward, interlock (layer 7)",
    ),
    "relative": (
        {
            "interlock/wire/codec.py": "from ..input_required import Asker\n",
            "interlock/input_required.py": "",
        },
        "interlock.wire (layer 1) imports upward, interlock.input_required",
    ),
    "for type checking": (
        {
            "interlock/types/x.py": (
                "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
                "    from interlock.wire import revisions\n"
            )
        },
        "interlock/types/x.py:3: interlock.types (layer 0) imports upward",
    ),
    "inside a function": (
        {"interlock/types/x.py": "def f():\n    import interlock.wire.revisions\n"},
        "interlock/types/x.py:2: interlock.types (layer 0) imports upward",
    ),
    "by name": (
        {
            "interlock/types/x.py": (
                'from importlib import import_module\nimport_module("interlock.wire.revisions")\n'
            )
        },
        (
            "interlock/types/x.py:2: interlock.types (layer 0) imports upward, "
            "interlock.wire.revisions"
        ),
    ),
    "by name, of another distribution": (
        {
            "interlock/cli/x.py": (
                'from importlib import import_module\nimport_module("interlock_servers.fetch")\n'
            )
        },
        "interlock/cli/x.py:2: the library imports interlock_servers.fetch",
    ),
    "client and server": (
        {"interlock/client/app.py": "from interlock.server import app\n"},
        "interlock.client imports interlock.server; packages of layer 5 stay apart",
    ),
    "a clock in a pure part": (
        {
            "interlock/auth/oauth/flow.py": "import time\n",
            "interlock/auth/__init__.py": "",
            "interlock/auth/oauth/__init__.py": "",
        },
        "interlock/auth/oauth/flow.py:1: interlock.auth.oauth is pure, yet imports time",
    ),
    "the library imports a program": (
        {"interlock/cli/x.py": "from interlock_servers import fetch\n"},
        "interlock/cli/x.py:1: the library imports interlock_servers.fetch",
    ),
    "a program imports a private module": (
        {"interlock_servers/x.py": "from interlock.server.app import Server\n"},
        (
            "interlock_servers.x imports interlock.server.app, "
            "which docs/api.txt does not list as public"
        ),
    ),
    "a program imports another distribution": (
        {"interlock_apps/host/x.py": "from interlock_servers import fetch\n"},
        "interlock_apps imports interlock_servers.fetch; only the library is shared",
    ),
    "fleet imports the host": (
        {"interlock_apps/fleet/x.py": "from interlock_apps.host import app\n"},
        "interlock_apps.fleet imports upward, interlock_apps.host.app",
    ),
    "the gateway imports the host": (
        {"interlock_apps/gateway/x.py": "from interlock_apps.host import app\n"},
        "interlock_apps.gateway imports interlock_apps.host.app; programs stay apart",
    ),
    "neighbours, both ways": (
        {"interlock/wire/x.py": "import interlock.exchange\n"},
        "interlock.exchange and interlock.wire import each other",
    ),
    "a package without a layer": (
        {"interlock/attic/x.py": ""},
        "interlock/attic/x.py: interlock.attic is on no layer",
    ),
    "asyncio in the wire": (
        {"interlock/wire/x.py": "import asyncio\n"},
        "interlock/wire/x.py:1: interlock.wire is pure, yet imports asyncio",
    ),
    "threads, late": (
        {"interlock/protocol/x.py": "def f():\n    import threading\n"},
        "interlock/protocol/x.py:2: interlock.protocol is pure, yet imports threading",
    ),
    "a clock": (
        {"interlock/protocol/x.py": "from time import monotonic\n"},
        "interlock.protocol has no clock, yet imports time",
    ),
    "an unknown distribution": (
        {"interlock/server/x.py": "import requests\n"},
        (
            "interlock/server/x.py:1: imports requests, "
            "which the pyproject.toml of interlock does not name"
        ),
    ),
    "a dependency of another distribution": (
        {"interlock/server/x.py": "import protego\n"},
        "imports protego, which the pyproject.toml of interlock does not name",
    ),
}


def tree(top: Path, files: dict[str, str]) -> SourceTree:
    """A source tree of these files."""
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return SourceTree(top)


def test_imports_keep_to_the_layers(source_tree: SourceTree, top: Path) -> None:
    """No package imports upward; programs import only the modules that docs/api.txt lists as
    public."""
    assert source_tree.sources
    found = list(layers.problems(source_tree, layers.read_plan(top)))
    assert not found, "\n".join(found)


def test_the_table_shows_what_the_imports_draw(source_tree: SourceTree, top: Path) -> None:
    """Each package in the table of docs/ARCHITECTURE.md exists, and each that exists is in the
    table, above all that it imports."""
    plan = layers.read_plan(top)
    lowest = layers.drawn(source_tree, plan)
    assert lowest.keys() == plan.layers.keys()
    assert [name for name in lowest if lowest[name] > plan.layers[name]] == []


def test_every_public_module_exists(source_tree: SourceTree, top: Path) -> None:
    """docs/api.txt lists no removed module."""
    assert [name for name in layers.read_plan(top).public if not source_tree.has(name)] == []


def test_a_sound_tree_gives_no_alarm(tmp_path: Path) -> None:
    """Imports that the plan allows pass."""
    assert list(layers.problems(tree(tmp_path, SOUND), PLAN)) == []


@pytest.mark.parametrize("files, alarm", BREACHES.values(), ids=BREACHES)
def test_each_breach_is_found(tmp_path: Path, files: dict[str, str], alarm: str) -> None:
    """Each violation that is added to the valid tree gives one error."""
    found = list(layers.problems(tree(tmp_path, SOUND | files), PLAN))
    assert len(found) == 1, found
    assert alarm in found[0]
