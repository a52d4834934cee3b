"""Hung tests: the log ends with the traceback, and the traceback has the name of the test."""

from __future__ import annotations

import pytest

LAST = 50
"""The number of log lines that people read first."""


@pytest.fixture(autouse=True)
def no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pytest of a test loads no plugin that it does not name: to load all takes a second."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.mark.parametrize(
    "workers", [(), ("-p", "tests.prefork", "--workers", "1")], ids=["one process", "a worker"]
)
def test_the_traceback_of_a_hung_test_names_it(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    """This includes asynchronous tests, which have no frame on the stack."""
    pytester.makepyfile(
        test_sleepers="""
        import asyncio

        async def test_hangs():
            await asyncio.Event().wait()
        """
    )
    pytester.makeini(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
        "faulthandler_timeout = 0.5\nfaulthandler_exit_on_timeout = true"
    )
    plugins = ("-p", "tests.hangs", "-p", "pytest_asyncio.plugin", *workers)
    run = pytester.runpytest_subprocess("-q", *plugins)
    lines = [*run.outlines, *run.errlines]
    dumped = [line for line in lines if line.startswith('  File "')]
    assert dumped[-LAST:]
    assert any(line.endswith(" in test_sleepers.py::test_hangs") for line in dumped[-LAST:])
