"""Parallel tests: forked workers run every test once, and report it as one process would."""

from __future__ import annotations

import pytest

INI = "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
OPTIONS = (
    *("-p", "tests.prefork", "-p", "pytest_asyncio.plugin"),
    *("-p", "no:cacheprovider", "--workers", "2"),
)


@pytest.fixture(autouse=True)
def no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pytest of a test loads no plugin that it does not name: to load all takes a second."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def run(pytester: pytest.Pytester, *options: str, **files: str) -> pytest.RunResult:
    """Run some test files with two workers, in a process of their own."""
    pytester.makepyfile(**files)
    pytester.makeini(INI)
    return pytester.runpytest_subprocess(*OPTIONS, *options)


def test_outcomes_and_output_are_reported(pytester: pytest.Pytester) -> None:
    """Failures with what the test printed, errors of fixtures, skipped tests, warnings."""
    ran = run(
        pytester,
        test_one="""
        import os, pytest, warnings

        def test_fails():
            print("in Python")
            os.write(1, b"in the file descriptor")
            assert 1 + 1 == 3

        @pytest.mark.skip(reason="not today")
        def test_skipped(): pass

        def test_warns():
            warnings.warn("beware")
        """,
        test_two="""
        import pytest

        @pytest.fixture
        def broken():
            raise ValueError("the fixture")

        def test_error(broken): pass

        async def test_passes(tmp_path):
            (tmp_path / "x").touch()
        """,
    )
    ran.assert_outcomes(passed=2, failed=1, errors=1, skipped=1, warnings=1)
    ran.stdout.re_match_lines_random(
        [
            r".*in Python.*",
            r".*in the file descriptor.*",
            r"E +assert .* == 3",
            r"E +ValueError: the fixture",
            r".*UserWarning: beware",
        ]
    )


def test_a_worker_that_dies_is_replaced(pytester: pytest.Pytester) -> None:
    """The test that it ran has failed; the other tests of its file, and the other files, run."""
    dying = """
    import os

    def test_before(): pass

    def test_dies(): os._exit(7)

    def test_after(): pass
    """
    ran = run(pytester, **{f"test_{number}": dying for number in range(4)})
    ran.assert_outcomes(passed=8, failed=4)
    ran.stdout.fnmatch_lines(["the worker ended with status 7 during this test"])


def test_fixtures_of_the_session_are_closed_once_in_each_worker(pytester: pytest.Pytester) -> None:
    """They stay open from one file to the next."""
    pytester.makeconftest(
        """
        import os, pathlib, pytest

        @pytest.fixture(scope="session", autouse=True)
        def noted():
            note = pathlib.Path(__file__).with_name(f"{os.getpid()}.note")
            note.write_text("open")
            yield
            assert note.read_text() == "open"
            note.write_text("closed")
        """
    )
    quick = "import pytest\n\n@pytest.mark.parametrize('n', range(9))\ndef test(n): pass"
    ran = run(pytester, **{f"test_{number}": quick for number in range(9)})
    ran.assert_outcomes(passed=81)
    notes = [note.read_text() for note in pytester.path.glob("*.note")]
    assert notes
    assert len(notes) <= 2
    assert set(notes) == {"closed"}


def test_the_first_failure_stops_the_run(pytester: pytest.Pytester) -> None:
    """Other workers finish their test and close its fixtures."""
    ran = run(pytester, "-x", test_one="def test(): assert False", test_two="def test(): pass")
    assert ran.parseoutcomes()["failed"] == 1
    assert ran.ret == pytest.ExitCode.TESTS_FAILED


def test_selection_and_errors_of_collection_are_as_ever(pytester: pytest.Pytester) -> None:
    """No worker starts where no test does."""
    assert run(pytester, test_one="import nothing_of_this_name").parseoutcomes() == {"errors": 1}
    assert run(pytester, "-k", "nothing", test_one="def test(): pass").ret == (
        pytest.ExitCode.NO_TESTS_COLLECTED
    )
