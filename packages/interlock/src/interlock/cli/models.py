"""The models that the command line names or a file configures."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from ..configs import this_machine
from ..models.configured import PROVIDERS, BadModels, from_environment, read_models
from ..models.interface import Model
from .screen import note

_SHORT = re.compile(r"(?P<provider>[a-z]+):(?P<model>[^@\s]+)(?:@(?P<url>\S+))?")


def models_of(
    file: Path | None,
    names: Sequence[str],
    *,
    local: Mapping[str, Callable[[], Model]] | None = None,
    required: bool = True,
) -> list[Model]:
    """Return the named models first, and then those of the file.

    Args:
        file: A file of models; None uses `models.json` in the settings folder, if it exists.
        names: Names of configured or local models, or `PROVIDER:MODEL[@URL]`.
        local: Models without a provider, by name.
        required: Whether there must be a model.

    Raises:
        click.UsageError: A name is unknown, or no model is named or configured.
    """
    local = local or {}
    path = file or models_path()
    configured: dict[str, Model] = {}
    try:
        if file is not None or path.is_file():
            read = read_models(_entries(path), folder=path.parent)
            configured = {model.name: model for model in read.models}
            for words in read.left_out.values():
                note(words, fg="yellow")
        if not names and not configured:
            configured = {model.name: model for model in from_environment().models}
        chosen = [configured.get(name) or _named(name, local) for name in names]
    except BadModels as bad:
        raise click.UsageError(str(bad)) from None
    named = {model.name: model for model in chosen}
    if twice := [model.name for model in chosen if named[model.name] is not model]:
        raise click.UsageError(
            f"--model: two have the name {twice[0]}; give them names in {path}, or leave one out."
        )
    models = list(
        {
            **named,
            **{name: model for name, model in configured.items() if name not in named},
        }.values()
    )
    if not models and required:
        raise click.UsageError(
            f"No model is configured. Name one with --model, such as {_examples(local)}, "
            f"or configure some in {path}."
        )
    return models


def models_path() -> Path:
    """Return the user's own file of models."""
    return this_machine().settings / "interlock" / "models.json"


def _entries(path: Path) -> Any:
    try:
        data = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as bad:
        raise BadModels(f"{path} cannot be read: {bad}") from None
    if not isinstance(data, dict) or "models" not in data:
        raise BadModels(f'{path} must be an object with "models".')
    return data["models"]


def _examples(local: Mapping[str, Callable[[], Model]]) -> str:
    """Examples of model names."""
    return " or ".join(["anthropic:claude-sonnet-4-5", "ollama:llama3.2", *local])


def _named(name: str, local: Mapping[str, Callable[[], Model]]) -> Model:
    """The model with this name."""
    if name in local:
        return local[name]()
    found = _SHORT.fullmatch(name)
    if found is None or found["provider"] not in PROVIDERS:
        raise BadModels(
            f"There is no model {name}. A model is PROVIDER:MODEL[@URL]; the providers are "
            f"{', '.join(PROVIDERS)}."
        )
    kind = PROVIDERS[found["provider"]]
    entry: dict[str, Any] = {
        "provider": found["provider"],
        "model": found["model"],
        "url": found["url"] or "",
    }
    if kind.variable and (kind.variable in os.environ or not found["url"]):
        entry["key"] = f"${{{kind.variable}}}"
    read = read_models({re.sub(r"[\s/\\]", "-", found["model"])[:64]: entry})
    if not read.models:
        raise BadModels(next(iter(read.left_out.values())))
    return read.models[0]
