"""Runs the endurance suite: soaks, series of kills, exhaustive matrices, property tests with more
examples.

    python scripts/endurance.py                    # everything once, with today's seed
    python scripts/endurance.py --seed 7 --duration 1800    # no test begins after half an hour
    python scripts/endurance.py -- packages/interlock/tests/workers -x

Options after `--` go to pytest.

With a duration the suite is run again and again, each round with the next seed, until the time is
up. The seed draws the examples of property tests and the faults. Each round prints the command that
repeats it. `tests/endurance.py` says which tests belong to the suite.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARALLEL = ["--workers", "4"]
HANGS_AFTER = 3600  # seconds; a soak lasts longer than the tests of `make test`


def main() -> int:
    """Run the suite, once or for a time, and return the exit status of the first round that
    failed."""
    given = sys.argv[1:]
    at = given.index("--") if "--" in given else len(given)
    options = _parser().parse_args(given[:at])
    end = time.time() + options.duration if options.duration else None
    failed = 0
    for seed in itertools.count(options.seed):
        if end is not None and time.time() >= end:
            break
        failed = _round(seed, end, given[at + 1 :]) or failed
        if end is None or failed:
            break
    return failed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=" ".join((__doc__ or "").partition("\n\n")[0].split())
    )
    today = int(datetime.now(UTC).strftime("%Y%m%d"))
    parser.add_argument(
        "--seed", type=int, default=today, help="of the first round (default: today)"
    )
    parser.add_argument(
        "--duration", type=float, default=0, metavar="SECONDS", help="(default: one whole round)"
    )
    return parser


def _round(seed: int, end: float | None, more: list[str]) -> int:
    """Run the suite once with this seed, and start no test after the end; return pytest's
    status."""
    chosen = ["--endurance", "--seed", str(seed), "--hypothesis-seed", str(seed)]
    command = [sys.executable, "-m", "pytest", "-q", *PARALLEL, *chosen]
    command += ["-o", f"faulthandler_timeout={HANGS_AFTER}"]
    command += ["-m", "not interop and not database", *more]
    print(f"--- endurance suite, seed {seed}; to repeat it: make endurance SEED={seed}", flush=True)
    until = [] if end is None else ["--until", f"{end:.0f}"]
    began = time.monotonic()
    status = subprocess.run([*command, *until], cwd=ROOT, check=False).returncode
    result = "FAILED" if status else "passed"
    print(f"--- seed {seed}: {result} in {time.monotonic() - began:.0f} s", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
