"""The pytest plugin, seen from the outside: a project of its own that uses the fixtures."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PROJECT = """
import pytest
from interlock import Context, Server

@pytest.fixture
def server():
    server = Server("mine", "1")

    @server.tool
    async def greet(name: str, ctx: Context) -> str:
        title = await ctx.elicit("Which title?", str)
        return f"Hello, {title} {name}!"

    return server
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with a server and a configuration of its own."""
    pytester.makeconftest(PROJECT)
    pytester.makeini(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
    )
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run its tests in this process."""
    return project.runpytest_inprocess(
        "-p", "no:hypothesispytest", "-p", "no:cacheprovider", *options
    )


def test_a_client_in_every_way(project: pytest.Pytester):
    """A test that takes `interlock_way` runs once for each era and manner of asking; one that does
    not, once.
    """
    project.makepyfile("""
        async def test_ways(server, interlock_client, interlock_way):
            async with interlock_client(server, elicit=lambda params: {"value": "Dr."}) as client:
                assert client.revision == interlock_way.revision
                assert server.suspended_calls.suspend == interlock_way.suspend
                assert (await client.call_tool("greet", {"name": "Ada"})).text == "Hello, Dr. Ada!"

        async def test_newest(server, interlock_client):
            async with interlock_client(server) as client:
                assert client.revision == "2026-07-28"
    """)
    result = run(project, "-v")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            "*test_ways?2025-11-25?*",
            "*test_ways?2026-07-28-suspended?*",
            "*test_ways?2026-07-28-replayed?*",
        ]
    )


def test_ways_of_ones_own(project: pytest.Pytester):
    """Other ways are chosen with pytest's own means; a name that is none is an error that lists
    them.
    """
    project.makepyfile("""
        import pytest

        @pytest.mark.parametrize("interlock_way", ["2024-11-05", "2026-07-28-replayed", "2027"],
            indirect=True)
        async def test_ways(server, interlock_client, interlock_way):
            async with interlock_client(server) as client:
                assert client.revision == interlock_way.revision
    """)
    result = run(project)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*'2027' is no way; there are 2024-11-05,*"])


def test_the_tape_of_a_test_that_fails(project: pytest.Pytester):
    """It is shown, and only there."""
    project.makepyfile("""
        from interlock import Implementation

        async def test_good(server, interlock_client, interlock_tape):
            async with interlock_client(server):
                assert len(interlock_tape) == 2

        async def test_bad(server, interlock_client, interlock_tape):
            info = Implementation(name="the one that fails", version="1")
            async with interlock_client(server, info=info):
                assert interlock_tape.methods() == []
    """)
    result = run(project)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*interlock tape*",
            '--> {"jsonrpc":"2.0","id":1,"method":"server/discover"*the one that fails*',
        ]
    )
    assert str(result.stdout).count("--> ") == 1


def test_a_catalogue(project: pytest.Pytester):
    """Saved by the option, then compared with; what breaks fails, what does not is reported at the
    end.
    """
    project.makepyfile("""
        async def test_catalogue(server, interlock_catalogue):
            await interlock_catalogue(server)
    """)
    run(project).assert_outcomes(failed=1)
    run(project, "--interlock-update").assert_outcomes(passed=1)
    assert (project.path / "catalogue.json").is_file()
    run(project).assert_outcomes(passed=1)
    project.makeconftest(
        PROJECT.replace(
            "return server", "server.add_tool(lambda: 1, name='more')\n    return server"
        )
    )
    grown = run(project)
    grown.assert_outcomes(passed=1)
    grown.stdout.fnmatch_lines(
        [
            "*interlock catalogues*",
            "catalogue.json: 1 changes not in the snapshot yet*",
            "  tool more: it is new",
        ]
    )
    project.makeconftest(PROJECT.replace("name: str,", "name: int,"))
    broken = run(project)
    broken.assert_outcomes(failed=1)
    broken.stdout.fnmatch_lines(["*tool greet: the argument name no longer takes string*"])
    run(project, "--interlock-update").assert_outcomes(passed=1)
    run(project).assert_outcomes(passed=1)


def test_a_tape_as_a_snapshot(project: pytest.Pytester):
    """`Tape.check` with `interlock_update`: the same conversation passes, another one does not."""
    text = """
        from pathlib import Path

        async def test_tape(server, interlock_client, interlock_tape, interlock_update):
            async with interlock_client(server, elicit=lambda params: {"value": "NAME"}) as client:
                await client.call_tool("greet", {"name": "Ada"})
            interlock_tape.check(Path(__file__).with_name("greet.jsonl"), update=interlock_update)
    """
    project.makepyfile(test_it=text)
    run(project).assert_outcomes(failed=1)
    run(project, "--interlock-update").assert_outcomes(passed=1)
    run(project).assert_outcomes(passed=1)
    project.makepyfile(test_it=text.replace("NAME", "Mr."))
    project.path.joinpath("test_it.py").touch()
    result = run(project)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(['*message 5 of the client, *: expected "NAME", got "Mr."*'])


def test_plain_tests(project: pytest.Pytester):
    """Without async tests: the blocking client needs no fixture, and `asyncio.run` takes the
    fixture's.
    """
    project.makepyfile("""
        import asyncio
        from interlock.sync import Client

        def test_blocking(server):
            with Client(server, elicit=lambda params: {"value": "Dr."}) as client:
                assert client.call_tool("greet", {"name": "Ada"}).text == "Hello, Dr. Ada!"

        def test_run(server, interlock_client):
            async def main():
                async with interlock_client(server) as client:
                    return [tool.name for tool in await client.list_tools()]
            assert asyncio.run(main()) == ["greet"]
    """)
    run(project).assert_outcomes(passed=2)
