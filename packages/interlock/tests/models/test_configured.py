"""Models out of a configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from interlock.models.configured import BadModels, from_environment, read_models
from interlock.models.known_models import known
from tests.models.asking import KEY, received, request
from tests.models.providers import Site

ENVIRONMENT = {"KEY_A": KEY, "EMPTY": "", "HOST": "models.example.com"}


async def test_models_as_they_are_written() -> None:
    """SAM-10: provider, model, url, key and facts; what is not written is known of the name."""
    read = read_models(
        {
            "mine": {
                "provider": "anthropic",
                "model": "claude-sonnet-4-5",
                "key": "${KEY_A}",
                "output": 500,
                "remark": "at work",
            },
            "home": {"provider": "ollama", "model": "llama3.2", "images": True},
            "there": {
                "provider": "openai",
                "model": "x",
                "url": "https://${HOST}/v1",
                "headers": {"X-Key": "${KEY_A}"},
                "silence": 9,
            },
            "none": {"provider": "gemini", "model": "gemini-2.5-pro", "key": "${NOT_SET}"},
            "empty": {"provider": "gemini", "model": "gemini-2.5-pro", "key": "${EMPTY}"},
        },
        environment=ENVIRONMENT,
    )
    mine, home, there = read.models
    assert [model.name for model in read.models] == ["mine", "home", "there"]
    assert (mine.facts.context, mine.facts.output, mine.facts.remark) == (200_000, 500, "at work")
    assert (home.url, home.facts.images) == ("http://127.0.0.1:11434/v1", True)
    assert (there.url, there.silence, there.facts) == (
        "https://models.example.com/v1",
        9,
        known("x"),
    )
    assert set(read.left_out) == {"none", "empty"}
    assert "NOT_SET, which is not set" in read.left_out["none"]
    assert KEY not in repr(read)
    for model in read.models:
        await model.aclose()


GOOD = {"provider": "openai", "model": "x"}


@pytest.mark.parametrize(
    "entries, words",
    [
        ([], "must be an object"),
        ({"a": 1}, "models.a must be an object"),
        ({"a b": GOOD}, "is not a valid model name"),
        ({"a": {"provider": "openai"}}, "models.a: .*model"),
        ({"a": {**GOOD, "modle": "y"}}, "modle is unknown. Did you mean model"),
        ({"a": {**GOOD, "provider": "opnai"}}, "no provider opnai; there are openai, anthropic"),
        ({"a": {**GOOD, "key": KEY}}, "do not write a key into the configuration"),
        ({"a": {**GOOD, "key": "${KEY_A}", "key_file": "k"}}, "not both"),
        ({"a": {**GOOD, "url": "http://models.example.com", "key": "${KEY_A}"}}, "over http"),
        ({"a": {**GOOD, "url": "ftp://x"}}, "models.a: a model's URL"),
        ({"a": {**GOOD, "context": 0}}, "number of tokens"),
        ({"a": {**GOOD, "cost": 2}}, "must be from 0 to 1"),
        ({"a": {**GOOD, "silence": 0}}, "number of seconds"),
        ({"a": {**GOOD, "images": "yes"}}, "models.a: .*images"),
        ({"a": {**GOOD, "model": " "}}, "name of the model"),
    ],
)
def test_what_is_wrong_is_said(entries: Any, words: str) -> None:
    """SEC-01: the place, what is wrong and what to write; never a key."""
    with pytest.raises(BadModels, match=words) as caught:
        read_models(entries, environment=ENVIRONMENT)
    assert KEY not in str(caught.value)


def test_a_key_that_cannot_be_one() -> None:
    """SEC-01: a key with a line end would be another header; it is refused and not shown."""
    with pytest.raises(BadModels, match="printable") as caught:
        read_models({"a": {**GOOD, "key": "${BAD}"}}, environment={"BAD": f"{KEY}\r\nX: y"})
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("mode", [0o600, 0o644])
async def test_a_key_in_a_file(mode: int, tmp_path: Path) -> None:
    """SEC-01: a file that nobody else can read, with the key and nothing else."""
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    file.chmod(mode)
    async with Site("Yes.") as site:
        entries = {"a": {**GOOD, "url": site.openai, "key_file": "key"}}
        if os.name == "posix" and mode != 0o600:
            with pytest.raises(BadModels, match="chmod 600"):
                read_models(entries, folder=tmp_path)
            return
        [model] = read_models(entries, folder=tmp_path).models
        await received(model, request())
        assert site.asked[0].headers["authorization"] == f"Bearer {KEY}"
        await model.aclose()
    gone = read_models({"a": {**GOOD, "key_file": "gone"}}, folder=tmp_path)
    assert "cannot be read" in gone.left_out["a"]


async def test_the_environment_alone() -> None:
    """SAM-10: one model without any file."""
    assert from_environment({}).models == []
    [home] = from_environment({"INTERLOCK_MODEL": "ollama:llama3.2:3b"}).models
    assert (home.model, home.url) == ("llama3.2:3b", "http://127.0.0.1:11434/v1")
    assert from_environment({"INTERLOCK_MODEL": "anthropic:claude-sonnet-4-5"}).left_out
    [there] = from_environment(
        {"INTERLOCK_MODEL": "openai:meta/x", "INTERLOCK_MODEL_URL": "http://localhost:1/v1"}
    ).models
    assert there.name == "meta-x"
    for words in ("llama", "nobody:x"):
        with pytest.raises(BadModels):
            from_environment({"INTERLOCK_MODEL": words})
    await home.aclose()
    await there.aclose()
