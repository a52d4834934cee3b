"""The thinking server: chains, revisions, branches, whose they are, how much is kept, and what
clients of all revisions see.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from interlock import (
    REVISIONS,
    Caller,
    Client,
    Exchange,
    McpError,
    Principal,
    Server,
    Stdio,
    ToolError,
    types,
)
from interlock.store import MemoryVault, SqliteVault
from interlock_servers.thinking import CHAIN, server_of, thinking_server
from interlock_servers.thinking.chains import Chain, ChainStore, ThinkingLimits, Thought
from interlock_servers.thinking.results import drawing, outline
from tests.servers.calls import ON_THE_COMMAND_LINE, done, refusal, words
from tests.servers.roads import over, serving

ELSEWHERE = "A" * 22  # an id of the right form that nothing has


@pytest.fixture
def server() -> Server:
    """A server that keeps thoughts in memory."""
    return thinking_server()


def step(
    number: int, thought: str = "", *, more: bool = True, total: int = 5, **others: Any
) -> dict[str, Any]:
    """The arguments of a thought."""
    words = thought or f"thought {number}"
    return {
        "thought": words,
        "nextThoughtNeeded": more,
        "thoughtNumber": number,
        "totalThoughts": total,
        **others,
    }


async def think(client: Client, *arguments: Any, **others: Any) -> dict[str, Any]:
    """What became of a thought."""
    return await done(client, "sequentialthinking", **step(*arguments, **others))


# -- what it offers --------------------------------------------------------------------------------


async def test_nobody_who_uses_it_is_broken(interlock_catalogue: Any) -> None:
    """Tools, templates and prompts are those of the snapshot (`TOL-02`, `RES-02`)."""
    assert not (await interlock_catalogue(thinking_server(), "thinking_catalogue.json")).breaking


@pytest.mark.parametrize(
    "name", ["sequentialthinking", "list_chains", "review_chain", "forget_chain"]
)
async def test_annotations_are_true(client: Client, name: str) -> None:
    """A tool that only reads changes nothing, an idempotent one may be repeated, one that is not
    destructive loses nothing (`TOL-04`).
    """
    chain = (await think(client, 1))["chain"]

    async def seen() -> list[Any]:
        listed = await done(client, "list_chains")
        return [await done(client, "review_chain", chain=one["chain"]) for one in listed["chains"]]

    arguments = {"sequentialthinking": step(1, "another"), "list_chains": {}}.get(
        name, {"chain": chain}
    )
    hints = {tool.name: tool.annotations for tool in await client.list_tools()}[name]
    assert hints is not None
    before = await seen()
    assert not (await client.call_tool(name, arguments)).is_error
    once = await seen()
    assert (once == before) == hints.read_only_hint
    assert all(one in once for one in before) != hints.destructive_hint
    assert not (await client.call_tool(name, arguments)).is_error
    assert (await seen() == once) == hints.idempotent_hint


@pytest.mark.matrix
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("road", ["memory", "http"])
async def test_every_revision(revision: str, road: str) -> None:
    """A chain with a revision and a branch, in memory and over HTTP, in all revisions."""
    async with over(road, thinking_server()) as target, Client(target, revision=revision) as client:
        said = await words(client, "sequentialthinking", **step(1))
        chain = said.rpartition("Send chain ")[2].partition(" ")[0]
        for given in (
            step(2),
            step(3, isRevision=True, revisesThought=1),
            step(3, branchFromThought=2, branchId="b"),
            step(4, more=False),
        ):
            assert (
                "Thought"
                in (await client.call_tool("sequentialthinking", {**given, "chain": chain})).text
            )
        assert "There is no thought 9" in await refusal(
            client, "sequentialthinking", **{**step(5, revisesThought=9), "chain": chain}
        )
        text = (await client.read_resource(f"thinking://chains/{chain}")).contents[0].text or ""
        assert "revised by 3" in text
        assert "## Branch b, from thought 2 of the main line" in text
        with pytest.raises(McpError):
            await client.read_resource(f"thinking://chains/{ELSEWHERE}")
        assert "sequentialthinking" in str(
            (await client.get_prompt("think_through", {"problem": "Why?"})).messages[0].content
        )


@pytest.mark.parametrize("revision", ON_THE_COMMAND_LINE)
async def test_from_the_command_line(revision: str, tmp_path: Path) -> None:
    """`interlock serve thinking` over stdio; a client that knows no `chain` can think as it always
    did.
    """
    env = {
        "INTERLOCK_THINKING_THOUGHT": "20",
        "INTERLOCK_THINKING_STORE": f"sqlite:{tmp_path}/thoughts.db",
    }
    async with Client(Stdio(serving("thinking"), env=env), revision=revision) as client:
        for number in (1, 2, 3):
            assert not (await client.call_tool("sequentialthinking", step(number))).is_error
        assert "20 is the limit" in await refusal(client, "sequentialthinking", **step(4, "x" * 21))
        assert "(3 thoughts)" in await words(client, "list_chains")


# -- thinking --------------------------------------------------------------------------------------


async def test_the_fields_that_callers_know(client: Client) -> None:
    """The arguments and the result have the names of the server that people come from; a total that
    is too small grows.
    """
    first = await think(client, 1, total=2)
    chain = first["chain"]
    assert first == {
        "thoughtNumber": 1,
        "totalThoughts": 2,
        "nextThoughtNeeded": True,
        "branches": [],
        "thoughtHistoryLength": 1,
        "chain": chain,
        "branch": "main",
        "revised": [],
    }
    await think(client, 2, chain=chain)
    await think(
        client, 3, chain=chain, isRevision=True, revisesThought=1, needsMoreThoughts=True, total=2
    )
    await think(client, 3, chain=chain, branchFromThought=2, branchId="other")
    last = await think(client, 4, chain=chain, branchFromThought=2, branchId="other", more=False)
    assert (last["branches"], last["branch"], last["thoughtHistoryLength"], last["revised"]) == (
        ["other"],
        "other",
        5,
        [1],
    )
    assert (await think(client, 9, chain=chain, total=3))["totalThoughts"] == 9


async def test_the_text_is_not_the_data_again(client: Client) -> None:
    """Words for people and models, which name the chain; the data is in the structured content
    alone.
    """
    result = await client.call_tool("sequentialthinking", step(1, "a secret thought"))
    data: Any = result.structured_content
    assert (
        result.text
        == f"Thought 1 of 5 is on the main line. Send chain {data['chain']} with the next "
        "thought."
    )
    review = await client.call_tool("review_chain", {"chain": data["chain"]})
    assert review.text.startswith(
        "# Thoughts\n\n1 thoughts, not finished yet.\n\n**1** of 5\n\n> a secret thought"
    )
    told: Any = review.structured_content
    assert told["thoughts"] == [
        {
            "thought": "a secret thought",
            "thoughtNumber": 1,
            "totalThoughts": 5,
            "nextThoughtNeeded": True,
        }
    ]


@pytest.mark.parametrize(
    "given, words",
    [
        (step(3), "so the next one has the number 4"),
        (step(1), "Thought 3 is already on the main line"),
        (step(4, isRevision=True), "needs revisesThought"),
        (
            step(4, isRevision=True, revisesThought=4),
            "There is no thought 4 on the main line to revise. There are: 1, 2, 3.",
        ),
        (step(4, revisesThought=7), "There is no thought 7"),
        (step(4, branchFromThought=3), "needs a name"),
        (step(4, branchId="new"), "There is no branch 'new' yet"),
        (
            step(9, branchFromThought=8, branchId="new"),
            "There is no thought 8 to branch from. There are: 1, 2, 3.",
        ),
        (step(2, branchFromThought=2, branchId="new"), "Thought 2 is already on branch new"),
        (step(4, branchFromThought=1, branchId="b"), "Branch 'b' began at thought 2"),
        (step(4, branchId="b", revisesThought=4), "There is no thought 4 on branch b"),
        (step(0), "thoughtNumber"),
        (step(4, total=0), "totalThoughts"),
        ({"thought": "x"}, "required, but missing"),
        ({**step(4), "thought": ""}, "thought"),
    ],
)
async def test_what_does_not_fit_is_said_in_words(
    client: Client, given: dict[str, Any], words: str
) -> None:
    """Numbers rise, revisions and branches begin at what there is; and nothing is added where they
    do not (`TOL-15`, `TOL-16`).
    """
    chain = (await think(client, 1))["chain"]
    for one in (step(2), step(3), step(3, branchFromThought=2, branchId="b")):
        await client.call_tool("sequentialthinking", {**one, "chain": chain})
    assert words in await refusal(client, "sequentialthinking", chain=chain, **given)
    told = await done(client, "review_chain", chain=chain)
    assert (len(told["thoughts"]), told["branches"]) == (4, ["b"])


@pytest.mark.parametrize(
    "given",
    [
        {"nextThoughtNeeded": "true", "thoughtNumber": "2", "totalThoughts": "5"},
        {"nextThoughtNeeded": "True", "isRevision": "false", "revisesThought": 1, "branchId": ""},
        {
            "isRevision": None,
            "revisesThought": None,
            "branchFromThought": None,
            "branchId": None,
            "needsMoreThoughts": None,
        },
        {"isRevision": "TRUE", "revisesThought": "1", "needsMoreThoughts": "false"},
    ],
)
async def test_what_models_send_is_understood(client: Client, given: dict[str, Any]) -> None:
    """Numbers and truth values as strings, and arguments that say nothing."""
    chain = (await think(client, 1))["chain"]
    assert (
        await think(
            client,
            2,
            chain=chain,
            **{
                k: v
                for k, v in given.items()
                if k not in ("thoughtNumber", "nextThoughtNeeded", "totalThoughts")
            },
        )
    )["branch"] == "main"
    result = await client.call_tool(
        "sequentialthinking", {**step(3), **given, "thoughtNumber": "3", "chain": chain}
    )
    assert not result.is_error, result.text
    told: Any = result.structured_content
    assert told["nextThoughtNeeded"] is True
    assert told["revised"] == ([1] if given.get("isRevision") == "TRUE" else [])


@pytest.mark.parametrize(
    "given",
    [
        {"nextThoughtNeeded": "perhaps"},
        {"thoughtNumber": "two"},
        {"thoughtNumber": "-1"},
        {"thoughtNumber": "٣"},
    ],
)
async def test_what_nobody_understands_is_refused(client: Client, given: dict[str, Any]) -> None:
    """And a thought that only looks like a number stays what it is."""
    assert next(iter(given)) in await refusal(client, "sequentialthinking", **{**step(1), **given})
    told = await think(client, 1, "7")
    review = await done(client, "review_chain", chain=told["chain"])
    assert review["thoughts"][0]["thought"] == "7"


async def test_a_thought_whose_answer_was_lost_may_be_sent_again(client: Client) -> None:
    """With its chain named it is kept once."""
    chain = (await think(client, 1))["chain"]
    first = await think(client, 2, chain=chain)
    assert await think(client, 2, chain=chain) == first


async def test_several_conversations_in_one_process(client: Client) -> None:
    """Each has its chain; who names none goes on with the last one, and begins a new one with
    thought 1.
    """
    one = (await think(client, 1, "one"))["chain"]
    two = (await think(client, 1, "two"))["chain"]
    assert (await think(client, 2, chain=one))["thoughtHistoryLength"] == 2
    assert (await think(client, 3))["chain"] == one
    assert (await think(client, 2, chain=two))["thoughtHistoryLength"] == 2
    listed = await done(client, "list_chains")
    assert [(known["chain"], known["begins"], known["thoughts"]) for known in listed["chains"]] == [
        (two, "two", 2),
        (one, "one", 3),
    ]


async def test_reading_completing_watching_and_forgetting(client: Client) -> None:
    """A chain is a resource; its id completes, who watches it hears of each thought, and it goes
    when it is told to (`CMP-02`, `SUB-02`).
    """
    chain = (await think(client, 1))["chain"]
    other = (await think(client, 1))["chain"]
    assert (await client.complete(CHAIN, "chain", "")).values == [other, chain]
    assert (await client.complete(CHAIN, "chain", chain[:8])).values == [chain]
    async with client.watch(resources=[f"thinking://chains/{chain}"]) as changes:
        await think(client, 2, chain=chain)
        async with asyncio.timeout(30):
            assert (await anext(changes)).uri == f"thinking://chains/{chain}"
    for forgotten in (True, False):
        told = await done(client, "forget_chain", chain=chain)
        assert told["forgotten"] is forgotten
    assert (await client.complete(CHAIN, "chain", "")).values == [other]
    assert "There is no chain" in await refusal(client, "review_chain", chain=chain)
    assert "There is no chain" in await refusal(
        client, "sequentialthinking", **step(3, chain=chain)
    )


async def test_the_drawing(client: Client) -> None:
    """A flowchart in which nothing of a thought means anything to Mermaid."""
    chain = (await think(client, 1, 'a"] --> b; click t0 "javascript:"'))["chain"]
    await think(client, 2, chain=chain, revisesThought=1)
    await think(client, 2, chain=chain, branchFromThought=1, branchId="b|x")
    text = await words(client, "review_chain", chain=chain, form="mermaid")
    assert text.splitlines() == [
        "flowchart TD",
        '    t0["1: a#34;#93; --#62; b#59; click t0 #34;javascript#58;#34;"]',
        '    t1["2: thought 2"]',
        "    t0 --> t1",
        "    t1 -.->|revises| t0",
        '    t2["2: thought 2"]',
        '    t0 -->|"b#124;x"| t2',
    ]


@given(st.text(min_size=1))
def test_no_thought_can_pass_for_a_part_of_the_outline(text: str) -> None:
    """Every line of it is quoted, whatever ends a line; the drawing has one line for it."""
    chain = Chain("x", "here", [Thought(text, 1, 1, False)])
    assert [row for row in outline(chain).splitlines() if row and not row.startswith(">")] == [
        "# Thoughts",
        "1 thoughts, finished.",
        "**1** of 1",
    ]
    assert len(drawing(chain).splitlines()) == 2


# -- chains as such --------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.integers(1, 8),
        st.sampled_from(["main", "a", "b", "c"]),
        st.none() | st.integers(1, 8),
        st.none() | st.integers(1, 8),
    ),
    max_size=25,
)


@given(STEPS)
def test_what_is_taken_always_fits(steps: list[tuple[int, str, int | None, int | None]]) -> None:
    """Along each line numbers rise, and what is revised or branched from is there; what does not
    fit leaves no trace in the thoughts.
    """
    chain = Chain("x", "here")
    for count, (number, line, fork, revises) in enumerate(steps):
        before = list(chain.thoughts)
        try:
            added = chain.add(Thought(str(count), number, number, True, line, revises), fork)
        except ToolError:
            assert chain.thoughts == before
        else:
            assert added
            assert revises is None or revises in chain.along(line)
    for line in ["main", *chain.forks]:
        own = [one.thought_number for one in chain.thoughts if one.branch == line]
        assert own == sorted(set(own))
        seen = chain.along(line)
        assert all(one.thought_number == number for number, one in seen.items())
        if (begun := chain.forks.get(line)) is not None and own:
            assert begun.number in seen
            assert min(own) > begun.number
    for (line, number), _ in chain.revised().items():
        assert any((one.branch, one.thought_number) == (line, number) for one in chain.thoughts)
    assert outline(chain)
    assert drawing(chain)


def test_a_branch_of_a_branch_sees_what_led_to_it() -> None:
    """And nothing that came later on the lines before it."""
    chain = Chain("x", "here")
    for number, line, fork in (
        (1, "main", None),
        (2, "main", None),
        (3, "main", None),
        (3, "a", 2),
        (4, "a", None),
        (5, "a", None),
        (4, "b", 3),
        (3, "c", 2),
    ):
        chain.add(Thought(f"{line}{number}", number, number, True, line), fork)
    seen = {
        line: [one.thought for one in chain.along(line).values()]
        for line in ("main", "a", "b", "c")
    }
    assert seen == {
        "main": ["main1", "main2", "main3"],
        "a": ["main1", "main2", "a3", "a4", "a5"],
        "b": ["main1", "main2", "a3", "b4"],
        "c": ["main1", "main2", "c3"],
    }


# -- whose it is -----------------------------------------------------------------------------------


def called(server: Server, caller: Caller, tool: str, arguments: dict[str, Any]) -> Any:
    """A call of somebody in particular, as the endpoint would make it."""
    params = types.CallToolRequestParams(name=tool, arguments=Raw(json.dumps(arguments).encode()))
    return server.handle(Exchange("tools/call", params, caller))


PEOPLE = {
    "here": Caller("2026-07-28"),
    "ada": Caller("2026-07-28", principal=Principal(subject="ada", issuer="https://id.example")),
    "her namesake": Caller(
        "2026-07-28", principal=Principal(subject="ada", issuer="https://other.example")
    ),
    "one session": Caller("2025-11-25", session="s1", anonymous=True),
    "another session": Caller("2025-11-25", session="s2", anonymous=True),
    "a stranger": Caller("2026-07-28", anonymous=True),
}


@pytest.mark.parametrize("mine", PEOPLE)
@pytest.mark.parametrize("other", PEOPLE)
async def test_nobody_gets_at_the_chains_of_others(mine: str, other: str) -> None:
    """Not even with the id: it is not read, added to, forgotten, listed or completed (`TOL-23`,
    `CMP-07`).
    """
    server = thinking_server()
    async with Client(server):  # so that its lifespan has begun
        begun = await called(server, PEOPLE[mine], "sequentialthinking", step(1, "private"))
        chain = begun.structured_content["chain"]
        same = mine == other
        caller = PEOPLE[other]
        results = [
            await called(server, caller, "review_chain", {"chain": chain}),
            await called(server, caller, "sequentialthinking", step(2, chain=chain)),
        ]
        assert [bool(one.is_error) for one in results] == [not same, not same]
        assert all(same or "private" not in str(one) for one in results)
        listed = await called(server, caller, "list_chains", {})
        assert (chain in str(listed)) == (same and mine != "a stranger")
        completing = types.CompleteRequestParams(
            ref=types.ResourceTemplateReference(uri=CHAIN),
            argument=types.CompletionArgument(name="chain", value=""),
        )
        completed: Any = await server.handle(Exchange("completion/complete", completing, caller))
        assert (chain in str(completed)) == (same and mine != "a stranger")
        forgot = await called(server, caller, "forget_chain", {"chain": chain})
        assert forgot.structured_content["forgotten"] is same
        left = await called(server, PEOPLE[mine], "review_chain", {"chain": chain})
        assert bool(left.is_error) is same  # what others tried has changed nothing


@pytest.mark.parametrize("who", ["ada", "a stranger"])
async def test_who_may_have_several_conversations_names_the_chain(who: str) -> None:
    """Nothing is guessed where a thought could land in another conversation."""
    server = thinking_server()
    async with Client(server):
        await called(server, PEOPLE[who], "sequentialthinking", step(1))
        refused = await called(server, PEOPLE[who], "sequentialthinking", step(2))
        assert refused.is_error
        assert "Name it with `chain`" in refused.content[0].text


# -- how much is kept ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits, words",
    [
        ({"thought": 5}, "and 5 is the limit"),
        ({"thoughts": 2}, "This chain is full at 2 thoughts"),
        ({"size": 300}, "This chain is full"),
        ({"total": 500}, "Thoughts cannot be stored now"),
    ],
)
async def test_limits_hold(limits: dict[str, int], words: str) -> None:
    """One thought, one chain, and all together; what was kept before stays."""
    async with Client(thinking_server(limits=ThinkingLimits(**limits))) as client:
        chain = (await think(client, 1, "one"))["chain"]
        answers = [
            await client.call_tool("sequentialthinking", step(number, "thought" * 5, chain=chain))
            for number in range(2, 9)
        ]
        assert words in next(one.text for one in answers if one.is_error)
        assert not (await client.call_tool("review_chain", {"chain": chain})).is_error


async def test_branches_are_bounded() -> None:
    """Their number is limited like all else."""
    async with Client(thinking_server(limits=ThinkingLimits(branches=2))) as client:
        chain = (await think(client, 1))["chain"]
        for name in ("a", "b"):
            await think(client, 2, chain=chain, branchFromThought=1, branchId=name)
        given = step(2, chain=chain, branchFromThought=1, branchId="c")
        assert (
            await refusal(client, "sequentialthinking", **given)
            == "This chain has 2 branches already. Go on with one of them: a, b."
        )
        assert (await think(client, 3, chain=chain, branchId="a"))["branches"] == ["a", "b"]


async def test_the_chain_used_longest_ago_goes_first() -> None:
    """Where a caller has as many as may be."""
    async with Client(thinking_server(limits=ThinkingLimits(chains=2))) as client:
        one, two = [(await think(client, 1))["chain"] for _ in range(2)]
        await think(client, 2, chain=one)
        three = (await think(client, 1))["chain"]
        assert (await client.complete(CHAIN, "chain", "")).values == [three, one]
        assert "There is no chain" in await refusal(client, "review_chain", chain=two)


async def test_chains_end() -> None:
    """So long after the last thought that was added, and not before."""
    now = [1000.0]
    shelf = ChainStore(
        MemoryVault(clock=lambda: now[0]), ThinkingLimits(seconds=60), lambda: now[0]
    )
    caller = PEOPLE["here"]
    chain = (await shelf.think(None, caller, Thought("1", 1, 2, True), None)).id
    now[0] += 59
    await shelf.think(chain, caller, Thought("2", 2, 2, False), None)
    now[0] += 59
    assert await shelf.find(chain, caller) is not None
    now[0] += 2
    assert await shelf.find(chain, caller) is None
    assert await shelf.chains(caller) == []


async def test_workers_share_a_store(tmp_path: Path) -> None:
    """What one has begun another goes on with; of thoughts that come at once none is lost."""
    vaults = [SqliteVault(tmp_path / "thoughts.db") for _ in range(2)]
    try:
        shelves = [ChainStore(vault, ThinkingLimits()) for vault in vaults]
        caller = PEOPLE["ada"]
        chain = (await shelves[0].think(None, caller, Thought("1", 1, 9, True), None)).id
        await shelves[1].think(chain, caller, Thought("2", 2, 9, True), None)
        branches = [
            shelves[n % 2].think(chain, caller, Thought(f"{n}", 3, 9, True, f"b{n}"), 2)
            for n in range(8)
        ]
        await asyncio.gather(*branches)
        found = await shelves[0].find(chain, caller)
        assert found is not None
        assert sorted(one.branch for one in found.thoughts) == [
            *(f"b{n}" for n in range(8)),
            "main",
            "main",
        ]
    finally:
        for vault in vaults:
            await vault.aclose()


async def test_a_store_that_is_named_outlives_the_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is opened when the first client comes; what is no store is said before."""
    monkeypatch.setenv("INTERLOCK_THINKING_STORE", f"sqlite:{tmp_path}/thoughts.db")
    made = server_of()
    assert not list(tmp_path.iterdir())
    async with Client(made) as client:
        chain = (await think(client, 1))["chain"]
    async with Client(server_of()) as client:
        assert (await think(client, 2, chain=chain))["thoughtHistoryLength"] == 2
    monkeypatch.setenv("INTERLOCK_THINKING_STORE", "nowhere:")
    with pytest.raises(ValueError, match="INTERLOCK_THINKING_STORE: nowhere: names no vault"):
        server_of()
    with pytest.raises(ValueError, match="takes no arguments"):
        server_of("sqlite:thoughts.db")


def test_the_page_has_the_limits() -> None:
    """Each with what it is unless told otherwise."""
    page = (Path(__file__).parents[4] / "docs" / "servers" / "thinking.md").read_text(
        encoding="utf-8"
    )
    for name in ThinkingLimits.__struct_fields__:
        assert f"| `{name.upper()}` | {getattr(ThinkingLimits(), name):,} |" in page
