"""The system prompt and tools of a request to the model, or a tool search in place of the tools."""

from __future__ import annotations

from operator import is_not
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from interlock.models.interface import ModelFacts
from interlock.types import Tool

from ..fleet import threat_scan
from ..fleet.toolbox import ServerTool, Toolbox
from .call_plans import PLAN_FIRST
from .consent import ConversationConsent
from .conversations.projects import Project
from .feature_approvals import FeatureApprovals
from .loaded_skills import LoadedSkills
from .loop import builtin_tools, tokens
from .loop.turn import ModelContext
from .loop.untrusted_text import UntrustedTextMarker

MOST_SKILLS = 100  # skills of one server that are listed for a model
MOST_ABOUT_A_SKILL = 300  # characters of one description
MOST_INSTRUCTIONS = 4_000  # characters of one server's instructions
# schema keywords with text
_WORDS = ("title", "description", "$comment")
_VALUES = ("const", "enum", "default")
_BY_NAME = (
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
)  # below these keywords the keys are names


ToolOffer = Literal["auto", "all", "search"]


class LeftOut(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the model does not see of a conversation: by which rule, and about how many tokens."""

    rule: str
    words: str
    tokens: int


class ContextUse(Struct, frozen=True, kw_only=True, rename="camel"):
    """How a conversation uses the context window of its model.

    Attributes:
        window: The context window, in tokens. All other numbers of tokens are estimates.
        answer: Kept free for the answer.
        system: The system prompt, with the instructions and skills of servers.
        tools: The offered tools.
        messages: The messages, without what was left out.
        left_out: What was left out so far.
        offer: How tools are offered: "auto" decides by their size.
        search: Whether the model has a tool search instead of the tools of servers.
        all_tools: All tools of servers, whether they are offered or not.
        limit: The tokens that the tools of servers may take with "auto".
        names: The offered tools by name.
    """

    window: int
    answer: int
    system: int
    tools: int
    messages: int
    left_out: tuple[LeftOut, ...] = ()
    offer: ToolOffer = "auto"
    search: bool = False
    all_tools: int = 0
    limit: int = 0
    names: tuple[str, ...] = ()


class ModelContextBuilder:
    """Builds the system prompt and the tools for one conversation.

    Once tools are offered by search, this does not change back by itself, so that the list stays
    the same in each step.

    Attributes:
        offer: How tools are offered.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        features: FeatureApprovals,
        skills: LoadedSkills,
        marker: UntrustedTextMarker,
        discovery: float,
        consent: ConversationConsent,
        project: Project | None = None,
    ) -> None:
        self._consent = consent
        self._toolbox = toolbox
        self._features = features
        self._skills = skills
        self._marker = marker
        self._discovery = discovery
        self.offer: ToolOffer = "auto"
        self._project = project
        self._version = -1
        self._tools: tuple[Tool, ...] = ()
        self._size = 0
        self._searching = False
        self._offered: tuple[Tool, ...] = ()  # what was offered last
        self._offered_size = 0  # its tokens

    def now(self, facts: ModelFacts) -> ModelContext:
        """The current system prompt and tools."""
        if self._version != self._toolbox.version:
            self._version = self._toolbox.version
            self._tools = tuple(
                _for_model(item)
                for item in self._toolbox.items
                if item.for_model and not item.blocked and self._offers(item.server)
            )
            self._size = tokens.of_tools(self._tools)
        if self.offer == "auto":
            self._searching = self._searching or self._size > self._discovery * facts.context
        searching = self._searching if self.offer == "auto" else self.offer == "search"
        own: tuple[Tool, ...] = (builtin_tools.RESULT_TOOL, builtin_tools.RESOURCE_TOOL)
        if self._skills.offered:
            own = (*own, builtin_tools.LOAD_SKILL_TOOL, builtin_tools.READ_SKILL_TOOL)
        if self._consent.mode == "plan":
            own = (*own, builtin_tools.PLAN_TOOL)
        if searching:
            tools: tuple[Tool, ...] = (builtin_tools.FIND_TOOL, builtin_tools.USE_TOOL, *own)
        else:
            tools = (*self._tools, *own)
        if len(tools) != len(self._offered) or any(map(is_not, tools, self._offered)):
            self._offered = tools
            self._offered_size = tokens.of_tools(tools)
        system = self._system()
        size = self._offered_size + tokens.of_text(system)
        return ModelContext(system, self._offered, size, searching)

    def choose(self, offer: ToolOffer) -> None:
        """Change how tools are offered; "auto" decides anew."""
        self.offer = offer
        self._searching = False

    def use(
        self, facts: ModelFacts, *, answer: int, messages: int, left_out: tuple[LeftOut, ...]
    ) -> ContextUse:
        """How the context window is used now.

        Args:
            facts: The facts of the model.
            answer: The tokens that are kept free for the answer.
            messages: The tokens of the messages.
            left_out: What was left out of them.
        """
        now = self.now(facts)
        return ContextUse(
            window=facts.context,
            answer=answer,
            system=now.size - self._offered_size,
            tools=self._offered_size if facts.tools else 0,
            messages=messages,
            left_out=left_out,
            offer=self.offer,
            search=now.search,
            all_tools=self._size,
            limit=int(self._discovery * facts.context),
            names=tuple(tool.name for tool in now.tools) if facts.tools else (),
        )

    def search(self, words: str, limit: int) -> list[Tool]:
        """The matching tools, as the model may see them."""
        return [
            _for_model(item)
            for item in self._toolbox.search(words, limit)
            if item.for_model and not item.blocked and self._offers(item.server)
        ]

    def _offers(self, server: str) -> bool:
        """Whether the project of the conversation has a server."""
        return self._project is None or self._project.offers(server)

    def _system(self) -> str:
        parts = [self._marker.system]
        if self._consent.mode == "plan":
            parts.append(PLAN_FIRST)
        if self._project is not None and self._project.instructions.strip():
            parts.append(f"Instructions of the user:\n{self._project.instructions.strip()}")
        for server, text in self._features.instructions.items():
            if text and self._offers(server):
                parts.append(
                    self._marker.wrap(
                        threat_scan.clean(text)[:MOST_INSTRUCTIONS], f"instructions of {server}"
                    )
                )
        parts += self._listed_skills()
        return "\n\n".join(parts)

    def _listed_skills(self) -> list[str]:
        """The listed skills, described by their entries, each server's between its own marks."""
        lines: dict[str, list[str]] = {}
        for server, entry in self._skills.listed():
            if not self._offers(server):
                continue
            words = threat_scan.clean(f"{entry.name}: {entry.description}")[:MOST_ABOUT_A_SKILL]
            lines.setdefault(server, []).append(f"{threat_scan.clean(entry.uri)} - {words}")
        listed = []
        for server, each in lines.items():
            more = len(each) - MOST_SKILLS
            shown = each[:MOST_SKILLS] + ([f"... and {more} more"] if more > 0 else [])
            listed.append(
                self._marker.wrap(
                    "\n".join(shown),
                    f"skills of {server}, to be loaded with {builtin_tools.LOAD_SKILL}",
                )
            )
        return listed


def _for_model(item: ServerTool) -> Tool:
    """A tool as a model sees it: under its name in this host, without invisible characters."""
    tool = item.tool
    return replace(
        tool,
        name=item.name,
        title=threat_scan.clean(tool.title) if tool.title else None,
        description=threat_scan.clean(item.offered.description or tool.label),
        input_schema=_readable(tool.input_schema),
        output_schema=None,
        annotations=None,
        icons=None,
        meta=None,
    )


def _readable(schema: Any) -> Any:
    """A schema without invisible characters in descriptions; names and values are not changed."""
    if isinstance(schema, list):
        return [_readable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    readable: dict[str, Any] = {}
    for key, each in schema.items():
        if key in _WORDS and isinstance(each, str):
            readable[key] = threat_scan.clean(each)
        elif key in _BY_NAME and isinstance(each, dict):
            readable[key] = {name: _readable(inner) for name, inner in each.items()}
        else:
            readable[key] = each if key in _VALUES else _readable(each)
    return readable
