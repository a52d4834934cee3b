"""Which calls run at once: readers together, writers alone, in the order that the model wanted,
each server for itself.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_apps.host.loop.parallelism import (
    PlannedCall,
    earlier_calls,
    parallel_groups,
)


@pytest.mark.parametrize(
    "calls, expected",
    [
        ("", []),
        ("ar", [[[0]]]),
        ("ar ar ar", [[[0, 1, 2]]]),
        ("aw aw", [[[0], [1]]]),
        ("ar aw ar ar", [[[0], [1], [2, 3]]]),
        ("ar bw ar bw", [[[0, 2]], [[1], [3]]]),
        ("aw ar aw br", [[[0], [1], [2]], [[3]]]),
    ],
)
def test_lanes(calls: str, expected: list[list[list[int]]]) -> None:
    assert (
        parallel_groups([PlannedCall(each[0], each[1] == "r") for each in calls.split()])
        == expected
    )


@given(st.lists(st.builds(PlannedCall, st.sampled_from("abc"), st.booleans()), max_size=20))
def test_no_call_overtakes_one_that_changes_something(calls: list[PlannedCall]) -> None:
    """Each call is there once; at its server a writer is alone in its wave, and all before it are
    in waves before.
    """
    found = parallel_groups(calls)
    assert sorted(index for lane in found for wave in lane for index in wave) == list(
        range(len(calls))
    )
    for lane in found:
        assert len({calls[index].server for wave in lane for index in wave}) == 1
        order = [index for wave in lane for index in wave]
        assert order == sorted(order)
        for wave in lane:
            assert len(wave) == 1 or all(calls[index].reads for index in wave)
        for before, after in itertools.pairwise(lane):
            assert not all(calls[index].reads for index in [*before, *after])


def test_a_call_waits_for_all_earlier_waves_of_its_lane() -> None:
    """A wave may end early because its calls were refused; the wave before it may still run."""
    assert earlier_calls([[[0], [2, 3], [4]], [[1]]]) == {
        0: [],
        1: [],
        2: [0],
        3: [0],
        4: [0, 2, 3],
    }
