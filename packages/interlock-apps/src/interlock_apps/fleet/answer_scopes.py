"""Scopes of an answer: which other calls an answer to a call may cover, as rules of the policy."""

from __future__ import annotations

import ntpath
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from interlock.types import Tool

from . import threat_scan
from .argument_paths import is_absolute
from .patterns import BadPattern, Pattern, under
from .policy import Policy, Rule, exactly, hints
from .rule_text import rule_toml

MOST_SCOPES = 8
MOST_EXACT = 6  # arguments of a call that a scope may repeat
MOST_LENGTH = 300  # characters of a value in a scope

_MAIL = re.compile(r"[^@\s,;<>\"']+@((?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,})")
_HOST = re.compile(r"(?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+(?::\d+)?")
_GLOBAL = frozenset({"/", "//", "~", ""})


class ScopedRule(Struct, frozen=True):
    """A scope in words, and its rule. The rule always allows the call that it was made from."""

    words: str
    rule: Rule


def scopes_of(
    server: str,
    tool: Tool,
    arguments: Mapping[str, Any],
    trusted: bool,
    folders: Iterable[str] = (),
) -> list[ScopedRule]:
    """Return the scopes that a person would name for a call, narrow ones first.

    Args:
        server: The configured id of the server.
        tool: The tool.
        arguments: The arguments of the call.
        trusted: Whether the annotations of the server are believed.
        folders: Folders that the person has shared with the server; a path in one of them gives a
            scope for all of it.
    """
    reads = trusted and hints(tool.annotations)["read_only"]
    found: dict[str, ScopedRule] = {}
    for scope in _candidates(server, tool, arguments, reads, tuple(folders)):
        if scope is None or scope.words in found:
            continue
        if _covers(scope, server, tool, arguments, trusted):
            found[scope.words] = scope
    return list(found.values())[:MOST_SCOPES]


def _covers(
    scope: ScopedRule, server: str, tool: Tool, arguments: Mapping[str, Any], trusted: bool
) -> bool:
    """Whether the rule allows the call itself, and can be written to a file."""
    try:
        rule_toml(scope.rule)
    except ValueError:
        return False
    alone = Policy([scope.rule], trusted_read_only="ask")
    return alone.judge(server, tool, arguments, trusted).decision == "allow"


def _candidates(
    server: str,
    tool: Tool,
    arguments: Mapping[str, Any],
    reads: bool,
    folders: Sequence[str],
) -> Iterator[ScopedRule | None]:
    name = threat_scan.visible(tool.name)
    yield _exact(server, tool, arguments)
    for argument, value in arguments.items():
        key = _path_of(argument)
        shown = threat_scan.visible(argument)
        for pattern, words in _patterns(value, folders):
            yield _scope(
                f"{name} with {shown} {words}", server, {"tool": exactly(tool.name)}, {key: pattern}
            )
            if reads and isinstance(pattern, dict) and "under" in pattern:
                yield _scope(
                    f"All reads of {server} with {shown} {words}",
                    server,
                    {"read_only": True},
                    {key: pattern},
                )
    yield _scope(f"Every call of {name}", server, {"tool": exactly(tool.name)}, {})
    if reads:
        yield _scope(f"All read-only tools of {server}", server, {"read_only": True}, {})


def _scope(
    words: str, server: str, about: Mapping[str, Any], arguments: dict[str, Pattern]
) -> ScopedRule | None:
    try:
        rule = Rule(decision="allow", server=exactly(server), arguments=arguments, **about)
    except BadPattern:
        return None
    return ScopedRule(words, rule)


def _exact(server: str, tool: Tool, arguments: Mapping[str, Any]) -> ScopedRule | None:
    """The scope of equal calls: the same values, and no other argument."""
    if not 0 < len(arguments) <= MOST_EXACT or len(repr(arguments)) > MOST_LENGTH:
        return None
    declared = tool.input_schema.get("properties", {})
    others = [name for name in declared if name not in arguments] if declared else []
    patterns: dict[str, Pattern] = {
        _path_of(name): {"is": value} for name, value in arguments.items()
    }
    patterns |= {_path_of(name): {"given": False} for name in others}
    if tool.input_schema.get("additionalProperties") is not False:
        patterns["*"] = {"in": list(arguments.values())}  # for arguments that are not declared
    name = threat_scan.visible(tool.name)
    words = f"{name} with these values"
    return _scope(words, server, {"tool": exactly(tool.name)}, patterns)


def _patterns(value: Any, folders: Sequence[str]) -> Iterator[tuple[Pattern, str]]:
    """The patterns that a value suggests, each with words for it."""
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(each, str) and each for each in texts):
        return
    if any(len(each) > MOST_LENGTH for each in texts):
        return
    if all(map(is_absolute, texts)):
        yield from _folders(texts, folders)
    mails = [_MAIL.fullmatch(each) for each in texts]
    domains = {found[1].lower() for found in mails if found is not None}
    if all(mails) and len(domains) == 1:
        (domain,) = domains
        pattern: Pattern = {"matches": rf"[^@\s,;<>]+@{re.escape(domain)}"}
        yield pattern, f"ending in @{domain}"
    sites = {_site(each) for each in texts}
    if len(sites) == 1 and (site := next(iter(sites))):
        yield {"matches": rf"{re.escape(site)}(?:[/?#].*)?"}, f"on {site}"


def _folders(texts: Sequence[str], shared: Sequence[str]) -> Iterator[tuple[Pattern, str]]:
    """The folder of the paths, and each shared folder that they are in."""
    parents = {_parent(each) for each in texts}
    near = parents.pop() if len(parents) == 1 else ""
    wider = [folder for folder in shared if all(under(each, folder) for each in texts)]
    for folder in dict.fromkeys([near, *wider]):
        if folder.rstrip("/\\") not in _GLOBAL:
            yield {"under": folder}, f"under {threat_scan.visible(folder)}"


def _parent(path: str) -> str:
    if path[:8].lower() == "file:///":
        return ""
    if path[1:2] == ":" or path.startswith("\\\\"):
        parent = ntpath.dirname(path)
        return "" if ntpath.splitdrive(parent)[1].strip("\\/") == "" else parent
    return posixpath.dirname(path)


def _site(text: str) -> str:
    """The scheme and host of a web address; "" for any other text, and for one with a user."""
    try:
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or not _HOST.fullmatch(parts.netloc):
            return ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}"


def _path_of(name: str) -> str:
    """The name of an argument as the path of a pattern."""
    return re.sub(r"[\\.*]", r"\\\g<0>", name)
