"""The configuration of a host: which servers there are, read from the files of many products and written as one of them."""

from __future__ import annotations

from ..redaction import DOTS
from .entries import Changes, Config, Entry, Input, Origin, Problem, changes
from .files import load_config, merge
from .formats import FORMATS
from .reading import read_config, wanted_inputs
from .writing import Unwritable, write_config

__all__ = [
    "DOTS",
    "FORMATS",
    "Changes",
    "Config",
    "Entry",
    "Input",
    "Origin",
    "Problem",
    "Unwritable",
    "changes",
    "load_config",
    "merge",
    "read_config",
    "wanted_inputs",
    "write_config",
]
