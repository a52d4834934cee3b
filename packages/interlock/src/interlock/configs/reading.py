"""Reads a configuration of any product: returns the usable entries, and problems in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from ..untrusted.invisible import visible_line
from .documents import Members, Unreadable, find_syntax, read_document
from .drafts import (
    Draft,
    Fields,
    ReadFile,
    SkippedEntry,
    UnusableEntry,
    check_id,
    finish,
    has_no_sense,
)
from .entries import Config, Entry, Input, Problem
from .formats import Format, formats_of, sections_of
from .products import FORMATS, RawEntry
from .variables import Scope, UnfilledVariable, referred_inputs

MOST_ENTRIES: Final = 1000
"""The largest number of servers in a configuration."""

_SECTIONS = (
    "mcpServers, servers (VS Code), context_servers (Zed), mcp_servers (Codex, "
    "TOML) or extensions (Goose, YAML)"
)


def read_config(
    text: str,
    *,
    format: str | None = None,
    env: Mapping[str, str],
    inputs: Mapping[str, str] = {},
    folder: Path | None = None,
    source: str = "",
    read_file: ReadFile | None = None,
) -> Config:
    """Read a configuration. An invalid text raises no error: each problem is reported, and the
    other servers are used.

    Args:
        text: The configuration; at most 1 MiB and 1,000 servers.
        format: The name of a product or format (`FORMATS`); None to detect it from the text.
        env: The environment for `${NAME}`.
        inputs: The user's answers to `wanted_inputs`, by id.
        folder: The folder that the configuration belongs to, for `${workspaceFolder}` and relative
            folders. From a `.claude.json` the servers of this project are read too.
        source: The name of the file, for people. Its suffix may determine the syntax.
        read_file: Reads an `envFile`. Without it, entries with one are left out.

    Raises:
        ValueError: The format is unknown.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format {format}; known are {', '.join(FORMATS)}")
    reading = _Reading(Scope(env=env, answers=inputs, folder=folder), source, read_file)
    try:
        document, formats = _document(text, format, source)
    except Unreadable as bad:
        return Config(problems=(Problem(where=source, words=f"it cannot be read: {bad}"),))
    reading.read(document, formats)
    return Config(entries=tuple(reading.entries.values()), problems=tuple(reading.problems))


def wanted_inputs(
    text: str, format: str | None = None, *, source: str = "", folder: Path | None = None
) -> tuple[Input, ...]:
    """Return the `inputs` that servers use, to ask the user before the configuration is read.

    An input without a description is treated as a secret. A malformed text has no inputs;
    `read_config` reports its problem.

    Args:
        text: The configuration.
        format: Its format; detected by default.
        source: The name of the file, to detect the format.
        folder: The folder of the configuration, for its variables.

    Raises:
        ValueError: The format is unknown.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format {format}; known are {', '.join(FORMATS)}")
    try:
        document, formats = _document(text, format, source)
    except Unreadable:
        return ()
    described = _inputs(document)
    asking = [format for format in formats if format.asks]
    raw = [
        raw
        for _, _, raw in _servers(document, asking, folder)
        if isinstance(raw, Mapping) and raw.get("disabled") is not True
    ]
    ids = dict.fromkeys(id for one in raw for text in _texts(one) for id in referred_inputs(text))
    return tuple(described.get(id) or Input(id=id, description=id, password=True) for id in ids)


def raw_entries(text: str, *, source: str = "") -> dict[str, tuple[str, RawEntry]]:
    """Return the entries of a configuration as they are written, with the format of each.

    Variables are not filled in, so that an entry can be changed and written again. The names of
    formats are those of `FORMATS`. A malformed text has no entries; `read_config` reports its
    problem.

    Args:
        text: The configuration.
        source: The name of the file, to detect the syntax.
    """
    try:
        document, formats = _document(text, None, source)
    except Unreadable:
        return {}
    return {
        id: (format.name, dict(raw))
        for format, id, raw in _servers(document, formats, None)
        if isinstance(raw, Mapping)
    }


def _document(text: str, format: str | None, source: str) -> tuple[Mapping[str, Any], list[Format]]:
    syntax = FORMATS[format].syntax if format is not None else find_syntax(text, source)
    document = read_document(text, syntax)
    if not isinstance(document, Mapping):
        raise Unreadable("it must be an object or a table")
    return document, formats_of(document, syntax) if format is None else [FORMATS[format]]


class _Reading:
    """The entries and problems of one text."""

    def __init__(self, scope: Scope, source: str, read_file: ReadFile | None) -> None:
        self.scope = scope
        self.source = source
        self.read_file = read_file
        self.entries: dict[str, Entry] = {}
        self.problems: list[Problem] = []
        self._seen: dict[str, str] = {}
        self._shared_sandbox: Any = None  # of VS Code, beside the servers

    def read(self, document: Mapping[str, Any], formats: list[Format]) -> None:
        self.scope = structs.replace(self.scope, inputs=_inputs(document))
        self._shared_sandbox = document.get("sandbox")
        found = 0
        self._check_sections(document, formats)
        for format, id, raw in _servers(document, formats, self.scope.folder):
            found += 1
            if found > MOST_ENTRIES:
                self._problem(
                    "", f"it has more than {MOST_ENTRIES} servers; the others are left out"
                )
                return
            if id in self._seen:
                self.entries.pop(id, None)
                self._problem(
                    id, "this name is there more than once, so none of them is used; keep one"
                )
                continue
            self._seen[id] = format.name
            self._entry(format, id, raw)

    def _check_sections(self, document: Mapping[str, Any], formats: list[Format]) -> None:
        sections = [section for format in formats for section in sections_of(document, format)]
        if not sections and not isinstance(document.get("projects"), Mapping):
            self._problem("", f"it holds no servers; they belong under {_SECTIONS}")
        for name, section in sections:
            if not isinstance(section, Mapping):
                self._problem("", f"{name} must be an object with the servers by name")
            for id in section.twice if isinstance(section, Members) else ():
                self._seen[id] = name  # the parser kept only the last one
        if isinstance(document, Members):
            for name in sorted(document.twice & {name for name, _ in sections}):
                self._problem(
                    "",
                    f"{name} is there more than once, and only the last was read; merge them",
                )

    def _entry(self, format: Format, id: str, raw: Any) -> None:
        try:
            check_id(id)
            if not isinstance(raw, Mapping):
                raise UnusableEntry("it must be an object with a command or a url")
            if isinstance(raw, Members) and raw.twice:
                raise UnusableEntry(
                    f"{', '.join(sorted(raw.twice))} is in it more than once; keep one"
                )
            if any(has_no_sense(text) for text in _texts(raw)):
                raise UnusableEntry("it holds a character that no text can have")
            fields = Fields(raw)
            draft = format.draft(fields)
            draft.sandbox = self._sandbox(fields)
            entry = finish(id, draft, self.scope, source=self.source, read_file=self.read_file)
        except SkippedEntry as aside:
            self._problem(id, f"left out: {aside}", note=True)
        except (UnusableEntry, UnfilledVariable) as bad:
            self._problem(id, f"left out: {bad}")
        else:
            self.entries[id] = entry
            for words in (
                *fields.notes,
                *_useless(draft),
                *(f"its {key} is unknown and not used" for key in fields.leftover()),
            ):
                self._problem(id, words, note=True)

    def _sandbox(self, fields: Fields) -> Any:
        """Return the value that says how an entry is confined; None if nothing says so.

        `sandboxEnabled` of VS Code allows no network unless its policy names domains.
        """
        own = fields.value("sandbox")
        if not fields.flag("sandboxEnabled") or isinstance(own, bool):
            return own
        policy = own if own is not None else self._shared_sandbox
        if policy is None:
            policy = {}
        if not isinstance(policy, Mapping):
            raise UnusableEntry("its sandbox must be an object")
        network = policy.get("network", {})
        if isinstance(network, Mapping):
            network = {"allowedDomains": [], **network}
        return {**policy, "network": network}

    def _problem(self, id: str, words: str, *, note: bool = False) -> None:
        name = id if len(id) <= 200 else f"{id[:40]}..."
        where = ": ".join(filter(None, (self.source, visible_line(name))))
        self.problems.append(
            Problem(
                where=where, words=visible_line(words), id=id, level="note" if note else "error"
            )
        )


def _servers(
    document: Mapping[str, Any], formats: list[Format], folder: Path | None
) -> Iterator[tuple[Format, str, Any]]:
    """Yield every server of a document with its id. Those of one project in `.claude.json` come
    last.
    """
    for format in formats:
        for _, section in sections_of(document, format):
            if isinstance(section, Mapping):
                yield from ((format, str(id), raw) for id, raw in section.items())
    projects = document.get("projects")
    own = (
        projects.get(str(folder)) if isinstance(projects, Mapping) and folder is not None else None
    )
    servers = own.get("mcpServers") if isinstance(own, Mapping) else None
    if isinstance(servers, Mapping):
        yield from ((FORMATS["claude-code"], str(id), raw) for id, raw in servers.items())


def _useless(draft: Draft) -> Iterator[str]:
    """Yield notes on keys that this kind of entry does not use."""
    if draft.url:
        there = {
            "args": draft.args,
            "env": draft.env,
            "cwd": draft.cwd,
            "envFile": draft.env_file,
            "sandbox": draft.sandbox,
        }
        yield from (
            f"its {name} is not used: it has a url, so nothing is started"
            for name, value in there.items()
            if value
        )
    elif draft.headers or draft.headers_from:
        yield "its headers are not used: it has a command and no url"


def _inputs(document: Mapping[str, Any]) -> dict[str, Input]:
    """Return the descriptions under `inputs`, without invalid ones."""
    mcp = document.get("mcp")
    found: dict[str, Input] = {}
    for described in (
        document.get("inputs"),
        mcp.get("inputs") if isinstance(mcp, Mapping) else None,
    ):
        for raw in described if isinstance(described, list) else ():
            if isinstance(raw, Mapping) and isinstance(raw.get("id"), str):
                found.setdefault(raw["id"], _input(raw))
    return found


def _input(raw: Mapping[str, Any]) -> Input:
    options = raw.get("options")
    values = (
        [option.get("value") if isinstance(option, Mapping) else option for option in options]
        if isinstance(options, list)
        else []
    )
    default = raw.get("default")
    kind = raw.get("type")
    return Input(
        id=raw["id"],
        type=kind if isinstance(kind, str) else "promptString",
        description=str(raw.get("description") or ""),
        default=default if isinstance(default, str) else None,
        options=tuple(value for value in values if isinstance(value, str)),
        password=raw.get("password") is True,
    )


def _texts(value: Any) -> Iterator[str]:
    """Yield every string within a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
