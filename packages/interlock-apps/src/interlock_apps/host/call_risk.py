"""The risk of a call: why the advised answer to the question about it is no."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..fleet.argument_paths import paths_in
from ..fleet.patterns import under
from ..fleet.policy import Policy
from ..fleet.rule_text import in_words
from ..fleet.toolbox import ServerTool
from .consent import says_destructive


def risk_of(
    item: ServerTool,
    arguments: Mapping[str, Any],
    trusted: bool,
    *,
    policy: Policy,
    session: str,
    folders: Iterable[str],
) -> str:
    """Return what is risky about a call, in words for the person; "" if nothing is known.

    A server is believed if it says that its tool is dangerous, and only if it is trusted if it says
    that the tool is not.

    Args:
        item: The tool.
        arguments: The arguments.
        trusted: Whether the server is trusted.
        policy: The rules; a call that none of the rules about its tool covers goes beyond them.
        session: The conversation.
        folders: The folders that the person has shared with the server.
    """
    if says_destructive(item.tool):
        return "The tool says that it is destructive: it may delete or overwrite."
    says = item.tool.annotations
    if not trusted and says is not None and says.open_world_hint and not says.read_only_hint:
        return (
            f"The tool says that it acts outside of this machine, and you do not trust "
            f"{item.server}."
        )
    shared = tuple(folders)
    for path in paths_in(arguments):
        if shared and path.absolute and not any(under(path.value, folder) for folder in shared):
            return f"{path.value} is outside of the folders that you share with {item.server}."
    narrower = policy.narrower(item.server, item.tool, arguments, trusted, session)
    if narrower is not None:
        return f"It goes beyond what you allowed. {in_words(narrower)}"
    return ""
