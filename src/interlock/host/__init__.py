"""The host: a model and a person in front of many servers.

`Host` starts the servers of a configuration (`interlock.configs`), merges what they offer and
runs conversations with a model (`Host.session`). A `UserInterface` answers what has to be asked.
`Policy`, `Pins` and a log stand around every call. The packages below: `hub` (one client kept for
each server), `models` (providers), `log`, `loop` (the turn, pure), `web` (the pages).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.lazily import lazily

if TYPE_CHECKING:
    from .answering import RequestLimits
    from .app import Host
    from .events import Attached, LogEntry, TurnEnded
    from .log import MemoryLog, Replay, SqliteLog
    from .loop.budget import Budget
    from .models.anthropic import Anthropic
    from .models.configured import read_models
    from .models.gemini import Gemini
    from .models.openai import OpenAI
    from .models.scripted import Scripted, call
    from .models.seam import Delta, Model, ModelAnswer, ModelFacts, ModelFailure, Usage
    from .pins import Pins
    from .policy import Policy, Rule
    from .questions import (
        CallQuestion,
        Decision,
        FeatureChange,
        Filled,
        FormQuestion,
        NotAnswered,
        PinQuestion,
        ResultQuestion,
        SampledQuestion,
        SampleQuestion,
        StartQuestion,
        UrlQuestion,
        UserInterface,
    )
    from .rulebook import load_policy, read_policy
    from .session import Busy, Session

# Loaded at first use: who runs a conversation loads no web framework, and who reads a configuration no model.
_ROOMS = {
    ".answering": ("RequestLimits",),
    ".app": ("Host",),
    ".events": ("Attached", "LogEntry", "TurnEnded"),
    ".log": ("MemoryLog", "Replay", "SqliteLog"),
    ".loop.budget": ("Budget",),
    ".models.anthropic": ("Anthropic",),
    ".models.configured": ("read_models",),
    ".models.gemini": ("Gemini",),
    ".models.openai": ("OpenAI",),
    ".models.scripted": ("Scripted", "call"),
    ".models.seam": ("Delta", "ModelFacts", "Model", "ModelFailure", "ModelAnswer", "Usage"),
    ".pins": ("Pins",),
    ".policy": ("Policy", "Rule"),
    ".questions": (
        "CallQuestion",
        "Decision",
        "FeatureChange",
        "Filled",
        "FormQuestion",
        "NotAnswered",
        "UserInterface",
        "PinQuestion",
        "ResultQuestion",
        "SampledQuestion",
        "SampleQuestion",
        "StartQuestion",
        "UrlQuestion",
    ),
    ".rulebook": ("load_policy", "read_policy"),
    ".session": ("Busy", "Session"),
}

__all__ = [
    "Anthropic",
    "RequestLimits",
    "Attached",
    "Budget",
    "Busy",
    "CallQuestion",
    "Decision",
    "Delta",
    "ModelFacts",
    "FeatureChange",
    "Filled",
    "FormQuestion",
    "Gemini",
    "Host",
    "MemoryLog",
    "Model",
    "ModelFailure",
    "NotAnswered",
    "LogEntry",
    "OpenAI",
    "UserInterface",
    "PinQuestion",
    "Pins",
    "Policy",
    "Replay",
    "ResultQuestion",
    "Rule",
    "ModelAnswer",
    "SampleQuestion",
    "SampledQuestion",
    "Scripted",
    "Session",
    "SqliteLog",
    "StartQuestion",
    "TurnEnded",
    "UrlQuestion",
    "Usage",
    "call",
    "load_policy",
    "read_models",
    "read_policy",
]

__getattr__, __dir__ = lazily(__name__, _ROOMS)
