"""The face of the package: every name leads to its room, and nothing is loaded before it is
used."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import resolve_name
from typing import Any

import pytest

import interlock
import interlock_issuer
from interlock import auth, store, testing

FACES = {
    "interlock": interlock,
    "interlock.testing": testing,
    "interlock.store": store,
    "interlock.auth": auth,
    "interlock_issuer": interlock_issuer,
}
NAMES = [
    (face, name)
    for face, module in FACES.items()
    for name in module.__all__
    if name != "__version__"
]


@pytest.mark.parametrize("face, name", NAMES, ids=[f"{face}.{name}" for face, name in NAMES])
def test_each_name_is_the_object_of_its_room(face: str, name: str):
    """The same object, wherever it is taken from."""
    module: Any = FACES[face]
    value = getattr(module, name)
    (room,) = [room for room, names in module._ROOMS.items() if name in names]
    home = sys.modules[resolve_name(room, face)]
    assert value is getattr(home, name)
    assert getattr(module, name) is value
    assert module.__dict__[name] is value  # found without asking the next time


@pytest.mark.parametrize("face", FACES)
def test_the_names_agree(face: str):
    """What is said to be public, what can be loaded, and what `dir` shows."""
    module: Any = FACES[face]
    public = set(module.__all__)
    assert len(module.__all__) == len(public)
    assert public - {"__version__"} == {name for names in module._ROOMS.values() for name in names}
    assert dir(module) == sorted(public)


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", ["Nothing", "tool", "client_", "_x", "__wrapped__", ""])
def test_names_that_there_are_not(face: str, name: str):
    """An AttributeError that names both, so that `hasattr` and `from ... import` work as ever."""
    with pytest.raises(AttributeError, match=f"module '{face}' has no attribute '{name}'"):
        getattr(FACES[face], name)
    assert not hasattr(FACES[face], name)


def test_importing_a_name_that_there_is_not():
    with pytest.raises(ImportError, match="cannot import name 'Nothing' from 'interlock'"):
        exec("from interlock import Nothing")


def test_the_version():
    assert interlock.__version__.count(".") == 2


def in_a_new_process(code: str) -> Any:
    """What a piece of code prints last, as JSON, in an interpreter that has loaded nothing yet."""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


LOADED = """
import json, sys
print(json.dumps(sorted(name for name in sys.modules if name.split(".")[0] in
      ("interlock", "asyncio", "msgspec", "jsonschema_rs", "pydantic", "attrs", "click", "rich",
       "joserfc", "cryptography", "argon2", "keyring"))))
"""

LOADS: dict[str, tuple[str, set[str], set[str]]] = {
    # what is done, what is loaded then, and the rooms that are not
    "the face alone": (
        "import interlock",
        {"interlock"},
        {
            "interlock.server",
            "interlock.client",
            "interlock.types",
            "asyncio",
            "msgspec",
            "jsonschema_rs",
        },
    ),
    "asking what there is": (
        "import interlock; dir(interlock); hasattr(interlock, 'Nothing')",
        {"interlock"},
        {"interlock.types", "msgspec"},
    ),
    "a server": (
        "from interlock import Server",
        {"interlock.server.app"},
        {"interlock.client", "pydantic", "click"},
    ),
    "a client": (
        "from interlock import Client",
        {"interlock.client.app"},
        {"interlock.server", "pydantic", "click"},
    ),
    "the blocking client": (
        "from interlock.sync import Client",
        {"interlock.client.app"},
        {"interlock.server", "pydantic", "click"},
    ),
    "types": (
        "import interlock.types",
        {"interlock.types"},
        {"interlock.server", "interlock.client", "asyncio", "jsonschema_rs"},
    ),
    "a guard": (
        "from interlock.auth import Guard",
        {"interlock.auth.guard"},
        {
            "interlock.server",
            "interlock.client",
            "interlock.auth.client",
            "joserfc",
            "cryptography",
            "argon2",
        },
    ),
    "a log-in": (
        "from interlock.auth import OAuth",
        {"interlock.auth.client"},
        {
            "interlock.server",
            "interlock.auth.guard",
            "interlock_issuer",
            "joserfc",
            "cryptography",
            "keyring",
        },
    ),
    "an error": (
        "from interlock import McpError",
        {"interlock.types"},
        {"interlock.server", "interlock.client", "asyncio"},
    ),
}


@pytest.mark.parametrize("code, there, absent", LOADS.values(), ids=LOADS)
def test_what_is_loaded(code: str, there: set[str], absent: set[str]):
    """A server does not load the client, nor a client the server, and the face loads nothing at
    all."""
    loaded = set(in_a_new_process(f"{code}\n{LOADED}"))
    assert there <= loaded
    assert not {
        name for name in loaded if any(name == a or name.startswith(f"{a}.") for a in absent)
    }


def test_a_star():
    """`from interlock import *` brings all public names, and no others."""
    code = """
from interlock import *
import json
print(json.dumps(sorted(name for name in vars() if name not in ("json", "__annotations__",
    "__builtins__", "__doc__", "__file__",
      "__loader__", "__name__", "__package__", "__spec__", "__cached__"))))
"""
    assert in_a_new_process(code) == sorted(interlock.__all__)
