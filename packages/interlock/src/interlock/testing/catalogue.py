"""Catalogue snapshots: a test fails when a change of the server would break its callers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from .. import types as t
from ..client.app import Client
from ..client.optional_lists import unless_missing
from ..server.app import Server
from ..wire.codec import encode
from .drift import Catalogue, Drift, drift

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


async def take_catalogue(target: Server | Client) -> Catalogue:
    """Return the features of a server: tools, prompts, resources and templates by name.

    Each entry has the members that callers rely on. A list that the server does not support
    (-32601) is empty.
    """
    if isinstance(target, Server):
        async with Client(target) as client:
            return await take_catalogue(client)
    offers = target.server_capabilities
    tools: list[t.Tool] | None = None
    prompts: list[t.Prompt] | None = None
    resources: list[t.Resource] | None = None
    templates: list[t.ResourceTemplate] | None = None
    if offers.tools is not None:
        tools = await unless_missing(target.list_tools())
    if offers.prompts is not None:
        prompts = await unless_missing(target.list_prompts())
    if offers.resources is not None:
        resources = await unless_missing(target.list_resources())
        templates = await unless_missing(target.list_resource_templates())
    return {
        "tools": {tool.name: _said(tool, _TOOL) for tool in tools or ()},
        "prompts": {
            prompt.name: _said(prompt, ("title", "description", "arguments"))
            for prompt in prompts or ()
        },
        "resources": {resource.uri: _said(resource, _RESOURCE) for resource in resources or ()},
        "templates": {
            template.uri_template: _said(template, _RESOURCE) for template in templates or ()
        },
    }


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
    found = drift(json.loads(path.read_text(encoding="utf-8")), now)
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
    """The form of a snapshot: schemas without descriptions, and digests in place of long texts."""
    return {
        kind: {name: _condensed(feature) for name, feature in features.items()}
        for kind, features in catalogue.items()
    }


def _condensed(feature: dict[str, Any]) -> dict[str, Any]:
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
