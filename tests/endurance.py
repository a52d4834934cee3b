"""Endurance suite: which tests only `make endurance` runs, and which of them `make test` samples.

Three kinds of tests belong to it:

- Tests that last: soaks, series of kills, loads of thousands. Each says so with its cost in
  seconds: `@pytest.mark.endurance(seconds=20)`.
- The rest of a matrix. `make test` runs a matrix pairwise: of all combinations of a test's
  parameters it takes as few as hold every value, and every pair of values of two parameters.
  Revisions are paired by their era only: what two revisions of one era do differently is proved in
  `packages/interlock/tests/protocol` and `packages/interlock/tests/history`.
  `make endurance` runs the other combinations.
- Property tests, which run everywhere: here with more examples.

A test is a matrix if it has the marker `matrix` or the fixture of the wired matrix. A tuple as a
parameter counts as one parameter for each of its parts. `matrix(pairs=False)` is for parameters
that do not act on each other, such as the width and the colours of a page: `make test` then takes
as few combinations as hold every value. `matrix(seconds=3)` says what one combination costs.

Only tests of this suite run with `--endurance`; without it they are left out, but for the sample.

The combinations of a test that is no matrix, such as the rows of a table, are divided over runs.
With `--cells 2` each test runs one half of its combinations, and at least one; the seed decides
which. `--cells 4:3` runs the third of four parts of all tests, of matrices too. In CI `make test`
runs the first half, and the runs under other versions of Python share the second half: the parts 2
and 4 of four. `make endurance` runs the second half too; `make test CELLS=1` runs everything.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import settings

from interlock.wire.revisions import HANDSHAKE_REVISIONS, REVISIONS

MATRIX_SECONDS = 0.1
"""The default cost of one combination of a matrix, in seconds."""

MATRIX_SHARE = 0.5
"""The share of the sample that goes to the matrices."""

EXAMPLES = 1000
"""The number of examples of a property test in this suite."""

WIRED = "whole_cell"
"""The fixture of the wired matrix."""

Values = Mapping[str, Hashable]
"""The parameters of one combination: names and values."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the suite."""
    group = parser.getgroup("endurance")
    group.addoption(
        "--endurance",
        action="store_true",
        help="run the tests of the endurance suite, and no other",
    )
    group.addoption(
        "--seed",
        type=int,
        help="draws the sample, and the faults of the endurance suite (default: the date; in CI 1)",
    )
    group.addoption(
        "--sample",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="run a sample of the endurance suite too: tests that cost this much in all",
    )
    group.addoption(
        "--cells",
        type=part_of,
        default=(1, 1),
        metavar="N[:K]",
        help="of the combinations of each test, run part K (default: 1) of N, and at least one",
    )
    group.addoption(
        "--until", type=float, metavar="TIME", help="begin no test after this time (Unix time)"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed once, in the process that starts the workers, and the number of examples.

    The seed is the date: each day draws another sample, the same on every machine. In CI it is
    fixed, because a failure there has to come from the change under test.
    """
    if config.option.seed is None:
        today = int(datetime.now(UTC).strftime("%Y%m%d"))
        config.option.seed = 1 if os.environ.get("CI") else today
    if config.option.endurance:
        settings.register_profile("endurance", settings(), max_examples=EXAMPLES)
        settings.load_profile("endurance")


def pytest_report_header(config: pytest.Config) -> str:
    """Name the seed, so that a failure can be repeated."""
    if config.option.endurance:
        return f"endurance suite: --endurance --seed {config.option.seed}"
    return f"endurance suite: sample of {config.option.sample:g} s, --seed {config.option.seed}"


@pytest.hookimpl(tryfirst=True)  # before other plugins sort the remaining tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of this run: the endurance suite, or all others and the sample."""
    costs = dict(_costs(items))
    if config.option.endurance:
        kept = {id(item) for item in items if id(item) in costs or is_property(item)}
        first_half = thinned(items, 2, 1, config.option.seed)
        kept |= {id(item) for item in items if not _is_matrix(item)} - first_half
    else:
        drawn = sample(
            [item for item in items if id(item) in costs],
            [costs[id(item)] for item in items if id(item) in costs],
            config.option.sample,
            config.option.seed,
        )
        kept = {id(item) for item in items if id(item) not in costs}
        kept |= {id(item) for item in drawn}
        parts, part = config.option.cells
        whole = {id(item) for item in items if part == 1 and _is_matrix(item)}
        kept &= whole | thinned(items, parts, part, config.option.seed)
    left_out = [item for item in items if id(item) not in kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if id(item) in kept]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the test once the time is up."""
    until = item.config.option.until
    if until is not None and time.time() > until:
        pytest.skip("the duration is over")


def is_property(item: pytest.Item) -> bool:
    """Return whether Hypothesis makes the examples of a test."""
    return bool(getattr(getattr(item, "obj", None), "is_hypothesis_test", False))


def _costs(items: Iterable[pytest.Item]) -> Iterator[tuple[int, float]]:
    """Yield the tests that only the endurance suite runs, by id, each with its cost in seconds."""
    matrices: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if (mark := item.get_closest_marker("endurance")) is not None:
            yield id(item), float(mark.kwargs["seconds"])
        elif _is_matrix(item):
            matrices[item.nodeid.partition("[")[0]].append(item)
    for name, cells in matrices.items():
        mark = cells[0].get_closest_marker("matrix")
        options = mark.kwargs if mark is not None else {}
        values = [_values(cell) for cell in cells]
        kept = pairwise(values, name, pairs=options.get("pairs", True))
        for number, cell in enumerate(cells):
            if number not in kept and not _is_fixed(cell):
                yield id(cell), float(options.get("seconds", MATRIX_SECONDS))


def _is_matrix(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return False
    return WIRED in callspec.params or item.get_closest_marker("matrix") is not None


def _is_fixed(item: pytest.Item) -> bool:
    """Return whether the `matrix` marker keeps a combination in `make test` in any case."""
    mark = item.get_closest_marker("matrix")
    return mark is not None and mark.kwargs.get("always") in _values(item).values()


def _values(item: pytest.Item) -> dict[str, Hashable]:
    """Return the parameters of a test, with the parts of tuples as separate parameters."""
    callspec = item.callspec  # type: ignore[attr-defined]  # only functions with parameters come here
    values: dict[str, Hashable] = {}
    for name, value in callspec.params.items():
        if isinstance(value, tuple):
            values |= {f"{name}.{place}": part for place, part in enumerate(value)}
        else:
            values[name] = value if isinstance(value, str | int | None) else repr(value)
    return values


def pairwise(combinations: Sequence[Values], seed: str, *, pairs: bool = True) -> set[int]:
    """Choose a few combinations that hold every value, and every pair of values, that any holds.

    Args:
        combinations: All combinations, each with the same parameters.
        seed: Decides between combinations that are equally good, so that tests of one shape do not
            all take the same ones.
        pairs: Whether every pair of values has to be held, or only every value.

    Returns:
        The places of the chosen ones in the sequence.
    """
    order = list(range(len(combinations)))
    random.Random(seed).shuffle(order)
    shown = {number: set(_shown(combinations[number], pairs)) for number in order}
    missing = set().union(*shown.values())
    chosen: set[int] = set()
    while missing:
        best = max(order, key=lambda number: len(shown[number] & missing))
        chosen.add(best)
        missing -= shown[best]
    return chosen


def _shown(values: Values, pairs: bool) -> Iterator[Hashable]:
    """Yield the values of a combination, and the pairs of them that matter, if any do.

    In pairs an era stands for its revisions. A part of a tuple is paired with the other parts;
    with a parameter of the test's own only if it is the revision.
    """
    yield from values.items()
    if not pairs:
        return
    for one, other in itertools.combinations(values.items(), 2):
        related = ("." in one[0]) == ("." in other[0]) or {one[1], other[1]} & set(REVISIONS)
        if related:
            yield (one[0], _era(one[1])), (other[0], _era(other[1]))


def _era(value: Hashable) -> Hashable:
    if value in REVISIONS:
        return "handshake" if value in HANDSHAKE_REVISIONS else "stateless"
    return value


def part_of(text: str) -> tuple[int, int]:
    """Return the number of parts, and the number of one of them, from `N` or `N:K`."""
    parts, _, part = text.partition(":")
    read = int(parts), int(part or 1)
    if not 1 <= read[1] <= read[0]:
        raise ValueError(text)
    return read


def thinned(items: Iterable[pytest.Item], parts: int, part: int, seed: int) -> set[int]:
    """Return the ids of one part of the combinations of each test, and at least one of each."""
    tests: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    chosen: set[int] = set()
    for name, cells in tests.items():
        random.Random(f"{seed} {name}").shuffle(cells)
        mine = cells[part - 1 :: parts] or [cells[(part - 1) % len(cells)]]
        chosen |= {id(item) for item in mine}
    return chosen


def sample(
    items: Sequence[pytest.Item], costs: Sequence[float], seconds: float, seed: int
) -> list[pytest.Item]:
    """Draw tests with a given total cost in seconds; a share of them are combinations of
    matrices."""
    drawn: list[pytest.Item] = []
    order = list(range(len(items)))
    random.Random(seed).shuffle(order)
    left = {True: seconds * MATRIX_SHARE, False: seconds * (1 - MATRIX_SHARE)}
    for number in order:
        cheap = costs[number] <= MATRIX_SECONDS
        if costs[number] <= left[cheap] + 1e-9:  # floating-point sums are not exact
            left[cheap] -= costs[number]
            drawn.append(items[number])
    return drawn
