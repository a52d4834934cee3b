"""Several workers behind one guard: each has it, and what is refused at one is refused at all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from interlock import Client, Http, McpError, Unreachable
from interlock.types import FORBIDDEN
from interlock.wire.revisions import R4, R5
from tests.workers.clusters import Program


@pytest.fixture(scope="module", params=[1, 2], ids=["one", "two"])
def program(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Program]:
    """One process or two, with a guard."""
    made = Program(tmp_path_factory.mktemp("guarded"), workers=request.param, guarded=True)
    try:
        yield made.ready()
        assert made.end() == 0
        assert "Traceback" not in made.errors, made.errors
    finally:
        made.close()


def client_of(program: Program, revision: str, **headers: str) -> Client:
    """A client that says who it is."""
    return Client(
        Http(
            program.url, headers={name.replace("_", "-"): value for name, value in headers.items()}
        ),
        revision=revision,
    )


@pytest.mark.parametrize("revision", [R4, R5])
async def test_a_guard_before_each_worker(program: Program, revision: str) -> None:
    """`run("http", guard=...)`, in one process and in two: who names nobody is not let in, who
    lacks the scope is refused and does not see the tool, who has it is served, wherever each
    request arrives (`AUS-04`, `AUT-06`, `AUT-17`)."""
    async with asyncio.timeout(30):
        with pytest.raises(Unreachable, match="401"):
            await client_of(program, revision).open()
        for _ in range(4):
            async with client_of(program, revision, x_who="ada") as client:
                assert "secret" not in {tool.name for tool in await client.list_tools()}
                with pytest.raises(McpError) as caught:
                    await client.call_tool("secret")
                assert (caught.value.code, caught.value.data) == (
                    FORBIDDEN,
                    {"requiredScopes": ["secrets"]},
                )
        async with client_of(program, revision, x_who="ada", x_scopes="secrets") as client:
            assert "secret" in {tool.name for tool in await client.list_tools()}
            results: list[Any] = await asyncio.gather(
                *(client.call_tool("secret") for _ in range(20))
            )
            assert {result.text.split()[0] for result in results} == {"ada"}
