"""The stateless era over several workers: a question asked by one may be answered at another, which
hands the retry to the worker that keeps the call suspended."""

from __future__ import annotations

import asyncio
import re

import pytest

from interlock import Client, McpError
from interlock.wire.revisions import R5
from tests.workers.clusters import Cluster, Program, cluster, marks


async def answer(*about) -> dict:
    """What a person would say."""
    return {"value": 41}


def pids(cluster: Cluster, what: str) -> list[int]:
    """The processes that have noted something."""
    return [
        int(line.partition(" ")[0])
        for line in marks(cluster.folder)
        if line.partition(" ")[2] == what
    ]


async def test_a_retry_that_lands_at_another_worker_reaches_the_one_that_keeps_the_call(
    workers: Cluster,
):
    """Three rounds at three workers: the tool runs once, where it began."""
    async with asyncio.timeout(30), Client(workers.url, revision=R5, elicit=answer) as client:
        for n in range(6):
            name = f"r{n} {id(client)}"
            *said, pid = (await client.call_tool("pay", {"name": name})).text.split()
            assert said == ["41", "41", "receipt"]
            (payer,) = pids(workers, f"{name} paid")
            assert payer == int(pid)


async def test_many_questions_at_once_over_all_workers(workers: Cluster):
    """Each call is paid once, wherever its three rounds went."""
    async with asyncio.timeout(30), Client(workers.url, revision=R5, elicit=answer) as client:
        names = [f"m{n} {id(client)}" for n in range(30)]
        results = await asyncio.gather(*(client.call_tool("pay", {"name": name}) for name in names))
        assert {result.text.rpartition(" ")[0] for result in results} == {"41 41 receipt"}
        assert all(len(pids(workers, f"{name} paid")) == 1 for name in names)


async def test_workers_that_were_forked_share_a_key(tmp_path):
    """`workers=2` without INTERLOCK_STATE_KEY: the key of the parent is that of both."""
    program = Program(tmp_path, key="", workers=2).ready()
    try:
        async with asyncio.timeout(30), Client(program.url, revision=R5, elicit=answer) as client:
            names = [f"f{n}" for n in range(20)]
            results = await asyncio.gather(
                *(client.call_tool("pay", {"name": name}) for name in names)
            )
            assert {result.text.rpartition(" ")[0] for result in results} == {"41 41 receipt"}
        assert sorted(
            line.split()[1] for line in marks(tmp_path) if line.endswith("paid")
        ) == sorted(names)
    finally:
        program.close()


async def test_several_machines_without_a_common_key_say_so(store: str, tmp_path):
    """A state that another server has sealed is refused, in words that name the cause
    (`MRT-08`)."""
    with cluster(tmp_path, 2, key="", store=store) as machines:
        async with asyncio.timeout(30), Client(machines.url, revision=R5, elicit=answer) as client:
            with pytest.raises(
                McpError, match=re.escape("or belongs to another request or server")
            ):
                await client.call_tool("pay", {"name": "nobody"})
    assert not [line for line in marks(tmp_path) if line.endswith("paid")]
