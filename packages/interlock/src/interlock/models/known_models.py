"""Facts about models by name: context window, output limit and abilities."""

from __future__ import annotations

from msgspec import structs

from .effort import efforts_of
from .interface import ModelFacts

# The first entry whose words are all in the name applies. Sizes are those that the providers
# document; the smallest, if several models had the name.
_KNOWN: tuple[tuple[tuple[str, ...], ModelFacts], ...] = (
    (
        ("claude", "opus"),
        ModelFacts(context=200_000, output=32_000, cost=0.1, speed=0.3, intelligence=1.0),
    ),
    (
        ("claude", "haiku"),
        ModelFacts(context=200_000, output=8_192, cost=0.7, speed=0.9, intelligence=0.6),
    ),
    (
        ("claude", "sonnet"),
        ModelFacts(context=200_000, output=32_000, cost=0.4, speed=0.6, intelligence=0.9),
    ),
    (("claude",), ModelFacts(context=200_000, output=8_192, cost=0.4, speed=0.6, intelligence=0.8)),
    (
        ("gemini", "lite"),
        ModelFacts(
            context=1_000_000, output=8_192, audio=True, cost=0.9, speed=0.95, intelligence=0.5
        ),
    ),
    (
        ("gemini", "flash"),
        ModelFacts(
            context=1_000_000, output=8_192, audio=True, cost=0.8, speed=0.9, intelligence=0.65
        ),
    ),
    (
        ("gemini",),
        ModelFacts(
            context=1_000_000, output=32_000, audio=True, cost=0.4, speed=0.5, intelligence=0.9
        ),
    ),
    (
        ("gpt-5", "nano"),
        ModelFacts(context=400_000, output=32_000, cost=0.95, speed=0.95, intelligence=0.45),
    ),
    (
        ("gpt-5", "mini"),
        ModelFacts(context=400_000, output=32_000, cost=0.8, speed=0.8, intelligence=0.7),
    ),
    (
        ("gpt-5",),
        ModelFacts(context=400_000, output=32_000, cost=0.4, speed=0.4, intelligence=0.95),
    ),
    (
        ("gpt-4.1", "nano"),
        ModelFacts(context=1_000_000, output=32_000, cost=0.95, speed=0.95, intelligence=0.4),
    ),
    (
        ("gpt-4.1", "mini"),
        ModelFacts(context=1_000_000, output=32_000, cost=0.8, speed=0.85, intelligence=0.55),
    ),
    (
        ("gpt-4.1",),
        ModelFacts(context=1_000_000, output=32_000, cost=0.4, speed=0.6, intelligence=0.75),
    ),
    (
        ("gpt-4o", "mini"),
        ModelFacts(context=128_000, output=16_000, cost=0.9, speed=0.85, intelligence=0.5),
    ),
    (
        ("gpt-4o", "audio"),
        ModelFacts(
            context=128_000,
            output=16_000,
            images=False,
            audio=True,
            cost=0.3,
            speed=0.6,
            intelligence=0.65,
        ),
    ),
    (
        ("gpt-4o",),
        ModelFacts(context=128_000, output=16_000, cost=0.4, speed=0.65, intelligence=0.7),
    ),
    (
        ("gpt-4",),
        ModelFacts(
            context=8_192, output=4_096, images=False, cost=0.1, speed=0.3, intelligence=0.65
        ),
    ),
    (
        ("gpt-3.5",),
        ModelFacts(
            context=16_000, output=4_096, images=False, cost=0.8, speed=0.8, intelligence=0.3
        ),
    ),
    (
        ("gpt-oss",),
        ModelFacts(
            context=128_000, output=16_000, images=False, cost=0.9, speed=0.7, intelligence=0.6
        ),
    ),
    (("o3",), ModelFacts(context=200_000, output=32_000, cost=0.3, speed=0.3, intelligence=0.9)),
    (("o4",), ModelFacts(context=200_000, output=32_000, cost=0.5, speed=0.5, intelligence=0.8)),
    (
        ("deepseek", "reasoner"),
        ModelFacts(
            context=64_000, output=8_192, images=False, cost=0.8, speed=0.4, intelligence=0.8
        ),
    ),
    (
        ("deepseek",),
        ModelFacts(
            context=64_000, output=8_192, images=False, cost=0.9, speed=0.6, intelligence=0.75
        ),
    ),
    (
        ("qwen", "vl"),
        ModelFacts(context=32_000, output=8_192, cost=0.9, speed=0.6, intelligence=0.55),
    ),
    (
        ("qwen",),
        ModelFacts(
            context=32_000, output=8_192, images=False, cost=0.9, speed=0.6, intelligence=0.55
        ),
    ),
    (
        ("llama", "vision"),
        ModelFacts(context=128_000, output=4_096, cost=0.9, speed=0.6, intelligence=0.45),
    ),
    (
        ("llama",),
        ModelFacts(
            context=128_000, output=4_096, images=False, cost=0.9, speed=0.6, intelligence=0.45
        ),
    ),
    (
        ("mistral",),
        ModelFacts(
            context=128_000, output=8_192, images=False, cost=0.7, speed=0.7, intelligence=0.6
        ),
    ),
    (
        ("gemma",),
        ModelFacts(
            context=32_000,
            output=8_192,
            images=False,
            tools=False,
            cost=0.95,
            speed=0.7,
            intelligence=0.4,
        ),
    ),
    (
        ("phi",),
        ModelFacts(
            context=16_000,
            output=4_096,
            images=False,
            tools=False,
            cost=0.95,
            speed=0.8,
            intelligence=0.35,
        ),
    ),
)

# Most models reject images and audio; without tools a model is of no use to a host.
UNKNOWN = ModelFacts(context=32_000, output=4_096, images=False)


def known(model: str) -> ModelFacts:
    """What is known about a model by its name. The publisher's name before a slash does not
    count.
    """
    name = model.lower().rpartition("/")[2]
    facts = next(
        (facts for words, facts in _KNOWN if all(_in(word, name) for word in words)), UNKNOWN
    )
    efforts = efforts_of(name)
    return structs.replace(facts, efforts=efforts) if efforts else facts


def _in(word: str, name: str) -> bool:
    """Whether a word is in a name. A short word must be at its beginning: `o3` is part of many
    names.
    """
    return name.startswith(word) if len(word) <= 3 and word != "vl" else word in name
