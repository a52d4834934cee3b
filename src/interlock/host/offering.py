"""What a model is offered beside the conversation: all tools where they are few, a way to find them where they are many."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from interlock.types import Tool

from . import suspicions
from .loop import builtin, tokens
from .loop.fence import Fence
from .loop.turn import Offer
from .models.seam import Facts
from .register import Register
from .toolbox import Item, Toolbox

MOST_INSTRUCTIONS = 4_000  # characters of one server's
_WORDS, _VALUES = (
    ("title", "description", "$comment"),
    ("const", "enum", "default"),
)  # keywords of a schema
_BY_NAME = (
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
)  # below these the keys are names


class Offering:
    """Makes the offer for one conversation. Once tools have to be searched for it stays so, that the list is the same in each step."""

    def __init__(
        self, toolbox: Toolbox, register: Register, fence: Fence, discovery: float
    ) -> None:
        self._toolbox, self._register, self._fence, self._discovery = (
            toolbox,
            register,
            fence,
            discovery,
        )
        self._version = -1
        self._tools: tuple[Tool, ...] = ()
        self._size = 0
        self._searching = False

    def now(self, facts: Facts) -> Offer:
        """The system prompt and the tools, as they are at this moment."""
        if self._version != self._toolbox.version:
            self._version = self._toolbox.version
            self._tools = tuple(
                _for_model(item)
                for item in self._toolbox.items
                if item.for_model and not item.blocked
            )
            self._size = tokens.of_tools(self._tools)
        self._searching = self._searching or self._size > self._discovery * facts.context
        own = (builtin.RESULT_TOOL, builtin.RESOURCE_TOOL)
        if self._searching:
            return Offer(self._system(), (builtin.FIND_TOOL, builtin.USE_TOOL, *own))
        return Offer(self._system(), (*self._tools, *own))

    def search(self, words: str, limit: int) -> list[Tool]:
        """The tools that fit, as the model may see them."""
        return [
            _for_model(item)
            for item in self._toolbox.search(words, limit)
            if item.for_model and not item.blocked
        ]

    def _system(self) -> str:
        parts = [self._fence.system]
        for server, text in self._register.instructions.items():
            if text:
                parts.append(
                    self._fence.around(
                        suspicions.clean(text)[:MOST_INSTRUCTIONS], f"instructions of {server}"
                    )
                )
        return "\n\n".join(parts)


def _for_model(item: Item) -> Tool:
    """A tool as a model sees it: under its own name here, without what no person could see."""
    tool = item.tool
    return replace(
        tool, name=item.name, title=suspicions.clean(tool.title) if tool.title else None,
        description=suspicions.clean(item.offered.description or tool.label), input_schema=_readable(tool.input_schema),
        output_schema=None, annotations=None, icons=None, meta=None,
    )  # fmt: skip


def _readable(schema: Any) -> Any:
    """A schema without invisible characters in what is there to be read; names and values have to stay as they are."""
    if isinstance(schema, list):
        return [_readable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    readable: dict[str, Any] = {}
    for key, each in schema.items():
        if key in _WORDS and isinstance(each, str):
            readable[key] = suspicions.clean(each)
        elif key in _BY_NAME and isinstance(each, dict):
            readable[key] = {name: _readable(inner) for name, inner in each.items()}
        else:
            readable[key] = each if key in _VALUES else _readable(each)
    return readable
