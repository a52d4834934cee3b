"""The cost of importing Interlock: time, modules and distributions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest

pytestmark = pytest.mark.cold

BUDGET = 0.080  # seconds of CPU above bare Python
ROUNDS = 7
CORE = {"msgspec", "jsonschema-rs", "click"}


def run(program: str) -> str:
    """The output of a fresh interpreter. It may write byte code, as it does for users."""
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout


def cpu(statement: str) -> float:
    """Seconds of CPU that a fresh interpreter uses for its start and ``statement``."""
    return float(run(f"{statement}\nimport time\nprint(time.process_time())"))


def modules(statement: str) -> set[str]:
    """The top names of the modules that a fresh interpreter has loaded once it has run
    ``statement``."""
    return {
        name.partition(".")[0]
        for name in run(f"{statement}\nimport sys\nprint(*sys.modules)").split()
    }


def test_import_fits_its_budget() -> None:
    """``import interlock`` takes at most 80 ms of CPU above bare Python.

    This is the only test that reads a clock, because the budget is a guarantee. It takes the
    minimum CPU time of interleaved runs, so that a busy machine does not fail it, and it repeats a
    slow measurement up to twice.
    """
    bare = []
    whole = []
    for _ in range(3):
        for _ in range(ROUNDS):
            bare.append(cpu("pass"))
            whole.append(cpu("import interlock"))
        if min(whole) - min(bare) <= BUDGET:
            break
    assert min(whole) - min(bare) <= BUDGET


def test_import_loads_nothing_of_the_extras() -> None:
    """Apart from the standard library, ``import interlock`` loads only msgspec."""
    assert strangers("import interlock", "pass") <= {"interlock", "msgspec"}


SERVES = """
import asyncio
from interlock import Server
from interlock.server.run.program import run
from interlock.transport.http.app import HttpApp

server = Server("plain")

@server.tool
async def greet() -> str:
    return "Hello!"

async def serve():
    await server.enter()
    await server.leave()

asyncio.run(serve())
"""


def test_a_server_without_tasks_does_not_load_them() -> None:
    """Neither the types nor the extension, as the loaded modules show."""
    loaded = set(run(f"{SERVES}\nimport sys\nprint(*sys.modules)").split())
    assert "interlock.transport.serve" in loaded
    assert not {name for name in loaded if re.match(r"interlock\.(types\.)?tasks\b", name)}
    with_tasks = f"{SERVES}\nfrom interlock import Tasks\nTasks()\nimport sys\nprint(*sys.modules)"
    assert "interlock.types.tasks" in run(with_tasks).split()


def test_the_pytest_plugin_is_light() -> None:
    """In pytest, the plugin loads only the modules that ``import interlock`` loads."""
    assert strangers("import pytest, interlock.testing.plugin", "import pytest") <= {
        "interlock",
        "msgspec",
    }


def test_a_stranger_is_seen() -> None:
    """The two tests above rely on this: a new package is found, and packages loaded before are not
    counted."""
    assert "click" in strangers("import click", "pass")
    assert "click" not in strangers("import click", "import click")
    assert cpu("sum(range(10_000_000))") - cpu("pass") > BUDGET


def strangers(statement: str, before: str) -> set[str]:
    """The packages outside the standard library that ``statement`` loads and ``before`` does
    not."""
    return modules(statement) - modules(before) - sys.stdlib_module_names


def test_the_core_is_three_distributions(pyproject: Path) -> None:
    """The core needs three distributions, and these need no others except on Windows."""
    text = (pyproject / "interlock/pyproject.toml").read_text(encoding="utf-8")
    wanted = tomllib.loads(text)["project"]["dependencies"]
    assert {re.split(r"[<>=!~ ]", line)[0] for line in wanted} == CORE
    assert [line for name in CORE for line in requires(name) or [] if ";" not in line] == []
