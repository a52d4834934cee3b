"""The host: a model and a person in front of many servers.

`Host` starts the servers of a configuration (`interlock.configs`), merges their features, and runs
conversations with a model (`Host.session`). A `UserInterface` answers its questions. `Policy`,
`Pins` and a log guard every call. The servers, the policy and the log are in
`interlock_apps.fleet`, the models in `interlock.models`, the pages in `pages`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.lazy_names import lazily

if TYPE_CHECKING:
    from interlock.models.anthropic import Anthropic
    from interlock.models.configured import read_models
    from interlock.models.gemini import Gemini
    from interlock.models.interface import (
        Delta,
        Model,
        ModelAnswer,
        ModelFacts,
        ModelFailure,
        Usage,
    )
    from interlock.models.openai import OpenAI
    from interlock.models.scripted import Scripted, call

    from ..fleet.events import Attached, LogEntry, MessageQueued, TurnEnded
    from ..fleet.log import MemoryLog, SqliteLog
    from ..fleet.pins import Pins
    from ..fleet.policy import Policy, Rule
    from ..fleet.policy_file import PolicyFile
    from ..fleet.questions import (
        AnswerScope,
        CallQuestion,
        Decision,
        FeatureChange,
        Filled,
        FormQuestion,
        NotAnswered,
        PinQuestion,
        PlanQuestion,
        PlanStep,
        ResultQuestion,
        SampledQuestion,
        SampleQuestion,
        StartQuestion,
        UrlQuestion,
        UserInterface,
    )
    from ..fleet.rulebook import load_policy, read_policy
    from .app import Host
    from .attachments import AttachedFile, FileRefused
    from .call_explanation import CallExplanation
    from .consent import Bounds
    from .conversations.branches import Branch
    from .conversations.conversations import Conversations
    from .conversations.projects import Project, Projects
    from .done_calls import DoneCall
    from .loop.budget import Budget
    from .model_context import ContextUse
    from .options import HostOptions
    from .replay import Replay
    from .runs import Run
    from .server_requests import RequestLimits
    from .session import Busy, Session
    from .spending import Spending
    from .timeline import TimelineEntry, TimelineTurn

# Loaded at first use: a conversation needs no web framework, and reading a configuration needs no
# model.
_ROOMS = {
    ".server_requests": ("RequestLimits",),
    ".app": ("Host",),
    ".conversations.branches": ("Branch",),
    ".conversations.conversations": ("Conversations",),
    ".conversations.projects": ("Project", "Projects"),
    ".attachments": ("AttachedFile", "FileRefused"),
    "..fleet.events": ("Attached", "LogEntry", "MessageQueued", "TurnEnded"),
    "..fleet.log": ("MemoryLog", "SqliteLog"),
    ".loop.budget": ("Budget",),
    "interlock.models.anthropic": ("Anthropic",),
    "interlock.models.configured": ("read_models",),
    "interlock.models.gemini": ("Gemini",),
    "interlock.models.openai": ("OpenAI",),
    "interlock.models.scripted": ("Scripted", "call"),
    "interlock.models.interface": (
        "Delta",
        "ModelFacts",
        "Model",
        "ModelFailure",
        "ModelAnswer",
        "Usage",
    ),
    "..fleet.pins": ("Pins",),
    ".call_explanation": ("CallExplanation",),
    ".consent": ("Bounds",),
    ".done_calls": ("DoneCall",),
    ".model_context": ("ContextUse",),
    ".options": ("HostOptions",),
    "..fleet.policy_file": ("PolicyFile",),
    "..fleet.policy": ("Policy", "Rule"),
    "..fleet.questions": (
        "AnswerScope",
        "CallQuestion",
        "Decision",
        "FeatureChange",
        "Filled",
        "FormQuestion",
        "NotAnswered",
        "UserInterface",
        "PinQuestion",
        "PlanQuestion",
        "PlanStep",
        "ResultQuestion",
        "SampledQuestion",
        "SampleQuestion",
        "StartQuestion",
        "UrlQuestion",
    ),
    ".replay": ("Replay",),
    ".runs": ("Run",),
    "..fleet.rulebook": ("load_policy", "read_policy"),
    ".session": ("Busy", "Session"),
    ".spending": ("Spending",),
    ".timeline": ("TimelineEntry", "TimelineTurn"),
}

__all__ = [
    "AnswerScope",
    "Anthropic",
    "Bounds",
    "CallExplanation",
    "DoneCall",
    "PlanQuestion",
    "PlanStep",
    "PolicyFile",
    "RequestLimits",
    "Attached",
    "AttachedFile",
    "Branch",
    "Budget",
    "Busy",
    "CallQuestion",
    "ContextUse",
    "Conversations",
    "Decision",
    "Delta",
    "ModelFacts",
    "FeatureChange",
    "FileRefused",
    "Filled",
    "FormQuestion",
    "Gemini",
    "Host",
    "HostOptions",
    "MemoryLog",
    "MessageQueued",
    "Model",
    "ModelFailure",
    "NotAnswered",
    "LogEntry",
    "OpenAI",
    "UserInterface",
    "PinQuestion",
    "Pins",
    "Policy",
    "Project",
    "Projects",
    "Replay",
    "ResultQuestion",
    "Rule",
    "Run",
    "ModelAnswer",
    "SampleQuestion",
    "SampledQuestion",
    "Scripted",
    "Session",
    "Spending",
    "SqliteLog",
    "StartQuestion",
    "TimelineEntry",
    "TimelineTurn",
    "TurnEnded",
    "UrlQuestion",
    "Usage",
    "call",
    "load_policy",
    "read_models",
    "read_policy",
]

__getattr__, __dir__ = lazily(__name__, _ROOMS)
