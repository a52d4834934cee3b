"""Adapters that give the tools of a Client to agent frameworks and to model providers' packages.

Each adapter imports its framework when it is first used, and needs it to be installed. Questions of
a tool are answered by the client's own `elicit=` or `answers=`; cancelling the framework's run
cancels the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazily

if TYPE_CHECKING:
    from .functions import FunctionList
    from .langchain import langchain_tools
    from .mcp_session import client_session
    from .model_calls import OnToolProgress
    from .openai_agents import openai_agents_server
    from .providers import Interface, function_list
    from .pydantic_ai import pydantic_ai_toolset

_ROOMS = {
    ".mcp_session": ("client_session",),
    ".functions": ("FunctionList",),
    ".langchain": ("langchain_tools",),
    ".model_calls": ("OnToolProgress",),
    ".openai_agents": ("openai_agents_server",),
    ".providers": ("Interface", "function_list"),
    ".pydantic_ai": ("pydantic_ai_toolset",),
}

__all__ = [
    "FunctionList",
    "Interface",
    "OnToolProgress",
    "client_session",
    "function_list",
    "langchain_tools",
    "openai_agents_server",
    "pydantic_ai_toolset",
]

__getattr__, __dir__ = lazily(__name__, _ROOMS)
