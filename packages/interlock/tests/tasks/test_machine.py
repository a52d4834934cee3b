"""The state machine of tasks: the table of its transitions, and properties of any sequence of
steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw
from msgspec.structs import replace

from interlock.tasks import machine
from interlock.tasks.machine import StoredCaller, TaskRecord
from interlock.types.tasks import TERMINAL, TaskError

ERROR = TaskError(code=-32603, message="broken")
QUESTION = Raw(b'{"method":"roots/list"}')
FRESH = TaskRecord(
    id="t",
    owner="o",
    tool="tool",
    caller=StoredCaller(revision="2026-07-28"),
    created=1.0,
    updated=1.0,
    ttl=60.0,
    worker="w",
    attempt="a",
)
STEPS: dict[str, Callable[[TaskRecord, float], TaskRecord]] = {
    "report": lambda task, now: machine.report(task, f"at {now}", now),
    "ask one": lambda task, now: machine.ask(task, {"one": QUESTION}, now),
    "ask both": lambda task, now: machine.ask(task, {"one": QUESTION, "two": QUESTION}, now),
    "withdraw": lambda task, now: machine.ask(task, {}, now),
    "answer one": lambda task, now: machine.answer(task, {"one": 1}, now),
    "answer two": lambda task, now: machine.answer(task, {"two": 2, "none": 3}, now),
    "complete": lambda task, now: machine.complete(task, Raw(b"{}"), now),
    "fail": lambda task, now: machine.fail(task, ERROR, now),
    "cancel": machine.cancel,
    "start again": lambda task, now: machine.start_again(task, "w2", f"a{now}", ()),
    "give up": lambda task, now: machine.give_up(task),
    "once": lambda task, now: machine.note_once(task),
}
STARTS = {
    "working": FRESH,
    "input_required": STEPS["ask both"](FRESH, 2.0),
    "completed": STEPS["complete"](FRESH, 2.0),
    "failed": STEPS["fail"](FRESH, 2.0),
    "cancelled": STEPS["cancel"](FRESH, 2.0),
}
TABLE = [
    ("working", "report", "working"),
    ("working", "ask one", "input_required"),
    ("working", "withdraw", "working"),
    ("working", "answer one", "working"),
    ("working", "complete", "completed"),
    ("working", "fail", "failed"),
    ("working", "cancel", "cancelled"),
    ("working", "start again", "working"),
    ("working", "give up", "working"),
    ("input_required", "report", "input_required"),
    ("input_required", "answer one", "input_required"),
    ("input_required", "answer two", "input_required"),
    ("input_required", "withdraw", "working"),
    ("input_required", "complete", "completed"),
    ("input_required", "fail", "failed"),
    ("input_required", "cancel", "cancelled"),
    ("input_required", "start again", "input_required"),
    ("input_required", "give up", "input_required"),
    *((status, step, status) for status in sorted(TERMINAL) for step in STEPS),
]


@pytest.mark.parametrize("status, step, after", TABLE)
def test_the_table(status: str, step: str, after: str) -> None:
    """`TK4-10`: the legal transitions, and no other."""
    before = STARTS[status]
    changed = STEPS[step](before, 3.0)
    assert changed.status == after
    if status in TERMINAL:
        assert changed is before


def test_the_last_answer_ends_input_required() -> None:
    """`TK4-30`: back to working once everything has arrived."""
    task = STEPS["answer one"](STARTS["input_required"], 3.0)
    assert set(task.questions) == {"two"}
    task = STEPS["answer two"](task, 4.0)
    assert (task.status, task.questions, task.journal) == ("working", {}, {"one": 1, "two": 2})


def test_a_living_worker_keeps_its_task() -> None:
    """Only the task of a worker that is not alive is taken over."""
    assert machine.start_again(FRESH, "w2", "a2", {"w"}) is FRESH
    taken = machine.start_again(FRESH, "w2", "a2", {"w2"})
    assert (taken.worker, taken.attempt, taken.runs) == ("w2", "a2", 2)
    assert machine.give_up(taken).runs == 1


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=30))
def test_any_sequence_of_steps_keeps_the_promises(names: list[str]) -> None:
    """`TK4-10`, `TKX-12`, `TKX-18`: a terminal status is never left, no answered key is asked
    again, and each status has its own parts.
    """
    task = FRESH
    answered: set[str] = set()
    for n, name in enumerate(names):
        before = task
        task = STEPS[name](task, 2.0 + n)
        if before.is_terminal:
            assert task is before
        answered |= before.questions.keys() & task.journal.keys()
        assert not answered & task.questions.keys()
        assert (task.status == "input_required") == bool(task.questions)
        assert (task.status == "completed") == (task.result is not UNSET)
        assert (task.status == "failed") == (task.error is not None)
        assert task.updated >= before.updated
        assert (task.id, task.owner, task.tool, task.created) == ("t", "o", "tool", 1.0)
        assert task.arguments is before.arguments  # no answer changes the call


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=12))
def test_a_record_is_read_as_it_was_written(names: list[str]) -> None:
    """Nothing of a task is lost in the store."""
    import msgspec

    task = FRESH
    for n, name in enumerate(names):
        task = STEPS[name](task, 2.0 + n)
    again = msgspec.json.decode(msgspec.json.encode(task), type=TaskRecord)
    assert _plain(again) == _plain(task)


def _plain(task: TaskRecord) -> Any:
    """A record whose undecoded parts can be compared."""
    result = None if task.result is UNSET else bytes(task.result)
    questions = {key: bytes(raw) for key, raw in task.questions.items()}
    rest = replace(task, result=UNSET, questions={}, arguments=Raw(b""), meta=Raw(b""))
    return result, questions, bytes(task.arguments), bytes(task.meta), rest
