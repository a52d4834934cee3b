"""Catalogues: what a server offers, taken from a server, a snapshot or a tape, and compared.

`check_catalogue` fails a test when a change of the server would break its callers.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from .. import types as t
from ..client.app import Client
from ..client.optional_lists import unless_missing
from ..server.app import Server
from ..tape.file import TapeFile
from ..tape.format import Line
from ..wire.codec import encode
from .drift import Catalogue, Drift, compare_catalogues

_TOOL = ("title", "description", "inputSchema", "outputSchema", "annotations")
_RESOURCE = ("name", "title", "description", "mimeType")

_LONG = 40  # a snapshot keeps only the digest of texts with more characters
# JSON Schema: annotations for readers, and the keywords that contain subschemas.
_FOR_READERS = ("title", "description", "examples", "$comment")
_MAPS_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS_OF_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMAS = (
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
)


class _Lists(Struct, rename="camel"):
    """The features of a server as it lists them."""

    tools: list[t.Tool] = []
    prompts: list[t.Prompt] = []
    resources: list[t.Resource] = []
    resource_templates: list[t.ResourceTemplate] = []

    def catalogue(self) -> Catalogue:
        """The members that callers rely on, by name."""
        return {
            "tools": {tool.name: _said(tool, _TOOL) for tool in self.tools},
            "prompts": {
                prompt.name: _said(prompt, ("title", "description", "arguments"))
                for prompt in self.prompts
            },
            "resources": {resource.uri: _said(resource, _RESOURCE) for resource in self.resources},
            "templates": {
                template.uri_template: _said(template, _RESOURCE)
                for template in self.resource_templates
            },
        }


_LISTS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


async def take_catalogue(target: Server | Client) -> Catalogue:
    """Return the features of a server: tools, prompts, resources and templates by name.

    Each entry has the members that callers rely on. A list that the server does not support
    (-32601) is empty.
    """
    if isinstance(target, Server):
        async with Client(target) as client:
            return await take_catalogue(client)
    offers = target.server_capabilities
    lists = _Lists()
    if offers.tools is not None:
        lists.tools = await unless_missing(target.list_tools()) or []
    if offers.prompts is not None:
        lists.prompts = await unless_missing(target.list_prompts()) or []
    if offers.resources is not None:
        lists.resources = await unless_missing(target.list_resources()) or []
        lists.resource_templates = await unless_missing(target.list_resource_templates()) or []
    return lists.catalogue()


def read_catalogue(path: str | Path) -> Catalogue:
    """Read a catalogue from a file.

    Args:
        path: A tape, whose last lists count; or JSON: a snapshot of `check_catalogue`, or the
            output of `interlock list --json`. A snapshot has digests in place of long texts:
            compare it with the `condensed` form of another catalogue.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is neither, or a tape without lists.
    """
    path = Path(path)
    if path.suffix == ".json":
        try:
            return _decoded(path.read_bytes())
        except (msgspec.DecodeError, UnicodeDecodeError) as bad:
            raise ValueError(f"{path} is not a catalogue: {bad}") from None
    with TapeFile(path) as tape:
        lists = _lists_of(tape)
    if not lists:
        raise ValueError(f"{path} has no list of tools, prompts or resources")
    try:
        return msgspec.convert(lists, _Lists).catalogue()
    except msgspec.ValidationError as bad:
        raise ValueError(f"{path} has an invalid list: {bad}") from None


def _decoded(data: bytes) -> Catalogue:
    """The catalogue of a JSON file: a snapshot has objects by name, the output of `list` arrays."""
    found = msgspec.json.decode(data, type=dict[str, Any])
    if any(isinstance(found.get(kind), list) for kind in _LISTS.values()):
        return msgspec.convert(found, _Lists).catalogue()
    catalogue = msgspec.convert(found, dict[str, dict[str, dict[str, Any]]])
    for name, tool in catalogue.get("tools", {}).items():
        if "inputSchema" not in tool:
            raise msgspec.ValidationError(f"the tool {name} has no inputSchema")
    return catalogue


def _lists_of(tape: TapeFile) -> dict[str, list[Any]]:
    """The last list of each kind in a tape, with all its pages."""
    found: dict[tuple[str, str], list[Any]] = {}
    for row in tape.rows:
        kind = _LISTS.get(row.method)
        if kind is None or row.kind != "request" or row.partner < 0:
            continue
        result = _member_of(tape.read(tape.rows[row.partner]), "result")
        items = result.get(kind)
        if not isinstance(items, list):
            continue
        if not _member_of(tape.read(row), "params").get("cursor"):
            found.pop((row.connection, kind), None)  # the first page of a new list
        found.setdefault((row.connection, kind), []).extend(items)
    return {kind: items for (_, kind), items in found.items()}


def _member_of(line: object, name: str) -> dict[str, Any]:
    """An object in a recorded message; empty if the message has none of this name."""
    message = line.message if isinstance(line, Line) else None
    value = message.get(name) if isinstance(message, dict) else None
    return value if isinstance(value, dict) else {}


async def check_catalogue(
    target: Server | Client, path: str | Path, *, update: bool = False
) -> Drift:
    """Compare the features of a server with a snapshot, and return the compatible changes.

    Args:
        target: The server, or a client of it.
        path: The file of the snapshot.
        update: Whether to write a new snapshot instead.

    Raises:
        AssertionError: A change breaks callers: a feature or an argument was removed, an argument
            became required or accepts less, or a result guarantees less.
    """
    path = Path(path)
    now = condensed(await take_catalogue(target))
    if not path.is_file():
        if not update:
            raise AssertionError(
                f"there is no catalogue {path} to compare with; run pytest with"
                " --interlock-update to save one"
            )
        _save(now, path)
        return Drift()
    found = compare_catalogues(json.loads(path.read_text(encoding="utf-8")), now)
    if update:
        if found:
            _save(now, path)
    elif found.breaking:
        words = "\n".join(f"  {change}" for change in found.breaking)
        raise AssertionError(
            f"this breaks those who rely on {path.name}:\n{words}\nIf it is meant, run pytest"
            " with --interlock-update."
        )
    return found


def _said(item: Any, members: tuple[str, ...]) -> dict[str, Any]:
    everything = msgspec.json.decode(encode(item))
    return {member: everything[member] for member in members if member in everything}


def condensed(catalogue: Catalogue) -> Catalogue:
    """Return the form of a snapshot: schemas without descriptions, digests in place of long texts.

    A catalogue that has this form already is returned as it is.
    """
    return {
        kind: {name: _condensed(feature) for name, feature in features.items()}
        for kind, features in catalogue.items()
    }


def _condensed(feature: dict[str, Any]) -> dict[str, Any]:
    if "words" in feature:
        return feature
    kept: dict[str, Any] = {}
    words: list[Any] = []
    for member, value in sorted(feature.items()):
        if member in ("inputSchema", "outputSchema"):
            kept[member] = _without_words(value, words)
        elif member == "arguments":
            words.append(value)
            kept[member] = [
                {key: argument[key] for key in ("name", "required") if key in argument}
                for argument in value
            ]
        elif isinstance(value, str) and len(value) > _LONG:
            kept[member] = _digest(value)
        else:
            kept[member] = value
    return {**kept, "words": _digest(words)} if words else kept


def _without_words(schema: Any, words: list[Any]) -> Any:
    """A schema without annotations for readers, which are added to `words`."""
    if not isinstance(schema, dict):
        return schema
    bare: dict[str, Any] = {}
    for key, value in sorted(schema.items()):
        if key in _FOR_READERS:
            words.append([key, value])
        elif key in _MAPS_OF_SCHEMAS and isinstance(value, dict):
            bare[key] = {name: _without_words(one, words) for name, one in sorted(value.items())}
        elif key in _LISTS_OF_SCHEMAS and isinstance(value, list):
            bare[key] = [_without_words(one, words) for one in value]
        elif key in _SCHEMAS:
            bare[key] = _without_words(value, words)
        else:
            bare[key] = value
    return bare


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"


def _save(catalogue: Catalogue, path: Path) -> None:
    """Write a snapshot with one line for each feature, so that diffs are readable."""
    kinds = []
    for kind, features in sorted(catalogue.items()):
        lines = [f"  {_json(name)}: {_json(feature)}" for name, feature in sorted(features.items())]
        listed = ",\n".join(lines)
        kinds.append(f" {_json(kind)}: {{\n{listed}\n }}" if lines else f" {_json(kind)}: {{}}")
    body = ",\n".join(kinds)
    path.write_text(f"{{\n{body}\n}}\n", encoding="utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
