"""What Interlock costs a program that only imports it: time, modules and distributions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

BUDGET = 0.080  # seconds of CPU above bare Python
ROUNDS = 7
CORE = {"msgspec", "jsonschema-rs", "click"}


def run(program: str) -> str:
    """What a fresh interpreter prints. It may write byte code, as it does for everybody."""
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout


def cpu(statement: str) -> float:
    """Seconds of CPU that a fresh interpreter has used once it has run ``statement``."""
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

    The one test that looks at a clock, because the budget is a promise. It is CPU time and the
    least of interleaved runs, so that a busy machine does not decide; and a crowded moment is given
    two more chances.
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
    """Beside the standard library, ``import interlock`` loads msgspec and nothing else."""
    assert strangers("import interlock", "pass") <= {"interlock", "msgspec"}


def test_the_pytest_plugin_is_light() -> None:
    """Who runs pytest with Interlock installed loads nothing more for it than for ``import
    interlock``."""
    assert strangers("import pytest, interlock.testing.plugin", "import pytest") <= {
        "interlock",
        "msgspec",
    }


def test_a_stranger_is_seen() -> None:
    """What the two tests above rely on: a package that comes in is found, and what was there before
    is not counted."""
    assert "click" in strangers("import click", "pass")
    assert "click" not in strangers("import click", "import click")
    assert cpu("sum(range(10_000_000))") - cpu("pass") > BUDGET


def strangers(statement: str, before: str) -> set[str]:
    """What ``statement`` loads that ``before`` does not and the standard library does not have."""
    return modules(statement) - modules(before) - sys.stdlib_module_names


def test_the_core_is_three_distributions(pyproject: Path) -> None:
    """The core needs three distributions, and these need no others except on Windows."""
    text = (pyproject / "interlock/pyproject.toml").read_text(encoding="utf-8")
    wanted = tomllib.loads(text)["project"]["dependencies"]
    assert {re.split(r"[<>=!~ ]", line)[0] for line in wanted} == CORE
    assert [line for name in CORE for line in requires(name) or [] if ";" not in line] == []
