"""Parallel tests: worker processes that are forked once the tests are collected (prefork).

`pytest --workers 3` collects in one process. Each worker inherits the collected tests, where
pytest-xdist collects again in every worker: with 22,000 tests that costs a minute of processor time
and some 600 MB of memory for each worker. A worker gets one unit of tests after the other, see
`tests/lanes.py`. If a worker dies, the test that it ran fails, and a new worker runs the rest.
"""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import pytest
from _pytest import runner

from tests.lanes import units

FORK = multiprocessing.get_context("fork")

Event = tuple[str, dict[str, Any]]
"""The name of a hook, and its arguments."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--workers`."""
    parser.getgroup("terminal reporting").addoption(
        "--workers",
        type=int,
        default=0,
        metavar="N",
        help="run the tests in N processes, forked after collection",
    )


@pytest.hookimpl(tryfirst=True)  # before pytest, which would run the tests in this process
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in workers, if `--workers` asks for them."""
    options = session.config.option
    failed = session.testsfailed and not options.continue_on_collection_errors
    if options.workers < 1 or options.collectonly or failed or not session.items:
        return None
    Workers(session).run(options.workers)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


class Workers:
    """The running workers, the tests that each of them still has to run, and the units that none
    has yet."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._units = deque(units(session.items))
        self._running: dict[Connection, BaseProcess] = {}
        self._tests: dict[Connection, deque[int]] = {}
        if reporter := session.config.pluginmanager.getplugin("terminalreporter"):
            reporter.showfspath = False  # the files of several workers would alternate
        self._folder = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # private

    def run(self, number: int) -> None:
        """Run all tests, with this many workers."""
        try:
            for _ in range(min(number, len(self._units))):
                self._start([])
            while self._running and not self._stopping():
                for connection in wait(list(self._running)):
                    assert isinstance(connection, Connection)
                    self._receive(connection)
        finally:
            for connection, process in self._running.items():
                connection.close()  # a worker that finds it closed ends after its test
                process.join()

    def _start(self, tests: list[int]) -> None:
        """Fork a worker that begins with the given tests."""
        ours, theirs = FORK.Pipe()
        others = [*self._running, ours]
        process = FORK.Process(target=self._work, args=(theirs, others, tests))
        with warnings.catch_warnings():
            # There is no other thread of ours, only one that a library may have started.
            warnings.filterwarnings(
                "ignore", "This process .* is multi-threaded", DeprecationWarning
            )
            process.start()
        theirs.close()
        self._running[ours] = process
        self._tests[ours] = deque(tests)

    def _work(self, connection: Connection, others: list[Connection], tests: list[int]) -> None:
        for other in others:
            other.close()
        Worker(self._session, connection).run(tests)

    def _receive(self, connection: Connection) -> None:
        """Handle a message: the events of a finished test, or a request for more tests."""
        try:
            events = connection.recv()
            if events is None:
                connection.send(self._next(connection))
                return
        except (EOFError, OSError):
            self._ended(connection)
            return
        self._tests[connection].popleft()
        for event in events:
            self._replay(*event)

    def _next(self, connection: Connection) -> list[int]:
        """Return the next tests of a worker, if there are any."""
        if not self._units:
            return []
        unit = self._units.popleft()
        self._tests[connection].extend(unit)
        return unit

    def _replay(self, hook: str, arguments: dict[str, Any]) -> None:
        """Call a hook that was called in a worker."""
        config = self._session.config
        if (data := arguments.get("report")) is not None:
            arguments["report"] = config.hook.pytest_report_from_serializable(
                config=config, data=data
            )
        call = getattr(config.hook, hook)
        if call.is_historic():
            call.call_historic(kwargs=arguments)
        else:
            call(**arguments)

    def _ended(self, connection: Connection) -> None:
        """Forget a worker that has ended. If it died, report the test, and start another worker."""
        process = self._running.pop(connection)
        left = self._tests.pop(connection)
        connection.close()
        process.join()
        if not left:
            if process.exitcode:
                raise RuntimeError(f"a worker ended with status {process.exitcode}")
            return
        item = self._session.items[left.popleft()]
        message = f"the worker ended with status {process.exitcode} during this test"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", message, "call")
        self._session.config.hook.pytest_runtest_logreport(report=report)
        self._start(list(left))

    def _stopping(self) -> bool:
        return bool(self._session.shouldfail or self._session.shouldstop)


class Worker:
    """A worker: it runs tests, and sends the events of each test to the process that started it."""

    def __init__(self, session: pytest.Session, connection: Connection) -> None:
        self._session = session
        self._connection = connection
        self._events: list[Event] = []

    def run(self, tests: list[int]) -> None:
        """Run these tests first, then others until there are no more."""
        self._detach()
        session = self._session
        try:
            for test, following in self._pairs(tests):
                item = session.items[test]
                nextitem = None if following is None else session.items[following]
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
                self._connection.send(self._events)
                self._events = []
                if session.shouldfail or session.shouldstop:
                    break
        except (EOFError, ConnectionError, KeyboardInterrupt):
            pass  # the process that started this one has ended, or ends the run
        finally:
            runner.pytest_sessionfinish(session)  # closes the fixtures that are still open

    def _detach(self) -> None:
        """Separate what a worker would share with the others: the captured output, the folder of
        temporary files, and the terminal."""
        config = self._session.config
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(self)
        self._events.clear()  # pytest repeats the warnings of the collection for a new plugin
        capture = config.pluginmanager.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
        factory = config._tmp_path_factory  # type: ignore[attr-defined]  # private
        factory._basetemp = factory.getbasetemp() / f"worker-{os.getpid()}"
        factory._basetemp.mkdir(mode=0o700)

    def _pairs(self, tests: list[int]) -> Iterator[tuple[int, int | None]]:
        """Yield each test with the one that follows, whose fixtures stay open."""
        tests = tests or self._ask()
        while tests:
            yield from pairwise(tests)
            following = self._ask()
            yield tests[-1], following[0] if following else None
            tests = following

    def _ask(self) -> list[int]:
        self._connection.send(None)
        received: list[int] = self._connection.recv()
        return received

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[Any, ...]) -> None:
        """Note that a test starts."""
        self._note("pytest_runtest_logstart", nodeid=nodeid, location=location)

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[Any, ...]) -> None:
        """Note that a test has finished."""
        self._note("pytest_runtest_logfinish", nodeid=nodeid, location=location)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a test, or of the fixtures before and after it."""
        config = self._session.config
        data: Mapping[str, Any] = config.hook.pytest_report_to_serializable(
            config=config, report=report
        )
        self._note("pytest_runtest_logreport", report=data)

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        """Note a warning, with its text only: what it holds may not be sent."""
        sent = warnings.WarningMessage(
            message=str(warning_message.message),
            category=warning_message.category,
            filename=warning_message.filename,
            lineno=warning_message.lineno,
        )
        self._note(
            "pytest_warning_recorded",
            warning_message=sent,
            when=when,
            nodeid=nodeid,
            location=location,
        )

    def _note(self, hook: str, **arguments: Any) -> None:
        self._events.append((hook, arguments))
