"""Settings of a program, read strictly from environment variables before it starts."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct

Settings = TypeVar("Settings", bound=Struct)


def settings_of(
    kind: type[Settings], prefix: str, environment: Mapping[str, str] | None = None
) -> Settings:
    """Read a record of settings from the environment.

    The field `page` gets the value of the variable `<prefix>PAGE`, or its default if the variable
    is unset or empty. A string is used as it is. A tuple is split at commas and spaces. Literals
    and booleans (`1`, `0`, `true`, `false`) are case-insensitive. A number must be above 0, unless
    `Annotated` gives the field other bounds.

    Args:
        kind: The class of the record. Each field needs a default.
        prefix: The beginning of the variables' names, in capitals.
        environment: The variables; None for those of the process.

    Raises:
        ValueError: A value is not valid. The message names the variable and says what is accepted.
    """
    given: dict[str, object] = {}
    for known in msgspec.structs.fields(kind):
        variable = prefix + known.name.upper()
        text = (os.environ if environment is None else environment).get(variable, "").strip()
        if not text:
            continue
        try:
            value = given[known.name] = msgspec.convert(
                _parts(text, known.type), known.type, strict=False
            )
        except msgspec.ValidationError as bad:
            raise ValueError(f"{variable}={text}: {bad}") from None
        if (
            isinstance(value, int | float)
            and known.type in (int, float)
            and not 0 < value < math.inf
        ):
            raise ValueError(f"{variable}={text}: it has to be more than 0")
    return kind(**given)


def _parts(text: str, kind: object) -> object:
    """Convert a text to the form from which msgspec reads a type."""
    origin = get_origin(kind) or kind
    if origin is tuple:
        return text.replace(",", " ").split()
    whole = origin is bool or (
        origin is Literal
        and all(isinstance(word, str) and word == word.lower() for word in get_args(kind))
    )
    return text.lower() if whole else text
