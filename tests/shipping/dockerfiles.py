"""Parses Dockerfiles, and checks them against rules for images that run servers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

_BASE = re.compile(r"[a-z0-9./-]+:(?P<tag>[\w.-]+)")
_SECRET = re.compile(r"(?i)(password|secret|token|api_?key)\w*=")


class Instruction(NamedTuple):
    """An instruction in one line, such as `RUN` and its words."""

    name: str
    words: str

    def command(self) -> list[str] | None:
        """The exec form of the words; None if they are in the shell form."""
        found = self.words[self.words.find("[") :] if "[" in self.words else ""
        try:
            return list(map(str, json.loads(found)))
        except ValueError:
            return None


class Stage(NamedTuple):
    """A stage: its name, the image or stage that it begins with, and its instructions."""

    name: str
    base: str
    instructions: list[Instruction]

    def last(self, name: str) -> Instruction | None:
        """The last instruction of a name, which is the one that counts."""
        return next((one for one in reversed(self.instructions) if one.name == name), None)


def parse(text: str) -> list[Stage]:
    """The stages of a Dockerfile. Raises ValueError for a line that is not an instruction."""
    stages: list[Stage] = []
    for name, words in _instructions(text):
        if name == "FROM":
            base, _, alias = words.partition(" AS ")
            stages.append(Stage(alias, base, []))
        elif not stages:
            raise ValueError(f"{name} before FROM")
        else:
            stages[-1].instructions.append(Instruction(name, words))
    return stages


def whole(stages: list[Stage], stage: Stage) -> Stage:
    """A stage with the instructions of the stages that it builds on."""
    under = next((one for one in stages if one.name and one.name == stage.base), None)
    if under is None:
        return stage
    below = whole(stages, under)
    return Stage(stage.name, below.base, [*below.instructions, *stage.instructions])


def problems(text: str) -> Iterator[str]:
    """Each rule that the images of a Dockerfile break, one line each."""
    stages = parse(text)
    copied = set(re.findall(r"--from=(\w+)", text))
    for stage in stages:
        at = stage.name or "the last stage"
        if stage.base not in {one.name for one in stages}:
            found = _BASE.fullmatch(stage.base)
            if found is None or found["tag"] == "latest":
                yield f"{at}: the base has no tag"
            elif "slim" not in found["tag"]:
                yield f"{at}: the base is not slim"
        yield from _problems_of_stage(at, stage)
        if stage.name in copied:
            continue  # a stage that only builds
        image = whole(stages, stage)
        user = image.last("USER")
        if user is None or re.fullmatch(r"[1-9]\d*:[1-9]\d*", user.words) is None:
            yield f"{at}: runs as root, or as a user without a number"
        probe = image.last("HEALTHCHECK")
        if probe is None:
            yield f"{at}: has no HEALTHCHECK"
        elif probe.words != "NONE" and probe.command() is None:
            yield f"{at}: its HEALTHCHECK needs a shell"
        entry = image.last("ENTRYPOINT")
        if entry is None or entry.command() is None:
            yield f"{at}: its ENTRYPOINT is not in the exec form"
        is_silent = probe is not None and probe.words == "NONE"
        if is_silent and image.last("EXPOSE"):
            yield f"{at}: listens at a port that nothing probes"


def _problems_of_stage(at: str, stage: Stage) -> Iterator[str]:
    for one in stage.instructions:
        if one.name == "ADD":
            yield f"{at}: ADD fetches and unpacks; use COPY"
        if one.name in ("ENV", "ARG") and _SECRET.search(one.words):
            yield f"{at}: {one.name} keeps a secret in the image"
        if one.name == "RUN":
            if re.search(r"\bpip3? install\b", one.words) and "--no-cache-dir" not in one.words:
                yield f"{at}: pip keeps its cache in the image"
            if re.search(r"\b(sudo|curl|wget)\b", one.words):
                yield f"{at}: RUN fetches from the network by hand"


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        name, _, words = line.strip().partition(" ")
        if not name.isupper() or not words:
            raise ValueError(f"not an instruction: {line}")
        yield name, words.strip()
