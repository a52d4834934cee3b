"""A server that asks for a model: answered by texts or by a model where the command line says so,
and not offered otherwise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from interlock.cli.answers.sampling import MOST_SAMPLES
from tests.cli.conftest import Command
from tests.cli.programs import listening
from tests.commands.hosting import ran_here
from tests.models.providers import Act, Answer, Site

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
CURIOUS = """
from interlock import Context, Server

server = Server("curious")


@server.tool
async def wonder(ctx: Context, times: int = 1) -> str:
    answers = [await ctx.sample(f"What is {n}?", max_tokens=90_000) for n in range(times)]
    contents = [each.content for each in answers]
    blocks = [content if isinstance(content, list) else [content] for content in contents]
    return ", ".join(block.text for found in blocks for block in found)


@server.tool
def offered(ctx: Context) -> str:
    sampling = ctx.caller.capabilities.sampling
    if sampling is None:
        return "none"
    return "tools" if sampling.tools is not None else "plain"
"""


@pytest.fixture(scope="module")
def curious(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server whose tool asks a model."""
    with listening(tmp_path_factory.mktemp("curious") / "curious.py", CURIOUS) as address:
        yield address


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A provider whose model always says the same."""
    async with Site("A cat") as site:
        yield site


GIVEN: list[tuple[list[str], str]] = [
    (["--sample", "one"], "one, one, one"),
    (["--sample", "one", "--sample", "two"], "one, two, two"),
    (["--sample", "@answer.txt"], "from a file, from a file, from a file"),
    (["--sample", ""], ", , "),
]


@pytest.mark.matrix(pairs=False, seconds=0.2)
@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
@pytest.mark.parametrize("options, expected", GIVEN)
def test_answered_with_texts(
    interlock: Command, curious: str, options: list[str], expected: str, revision: str
) -> None:
    """In their order, and the last one from then on."""
    Path("answer.txt").write_text("from a file", encoding="utf-8")
    result = interlock("call", curious, "wonder", "times=3", *options, "--revision", revision)
    assert (result.exit_code, result.stdout) == (0, f"{expected}\n"), result.stderr


@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
async def test_answered_by_a_model(curious: str, home: Path, site: Site, revision: str) -> None:
    """Through the host's adapters; the person sees what is asked and said, and its length is
    bounded.
    """
    ended = await ran_here(
        "call", curious, "wonder", "--model", f"openai:m@{site.openai}", "--revision", revision
    )
    assert (ended.code, ended.out) == (0, "A cat\n"), ended.err
    assert "[the server asks m] What is 0?" in ended.err
    assert "[m] A cat" in ended.err
    (asked,) = site.asked
    assert 90_000 not in asked.body.values()


async def test_a_model_that_fails(curious: str, home: Path, site: Site) -> None:
    """The person hears why; the server only that there is no answer."""
    site.acts = [Act(status=401, body={"error": {"message": "Incorrect API key"}})]
    ended = await ran_here("call", curious, "wonder", "--model", f"openai:m@{site.openai}")
    assert ended.code != 0
    assert "The model gave no answer: " in ended.err
    assert "Incorrect API key" not in ended.out


async def test_a_server_asks_a_model_so_often_and_no_more(
    curious: str, home: Path, site: Site
) -> None:
    """What it says costs money."""
    site.acts = [Act(Answer(("A cat",)))]
    times = f"times={MOST_SAMPLES + 1}"
    ended = await ran_here("call", curious, "wonder", times, "--model", f"openai:m@{site.openai}")
    assert ended.code != 0
    assert len(site.asked) == MOST_SAMPLES


@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
@pytest.mark.parametrize(
    "options, expected",
    [([], "none"), (["--sample", "x"], "plain"), (["--model", "ollama:x"], "tools")],
)
def test_declared_only_where_it_is_answered(
    interlock: Command, curious: str, options: list[str], expected: str, revision: str
) -> None:
    """And tools only where a model is there that can use them (`SAM-05`)."""
    result = interlock("call", curious, "offered", *options, "--revision", revision)
    assert result.stdout == f"{expected}\n"


def test_unanswered_says_how(interlock: Command, curious: str) -> None:
    """The refusal of the server names the capability; the command names the options."""
    result = interlock("call", curious, "wonder")
    assert result.exit_code != 0
    assert "--sample TEXT or --model NAME" in result.stderr


@pytest.mark.parametrize(
    "options, words",
    [
        (["--sample", "x", "--model", "ollama:x"], "give one of them"),
        (["--sample", "@nowhere.txt"], "--sample cannot be read"),
        (["--model", "nobody:x"], "There is no model nobody:x"),
    ],
)
def test_wrong_usage(interlock: Command, curious: str, options: list[str], words: str) -> None:
    """Code 2, before anything is started."""
    result = interlock("call", curious, "wonder", *options)
    assert result.exit_code == 2
    assert words in result.stderr
