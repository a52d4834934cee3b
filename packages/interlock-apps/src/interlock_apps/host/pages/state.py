"""The state of a host for the page, with texts of servers made safe to display."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ...fleet import threat_scan
from ...fleet.log import SessionRow
from ...fleet.policy import Rule
from ...fleet.questions import Warned
from ...fleet.rule_text import in_words
from ...fleet.toolbox import ServerTool
from ...web.app_policy import ui_of
from ...web.integers import digits
from .excerpts import MOST_STRUCTURED, cut_value, size_of

if TYPE_CHECKING:
    from ..app import Host
    from ..setup.host_setup import HostSetup

# Keys with text for people. Names, URIs and values are unchanged, because they are sent back.
SHOWN = frozenset(
    {
        "text",
        "message",
        "title",
        "description",
        "words",
        "why",
        "remark",
        "instructions",
        "error",
        "label",
        "given",
        "was",
        "now",
        "reason",
    }
)


# Total characters of text in one record: a page cannot show more, nor can a person read it.
MOST_SHOWN = 1_000_000
MOST_TITLE = 200  # characters
# characters of a server's description of itself and its tools; a model gets fewer
MOST_DESCRIPTION = 10_000


def plain(value: Any) -> Any:
    """A record as JSON values, with invisible characters made visible and very long texts cut."""
    return _Showing().shown(msgspec.to_builtins(value, str_keys=True, builtin_types=()), "")


class _Showing:
    """One record being converted for the page."""

    def __init__(self) -> None:
        self._left = MOST_SHOWN

    def shown(self, value: Any, key: str, ours: bool = False) -> Any:
        """Convert a part of the record; `ours`: it may be edited and is sent back whole."""
        if isinstance(value, str):
            return (
                value
                if key not in SHOWN
                else threat_scan.visible(value if ours else self._cut(value))
            )
        if isinstance(value, dict):
            shown = {
                name: self.shown(inner, name, ours or name == "arguments")
                for name, inner in value.items()
            }
            return shown if ours else _with_cut_content(shown)
        if isinstance(value, list | tuple):
            return [self.shown(inner, key, ours) for inner in value]
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        return digits(value) if ours else value

    def _cut(self, text: str) -> str:
        kept = text[: self._left]
        self._left -= len(kept)
        return cut(text, len(kept))


def _with_cut_content(record: dict[str, Any]) -> dict[str, Any]:
    """A result with its structured content cut to what fits the page, and the size of all of it."""
    structured = record.get("structuredContent")
    if not isinstance(structured, dict | list):
        return record
    size = size_of(structured)
    if size <= MOST_STRUCTURED:
        return record
    return {**record, "structuredContent": cut_value(structured), "structuredSize": size}


def cut(text: str, most: int) -> str:
    """The beginning of a text, and the number of omitted characters."""
    return text if len(text) <= most else f"{text[:most]} (… {len(text) - most:,} more characters)"


def state(
    host: Host,
    *,
    title: str,
    demo: str,
    apps_origin: str,
    listed: Sequence[SessionRow] = (),
    setup: HostSetup | None = None,
) -> dict[str, Any]:
    """The whole state of the host, which the page's modules read.

    `listed` are the conversations in the log.
    """
    by_server: dict[str, list[ServerTool]] = {}
    for item in host.toolbox.items:
        by_server.setdefault(item.server, []).append(item)
    return {
        "title": title,
        "demo": demo,
        "appsOrigin": apps_origin,
        "models": [
            {
                "name": m.name,
                "remark": m.facts.remark,
                "context": m.facts.context,
                "efforts": list(m.facts.efforts),
            }
            for m in host.models.values()
        ],
        "sessions": _sessions(host, listed),
        "servers": [
            _server(host, server, by_server.get(server, [])) for server in host.hub.servers
        ],
        "questions": [plain(question) for question in host.questions.values()],
        "projects": [
            {
                "name": project.name,
                "instructions": project.instructions,
                "servers": project.servers,
                "folders": project.folders,
                "file": str(project.source) if project.source is not None else "",
            }
            for project in host.projects.all.values()
        ],
        "project": host.projects.chosen,
        "roots": {server: list(folders) for server, folders in host.roots.granted.items()},
        "rules": [
            {**plain(rule), "id": rule_id(rule), "words": in_words(rule)}
            for rule in host.policy.learned
        ],
        "policyFile": "" if host.rules.file is None else str(host.rules.file.path),
        "mode": host.consents.mode,
        "setup": None if setup is None else setup.state(),
    }


def _sessions(host: Host, listed: Sequence[SessionRow]) -> list[dict[str, Any]]:
    """The conversations of this host, then those of earlier runs."""
    rows = {row.id: row for row in listed}
    open = [
        {
            "id": s.id,
            "title": s.title,
            "model": s.model.name,
            "remark": s.model.facts.remark,
            "running": s.running,
            "effort": s.effort,
            "past": False,
            "consent": plain(s.consent.state()),
            "changedFiles": sum(len(files) for files in host.copies.changed(s.id).values()),
            "sampling": {
                server: {"requests": left.requests, "tokens": left.tokens}
                for server, left in host.sampling(s.id).items()
            },
            **(_listed(rows[s.id]) if s.id in rows else {}),
        }
        for s in host.sessions.values()
    ]
    past = [
        {
            "id": row.id,
            "title": row.title,
            "model": row.model,
            "remark": "",
            "effort": "",
            "running": False,
            "past": True,
            **_listed(row),
        }
        for row in listed
        if row.id not in host.sessions
    ]
    return [*open, *past]


def _listed(row: SessionRow) -> dict[str, Any]:
    """What only the log knows of a conversation."""
    return {
        "began": row.began,
        "spoke": row.spoke,
        "pinned": row.pinned,
        "project": row.project,
    }


def rule_id(rule: Rule) -> str:
    """A rule's id for the page: equal for equal rules."""
    return hashlib.sha256(msgspec.json.encode(rule)).hexdigest()[:16]


def _server(host: Host, server: str, items: list[ServerTool]) -> dict[str, Any]:
    link = host.hub.servers[server]
    blocked = host.features.blocked.get(server, {})
    warnings = host.features.warnings.get(server, {})
    prompts = [
        {
            **plain(prompt),
            "blocked": blocked.get(("prompt", prompt.name), ""),
            "warnings": _warnings(warnings.get(("prompt", prompt.name), ())),
        }
        for prompt in link.prompts
    ]
    capabilities = link.capabilities
    return {
        "id": server,
        "state": link.state,
        "words": threat_scan.visible(link.words),
        "title": threat_scan.visible(
            cut((link.info and (link.info.title or link.info.name)) or server, MOST_TITLE)
        ),
        "revision": link.revision,
        "trusted": link.entry.trusted,
        "command": link.entry.shown,
        "instructions": threat_scan.visible(cut(link.instructions or "", MOST_DESCRIPTION)),
        "completions": capabilities.completions is not None,
        "tools": [_tool(item, warnings.get(("tool", item.tool.name), ())) for item in items],
        "prompts": prompts,
        "resources": [plain(resource) for resource in link.resources],
        "templates": [plain(template) for template in link.templates],
    }


def _warnings(warnings: Sequence[Warned]) -> list[Any]:
    return [plain(warned) for warned in warnings]


def _tool(item: ServerTool, warnings: Sequence[Warned]) -> dict[str, Any]:
    tool = item.tool
    return {
        "name": item.name,
        "tool": tool.name,
        "title": threat_scan.visible(cut(tool.label, MOST_TITLE)),
        "description": threat_scan.visible(cut(tool.description or "", MOST_DESCRIPTION)),
        "annotations": plain(tool.annotations) if tool.annotations else {},
        "inputSchema": plain(tool.input_schema),
        "blocked": item.blocked,
        "warnings": _warnings(warnings),
        "app": ui_of(tool),
    }
