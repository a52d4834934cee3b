"""Prints what the tests cost, by file: processor seconds of the tests and of the programs that they
start.

    python scripts/test_costs.py                      # what `make test-cost` runs: as `make test`
    python scripts/test_costs.py --by test --top 100
    python scripts/test_costs.py --read .costs.jsonl  # a run that `pytest --costs` recorded
    python scripts/test_costs.py -- packages/interlock/tests/wire

Options after `--` go to pytest in place of those of `make test`.

On a machine that does other things too, processor time says more than the duration of a run: with
two cores, a run takes at least half of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
EVERYDAY = ["--workers", "6", "--fork", "-m", "not interop and not database"]
EVERYDAY += ["--cells", "2", "--sample", "20"]
KEYS: Mapping[str, Callable[[str], str]] = {
    "file": lambda test: test.partition("::")[0],
    "function": lambda test: test.partition("[")[0],
    "test": lambda test: test,
}


class Cost(NamedTuple):
    """Processor time in seconds, of some tests and of the programs that they started."""

    own: float = 0.0
    programs: float = 0.0
    tests: int = 0

    @property
    def total(self) -> float:
        """Both in one."""
        return self.own + self.programs


def main() -> int:
    """Run the tests or read a record, print the table, and return pytest's status."""
    given = sys.argv[1:]
    at = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(
        description=" ".join((__doc__ or "").partition("\n\n")[0].split())
    )
    parser.add_argument("--by", choices=KEYS, default="file", help="(default: file)")
    parser.add_argument("--top", type=int, default=40, help="lines of the table (default: 40)")
    parser.add_argument("--read", type=Path, metavar="FILE", help="a record of `pytest --costs`")
    options = parser.parse_args(given[:at])
    status = 0
    if options.read is not None:
        lines = options.read.read_text("utf-8")
    else:
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder) / "costs.jsonl"
            record.touch()
            # In one word: pytest would take the file, which exists, for a test before it knows
            # the option.
            command = [sys.executable, "-m", "pytest", "-q", f"--costs={record}"]
            command += given[at + 1 :] or EVERYDAY
            status = subprocess.run(command, cwd=ROOT, check=False).returncode
            lines = record.read_text("utf-8")
    costs = added(map(json.loads, lines.splitlines()), KEYS[options.by])
    print(*table(costs, options.top), sep="\n")
    return status


def added(
    record: Iterable[Mapping[str, object]], key: Callable[[str], str] = KEYS["file"]
) -> dict[str, Cost]:
    """Return the costs of the tests of each file, or of what else the key makes of their IDs."""
    costs: dict[str, Cost] = defaultdict(Cost)
    for line in record:
        name = key(str(line["test"]))
        own, programs, tests = costs[name]
        costs[name] = Cost(
            own + float(str(line["own"])), programs + float(str(line["programs"])), tests + 1
        )
    return dict(costs)


def table(costs: Mapping[str, Cost], top: int) -> list[str]:
    """Return the lines of the table: the highest costs, and the sum of all."""
    every = Cost(*map(sum, zip(*costs.values(), strict=True))) if costs else Cost()
    rows = sorted(costs.items(), key=lambda row: -row[1].total)[:top]
    return [
        "   total     tests  programs  number",
        *(_row(cost, name) for name, cost in rows),
        _row(every, f"all {len(costs)}"),
    ]


def _row(cost: Cost, name: str) -> str:
    return f"{cost.total:8.1f}  {cost.own:8.1f}  {cost.programs:8.1f}  {cost.tests:6d}  {name}"


if __name__ == "__main__":
    sys.exit(main())
