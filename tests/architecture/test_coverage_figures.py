"""Coverage: the figures of packages are counted from files,
and a lower figure needs a reason."""

from __future__ import annotations

import tomllib

from scripts.covered import fallen, figures, package, written


def row(ran: int, every: int) -> dict[str, int]:
    """The report of coverage.py for a file."""
    return {"covered_lines": ran, "num_statements": every}


def test_the_package_of_a_file() -> None:
    """The first two names of its module; a file beside the packages belongs to the distribution."""
    assert package("packages/interlock/src/interlock/wire/codec.py") == "interlock.wire"
    assert (
        package("packages/interlock/src/interlock/transport/http/cors.py") == "interlock.transport"
    )
    assert package("packages/interlock-apps/src/interlock_apps/__init__.py") == "interlock_apps"


def test_statements_are_counted_over_the_files_of_a_package() -> None:
    """Not the mean of their percentages; a package without statements has no figure."""
    report = {
        "packages/interlock/src/interlock/wire/a.py": row(90, 90),
        "packages/interlock/src/interlock/wire/b.py": row(0, 10),
        "packages/interlock/src/interlock/types/__init__.py": row(0, 0),
    }
    assert figures(report) == {"interlock.wire": 90.0}


def test_only_a_real_drop_counts() -> None:
    """Timing may change a figure by half a point; a removed package has none."""
    known = {"a": 90.0, "b": 90.0, "gone": 90.0}
    assert fallen(known, {"a": 89.6, "b": 89.0, "new": 10.0}) == {"b": (90.0, 89.0)}


def test_a_lower_figure_is_kept_with_its_reason() -> None:
    """Other figures never drift down by the tolerance from run to run."""
    known = {"a": {"percent": 90.0}, "b": {"percent": 90.0}, "c": {"percent": 50.0, "reason": "x"}}
    text = written(known, {"a": 89.8, "b": 80.0, "c": 51.0}, {"b"}, 'needs a "Mac"')
    assert tomllib.loads(text) == {
        "a": {"percent": 90.0},
        "b": {"percent": 80.0, "reason": 'needs a "Mac"'},
        "c": {"percent": 51.0, "reason": "x"},
    }
