"""Endurance suite: a matrix run pairwise holds every pair of values, and a seed always draws the
same sample."""

from __future__ import annotations

import itertools

import pytest

from interlock.wire.revisions import HANDSHAKE_REVISIONS, REVISIONS
from tests.endurance import MATRIX_SECONDS, pairwise, part_of, sample

COLOURS = ("red", "green", "blue")
SIZES = (1, 2, 3, 4)


@pytest.fixture(autouse=True)
def no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pytest of a test loads no plugin that it does not name: to load all takes a second."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def matrix(**axes: tuple[object, ...]) -> list[dict[str, object]]:
    """All combinations of some parameters."""
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def test_every_pair_of_values_is_held() -> None:
    """It takes far fewer combinations than there are in all."""
    every = matrix(colour=COLOURS, size=SIZES, loud=(True, False))
    chosen = [every[number] for number in pairwise(every, "a test")]
    for one, other in itertools.combinations(("colour", "size", "loud"), 2):
        wanted = {(row[one], row[other]) for row in every}
        assert {(row[one], row[other]) for row in chosen} == wanted
    assert len(chosen) <= 14 < len(every)


def test_every_value_is_held_where_pairs_do_not_matter() -> None:
    """It takes only as many combinations as the longest parameter has values."""
    every = matrix(colour=COLOURS, size=SIZES, loud=(True, False))
    chosen = [every[number] for number in pairwise(every, "a test", pairs=False)]
    assert {row["colour"] for row in chosen} == set(COLOURS)
    assert {row["size"] for row in chosen} == set(SIZES)
    assert {row["loud"] for row in chosen} == {True, False}
    assert len(chosen) <= 5


def test_combinations_that_do_not_exist_are_not_wanted() -> None:
    """A transport that one revision does not support is not combined with it."""
    every = [
        row for row in matrix(colour=COLOURS, size=SIZES) if row != {"colour": "red", "size": 1}
    ]
    assert pairwise(every, "a test") == set(range(11))


def test_revisions_are_paired_by_their_era() -> None:
    """Each revision is covered; each transport is combined with one revision of each era."""
    every = matrix(revision=REVISIONS, transport=("stdio", "http", "memory"))
    chosen = [every[number] for number in pairwise(every, "a test")]
    assert {row["revision"] for row in chosen} == set(REVISIONS)
    eras = {(row["revision"] in HANDSHAKE_REVISIONS, row["transport"]) for row in chosen}
    assert len(eras) == 6
    assert len(chosen) <= 8 < len(every)


def test_tests_of_one_shape_take_different_combinations() -> None:
    """A test always takes the same ones."""
    every = matrix(colour=COLOURS, size=SIZES, loud=(True, False))
    assert pairwise(every, "a test") == pairwise(every, "a test")
    assert len({frozenset(pairwise(every, f"test {number}")) for number in range(5)}) > 1


def test_a_sample_is_drawn_by_its_seed(request: pytest.FixtureRequest) -> None:
    """It stays within the requested cost, and half of it comes from matrices."""
    items = [request.node] * 300
    costs = [MATRIX_SECONDS] * 200 + [5.0] * 100
    drawn = sample(items, costs, 20, seed=7)
    assert drawn == sample(items, costs, 20, seed=7)
    assert len(drawn) == 100 + 2
    assert sample(items, costs, 0, seed=7) == []


def test_runs_share_the_combinations_of_a_test(pytester: pytest.Pytester) -> None:
    """Every run takes at least one combination of each test; together the runs take all. The first
    run takes all pairs of a matrix. A seed always draws the same ones."""
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("size", range(9))
        def test_many(size): pass

        @pytest.mark.parametrize("size", range(2))
        def test_few(size): pass

        @pytest.mark.matrix
        @pytest.mark.parametrize("loud", [True, False])
        @pytest.mark.parametrize("size", range(2))
        def test_matrix(size, loud): pass

        def test_one(): pass
        """
    )
    pytester.makeini("[pytest]\nmarkers =\n  matrix")

    def passed(cells: str) -> list[str]:
        options = ("-p", "tests.endurance", "-p", "no:cacheprovider", "-v", "--cells", cells)
        ran = pytester.runpytest_inprocess(*options, "--seed", "7")
        return [line.split()[0] for line in ran.outlines if "PASSED" in line]

    first, second, third = passed("2"), passed("4:2"), passed("4:4")
    assert len(first) == 5 + 1 + 4 + 1
    assert len(second) == 2 + 1 + 1 + 1
    assert len(third) == 2 + 1 + 1 + 1
    assert len({*first, *second, *third}) == 9 + 2 + 4 + 1
    assert passed("2") == first


@pytest.mark.parametrize("cells", ["0", "2:3", "2:0", "x"])
def test_a_part_that_there_is_not(cells: str) -> None:
    with pytest.raises(ValueError, match=r"x|:|0"):
        part_of(cells)


def test_what_lasts_is_left_out_and_the_suite_runs_it(pytester: pytest.Pytester) -> None:
    """Without `--endurance` the other tests run, with it only the suite; no test starts after the
    end."""
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.endurance(seconds=30)
        def test_soak(): pass

        @pytest.mark.matrix
        @pytest.mark.parametrize("loud", [True, False])
        @pytest.mark.parametrize("size", range(9))
        @pytest.mark.parametrize("colour", range(9))
        def test_matrix(colour, size, loud): pass

        def test_quick(): pass
        """
    )
    pytester.makeini("[pytest]\nmarkers =\n  endurance\n  matrix")
    options = ("-p", "tests.endurance", "-p", "no:cacheprovider", "-q")
    everyday = pytester.runpytest_inprocess(*options).parseoutcomes()
    assert everyday["passed"] + everyday["deselected"] == 164
    assert 82 <= everyday["passed"] < 100
    sampled = pytester.runpytest_inprocess(*options, "--sample", "4").parseoutcomes()
    assert sampled["passed"] == everyday["passed"] + 20
    # In a process of its own: --endurance changes how many examples Hypothesis makes.
    whole = pytester.runpytest_subprocess(*options, "--endurance").parseoutcomes()
    assert whole == {"passed": everyday["deselected"], "deselected": everyday["passed"]}
    late = pytester.runpytest_subprocess(*options, "--endurance", "--until", "1").parseoutcomes()
    assert late["skipped"] == whole["passed"]
